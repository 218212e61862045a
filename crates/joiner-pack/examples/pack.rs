//! Pack problems from text files and show price, bound and time.
//!
//! `cargo run --release -p joiner-pack --example pack -- FILE..`. One word starts each line:
//! `dims N`; `kind PRICE OPTIONS ROOM..`; `bin ROOM..`; `group N KIND.. N BIN..`; `cap SIZE`;
//! `row COUNT GROUP NEED.. CAP..`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Instant;

use joiner_pack::{Bin, Group, Kind, Place, Problem, Row, Settings, bound, pack};

#[path = "../tests/packing/check/mod.rs"]
mod check;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:22} {:>7} {:>10} {:>10} {:>7} ms",
        "file", "nodes", "price", "bound", "ratio"
    );
    for path in std::env::args().skip(1) {
        let problem = parse(&std::fs::read_to_string(&path)?)?;
        let settings = Settings::default();
        let start = Instant::now();
        let packing = pack(&problem, &settings);
        let packed = start.elapsed();
        let low = bound(&problem, Some(&packing.values), &settings);
        let all = start.elapsed();
        for violation in check::violations(&problem, &packing) {
            println!("{path}: {violation}");
        }
        let new = packing
            .nodes
            .iter()
            .filter(|node| matches!(node.place, Place::Kind(_)));
        let name = path
            .rsplit('/')
            .next()
            .unwrap_or(&path)
            .trim_end_matches(".txt");
        let (price, low) = (packing.price as f64 / 1e9, low as f64 / 1e9);
        println!(
            "{name:22} {:7} {price:10.4} {low:10.4} {:7.4} {:.1} + {:.1}{}",
            new.count(),
            price / low,
            packed.as_secs_f64() * 1e3,
            (all - packed).as_secs_f64() * 1e3,
            if packing.unplaced.is_empty() {
                ""
            } else {
                " some unplaced"
            },
        );
    }
    Ok(())
}

fn parse(text: &str) -> Result<Problem, Box<dyn std::error::Error>> {
    let mut problem = Problem::default();
    let mut kinds = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let word = words.next().unwrap_or("");
        let numbers = words.map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let n = problem.n_dims;
        match word {
            "dims" => problem.n_dims = numbers[0] as usize,
            "kind" => kinds.push(Kind {
                price: numbers[0],
                options: numbers[1] as u32,
                room: numbers[2..].into(),
                spend: Vec::new(),
            }),
            "bin" => problem.bins.push(Bin {
                room: numbers[..].into(),
                ..Bin::default()
            }),
            "group" => {
                let (kinds, bins) = numbers[1..].split_at(numbers[0] as usize);
                problem.groups.push(Group {
                    kinds: kinds.iter().map(|&k| k as usize).collect(),
                    bins: bins[1..].iter().map(|&b| b as usize).collect(),
                });
            }
            "cap" => problem.caps.push(numbers[0] as u32),
            "row" => problem.rows.push(Row {
                count: numbers[0] as u32,
                home: numbers[1] as u32,
                need: numbers[2..2 + n].into(),
                caps: numbers[2 + n..].iter().map(|&cap| cap as u32).collect(),
                ..Row::default()
            }),
            _ => return Err(format!("a line starts with {word:?}").into()),
        }
    }
    problem.kinds = kinds.into();
    Ok(problem)
}
