//! Many nodes, many shapes, many types.

use joiner_verify::Rule;

use crate::large::{crowded, large, many_apps, one_app};
use crate::support::*;

#[test]
fn many_nodes() {
    one_app(120).legal();
    many_apps(10).legal();
    crowded(120, 40).legal();
    let case = large(120, 40).legal();
    case.broken_by(Rule::Fit, "one pod too large", |c| {
        c.problem.shapes[399].requests = resources(9000, 1, 1);
        for launch in &mut c.plan.launches {
            launch.requests = Default::default();
            for pod in &launch.pods {
                launch.requests.add(&c.problem.shape(*pod).requests);
            }
        }
    });
}
