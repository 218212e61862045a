//! The figures as a table in Markdown.

use joiner_testkit::Family;

use super::Problem;
use super::answers::Answer;
use super::case::Measured;

/// A part of the page that is written by us.
#[derive(Clone, Copy, Debug)]
pub(super) enum Section {
    /// Prices and times, by family.
    Bench,
    /// How time grows.
    Growth,
    /// The sandbox under load.
    Sandbox,
    /// Looks for nodes to give back.
    Passes,
    /// Random small clusters.
    Small,
    /// Out and in on a real control plane.
    Live,
    /// A large cluster on the embedded one.
    Crowd,
}

impl Section {
    /// The lines before and after it.
    fn marks(self) -> [String; 2] {
        let name = match self {
            Self::Bench => "bench",
            Self::Growth => "growth",
            Self::Sandbox => "sandbox",
            Self::Passes => "passes",
            Self::Small => "small",
            Self::Live => "live",
            Self::Crowd => "crowd",
        };
        [
            format!("<!-- {name}: begin, written by `cargo xtask bench --write` -->"),
            format!("<!-- {name}: end -->"),
        ]
    }
}

/// Figures of one problem, or sums over several of a kind.
#[derive(Clone, Debug)]
pub(super) struct Row {
    family: Family,
    size: usize,
    /// What the first column says.
    title: String,
    n_problems: u32,
    placed: usize,
    left_over: usize,
    nodes: usize,
    price: u64,
    bound: u64,
    /// Rules broken.
    pub(super) violations: usize,
    solve_ms: f64,
    verify_ms: f64,
    peak_kib: Option<u64>,
    /// Our price and theirs, in dollars, where the two can be compared.
    compared: Option<(f64, f64)>,
    /// Pods more than theirs that are placed.
    more_placed: i64,
}

impl Row {
    /// The row of one problem.
    pub(super) fn new(problem: &Problem, measured: &Measured, answer: Option<Answer>) -> Self {
        // Prices for different numbers of pods, or for an illegal plan, say nothing.
        let comparable = answer.filter(|a| a.placed == measured.placed && a.violations == 0);
        let more = answer.map_or(0, |a| signed(measured.placed) - signed(a.placed));
        Self {
            family: problem.family,
            size: problem.size,
            title: problem.family.to_string(),
            n_problems: 1,
            placed: measured.placed,
            left_over: measured.pods - measured.placed,
            nodes: measured.nodes,
            price: measured.price,
            bound: measured.bound,
            violations: measured.violations.len(),
            solve_ms: measured.solve_ms,
            verify_ms: measured.verify_ms,
            peak_kib: measured.peak_kib,
            compared: comparable.map(|a| (dollars(measured.price), a.price)),
            more_placed: more,
        }
    }

    /// The same row under the name of its only problem.
    pub(super) fn titled(self, title: String) -> Self {
        Self { title, ..self }
    }

    /// True when both are of one family and size.
    pub(super) fn same_kind(&self, other: &Self) -> bool {
        (self.family, self.size) == (other.family, other.size)
    }

    /// Adds the figures of another problem.
    pub(super) fn add(&mut self, other: &Self) {
        self.n_problems += other.n_problems;
        self.placed += other.placed;
        self.left_over += other.left_over;
        self.nodes += other.nodes;
        self.price += other.price;
        self.bound += other.bound;
        self.violations += other.violations;
        self.solve_ms += other.solve_ms;
        self.verify_ms += other.verify_ms;
        self.peak_kib = self.peak_kib.max(other.peak_kib);
        self.compared = match (self.compared, other.compared) {
            (Some(one), Some(two)) => Some((one.0 + two.0, one.1 + two.1)),
            (one, two) => one.or(two),
        };
        self.more_placed += other.more_placed;
    }

    /// A line of the table.
    pub(super) fn render(&self, with_answers: bool) -> String {
        let (gap, peak) = (gap(self.price, self.bound), mebibytes(self.peak_kib));
        let n = f64::from(self.n_problems);
        let mut line = format!(
            "| {} | {} | {} | {:.4} | {} | {gap} | {} | {} | {} | {peak} |",
            self.title,
            thousands(self.size),
            self.n_problems,
            dollars(self.price),
            thousands(self.nodes),
            thousands(self.left_over),
            time(self.solve_ms / n),
            time(self.verify_ms / n),
        );
        if with_answers {
            let ratio = self.compared.filter(|(_, theirs)| *theirs > 0.0);
            let ratio = ratio.map_or_else(|| "-".to_owned(), |(us, it)| format!("{:.3}", us / it));
            line.push_str(&format!(" {ratio} | {:+} |", self.more_placed));
        }
        if self.violations > 0 {
            line.push_str(&format!(" {} violations!", self.violations));
        }
        line
    }
}

