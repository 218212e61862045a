use super::*;

fn overlay(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn zone(zone: &str) -> String {
    format!("requirements: [{{key: topology.kubernetes.io/zone, operator: In, values: [{zone}]}}]")
}

/// Prices of the pool's offerings, type by type, and what was said.
fn prices(overlays: &str) -> (Vec<String>, Vec<String>) {
    let input = read(&format!("{POOL}{overlays}"));
    let problem = &input.problem;
    let types = problem.pools[0].types.iter().map(|ix| &problem[*ix]);
    let mut prices: Vec<String> = types
        .map(|t| {
            let all: Vec<String> = t.offerings.iter().map(|o| o.price.to_string()).collect();
            format!("{} {}", t.name, all.join(" "))
        })
        .collect();
    prices.sort();
    (prices, input.warnings)
}

#[test]
fn core_343_347_the_heaviest_overlay_wins_each_offering() {
    assert_eq!(prices("").0, ["large 0.40", "small 0.10 0.04"]);
    let both = overlay(
        "all",
        "{weight: 1, requirements: [], priceAdjustment: '+100%'}",
    ) + &overlay("b", &format!("{{weight: 5, {}, price: '9'}}", zone("b")));
    assert_eq!(
        prices(&both),
        (vec!["large 0.80".into(), "small 0.20 9.00".into()], vec![])
    );
}

#[test]
fn core_345_346_349_equal_weights_that_meet_conflict() {
    let meet = overlay("a", &format!("{{{}, price: '1'}}", zone("a")))
        + &overlay("b", "{requirements: [], price: '2'}");
    assert_eq!(
        prices(&meet),
        (
            vec!["large 2.00".into(), "small 2.00 2.00".into()],
            vec!["NodeOverlay a is not applied: another overlay of weight 0 already changes small in pool default".into()]
        )
    );
    let apart = overlay("a", &format!("{{{}, price: '1'}}", zone("a")))
        + &overlay("b", &format!("{{{}, price: '2'}}", zone("b")));
    assert_eq!(
        prices(&apart),
        (vec!["large 1.00".into(), "small 1.00 2.00".into()], vec![])
    );
}

#[test]
fn core_348_overlays_of_one_pool_leave_the_others_alone() {
    let second = POOL.replace("name: default", "name: other");
    let only = overlay(
        "o",
        "{requirements: [{key: karpenter.sh/nodepool, operator: In, values: [other]}], capacity: {example.com/gpu: 2}}",
    );
    let input = read(&format!("{POOL}---\n{second}{only}"));
    let problem = &input.problem;
    let gpus = |pool: usize| -> Vec<u64> {
        let types = problem.pools[pool].types.iter().map(|ix| &problem[*ix]);
        types
            .map(|t| t.capacity.get(&ResourceName::parse("example.com/gpu")))
            .collect()
    };
    assert_eq!((gpus(0), gpus(1)), (vec![0, 0], vec![2, 2]));
    assert!(problem.pools[1].types.is_sorted());
}
