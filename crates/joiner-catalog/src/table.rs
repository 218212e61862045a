//! The figures of every instance type, read once from the embedded table.

use std::sync::LazyLock;

use joiner_model::NanoDollars;

use crate::figures::{Accelerator, Figures, Gpu};
use crate::names::Names;

static TYPES: &str = include_str!("../data/types.tsv");
static PRICES: &str = include_str!("../data/prices.tsv");

/// Every type of the table, by name.
pub(crate) fn figures() -> &'static [Figures] {
    static FIGURES: LazyLock<Vec<Figures>> = LazyLock::new(|| {
        let mut names = Names::default();
        let rows = sizes(TYPES).filter_map(|row| parse_type(&row, &mut names));
        let mut all: Vec<Figures> = rows.collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    });
    &FIGURES
}

/// The figures of one type.
pub(crate) fn find(name: &str) -> Option<&'static Figures> {
    let all = figures();
    let at = all.binary_search_by(|row| (*row.name).cmp(name)).ok()?;
    all.get(at)
}

/// The regions with a price table of their own.
pub(crate) fn priced_regions() -> impl Iterator<Item = &'static str> {
    // The last comment line names the columns.
    let header = PRICES.lines().take_while(|line| line.starts_with('#'));
    header.last().unwrap_or("").split('\t').skip(1)
}

/// On-demand prices in one of the [`priced_regions`]: family, size and price, in table order.
pub(crate) fn prices(
    region: &str,
) -> Option<impl Iterator<Item = ((&'static str, &'static str), NanoDollars)> + use<>> {
    let column = priced_regions().position(|name| name == region)?;
    Some(sizes(PRICES).filter_map(move |row| {
        let price = parse_price(row.cells.split('\t').nth(column)?)?;
        Some(((row.family, row.size), price))
    }))
}

/// One line of a size, with the line that opened its family.
struct SizeRow {
    family: &'static str,
    family_cells: &'static str,
    size: &'static str,
    cells: &'static str,
}

/// The lines of all sizes in a table where `:family` lines open families.
fn sizes(table: &'static str) -> impl Iterator<Item = SizeRow> {
    let (mut family, mut family_cells) = ("", "");
    table.lines().filter_map(move |line| {
        let (first, cells) = line.split_once('\t').unwrap_or((line, ""));
        if let Some(name) = first.strip_prefix(':') {
            (family, family_cells) = (name, cells);
            return None;
        }
        (!first.starts_with('#')).then_some(SizeRow {
            family,
            family_cells,
            size: first,
            cells,
        })
    })
}

fn parse_type(row: &SizeRow, names: &mut Names) -> Option<Figures> {
    let mut family = row.family_cells.split('\t').chain(std::iter::repeat(""));
    let mut size = row.cells.split('\t').chain(std::iter::repeat(""));
    let (arch, cpu_maker, family_flags) = (family.next()?, family.next()?, family.next()?);
    let (gpu_maker, gpu_name) = (family.next()?, family.next()?);
    let gpu_memory_mib = number(family.next()?)?;
    let (accelerator_maker, accelerator_name) = (family.next()?, family.next()?);
    let vcpus = number(size.next()?)?;
    let memory_mib = number(size.next()?)?;
    let hypervisor = match size.next()? {
        "n" => "nitro",
        "x" => "xen",
        _ => "",
    };
    let clock_mhz = number(size.next()?)?;
    let enis = per_card(size.next()?)?;
    let ipv4_per_eni = number(size.next()?)?;
    let branch_enis = number(size.next()?)?;
    let ebs_mbps = number(size.next()?)?;
    let network_mbps = number(size.next()?)?;
    let flags = size.next()?;
    let efa = number(size.next()?)?;
    let local_disk_gb = number(size.next()?)?;
    let gpu_count = number(size.next()?)?;
    let accelerator_count = number(size.next()?)?;
    let neuron_cores = number(size.next()?)?;
    Some(Figures {
        name: format!("{}.{}", row.family, row.size).into(),
        family: names.text(row.family),
        size: names.text(row.size),
        arch: names.text(arch),
        cpu_maker: names.text(cpu_maker),
        encrypts_in_transit: family_flags.contains('e'),
        placement_cluster: family_flags.contains('c'),
        placement_partition: family_flags.contains('p'),
        placement_spread: family_flags.contains('s'),
        on_demand: family_flags.contains('o'),
        spot: flags.contains('s'),
        vcpus,
        memory_mib,
        discovered_memory: None,
        hypervisor: names.text(hypervisor),
        clock_mhz,
        enis,
        ipv4_per_eni,
        branch_enis,
        ebs_mbps,
        network_mbps,
        enclaves: flags.contains('e'),
        nested_virtualization: flags.contains('v'),
        ena: flags.contains('a'),
        nvme: flags.contains('n'),
        efa,
        local_disk_gb,
        gpu: (!gpu_name.is_empty()).then_some(Gpu {
            maker: names.text(gpu_maker),
            name: names.text(gpu_name),
            count: gpu_count,
            memory_mib: gpu_memory_mib,
        }),
        accelerator: (!accelerator_name.is_empty()).then_some(Accelerator {
            maker: names.text(accelerator_maker),
            name: names.text(accelerator_name),
            count: accelerator_count,
            neuron_cores,
        }),
    })
}

