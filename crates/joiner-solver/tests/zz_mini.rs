//! scratch
use joiner_testkit::*;
fn w() -> World { World::standard() }
#[test] fn c1() { let o = World::new().add(pool("default").limit("nodes","8")).add(instance_type("tiny").cpu("2")).add(node("old")).add(pod("web").replicas(2).cpu("3")).solve(); println!("{o}"); }
#[test] fn c3() { let o = w().add(pod("a").cpu("1").anti_affinity_to(ZONE,"b")).add(pod("b").cpu("1").spread_over_zones(1)).solve(); println!("{o}"); }
#[test] fn c4() { let o = w().add(pod("a").replicas(3).cpu("100m").affinity_to(HOSTNAME,"a").anti_affinity_to(ZONE,"a")).solve(); println!("{o}"); }
#[test] fn c5() { let o = World::new().add(pool("p")).add(instance_type("x").cpu("8").pods(3)).add(pod("a").replicas(2).cpu("2").affinity_to(HOSTNAME,"a")).add(pod("b").replicas(3).cpu("1").affinity_to(HOSTNAME,"a")).solve(); println!("{o}"); }
#[test] fn c5e() { let o = w().add(pod("a")).add(pod("b").affinity_to(HOSTNAME,"a").anti_affinity_to(HOSTNAME,"a")).solve(); println!("{o}"); }
#[test] fn c5f() { let o = w().add(pod("a").cpu("2").memory("1Gi")).add(pod("b").replicas(2).cpu("1").affinity_to(ZONE,"b").affinity_to(HOSTNAME,"a").anti_affinity_to(HOSTNAME,"b")).solve(); println!("{o}"); }
#[test] fn c5g() { let o = w().add(pod("a").cpu("2").memory("1Gi")).add(pod("b").cpu("7").affinity_to(HOSTNAME,"a")).solve(); println!("{o}"); }
#[test] fn c5h() { let o = w().add(pod("a").affinity_to(HOSTNAME,"b")).add(pod("b").affinity_to(HOSTNAME,"c")).add(pod("c").cpu("100")).solve(); println!("{o}"); }
#[test] fn c5i() { let o = w().add(pod("a").affinity_to(ZONE,"b")).add(pod("b").affinity_to(ZONE,"c")).add(pod("c").cpu("100")).solve(); println!("{o}"); }
#[test] fn c6() { let o = w().add(pod("a").cpu("1").zone("a")).add(pod("b").replicas(4).cpu("100m").spread_over_zones(2).affinity_to(HOSTNAME,"a")).solve(); println!("{o}"); }
#[test] fn c6c() { let o = w().add(pod("b").replicas(4).cpu("100m").spread_over_zones(1).affinity_to(HOSTNAME,"b")).solve(); println!("{o}"); }
#[test] fn c8b() { let o = w().add(pod("a").replicas(3).cpu("100m").spread_over_zones(1).prefer_affinity_to(1,HOSTNAME,"b")).add(pod("b").zone("b")).solve(); println!("{o}"); }
#[test] fn c8d() { let o = w().add(pod("a").replicas(3).cpu("100m").spread_over_zones(1).prefer_affinity_to(1,HOSTNAME,"a")).solve(); println!("{o}"); }
#[test] fn e17() { let o = World::new().add(pool("p")).add(instance_type("x").reserved("a",1,0.0).price(0.3)).add(pod("a").replicas(3).cpu("3")).solve(); println!("{o}"); }
#[test] fn m1() { let o = w().add(pool("heavy").weight(9).limit("cpu","8").min_values(INSTANCE_TYPE,"Exists","",2)).add(pod("a").cpu("1")).solve(); println!("{o}"); }
#[test] fn m2() { let o = World::new().add(pool("heavy").limit("cpu","8").min_values(INSTANCE_TYPE,"Exists","",2)).add(instance_type("x")).add(instance_type("y")).add(pod("a").cpu("1")).solve(); println!("{o}"); }
