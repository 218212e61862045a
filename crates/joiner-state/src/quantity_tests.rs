use super::*;
use proptest::prelude::*;

fn milli(text: &str) -> i128 {
    Quantity::parse(text).unwrap().nanos() / 1_000_000
}

#[test]
fn every_suffix_counts() {
    for (text, expected) in [
        ("0", 0),
        ("1", 1000),
        ("100m", 100),
        ("1.5", 1500),
        (".5", 500),
        ("5.", 5000),
        ("+2", 2000),
        ("1k", 1_000_000),
        ("1Ki", 1_024_000),
        ("1.5Gi", 1_610_612_736_000),
        ("1E", 1_000_000_000_000_000_000_000),
        ("1e3", 1_000_000),
        ("1E3", 1_000_000),
        ("1e+3", 1_000_000),
        ("1500e-3", 1500),
        ("3000000u", 3000),
        ("5000000n", 5),
        ("-1", -1000),
        ("9223372036854775807", 9_223_372_036_854_775_807_000),
    ] {
        assert_eq!(milli(text), expected, "{text}");
    }
    assert_eq!(Quantity::parse("0.0000000001").unwrap().nanos(), 1);
    assert_eq!(Quantity::parse("1e-400").unwrap().nanos(), 1);
    assert_eq!(Quantity::parse("0e400").unwrap().nanos(), 0);
}

#[test]
fn asked_rounds_up_and_there_is_rounds_down() {
    let cpu = Quantity::parse("1.0005").unwrap();
    assert_eq!(cpu.units_up(&ResourceName::Cpu), 1001);
    assert_eq!(cpu.units_down(&ResourceName::Cpu), 1000);
    let memory = Quantity::parse("1500m").unwrap();
    assert_eq!(memory.units_up(&ResourceName::Memory), 2);
    assert_eq!(memory.units_down(&ResourceName::Memory), 1);
}

#[test]
fn errors_show_the_text() {
    for (text, message) in [
        (
            "",
            r#""" is not a quantity (write for example 500m, 2 or 1.5Gi)"#,
        ),
        (
            "1x",
            r#""1x" is not a quantity (write for example 500m, 2 or 1.5Gi)"#,
        ),
        (
            "1.2.3",
            r#""1.2.3" is not a quantity (write for example 500m, 2 or 1.5Gi)"#,
        ),
        (
            "1 Gi",
            r#""1 Gi" is not a quantity (write for example 500m, 2 or 1.5Gi)"#,
        ),
        (
            "12Ei",
            r#""12Ei" is too large; at most 9E can be counted, 9P of cpu"#,
        ),
        (
            "1e400",
            r#""1e400" is too large; at most 9E can be counted, 9P of cpu"#,
        ),
        ("-1m", r#""-1m" is negative; write 0 or more"#),
    ] {
        assert_eq!(
            Quantity::parse_amount(text).unwrap_err().to_string(),
            message
        );
    }
    for text in [
        "m", "e3", "1ee3", "1mi", "0x10", "١", "1e", "--1", ".", "NaN",
    ] {
        assert!(Quantity::parse(text).is_err(), "{text}");
    }
}

#[test]
fn no_amount_is_cut_off() {
    let cpu = ResourceName::Cpu;
    assert_eq!(
        parse_request(&cpu, "9P").unwrap(),
        9_000_000_000_000_000_000
    );
    assert!(parse_request(&cpu, "9E").is_err());
    assert!(parse_request(&cpu, "9223372036854775807").is_err());
    let memory = ResourceName::Memory;
    assert_eq!(
        parse_request(&memory, "9E").unwrap(),
        9_000_000_000_000_000_000
    );
    assert!(parse_capacity([("cpu", "9E")]).is_err());
}

proptest! {
    #[test]
    fn never_panics(text in ".{0,40}") {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn near_misses_never_panic(text in "[-+]?[0-9.]{0,50}([eE][-+]?[0-9]{0,12}|[numkKMGTPEi]{0,3})") {
        let _ = Quantity::parse_amount(&text);
    }

    #[test]
    fn rendered_amounts_read_back(amount in 0..=(i64::MAX as u64 / 1000), pick in 0..4usize) {
        let name = [
            ResourceName::Cpu,
            ResourceName::Memory,
            ResourceName::EphemeralStorage,
            ResourceName::parse("example.com/gpu"),
        ][pick].clone();
        let text = joiner_model::render_amount(&name, amount);
        prop_assert_eq!(parse_request(&name, &text), Ok(amount));
    }

    #[test]
    fn larger_numbers_are_larger(a in 0u32.., b in 0u32.., suffix in "(|m|k|Ki|Gi|e3)") {
        let (x, y) = (Quantity::parse(&format!("{a}{suffix}")), Quantity::parse(&format!("{b}{suffix}")));
        prop_assert_eq!(x.unwrap().cmp(&y.unwrap()), a.cmp(&b));
    }
}