/// A count; an empty cell is zero.
fn number(cell: &str) -> Option<u64> {
    if cell.is_empty() {
        return Some(0);
    }
    cell.parse().ok()
}

/// `15`, `8,7` or `2*16`.
fn per_card(cell: &str) -> Option<Vec<u64>> {
    match cell.split_once('*') {
        Some((each, cards)) => Some(vec![each.parse().ok()?; cards.parse().ok()?]),
        None => cell.split(',').map(|count| count.parse().ok()).collect(),
    }
}

/// A decimal of at most nine places; an empty cell is no price.
pub(crate) fn parse_price(cell: &str) -> Option<NanoDollars> {
    const DIGITS: [u64; 10] = [
        1_000_000_000,
        100_000_000,
        10_000_000,
        1_000_000,
        100_000,
        10_000,
        1000,
        100,
        10,
        1,
    ];
    let (whole, decimals) = cell.split_once('.').unwrap_or((cell, ""));
    if !(whole.bytes().chain(decimals.bytes())).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos: u64 = number(decimals)?.checked_mul(*DIGITS.get(decimals.len())?)?;
    let dollars: u64 = whole.parse().ok()?;
    dollars
        .checked_mul(1_000_000_000)?
        .checked_add(nanos)
        .map(NanoDollars::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_parses() {
        let lines = |table: &str| {
            table
                .lines()
                .filter(|line| !line.starts_with([':', '#']))
                .count()
        };
        assert_eq!(figures().len(), lines(TYPES));
        assert_eq!(figures().len(), 1425);
        for row in sizes(PRICES) {
            let cells = row.cells.split('\t').filter(|cell| !cell.is_empty());
            for cell in cells {
                assert!(parse_price(cell).is_some(), "{}.{}", row.family, row.size);
            }
        }
    }

    #[test]
    fn the_table_is_in_order_and_has_no_type_twice() {
        assert!(figures().windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn every_price_belongs_to_a_type() {
        for region in priced_regions() {
            for ((family, size), price) in prices(region).unwrap() {
                assert!(find(&format!("{family}.{size}")).is_some());
                assert!(price > NanoDollars::ZERO);
            }
        }
    }

    #[test]
    fn prices_are_exact() {
        assert_eq!(
            parse_price("360.98695"),
            Some(NanoDollars::new(360_986_950_000))
        );
        assert_eq!(parse_price("0.0042"), Some(NanoDollars::new(4_200_000)));
        assert_eq!(parse_price("12"), Some(NanoDollars::new(12_000_000_000)));
        for bad in ["", ".", "1.2.3", "-1", "+1", "1.1234567890", "x"] {
            assert_eq!(parse_price(bad), None, "{bad}");
        }
    }
}
