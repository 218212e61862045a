//! Answers recorded problems, one JSON object per line: `answers hpa FILE`.

use std::io::{BufRead, BufReader, BufWriter, Write};

use joiner_workload::problems::{Subject, answer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let subject = match arguments.next().as_deref() {
        Some("hpa") => Subject::Hpa,
        Some("vpa") => Subject::Vpa,
        Some("updater") => Subject::Updater,
        Some("cron") => Subject::Cron,
        _ => return Err("say what the problems are about: hpa, vpa, updater or cron".into()),
    };
    let path = arguments.next().ok_or("name a file with problems")?;
    let file = BufReader::new(std::fs::File::open(path)?);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in file.lines() {
        let problem = serde_json::from_str(&line?)?;
        writeln!(out, "{}", answer(subject, &problem, jiff::tz::db())?)?;
    }
    out.flush()?;
    Ok(())
}
