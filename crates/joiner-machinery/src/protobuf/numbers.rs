//! Which field of a struct a number stands for.

use std::sync::OnceLock;

use crate::kinds::fields;

/// The fields of one message by number.
pub(super) type Numbers = Vec<(u32, Target)>;

/// What a field of a message holds.
#[derive(Debug)]
pub(super) enum Target {
    /// A field of the struct, by its index.
    Field(usize),
    /// A message whose fields are the struct's own in JSON.
    Inline(Numbers),
}

/// The numbers of a struct, by its index in the table of fields; empty where there are none.
pub(super) fn of(struct_index: usize) -> &'static Numbers {
    static TABLE: OnceLock<Vec<Numbers>> = OnceLock::new();
    static EMPTY: Numbers = Vec::new();
    let table = TABLE.get_or_init(|| parse(include_str!("numbers.txt")));
    table.get(struct_index).unwrap_or(&EMPTY)
}

/// The target of a number.
pub(super) fn find(numbers: &Numbers, number: u32) -> Option<&Target> {
    let found = numbers.iter().find(|(known, _)| *known == number);
    found.map(|(_, target)| target)
}

fn parse(text: &'static str) -> Vec<Numbers> {
    let structs = fields::structs();
    let mut table: Vec<Numbers> = structs.iter().map(|_| Vec::new()).collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or("");
        let Some(index) = structs.iter().position(|known| known.name == name) else {
            continue;
        };
        for (field, path) in words.filter_map(|word| word.split_once('=')) {
            let known = structs[index].fields.iter().position(|f| f.name == field);
            if let Some(field) = known {
                add(&mut table[index], path, field);
            }
        }
    }
    table
}

fn add(numbers: &mut Numbers, path: &str, field: usize) {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let Ok(number) = first.parse::<u32>() else {
        return;
    };
    let Some(rest) = rest else {
        numbers.push((number, Target::Field(field)));
        return;
    };
    for (known, target) in numbers.iter_mut() {
        if let Target::Inline(inner) = target
            && *known == number
        {
            return add(inner, rest, field);
        }
    }
    let mut inner = Vec::new();
    add(&mut inner, rest, field);
    numbers.push((number, Target::Inline(inner)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(numbers: &Numbers) -> usize {
        let each = numbers.iter().map(|(_, target)| match target {
            Target::Field(_) => 1,
            Target::Inline(inner) => count(inner),
        });
        each.sum()
    }

    #[test]
    fn every_field_has_its_number() {
        for (index, own) in fields::structs().iter().enumerate() {
            // CRDs never come as protobuf: the clients that make them speak JSON.
            if own.name.starts_with("apiext.") {
                continue;
            }
            // The type of an object is in the envelope, not in the message.
            let is_object = own.field("metadata").is_some() || own.name == "meta.DeleteOptions";
            let outside = own
                .fields
                .iter()
                .filter(|f| is_object && matches!(f.name, "apiVersion" | "kind"))
                .count();
            assert_eq!(count(of(index)) + outside, own.fields.len(), "{}", own.name);
        }
    }
}
