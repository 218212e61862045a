use super::*;

#[test]
fn hpa_12_the_figure_of_an_object_asks_for_more() {
    let case = Case::new(2, 6, 3).object("Value", "15", 20_000);
    assert_eq!(case.run().desired(), 4);
}

#[test]
fn hpa_13_or_its_share_per_replica() {
    let case = Case::new(2, 6, 3).object("AverageValue", "10", 40_000);
    assert_eq!(case.run().desired(), 4);
}

#[test]
fn hpa_14_so_do_figures_from_outside() {
    let case = Case::new(2, 6, 3).external("Value", "6666m", &[8600]);
    assert_eq!(case.run().desired(), 4);
    let case = Case::new(2, 6, 3).external("AverageValue", "2222m", &[8600]);
    assert_eq!(case.run().desired(), 4);
}

#[test]
fn hpa_15_the_ratio_multiplies_ready_pods() {
    let case = Case::new(2, 6, 3).object("Value", "10", 50_000);
    assert_eq!(case.with(&[1, 2], unready).run().desired(), 5);
}

#[test]
fn hpa_16_which_can_be_fewer_than_there_are() {
    let case = Case::new(2, 6, 3).external("Value", "4400m", &[8600]);
    assert_eq!(case.with(&[1, 2], unready).run().desired(), 2);
}

#[test]
fn hpa_75_sums_from_outside_stop_at_the_most_that_can_be_counted() {
    let case = Case::new(1, 10, 3).metric(
        external_metric("Value", "9223372036854775807m"),
        Reading::Series(vec![i64::MAX, i64::MAX]),
    );
    let ran = case.run();
    let proposal = ran.decision.proposals[0].as_ref().unwrap();
    assert_eq!((ran.desired(), proposal.measured), (3, i64::MAX));
}

#[test]
fn hpa_76_sizes_stop_at_the_most_that_can_be_counted() {
    let case = Case::new(1, 10, 3).object("Value", "1m", i64::MAX);
    assert_eq!(case.run().decision.recommendation, Some(i32::MAX));
}

#[test]
fn hpa_77_averages_over_replicas_round_up() {
    for (millis, average) in [(8600, "2867m"), (20_000, "6667m")] {
        let case = Case::new(1, 10, 3).external("AverageValue", "3", &[millis]);
        let status = case.run().conclusion.status.to_json();
        let current = &status["currentMetrics"][0]["external"]["current"];
        assert_eq!(current["averageValue"], average);
    }
    let case = Case::new(1, 10, 3).object("AverageValue", "3", 20_000);
    let status = case.run().conclusion.status.to_json();
    let current = &status["currentMetrics"][0]["object"]["current"];
    assert_eq!(current["averageValue"], "6667m");
}
