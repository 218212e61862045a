//! Rules of the metrics of an HPA.

use crate::part::{FieldError, Part};

/// The types of metrics with the fields that say more.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// What breaks the rules in one metric.
pub(super) fn check(metric: &Part<'_>, object_ref: bool, errors: &mut Vec<FieldError>) {
    let kind = metric.field("type");
    let kind_text = kind.value().as_str().unwrap_or_default();
    let Some((_, field)) = SOURCES.iter().find(|(name, _)| *name == kind_text) else {
        errors.push(if kind_text.is_empty() {
            kind.missing()
        } else {
            kind.not("Resource, ContainerResource, Pods, Object or External")
        });
        return;
    };
    for (name, other) in SOURCES {
        let source = metric.field(other);
        if source.is_set() && other != *field {
            errors.push(source.error(format!(
                "must be left out of a metric of type {kind_text}; make a metric of type {name} of it"
            )));
        }
    }
    let source = metric.field(field);
    if !source.is_set() {
        errors.push(source.error(format!("is missing; a metric of type {kind_text} needs it")));
        return;
    }
    let target = source.field("target");
    target_numbers(&target, errors);
    match kind_text {
        "Resource" => resource(&source, &target, errors),
        "ContainerResource" => {
            resource(&source, &target, errors);
            container(&source.field("container"), errors);
        }
        "Pods" => {
            metric_name(&source.field("metric").field("name"), errors);
            if !target.field("averageValue").is_set() {
                errors.push(target.field("averageValue").missing());
            }
        }
        "Object" => {
            metric_name(&source.field("metric").field("name"), errors);
            described(&source.field("describedObject"), object_ref, errors);
            if !target.field("value").is_set() && !target.field("averageValue").is_set() {
                errors.push(
                    target
                        .field("value")
                        .error("is missing; set it or averageValue"),
                );
            }
        }
        _ => {
            metric_name(&source.field("metric").field("name"), errors);
            one_of(&target, ("value", "averageValue"), errors);
        }
    }
    selector(&source.field("metric").field("selector"), errors);
}

fn selector(part: &Part<'_>, errors: &mut Vec<FieldError>) {
    if part.is_set() {
        errors.extend(crate::selector::Selector::read(part).err());
    }
}

fn resource(source: &Part<'_>, target: &Part<'_>, errors: &mut Vec<FieldError>) {
    errors.extend(source.field("name").some_text().err());
    one_of(target, ("averageUtilization", "averageValue"), errors);
}

/// One of two fields must be there, and not both.
fn one_of(target: &Part<'_>, (first, second): (&str, &str), errors: &mut Vec<FieldError>) {
    match (target.field(first).is_set(), target.field(second).is_set()) {
        (false, false) => {
            let problem = format!("is missing; set it or {second}");
            errors.push(target.field(first).error(problem));
        }
        (true, true) => {
            let problem = format!("must be left out where {first} is set");
            errors.push(target.field(second).error(problem));
        }
        (true, false) | (false, true) => {}
    }
}

fn target_numbers(target: &Part<'_>, errors: &mut Vec<FieldError>) {
    let kind = target.field("type");
    match kind.value().as_str() {
        Some("Utilization" | "Value" | "AverageValue") => {}
        None | Some("") => errors.push(kind.missing()),
        Some(_) => errors.push(kind.not("Utilization, Value or AverageValue")),
    }
    for name in ["value", "averageValue"] {
        let field = target.field(name);
        match field.quantity() {
            Ok(Some(quantity)) if !quantity.is_positive() => {
                errors.push(field.not("more than zero"));
            }
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    let field = target.field("averageUtilization");
    match field.int32() {
        Ok(Some(percent)) if percent < 1 => errors.push(field.not("at least 1 percent")),
        Ok(_) => {}
        Err(error) => errors.push(error),
    }
}

/// A name that is part of a path.
fn metric_name(field: &Part<'_>, errors: &mut Vec<FieldError>) {
    path_segment(field, errors);
}

/// Required, and without what would break a path.
pub(super) fn path_segment(field: &Part<'_>, errors: &mut Vec<FieldError>) {
    match field.some_text() {
        Ok("." | "..") => errors.push(field.error("must be a name, not . or ..")),
        Ok(name) if name.contains(['/', '%']) => {
            errors.push(field.error("must be a name without / and %"));
        }
        Ok(_) => {}
        Err(error) => errors.push(error),
    }
}

fn container(field: &Part<'_>, errors: &mut Vec<FieldError>) {
    const LENGTH_MAX: usize = 63;
    match field.some_text() {
        Ok(name) => {
            let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let dashed = name.starts_with('-') || name.ends_with('-');
            if name.len() > LENGTH_MAX || dashed || !name.chars().all(fine) {
                errors.push(field.not("the name of a container"));
            }
        }
        Err(error) => errors.push(error),
    }
}

fn described(object: &Part<'_>, check_version: bool, errors: &mut Vec<FieldError>) {
    for name in ["kind", "name"] {
        path_segment(&object.field(name), errors);
    }
    let version = object.field("apiVersion");
    let text = version.value().as_str().unwrap_or_default();
    if check_version && text.matches('/').count() > 1 {
        errors.push(version.not("a group and a version, such as apps/v1"));
    }
}
