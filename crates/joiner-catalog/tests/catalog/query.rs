//! Listing the catalog: filters, orders and what is printed.

use joiner_catalog::query::{Format, GpuFilter, Look, Query, Selection, Sort, Span, price, render};
use joiner_catalog::{ClassSettings, ec2};
use joiner_model::NanoDollars;

fn select(query: &Query) -> Selection {
    let catalog = ec2("us-east-1", &ClassSettings::default()).expect("a known region");
    query.select(catalog.types).expect("known zones")
}

fn names(query: &Query) -> Vec<String> {
    let types = select(query).types;
    types.iter().map(|it| it.name.to_string()).collect()
}

fn text(query: &Query, format: Format) -> String {
    let mut out = Vec::new();
    let look = Look {
        currency: "USD",
        ..Look::default()
    };
    render(&select(query), format, look, &mut out).expect("memory to write to");
    String::from_utf8(out).expect("text")
}

fn list(items: &[&str]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

#[test]
fn sizes_of_a_family_go_from_small_to_large() {
    let query = Query {
        families: list(&["m5"]),
        ..Query::default()
    };
    assert_eq!(
        names(&query).join(" "),
        "m5.large m5.xlarge m5.2xlarge m5.4xlarge m5.8xlarge m5.12xlarge m5.16xlarge \
         m5.24xlarge m5.metal"
    );
    let by_name = Query {
        sort: Sort::Name,
        limit: Some(2),
        ..query
    };
    assert_eq!(names(&by_name), ["m5.12xlarge", "m5.16xlarge"]);
    assert_eq!(select(&by_name).n_matched, 9);
}

#[test]
fn filters_narrow_together() {
    let query = Query {
        names: list(&["c?i.*", "m7g.l"]),
        vcpus: Some(Span::counts("2..4").unwrap()),
        memory_mib: Some(Span::gib("4..8").unwrap()),
        ..Query::default()
    };
    assert_eq!(
        names(&query),
        [
            "c6i.large",
            "c6i.xlarge",
            "c7i.large",
            "c7i.xlarge",
            "c8i.large",
            "c8i.xlarge",
            "m7g.large"
        ]
    );
    let arm = Query {
        archs: list(&["arm64"]),
        ..query
    };
    assert_eq!(names(&arm), ["m7g.large"]);
}

#[test]
fn gpus_by_count_kind_and_maker() {
    let with = |text: &str| {
        names(&Query {
            gpu: Some(text.parse().unwrap()),
            ..Query::default()
        })
    };
    assert_eq!(with("a100"), ["p4d.24xlarge", "p4de.24xlarge"]);
    assert!(with("8..").contains(&"p4d.24xlarge".to_owned()));
    assert!(with("trainium").contains(&"trn1.2xlarge".to_owned()));
    assert!(with("nvidia").len() > with("T4*").len());
    assert!(with("0").contains(&"m5.large".to_owned()));
    assert!("4-8".parse::<GpuFilter>().is_err());
}

#[test]
fn zones_capacity_types_and_prices_select_offerings() {
    let query = Query {
        zones: list(&["us-east-1b"]),
        capacity_types: list(&["spot"]),
        max_price: Some(price("$0.05").unwrap()),
        sort: Sort::Price,
        ..Query::default()
    };
    let types = select(&query).types;
    assert!(types.len() > 20);
    let mut last = NanoDollars::ZERO;
    for it in &types {
        assert_eq!(it.offerings.len(), 1);
        assert_eq!(
            &*it.offerings[0].labels["topology.kubernetes.io/zone"],
            "us-east-1b"
        );
        assert!(it.offerings[0].price >= last);
        last = it.offerings[0].price;
    }
    assert!(last <= NanoDollars::new(50_000_000));
}

#[test]
fn prices_per_unit_order_types() {
    let first = |sort, descending| {
        let query = Query {
            names: list(&["m5.large", "c5.large", "r5.large"]),
            capacity_types: list(&["on-demand"]),
            sort,
            descending,
            ..Query::default()
        };
        names(&query)[0].clone()
    };
    assert_eq!(first(Sort::PricePerVcpu, false), "c5.large");
    assert_eq!(first(Sort::PricePerGib, false), "r5.large");
    assert_eq!(first(Sort::PricePerGib, true), "c5.large");
    assert_eq!(first(Sort::Memory, true), "r5.large");
    assert_eq!(first(Sort::Vcpu, false), "c5.large");
}

#[test]
fn an_unknown_zone_is_an_error_that_lists_the_zones() {
    let catalog = ec2("us-west-1", &ClassSettings::default()).unwrap();
    let query = Query {
        zones: list(&["us-west-1z"]),
        ..Query::default()
    };
    assert_eq!(
        query.select(catalog.types).unwrap_err().to_string(),
        "unknown zone \"us-west-1z\"; the region has us-west-1a, us-west-1b"
    );
}

#[test]
fn types_that_the_class_cannot_launch_are_not_listed() {
    let query = Query {
        families: list(&["a1"]),
        ..Query::default()
    };
    assert_eq!(text(&query, Format::Table), "No instance type matches.\n");
    assert_eq!(text(&query, Format::Json), "[]\n");
}

#[test]
fn the_table_shows_what_pods_can_use() {
    let query = Query {
        names: list(&["m5.xlarge", "g6f.large", "p4d"]),
        ..Query::default()
    };
    let expected = "\
TYPE           ARCH   VCPU  MEMORY  POD-CPU  POD-MEMORY  PODS  GPU         ON-DEMAND  SPOT-MODEL
g6f.large      amd64     2     8Gi    1930m      7002Mi    20  part of l4      0.202     0.06789
m5.xlarge      amd64     4    16Gi    3920m     14162Mi    58  -               0.192     0.05829
p4d.24xlarge   amd64    96  1152Gi   95690m   1082712Mi   737  8 x a100    21.957642     8.00795
p4de.24xlarge  amd64    96  1152Gi   95690m   1082712Mi   737  8 x a100     27.44705     9.34023

4 types. POD columns: what pods can use. Prices in USD an hour; spot is the cheapest zone in our model, not market data.
";
    assert_eq!(text(&query, Format::Table), expected);
}

#[test]
fn json_is_a_catalog_file() {
    let query = Query {
        names: list(&["m5.xlarge"]),
        zones: list(&["us-east-1a"]),
        ..Query::default()
    };
    let parsed: serde_json::Value = serde_json::from_str(&text(&query, Format::Json)).unwrap();
    let element = &parsed[0];
    assert_eq!(element["name"], "m5.xlarge");
    assert_eq!(element["architecture"], "amd64");
    assert_eq!(element["operatingSystems"], serde_json::json!(["linux"]));
    assert_eq!(
        element["resources"],
        serde_json::json!({"cpu": "4", "memory": "15155Mi", "pods": "58",
            "ephemeral-storage": "20Gi", "vpc.amazonaws.com/pod-eni": "18"})
    );
    assert_eq!(
        element["overhead"],
        serde_json::json!({"cpu": "80m", "memory": "993Mi", "ephemeral-storage": "3Gi"})
    );
    assert_eq!(element["allocatable"]["memory"], "14162Mi");
    assert_eq!(element["labels"]["karpenter.k8s.aws/instance-family"], "m5");
    assert_eq!(
        element["offerings"],
        serde_json::json!([
            {"Price": 0.192, "Available": true, "Requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                {"key": "topology.k8s.aws/zone-id", "operator": "In", "values": ["use1-az6"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}]},
            {"Price": 0.10159, "Available": true, "Requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                {"key": "topology.k8s.aws/zone-id", "operator": "In", "values": ["use1-az6"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}]}
        ])
    );
    let yaml: serde_json::Value =
        serde_saphyr::from_str(&text(&query, Format::Yaml)).expect("what we print, we can read");
    assert_eq!(yaml, parsed);
}

#[test]
fn all_of_the_catalog_can_be_printed() {
    for format in Format::ALL {
        assert!(text(&Query::default(), format).lines().count() > 1300);
    }
}

#[test]
fn a_bad_price_is_named() {
    let error = price("cheap").unwrap_err();
    assert!(error.to_string().starts_with("\"cheap\" is not a price"));
}

#[test]
fn a_table_fits_a_narrow_terminal() {
    for (names, has_gpus) in [(["m5."], false), (["p4d."], true), (["u7in-24tb."], false)] {
        let query = Query {
            names: names.map(str::to_owned).to_vec(),
            ..Query::default()
        };
        let look = Look {
            columns: Some(80),
            ..Look::default()
        };
        let mut out = Vec::new();
        render(&select(&query), Format::Table, look, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let table: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        assert!(table.len() > 1, "{text}");
        assert!(
            table.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(table[0].contains("P-MEM"), "{text}");
        assert_eq!(table[0].contains("GPU"), has_gpus, "{text}");
    }
    let wide = text(&Query::default(), Format::Table);
    assert!(wide.starts_with("TYPE ") && wide.contains("SPOT-MODEL"));
}
