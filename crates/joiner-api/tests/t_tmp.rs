//! t
mod support;
use std::time::Instant;
#[test]
fn t() {
    let c = joiner_api::crds();
    let full = joiner_api::Schema::compile(&c[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).expect("x");
    fn strip(v: &mut serde_json::Value) { if let Some(m) = v.as_object_mut() { m.remove("x-kubernetes-validations"); m.values_mut().for_each(strip); } }
    let mut b = c[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone(); strip(&mut b);
    let bare = joiner_api::Schema::compile(&b).expect("x");
    let pool = support::full_node_pool();
    let time = |name: &str, f: &dyn Fn()| { let mut best = u128::MAX; for _ in 0..20 { let s = Instant::now(); for _ in 0..100 { f(); } best = best.min(s.elapsed().as_nanos() / 100); } println!("{name} {best} ns"); };
    time("clone", &|| { let _ = pool.clone(); });
    time("unknown", &|| { full.unknown_fields(&pool); });
    time("defaults", &|| { full.apply_defaults(&mut pool.clone()); });
    time("validate bare", &|| { let _ = bare.validate(&pool, None); });
    time("validate full", &|| { let _ = full.validate(&pool, None); });
    time("meta", &|| { let _ = joiner_api::admission::validate_metadata(&pool, None); });
    time("admit", &|| { let _ = joiner_api::admit(&mut pool.clone()); });
    let typed = || { let _: joiner_api::types::NodePool = serde_json::from_value(pool.clone()).expect("x"); };
    time("decode", &typed);
}
