//! What `--scheduler-config` says: spread constraints for pods that declare none.

use std::path::Path;

use anyhow::Context;
use joiner_state::{Source, SpreadDefaults};

use crate::sources::Reader;

/// What messages call a text that is given in place of a file.
const FLAG: &str = "--scheduler-config (SCHEDULER_CONFIG)";

/// The default constraints, if there are any. The value is the configuration itself, as upstream has
/// it, or the path of a file with it.
pub(crate) fn spread_defaults(
    value: &str,
    reader: &mut Reader,
) -> anyhow::Result<Option<SpreadDefaults>> {
    if value.trim().is_empty() {
        return Ok(None);
    }
    let source = if is_text(value) {
        Source::new(FLAG, value)
    } else {
        reader.read_file(Path::new(value)).with_context(|| {
            format!(
                "{FLAG} names neither a file nor a configuration; give the path of a file, or text \
                 such as \"podTopologySpread: {{defaultConstraints: [..]}}\""
            )
        })?
    };
    let defaults = SpreadDefaults::parse(&source.name, &source.text)?;
    Ok(Some(defaults).filter(|own| !own.is_empty()))
}

/// True for a configuration, which has a key with a value; paths have no such thing.
fn is_text(value: &str) -> bool {
    value.contains('\n') || value.contains(": ") || value.trim_start().starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> anyhow::Result<Option<SpreadDefaults>> {
        spread_defaults(value, &mut Reader::unbounded())
    }

    const TEXT: &str = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: zone, \
                        whenUnsatisfiable: DoNotSchedule}]}";

    #[test]
    fn text_is_told_from_paths() {
        assert!(read(TEXT).unwrap().is_some());
        for nothing in [
            "",
            " ",
            "podTopologySpread: {}",
            "{}",
            "podTopologySpread:\n",
        ] {
            assert_eq!(read(nothing).unwrap(), None, "{nothing:?}");
        }
        for path in ["/etc/joiner/scheduler.yaml", "x", "./a:b.yaml"] {
            assert!(!is_text(path), "{path}");
        }
    }

    #[test]
    fn core_361_errors_name_where_what_and_the_remedy() {
        let field = "podTopologySpread.defaultConstraints[0].maxSkew: 0 is not above zero";
        for (value, said) in [
            (
                &*TEXT.replace("maxSkew: 1", "maxSkew: 0"),
                format!("--scheduler-config (SCHEDULER_CONFIG): {field}"),
            ),
            ("/nowhere/at/all.yaml", "give the path of a file".to_owned()),
        ] {
            let error = format!("{:#}", read(value).unwrap_err());
            assert!(error.contains(&said), "{error}");
        }
    }
}
