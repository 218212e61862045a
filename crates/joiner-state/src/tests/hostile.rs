use proptest::prelude::*;

use super::*;

const MANIFEST: &str = r#"{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"app":"web"},"ownerReferences":[{"kind":"ReplicaSet","name":"web-1","controller":true}]},
 "spec":{"nodeName":"n1","priority":3,"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"}},"ports":[{"hostPort":80}]}],
 "tolerations":[{"operator":"Exists"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}],
 "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}],
 "affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"zone","namespaceSelector":{}}]}}}},
{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4"}}},
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3,"template":{"spec":{"containers":[]}}}},
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"},"spec":{"storageClassName":"x"}},
{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"d"},"spec":{"template":{"spec":{"requirements":[],"nodeClassRef":{"group":"g.x","kind":"K","name":"n"}}}}}
]}"#;

fn survive(text: &str) {
    if let Ok(objects) = Objects::read([Source::new("x", text)]) {
        let _ = objects.problem(Catalog::default());
    }
    let _ = parse_instance_types("t", text);
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        survive(&text);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn damaged_manifests_are_survived(at in 0..MANIFEST.len(), len in 0..40usize, patch in "[\\[\\]{}:,\"0-9a-zA-Z\n -]{0,8}") {
        let end = (at + len).min(MANIFEST.len());
        survive(&format!("{}{patch}{}", &MANIFEST[..at], &MANIFEST[end..]));
    }

    #[test]
    fn damaged_catalogs_are_survived(at in 0..TYPES.len(), len in 0..40usize, patch in "[\\[\\]{}:,\"0-9a-z-]{0,8}") {
        let end = (at + len).min(TYPES.len());
        survive(&format!("{}{patch}{}", &TYPES[..at], &TYPES[end..]));
    }

    #[test]
    fn yaml_like_text_is_survived(text in "([a-z]{1,4}: |- |  |\\[|\\]|\\{|\\}|&a|\\*a|\n|'|\"|---\n|\\||>){0,40}") {
        survive(&text);
    }
}

#[test]
fn the_manifest_is_fine_before_it_is_damaged() {
    survive(MANIFEST);
    assert_eq!(
        names(&read(MANIFEST).problem),
        ["default/a", "default/web-0", "default/web-1"]
    );
}

#[test]
fn json_read_as_yaml_says_the_same() {
    let [json, yaml] = [MANIFEST.to_owned(), format!("# as YAML\n{MANIFEST}")]
        .map(|text| format!("{:#?}", read(&text).problem));
    assert_eq!(json, yaml);
}

#[test]
fn depth_is_bounded() {
    for (open, close) in [
        ("[", "]"),
        ("{\"a\":", "}"),
        ("{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[", "]}"),
    ] {
        let deep = open.repeat(100_000) + &close.repeat(100_000);
        survive(&deep);
        survive(&format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"spec\":{deep}}}"
        ));
    }
    survive(&"- ".repeat(100_000));
    survive(&"a: {".repeat(100_000));
    let lists = "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[".repeat(9) + &"]}".repeat(9);
    assert!(refused(&lists).contains("lists are nested too deeply"));
}
