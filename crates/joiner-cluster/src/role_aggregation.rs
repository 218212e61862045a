//! ClusterRoles that gather the rules of others: `admin`, `edit` and `view` are such.

use joiner_machinery::meta;
use joiner_machinery::selector::LabelSelector;
use serde_json::{Value, json};

use crate::fields;
use crate::view::{Controller, Resource, Step, View};

const ROLES: Resource = ("rbac.authorization.k8s.io", "clusterroles");

/// The controller of ClusterRoles with an aggregation rule.
#[derive(Default)]
pub struct RoleAggregation {}

impl Controller for RoleAggregation {
    fn name(&self) -> &'static str {
        "clusterrole-aggregation-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[ROLES]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        let mut actions = Vec::new();
        for role in view.all(ROLES).filter(|role| !meta::is_deleting(role)) {
            let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
            let selectors = selectors.map_or(&[][..], Vec::as_slice);
            if selectors.is_empty() {
                continue;
            }
            let gathered = gathered(view, role, selectors);
            let rules = role["rules"].as_array();
            if rules.map_or(&[][..], Vec::as_slice) != gathered {
                actions.push(fields::patch(ROLES, role, json!({"rules": gathered})));
            }
        }
        Step {
            actions,
            wake: None,
        }
    }
}

/// The rules of the roles that any selector chooses, in order of selectors and names, each once.
fn gathered(view: &View<'_>, own: &Value, selectors: &[Value]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors.iter().map(LabelSelector::of) {
        let others = view
            .all(ROLES)
            .filter(|role| meta::name(role) != meta::name(own));
        for role in others.filter(|role| selector.matches(role)) {
            for rule in role["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
