//! probe
use joiner_testkit::*;
fn show(n: &str, w: World) {
    let r = std::panic::catch_unwind(move || w.solve().to_string());
    match r {
        Ok(t) => println!("## {n}\n{t}"),
        Err(e) => println!(
            "## {n} PANIC {}",
            e.downcast_ref::<String>().cloned().unwrap_or_default()
        ),
    }
}
#[test]
fn probe() {
    let m = || World::new().add(instance_type("machine").cpu("4").price(0.1));
    let rack = "example.com/rack";
    for (n, p) in [
        ("taint", pool("p").taint("team=x:NoSchedule")),
        ("plain", pool("p")),
        ("zone", pool("p").zones("b")),
        ("rack", pool("p").requirement(rack, "In", "r2")),
    ] {
        show(
            n,
            m().add(p)
                .add(node("there").cpu("1").label(rack, "r1"))
                .add(pod("web").replicas(3).cpu("500m").spread_over(rack, 1)),
        );
    }
    show(
        "no pool",
        m().add(node("there").cpu("1").label(rack, "r1"))
            .add(pod("web").replicas(3).cpu("500m").spread_over(rack, 1)),
    );
    for lim in ["4", "16"] {
        show(
            "lim host anti",
            m().add(pool("p").limit("cpu", lim))
                .add(node("there").zone("d").cpu("1"))
                .add(
                    pod("web")
                        .replicas(5)
                        .cpu("100m")
                        .anti_affinity_to(HOSTNAME, "web"),
                ),
        );
        show(
            "lim host anti + zone spread",
            m().add(pool("p").limit("cpu", lim))
                .add(node("there").zone("d").cpu("1"))
                .add(
                    pod("web")
                        .replicas(5)
                        .cpu("100m")
                        .anti_affinity_to(HOSTNAME, "web")
                        .spread_over_zones(1),
                ),
        );
        show(
            "lim port",
            m().add(pool("p").limit("cpu", lim))
                .add(node("there").zone("d").cpu("1"))
                .add(pod("web").replicas(5).cpu("100m").host_port(80)),
        );
        show(
            "lim ",
            m().add(pool("p").limit("cpu", lim))
                .add(node("there").zone("d").cpu("1"))
                .add(pod("web").replicas(20).cpu("900m")),
        );
    }
    // uneven pools
    show(
        "pod in limited heavier pool",
        m().add(pool("heavy").weight(10).limit("cpu", "4").zones("a"))
            .add(pool("light").zones("b"))
            .add(pod("web").replicas(6).cpu("2").spread_over_zones(1)),
    );
    show(
        "spread + zone sold out",
        World::new()
            .add(
                instance_type("m")
                    .cpu("2")
                    .zone_price("a", "on-demand", 0.1)
                    .zone_price("b", "on-demand", 0.1)
                    .sold_out("c", "on-demand", 0.1),
            )
            .add(pool("p"))
            .add(pod("web").replicas(4).cpu("1").spread_over_zones(1)),
    );
    show(
        "spread size by zone",
        World::new()
            .add(
                instance_type("big")
                    .cpu("8")
                    .zone_price("a", "on-demand", 0.4)
                    .zone_price("b", "on-demand", 0.4),
            )
            .add(
                instance_type("tiny")
                    .cpu("1")
                    .zone_price("c", "on-demand", 0.05),
            )
            .add(pool("p"))
            .add(pod("web").replicas(4).cpu("2").spread_over_zones(1)),
    );
    show(
        "affinity to pod larger",
        m().add(pool("p"))
            .add(pod("a").cpu("3").affinity_to(HOSTNAME, "b"))
            .add(pod("b").cpu("3")),
    );
    show(
        "affinity host 2 groups",
        m().add(pool("p"))
            .add(pod("a").replicas(3).cpu("2").affinity_to(HOSTNAME, "b"))
            .add(pod("b").replicas(3).cpu("2")),
    );
    show(
        "priority spread",
        m().add(pool("p").limit("cpu", "4"))
            .add(pod("a").replicas(3).cpu("2").spread_over_hosts(1))
            .add(pod("b").cpu("4").priority(5)),
    );
    show(
        "self anti zone existing",
        m().add(pool("p")).add(node("n").zone("a")).add(
            pod("web")
                .replicas(3)
                .cpu("1")
                .anti_affinity_to(ZONE, "web"),
        ),
    );
    show(
        "custom key anti",
        m().add(pool("p").requirement(rack, "In", "r1 r2")).add(
            pod("web")
                .replicas(3)
                .cpu("1")
                .anti_affinity_to(rack, "web"),
        ),
    );
    show(
        "custom key affinity",
        m().add(pool("p").requirement(rack, "In", "r1 r2"))
            .add(pod("web").replicas(9).cpu("1").affinity_to(rack, "web")),
    );
    show(
        "region-ish missing key affinity",
        m().add(pool("p")).add(
            pod("web")
                .replicas(2)
                .cpu("1")
                .affinity_to("example.com/none", "web"),
        ),
    );
    show(
        "missing key anti",
        m().add(pool("p")).add(
            pod("web")
                .replicas(2)
                .cpu("1")
                .anti_affinity_to("example.com/none", "web"),
        ),
    );
    show(
        "exists key spread",
        m().add(pool("p").requirement(rack, "Exists", ""))
            .add(pod("web").replicas(2).cpu("1").spread_over(rack, 1)),
    );
}
