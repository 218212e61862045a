use super::*;

#[test]
fn hpa_24_close_to_the_target_nothing_changes() {
    let ran = Case::new(1, 10, 3).cpu(100, &[1010, 1030, 1020]).run();
    assert_eq!((ran.desired(), ran.able()), (3, "ReadyForNewScale"));
}

#[test]
fn hpa_25_for_all_kinds_of_metrics() {
    let (three, four) = (|| Case::new(1, 10, 3), || Case::new(1, 10, 4));
    for (case, size) in [
        (three().qps("20", &[20_000, 20_001, 21_000]), 3),
        (three().object("Value", "20", 20_050), 3),
        (four().external("Value", "8666m", &[8600]), 4),
        (four().external("AverageValue", "2200m", &[8600]), 4),
    ] {
        assert_eq!(case.run().desired(), size);
    }
}

fn tolerant(direction: &str, tolerance: &str) -> Value {
    json!({direction: {"tolerance": tolerance}})
}

#[test]
fn hpa_26_a_tolerance_upwards_can_be_set() {
    let case = || Case::new(1, 10, 3).cpu(100, &[1010, 1030, 1020]);
    let strict = || case().behavior(tolerant("scaleUp", "0.01"));
    assert_eq!(strict().run().desired(), 4);
    let off = strict().set(|case| case.settings.gates.configurable_tolerance = false);
    assert_eq!(off.run().desired(), 3);
}

#[test]
fn hpa_27_so_can_one_downwards() {
    let case = Case::new(1, 10, 5).cpu(100, &[300; 5]);
    let case = case.behavior(tolerant("scaleDown", "0.9"));
    assert_eq!(case.run().desired(), 5);
}

#[test]
fn hpa_28_they_can_be_zero_or_more_than_one() {
    let case = Case::new(1, 10, 3).cpu(100, &[1010; 3]);
    assert_eq!(case.behavior(tolerant("scaleUp", "0")).run().desired(), 4);
    let case = Case::new(1, 10, 3).cpu(100, &[2900; 3]);
    assert_eq!(case.behavior(tolerant("scaleUp", "2")).run().desired(), 3);
}
