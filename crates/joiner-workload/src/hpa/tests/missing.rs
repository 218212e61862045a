use super::*;

#[test]
fn hpa_35_missing_pods_hold_a_decrease_up() {
    let ran = Case::new(1, 6, 4).cpu(100, &[400, 95]).run();
    assert_eq!((ran.desired(), ran.utilization()), (3, Some(24)));
}

#[test]
fn hpa_36_a_metric_on_its_target_changes_nothing_when_pods_are_missing() {
    let case = || Case::new(1, 6, 3);
    assert_eq!(case().cpu(100, &[1000, 1000]).run().desired(), 3);
    assert_eq!(case().qps("1", &[1000, 1000]).run().desired(), 3);
}

#[test]
fn hpa_37_a_missing_pod_is_idle_on_the_way_up() {
    let ran = Case::new(1, 6, 2).cpu(100, &[1900]).run();
    assert_eq!(ran.desired(), 2);
}

#[test]
fn hpa_38_a_missing_pod_is_fully_used_on_the_way_down() {
    let ran = Case::new(1, 6, 2).cpu(100, &[600]).run();
    assert_eq!(ran.desired(), 2);
}

#[test]
fn hpa_39_unready_and_missing_pods_together_can_outweigh_a_sample() {
    let case = Case::new(1, 6, 3).cpu(50, &[100, 450]);
    assert_eq!(case.with(&[0], unready).run().desired(), 3);
}

#[test]
fn hpa_40_or_not() {
    let case = Case::new(1, 6, 3).cpu(50, &[100, 2000]);
    assert_eq!(case.with(&[0], unready).run().desired(), 4);
}

#[test]
fn hpa_41_an_unready_pod_does_not_hold_a_decrease_up() {
    let case = Case::new(1, 6, 4).cpu(50, &[100, 100, 100]);
    assert_eq!(case.with(&[0], unready).run().desired(), 3);
}

#[test]
fn hpa_43_pods_of_a_rolling_update_do_not_turn_the_direction() {
    let surge = || Case::new(1, 6, 2).set(|case| case.pods.push(pod("web-2")));
    assert_eq!(surge().cpu(50, &[400, 400]).run().desired(), 2);
    assert_eq!(surge().qps("50", &[40_000, 40_000]).run().desired(), 2);
}

#[test]
fn hpa_44_the_size_is_that_of_the_scale_when_more_pods_run() {
    let case = Case::new(1, 6, 4).set(|case| case.pods.push(pod("web-4")));
    assert_eq!(case.cpu(50, &[500; 5]).run().desired(), 4);
}
