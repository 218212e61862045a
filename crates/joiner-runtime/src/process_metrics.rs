//! What the kernel says about this process. Elsewhere than on Linux it says nothing.

use std::path::Path;

use crate::metric_names as names;

/// Ticks in a second: the unit of times in `/proc`, fixed for programs whatever the kernel uses.
const TICKS: f64 = 100.0;

/// Names and values of what can be read.
pub(crate) fn read() -> Vec<(&'static str, f64)> {
    let root = Path::new("/proc");
    let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let mut values = from_stat(&text("self/stat"), &text("stat"));
    values.extend(from_status(&text("self/status")));
    values.extend(max_fds(&text("self/limits")).map(|n| (names::PROCESS_MAX_FDS, n)));
    if let Ok(fds) = std::fs::read_dir(root.join("self/fd")) {
        let n_fds = u32::try_from(fds.count()).unwrap_or(u32::MAX);
        values.push((names::PROCESS_OPEN_FDS, f64::from(n_fds)));
    }
    values
}

/// Processor time and start from `/proc/self/stat`, with the start of the machine from `/proc/stat`.
fn from_stat(own: &str, machine: &str) -> Vec<(&'static str, f64)> {
    // The name of the program is in parentheses and may hold anything, also these.
    let Some((_, rest)) = own.rsplit_once(')') else {
        return Vec::new();
    };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Field 3, the state, is the first after the name.
    let ticks = |number: usize| {
        fields
            .get(number - 3)
            .and_then(|text| text.parse::<f64>().ok())
    };
    let mut values = Vec::new();
    if let (Some(user), Some(system)) = (ticks(14), ticks(15)) {
        values.push((names::PROCESS_CPU, (user + system) / TICKS));
    }
    let boot = machine.lines().find_map(|line| line.strip_prefix("btime "));
    let boot = boot.and_then(|text| text.trim().parse::<f64>().ok());
    if let (Some(boot), Some(start)) = (boot, ticks(22)) {
        values.push((names::PROCESS_START_TIME, boot + start / TICKS));
    }
    values
}

/// Memory from `/proc/self/status`, which counts in KiB.
fn from_status(status: &str) -> Vec<(&'static str, f64)> {
    let kib = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
    };
    let fields = [
        (names::PROCESS_RESIDENT_MEMORY, kib("VmRSS:")),
        (names::PROCESS_VIRTUAL_MEMORY, kib("VmSize:")),
    ];
    let known = fields.into_iter();
    known
        .filter_map(|(name, kib)| Some((name, kib? * 1024.0)))
        .collect()
}

/// Files that may be open, from `/proc/self/limits`.
fn max_fds(limits: &str) -> Option<f64> {
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let own = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 1000 99999 1 2";
        let values = from_stat(own, "cpu 1 2\nbtime 1700000000\n");
        assert_eq!(
            values,
            [
                (names::PROCESS_CPU, 3.0),
                (names::PROCESS_START_TIME, 1_700_000_010.0)
            ]
        );
        let values = from_status("Name:\tx\nVmSize:\t    2048 kB\nVmRSS:\t 1024 kB\n");
        assert_eq!(
            values,
            [
                (names::PROCESS_RESIDENT_MEMORY, 1_048_576.0),
                (names::PROCESS_VIRTUAL_MEMORY, 2_097_152.0)
            ]
        );
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files   1024   4096   files\n";
        assert_eq!(max_fds(limits), Some(1024.0));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert!(from_stat("", "").is_empty());
        assert!(from_stat("1 (x) S", "btime x").is_empty());
        assert!(from_status("VmRSS: lots").is_empty());
        assert_eq!(max_fds("Max open files unlimited"), None);
    }
}
