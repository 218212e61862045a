//! probe
use joiner_testkit::*;
#[test]
fn probe() {
    let w = World::standard().add(pool("default").limit("cpu", "2"));
    let o = World::new().add(instance_type("small").cpu("2")).add(pool("p").limit("cpu","2"))
        .add(pod("lo").cpu("2").priority(-5)).add(pod("hi").cpu("2").priority(10)).solve();
    println!("{o} {:?}", o.problem.shapes.iter().map(|s| s.priority).collect::<Vec<_>>());
    let o = World::new().add(instance_type("small").cpu("2")).add(pool("p"))
        .add(pod("lo").cpu("1").zone("a").anti_affinity_to(ZONE, "hi")).add(pod("hi").zone("a").cpu("1").priority(10)).solve();
    println!("{o} {:?}", o.problem.shapes.iter().map(|s| s.priority).collect::<Vec<_>>());
    let o = World::new().add(instance_type("small").cpu("2")).add(pool("p"))
        .add(pod("lo").cpu("1").zone("a")).add(pod("hi").zone("a").cpu("1").priority(10).anti_affinity_to(ZONE, "lo")).solve();
    println!("{o} {:?}", o.problem.shapes.iter().map(|s| s.priority).collect::<Vec<_>>());
    let _ = w;
}
