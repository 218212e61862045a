//! Answers of somebody else to the same problems, from a CSV file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Answer {
    /// Pods placed.
    pub(super) placed: usize,
    /// Dollars an hour.
    pub(super) price: f64,
    /// Rules that the answer breaks; such an answer is not compared with.
    pub(super) violations: u64,
}

/// Answers by problem.
#[derive(Debug)]
pub(super) struct Answers(BTreeMap<String, Answer>);

impl Answers {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Self::parse(&text).with_context(|| format!("cannot read {name}"))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| {
            let found = header.iter().position(|title| title.trim() == name);
            found.with_context(|| format!("there is no column {name:?}"))
        };
        let (case, placed, price) = (
            column("case")?,
            column("placed")?,
            column("price_per_hour")?,
        );
        let violations = column("violations").ok();
        let mut answers = BTreeMap::new();
        for line in lines {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let field = |ix: usize| fields.get(ix).copied().unwrap_or_default();
            let wrong = || format!("in line {line:?}");
            let answer = Answer {
                placed: field(placed).parse().with_context(wrong)?,
                price: field(price).parse().with_context(wrong)?,
                violations: violations
                    .map_or(Ok(0), |ix| field(ix).parse())
                    .with_context(wrong)?,
            };
            answers.insert(field(case).to_owned(), answer);
        }
        Ok(Self(answers))
    }

    /// The answer to a problem, if there is one.
    pub(super) fn get(&self, case: &str) -> Option<Answer> {
        self.0.get(case).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_by_name() {
        let text = "placed,case,price_per_hour\n30,generic-1-30,4.128\n";
        let answers = Answers::parse(text).unwrap();
        let expected = Answer {
            placed: 30,
            price: 4.128,
            violations: 0,
        };
        assert_eq!(answers.get("generic-1-30"), Some(expected));
        assert_eq!(answers.get("generic-2-30"), None);
        let error = format!("{:#}", Answers::parse("case,price\n").unwrap_err());
        assert!(error.contains("placed"), "{error}");
        let error = format!(
            "{:#}",
            Answers::parse(&text.replace("30,g", "x,g")).unwrap_err()
        );
        assert!(error.contains("generic-1-30"), "{error}");
    }
}
