//! Sizes of volumes: any amount before v1, whole `Gi`, `G`, `Ti` or `T` since.

use super::fields::list_at;
use super::remark::Remarks;
use serde_json::Value;

const GIB: u128 = 1 << 30;
const UNITS: &[(&str, u128)] = &[
    ("", 1),
    ("k", 1000),
    ("M", 1000 * 1000),
    ("G", 1000 * 1000 * 1000),
    ("T", 1000 * 1000 * 1000 * 1000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", GIB),
    ("Ti", 1 << 40),
];

/// Writes the sizes of all volumes of a class as v1 has them.
pub(super) fn rewrite(class: &mut Value, path: &str, remarks: &mut Remarks<'_>) {
    let devices = list_at(class, &["spec", "blockDeviceMappings"]);
    for (ix, device) in devices.into_iter().flatten().enumerate() {
        let Some(size) = device.pointer_mut("/ebs/volumeSize") else {
            continue;
        };
        let old = match &size {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => continue,
        };
        if let Some((new, is_exact)) = as_v1(&old) {
            if !is_exact {
                let path = format!("{path}.blockDeviceMappings[{ix}].ebs.volumeSize");
                remarks.note(path, format!("{old} is rounded up to {new}"));
            }
            *size = new.into();
        }
    }
}

/// A size as v1 has it, and whether it is the same; nothing for what is fine, or no amount at all.
fn as_v1(text: &str) -> Option<(String, bool)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let is_whole = !number.contains('.') && !number.starts_with('0');
    if is_whole && ["Gi", "G", "Ti", "T"].contains(&unit) {
        return None;
    }
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let bytes = digits.checked_mul(*factor)?;
    let gib = bytes.div_ceil(scale * GIB);
    Some((format!("{gib}Gi"), gib * GIB * scale == bytes))
}

#[cfg(test)]
mod tests {
    use super::as_v1;

    #[test]
    fn sizes_are_whole_gibibytes() {
        for (old, new) in [
            ("20Gi", None),
            ("500G", None),
            ("1Ti", None),
            ("much", None),
            ("102400Mi", Some(("100Gi", true))),
            ("1.5Ti", Some(("1536Gi", true))),
            ("0.5Gi", Some(("1Gi", false))),
            ("100000M", Some(("94Gi", false))),
            ("21474836480", Some(("20Gi", true))),
            ("020Gi", Some(("20Gi", true))),
        ] {
            let found = as_v1(old);
            let found = found.as_ref().map(|(text, same)| (text.as_str(), *same));
            assert_eq!(found, new, "{old}");
        }
    }
}
