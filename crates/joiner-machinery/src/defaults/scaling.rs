//! Defaults of HorizontalPodAutoscalers.

use serde_json::{Map, Value, json};

use super::{put, under};

pub(super) fn autoscaler(map: &mut Map<String, Value>, version: &str) {
    under(map, "spec", |spec| {
        put(spec, "minReplicas", 1);
        if version == "v1" {
            // Metrics that this version cannot say are in an annotation, then there is no default.
            put(spec, "targetCPUUtilizationPercentage", 80);
            return;
        }
        put(
            spec,
            "metrics",
            json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            }}]),
        );
        if spec.contains_key("behavior") {
            under(spec, "behavior", behavior);
        }
    });
}

fn behavior(map: &mut Map<String, Value>) {
    under(map, "scaleUp", |up| {
        put(up, "stabilizationWindowSeconds", 0);
        put(up, "selectPolicy", "Max");
        put(
            up,
            "policies",
            json!([
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ]),
        );
    });
    under(map, "scaleDown", |down| {
        put(down, "selectPolicy", "Max");
        put(
            down,
            "policies",
            json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
        );
    });
}
