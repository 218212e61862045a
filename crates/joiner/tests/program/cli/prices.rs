//! Whose prices a plan is made of, what it proves about them, and what preferences cost.

use crate::cli::support::{
    TempFile, any_pool, documents, joiner, joiner_reading, plan_with, pod, small_pod,
};

fn web() -> String {
    let pool = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]
";
    documents(&[pool, &small_pod("web")])
}

fn plan_in(region: &str, args: &[&str]) -> crate::cli::support::Outcome {
    let all = [&["plan", "-f", "-", "--region", region], args].concat();
    joiner_reading(&all, web().as_bytes()).exits(0)
}

#[test]
fn prices_of_another_region_prove_nothing_about_this_ones() {
    plan_in("eu-west-1", &[]).prints(&[
        "Prices are those of us-east-1; those of eu-west-1 differ.",
        "At the prices of us-east-1 no legal plan for these pods costs less than $",
        "Of the prices of eu-west-1 this proves nothing.",
    ]);
    let own = plan_in("us-east-1", &[]).prints(&["\nNo legal plan for these pods costs less"]);
    assert!(!own.stdout.contains("prices of"), "{own:?}");
    let cost = |region| plan_in(region, &["-o", "json"]).json()["cost"].clone();
    assert_eq!(cost("eu-west-1")["pricesOf"], "us-east-1");
    assert_eq!(cost("eu-west-1")["pricesAreForeign"], true);
    assert_eq!(cost("us-east-1")["pricesAreForeign"], false);
}

#[test]
fn prices_of_a_file_come_first() {
    let file = TempFile::new(
        "prices.csv",
        "type,zone,capacity,price\nm5.large,,spot,0.0123\n",
    );
    let run = plan_in("us-east-1", &["--prices", file.path()]);
    let aside = format!("Prices are those of {} and us-east-1.", file.path());
    run.prints(&["Price $0.0123 an hour", &aside]);
    let plan = plan_in("us-east-1", &["--prices", file.path(), "-o", "json"]).json();
    assert_eq!(plan["newNodes"][0]["launch"]["pricePerHour"], 0.0123);

    let list = joiner(&["catalog", "--name", "m5.large", "--prices", file.path()]).exits(0);
    list.prints(&["0.0123", &format!("an hour, those of {}", file.path())]);
}

#[test]
fn a_file_with_all_prices_leaves_no_doubt() {
    let mut lines = String::new();
    for (name, price) in [("small", 0.5), ("medium", 0.6), ("large", 0.7)] {
        lines.push_str(&format!("{name},,on-demand,{price}\n"));
    }
    let file = TempFile::new("prices.csv", &lines);
    let text = documents(&[&any_pool(), &small_pod("web")]);
    let run = plan_with(&text, &["--prices", file.path()]).exits(0);
    run.prints(&[
        &format!(
            "Price $0.5000 an hour, $365.00 a month. Prices are those of {}.",
            file.path()
        ),
        "\nNo legal plan for these pods costs less than $0.5000: nothing to gain.",
    ]);
}

#[test]
fn bad_prices_are_told_with_file_and_line() {
    for (lines, said) in [
        ("m5.large,,spot", ":1: there are 3 cells"),
        (
            "m5.large,,spot,1\nm5.large,,spot,x",
            ":2: \"x\" is not a price",
        ),
        (
            "m5.larg,,spot,1",
            ":1: there is no instance type \"m5.larg\" in the catalog; did you mean m5.large?",
        ),
        (
            "m5.large,us-east-1z,spot,1",
            ":1: there is no zone \"us-east-1z\"",
        ),
    ] {
        let file = TempFile::new("prices.csv", lines);
        let place = format!("{}{said}", file.path());
        let args = ["plan", "-f", "-", "--prices", file.path()];
        joiner_reading(&args, web().as_bytes()).fails_in_one_line(&[&place]);
        joiner(&["catalog", "--prices", file.path()]).fails_in_one_line(&[&place]);
    }
    let gone = joiner(&["catalog", "--prices", "/nowhere/p.csv"]);
    gone.fails_in_one_line(&["cannot read file /nowhere/p.csv"]);
}

/// Two pods that would rather not share a node, which is what price is in favor of.
fn loners() -> String {
    let apart = "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: \
                 [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, \
                 labelSelector: {matchLabels: {app: web}}}}]}}";
    let requests = "{cpu: 500m, memory: 512Mi}";
    documents(&[
        &any_pool(),
        &pod("web-0", requests, apart),
        &pod("web-1", requests, apart),
    ])
}

#[test]
fn preferences_that_cost_much_are_told_with_what_they_cost() {
    plan_with(loners(), &[]).exits(0).prints(&[
        "Price $0.2000 an hour",
        "Preferences cost $0.1000 an hour of this; planned without them, the same pods cost $0.1000.",
        "No legal plan for these pods costs less than $0.1000: nothing to gain without preferences.",
    ]);
    let cost = |args: &[&str]| {
        let args = [args, &["-o", "json"]].concat();
        plan_with(loners(), &args).json()["cost"].clone()
    };
    let respected = cost(&[]);
    assert_eq!(respected["preferencesCostPerHour"], 0.1);
    assert_eq!(respected["savingsAtMost"], 0.5);
    assert_eq!(respected["gap"], 1.0);
    assert!(cost(&["--preference-policy", "Ignore"])["preferencesCostPerHour"].is_null());
    let plain = documents(&[&any_pool(), &small_pod("web")]);
    let plain = plan_with(plain, &["-o", "json"]).json();
    assert!(plain["cost"]["preferencesCostPerHour"].is_null());
}

#[test]
fn with_pods_left_over_the_proof_is_about_those_that_are_placed() {
    let text = documents(&[
        &any_pool(),
        &small_pod("web"),
        &pod("huge", "{cpu: 500}", ""),
    ]);
    let run = plan_with(text, &[]).exits(2);
    assert!(!run.stdout.contains("for these pods"), "{run:?}");
    run.prints(&[
        "No legal plan for the pods placed here costs less than $0.1000: nothing to gain",
    ]);
}
