use super::*;

fn five() -> Case {
    Case::new(2, 6, 5).cpu(50, &[100, 300, 500, 250, 250])
}

#[test]
fn hpa_17_usage_below_the_target_asks_for_fewer() {
    let ran = five().run();
    assert_eq!((ran.desired(), ran.able()), (3, "SucceededRescale"));
}

#[test]
fn hpa_18_the_first_pass_remembers_the_size_that_is_there() {
    let ran = five().set(|case| case.memory = Memory::default()).run();
    assert_eq!((ran.desired(), ran.able()), (5, "ScaleDownStabilized"));
}

#[test]
fn hpa_19_all_kinds_of_metrics_can_ask_for_fewer() {
    let case = || Case::new(2, 6, 5);
    for (case, name) in [
        (case().qps("20", &[12_000; 5]), "pods"),
        (case().object("Value", "20", 12_000), "object"),
        (
            case().object("AverageValue", "20", 60_000),
            "object average",
        ),
        (case().external("Value", "14400m", &[8600]), "external"),
        (
            case().external("AverageValue", "3", &[8600]),
            "external average",
        ),
    ] {
        assert_eq!(case.run().desired(), 3, "{name}");
    }
}

#[test]
fn hpa_20_pods_that_are_not_ready_do_not_count_on_the_way_down() {
    let ran = five().with(&[3, 4], unready).run();
    assert_eq!((ran.desired(), ran.utilization()), (2, Some(30)));
}

#[test]
fn hpa_21_nor_do_pods_that_just_started() {
    let ran = five().with(&[3, 4], hot).run();
    assert_eq!((ran.desired(), ran.utilization()), (2, Some(30)));
}

#[test]
fn hpa_22_nor_do_pending_ones() {
    let pending = |pod: &mut Pod| pod.phase = Phase::Pending;
    let case = Case::new(1, 6, 5).cpu(50, &[100, 300, 500, 250, 250]);
    assert_eq!(case.with(&[1, 2, 3, 4], pending).run().desired(), 1);
}

#[test]
fn hpa_23_nor_do_those_that_failed_or_terminate() {
    let case = five().set(|case| {
        for ix in 5..10 {
            let mut gone = pod(&format!("web-{ix}"));
            gone.deleting = ix % 2 == 0;
            if !gone.deleting {
                gone.phase = Phase::Failed;
            }
            case.pods.push(gone);
        }
    });
    let ran = case.run();
    assert_eq!((ran.desired(), ran.utilization()), (3, Some(28)));
}

#[test]
fn hpa_42_missing_pods_are_at_their_target_on_the_way_down() {
    let ran = Case::new(2, 6, 4).cpu(300, &[400, 500, 300]).run();
    assert_eq!(ran.desired(), 2);
}