/// The first two lines of the table.
pub(super) fn header(with_answers: bool) -> String {
    let mut titles =
        "| family | pods | problems | $/h | nodes | over bound | left over | solve ms \
                      | verify ms | peak MiB |"
            .to_owned();
    let mut rule = "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|".to_owned();
    if with_answers {
        titles.push_str(" of incumbent | more placed |");
        rule.push_str("--:|--:|");
    }
    format!("{titles}\n{rule}")
}

/// The section of the page.
pub(super) fn page(rows: &[Row], with_answers: bool) -> String {
    let lines: Vec<String> = rows.iter().map(|row| row.render(with_answers)).collect();
    format!(
        "Measured on {}. Prices, nodes and pods left over are sums over the problems; times are \
         means, of the best run each.\n\n{}\n{}",
        machine(),
        header(with_answers),
        lines.join("\n")
    )
}

/// The page with a marked section replaced, or added at the end.
pub(super) fn with_section(page: &str, section: Section, text: &str) -> anyhow::Result<String> {
    let [begin, end] = section.marks();
    let marked = format!("{begin}\n{text}\n{end}");
    let Some((before, rest)) = page.split_once(&begin) else {
        return Ok(format!("{}\n\n{marked}\n", page.trim_end()));
    };
    match rest.split_once(&end) {
        Some((_, after)) => Ok(format!("{before}{marked}{after}")),
        None => anyhow::bail!("the section of the page begins but does not end"),
    }
}

/// How far a price is above its bound.
pub(super) fn gap(price: u64, bound: u64) -> String {
    if bound == 0 {
        return "-".to_owned();
    }
    let share = dollars(price) / dollars(bound) - 1.0;
    format!("{:.2} %", share * 100.0)
}

/// An amount of memory, where it is known.
pub(super) fn mebibytes(kib: Option<u64>) -> String {
    kib.map_or_else(|| "-".to_owned(), |kib| (kib / 1024).to_string())
}

/// Processor and number of cores, as far as the system tells.
pub(super) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": ")).map(|(_, m)| m);
    format!(
        "{cores} cores of {}",
        model.unwrap_or("an unnamed processor")
    )
}

/// Dollars, of nano-dollars.
pub(super) fn dollars(nanos: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "prices are far below 2^53 nano-dollars"
    )]
    let nanos = nanos as f64;
    nanos / 1e9
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Milliseconds, with digits where there are few.
pub(super) fn time(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.2}")
    } else {
        format!("{ms:.0}")
    }
}

/// A number in groups of three digits.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (ix, digit) in digits.chars().enumerate() {
        if ix > 0 && (digits.len() - ix).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(placed: usize, price: u64) -> Measured {
        Measured {
            pods: 10,
            placed,
            nodes: 2,
            price,
            bound: 1_000_000_000,
            solve_ms: 2.0,
            ..Measured::default()
        }
    }

    fn row(measured: &Measured, answer: Option<Answer>) -> Row {
        let problem = Problem::parse("generic-1-1000".into()).unwrap();
        Row::new(&problem, measured, answer)
    }

    fn answer(placed: usize, violations: u64) -> Option<Answer> {
        Some(Answer {
            placed,
            price: 2.2,
            violations,
        })
    }

    #[test]
    fn rows_add_up() {
        let mut sum = row(&measured(10, 1_100_000_000), answer(10, 0));
        sum.add(&row(&measured(9, 1_100_000_000), answer(10, 0)));
        assert_eq!(
            sum.render(true),
            "| generic | 1,000 | 2 | 2.2000 | 4 | 10.00 % | 1 | 2.00 | 0.00 | - | 0.500 | -1 |"
        );
    }

    #[test]
    fn illegal_answers_are_not_compared_with() {
        let row = row(&measured(10, 1_100_000_000), answer(10, 3));
        assert!(row.render(true).ends_with("| - | +0 |"));
    }

    #[test]
    fn sections_are_replaced_in_place() {
        let [begin, end] = Section::Bench.marks();
        let page = with_section("# Title\n\nText.\n", Section::Bench, "one").unwrap();
        assert_eq!(page, format!("# Title\n\nText.\n\n{begin}\none\n{end}\n"));
        let page = with_section(&format!("{page}More.\n"), Section::Bench, "two").unwrap();
        let both = format!("# Title\n\nText.\n\n{begin}\ntwo\n{end}\nMore.\n");
        assert_eq!(page, both);
        let page = with_section(&page, Section::Growth, "three").unwrap();
        assert!(page.starts_with(&both) && page.contains("three"), "{page}");
        assert!(with_section(&begin, Section::Bench, "four").is_err());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(50_000), "50,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
