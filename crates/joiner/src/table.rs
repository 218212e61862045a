//! Tables: rows in aligned columns, and how they fit a terminal.

use std::io::{self, Write};

/// Spaces between columns, where there is room.
const GAP: usize = 2;

/// Rows in aligned columns, as wide as they are; the last column is not padded.
pub(crate) fn write_columns(rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    write_lines(&lines(rows, &widths(rows), GAP), out)
}

/// The same for a terminal: when the rows are too wide, columns move together, and then those that
/// may be shorter are cut, the longest first. `least` says how short each may become; those beyond
/// its end stay as they are.
pub(crate) fn write_fitting(
    rows: &[Vec<String>],
    columns: Option<usize>,
    least: &[usize],
    out: &mut dyn Write,
) -> io::Result<()> {
    write_lines(&fitting(rows, columns, least), out)
}

/// True when the rows are not too wide as they are.
pub(crate) fn fits(rows: &[Vec<String>], columns: Option<usize>) -> bool {
    columns.is_none_or(|columns| total(&widths(rows), GAP) <= columns)
}

fn fitting(rows: &[Vec<String>], columns: Option<usize>, least: &[usize]) -> Vec<String> {
    let mut widths = widths(rows);
    if fits(rows, columns) {
        return lines(rows, &widths, GAP);
    }
    let columns = columns.unwrap_or(usize::MAX);
    let room = |widths: &[usize], c: usize| {
        let least = least.get(c).copied().unwrap_or(usize::MAX);
        widths[c].saturating_sub(least)
    };
    while total(&widths, 1) > columns {
        let widest = (0..widths.len())
            .filter(|c| room(&widths, *c) > 0)
            .max_by_key(|c| (widths[*c], *c));
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
    }
    lines(rows, &widths, 1)
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        let cells = rows.iter().filter_map(|row| row.get(c));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    (0..n_columns).map(width).collect()
}

fn total(widths: &[usize], gap: usize) -> usize {
    widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1)
}

fn lines(rows: &[Vec<String>], widths: &[usize], gap: usize) -> Vec<String> {
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let cell = shortened(cell, widths[c]);
            let pad = match c + 1 < row.len() {
                true => widths[c] + gap - cell.chars().count(),
                false => 0,
            };
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', pad));
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn write_lines(lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The beginning of a text that is longer than it may be, and a sign that there is more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{kept}…")
        }
    }
}

/// `3 pods`, `1 pod`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        vec![
            row(["NAME", "TYPE", "PODS"]),
            row(["a-long-name", "m5.large", "web ×2, api, search"]),
        ]
    }

    #[test]
    fn what_fits_is_left_alone() {
        for columns in [None, Some(42), Some(200)] {
            assert_eq!(
                fitting(&rows(), columns, &[4, 4, 4]),
                [
                    "NAME         TYPE      PODS",
                    "a-long-name  m5.large  web ×2, api, search"
                ]
            );
        }
    }

    #[test]
    fn columns_move_together_and_the_longest_is_cut_first() {
        assert_eq!(
            fitting(&rows(), Some(40), &[4, 4, 4])[1],
            "a-long-name m5.large web ×2, api, search"
        );
        assert_eq!(
            fitting(&rows(), Some(30), &[4])[1],
            "a-l… m5.large web ×2, api, search"
        );
        assert_eq!(
            fitting(&rows(), Some(32), &[8, 8, 4])[1],
            "a-long-name m5.large web ×2, ap…"
        );
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abcd", 4), "abcd");
    }
}
