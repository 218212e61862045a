//! From the bytes of a message to the JSON of its struct.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::numbers::{self, Numbers, Target};
use super::wire::{Malformed, Reader, Wire};
use crate::kinds::fields::{self, Field, FieldType, Struct};
use crate::meta;

/// Reads a message of a struct.
pub(super) fn read(of: &'static Struct, bytes: &[u8]) -> Result<Map<String, Value>, Malformed> {
    let all = fields::structs();
    let index = all.iter().position(|known| std::ptr::eq(known, of));
    read_struct(index.unwrap_or(all.len()), bytes)
}

fn read_struct(index: usize, bytes: &[u8]) -> Result<Map<String, Value>, Malformed> {
    let mut object = Map::new();
    if let Some(of) = fields::structs().get(index) {
        read_into(&mut object, &of.fields, numbers::of(index), bytes)?;
    }
    Ok(object)
}

fn read_into(
    object: &mut Map<String, Value>,
    fields: &[Field],
    numbers: &Numbers,
    bytes: &[u8],
) -> Result<(), Malformed> {
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next_field()? {
        match numbers::find(numbers, number) {
            Some(Target::Inline(inner)) => read_into(object, fields, inner, value.bytes()?)?,
            Some(Target::Field(index)) => add(object, &fields[*index], value)?,
            None => {}
        }
    }
    Ok(())
}

/// Sets a field, or adds to it when it holds many.
fn add(object: &mut Map<String, Value>, field: &Field, value: Wire<'_>) -> Result<(), Malformed> {
    let mut of = &field.kind;
    while let FieldType::Pointer(inner) = of {
        of = inner;
    }
    if let FieldType::List(inner) = of {
        let list = object
            .entry(field.name)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            add_items(list, inner, value)?;
        }
        return Ok(());
    }
    if let FieldType::Map(inner) = of {
        let (key, value) = map_entry(inner, value.bytes()?)?;
        let map = object
            .entry(field.name)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(map) = map {
            map.insert(key, value);
        }
        return Ok(());
    }
    let value = single(of, value)?;
    match (object.get_mut(field.name), value) {
        // The parts of a message may come apart; the wire's rule is to put them together.
        (Some(Value::Object(there)), Value::Object(more)) => there.extend(more),
        (_, value) => {
            object.insert(field.name.to_owned(), value);
        }
    }
    Ok(())
}

fn add_items(list: &mut Vec<Value>, of: &FieldType, value: Wire<'_>) -> Result<(), Malformed> {
    let packs = matches!(of, FieldType::Int32 | FieldType::Int64 | FieldType::Bool);
    let (true, Wire::Bytes(packed)) = (packs, value) else {
        list.push(single(of, value)?);
        return Ok(());
    };
    let mut reader = Reader::new(packed);
    while !reader.is_done() {
        list.push(single(of, Wire::Varint(reader.varint()?))?);
    }
    Ok(())
}

fn map_entry(of: &FieldType, bytes: &[u8]) -> Result<(String, Value), Malformed> {
    let mut key = String::new();
    let mut found = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next_field()? {
        match number {
            1 => value.text()?.clone_into(&mut key),
            2 => found = Some(single(of, value)?),
            _ => {}
        }
    }
    let value = match found {
        Some(value) => value,
        // A value that is its type's zero need not be written.
        None => single(of, Wire::Bytes(&[])).or_else(|_| single(of, Wire::Varint(0)))?,
    };
    Ok((key, value))
}

/// One value.
fn single(of: &FieldType, value: Wire<'_>) -> Result<Value, Malformed> {
    Ok(match of {
        FieldType::Text => Value::from(value.text()?),
        FieldType::Bool => Value::from(value.number()? != 0),
        FieldType::Int32 => {
            let number = value.number()?;
            // What is longer than 32 bits is cut, as every reader of the format does.
            #[expect(clippy::cast_possible_truncation, reason = "the format's own rule")]
            Value::from(number as i32)
        }
        FieldType::Int64 => Value::from(value.number()?),
        FieldType::Float => match value {
            Wire::Fixed64(bits) => Value::from(f64::from_bits(bits)),
            Wire::Fixed32(bits) => Value::from(f32::from_bits(bits)),
            Wire::Varint(_) | Wire::Bytes(_) => return Err(Malformed("no floating-point number")),
        },
        FieldType::Bytes => Value::from(base64(value.bytes()?)),
        FieldType::Time => time(value.bytes()?, meta::time)?,
        FieldType::MicroTime => time(value.bytes()?, meta::micro_time)?,
        FieldType::Amount => amount(value.bytes()?)?,
        FieldType::IntOrText => int_or_text(value.bytes()?)?,
        FieldType::Any => any(value.bytes()?)?,
        FieldType::Struct(index) => Value::Object(read_struct(*index, value.bytes()?)?),
        FieldType::Pointer(inner) => single(inner, value)?,
        FieldType::List(inner) => {
            // A list as a map's value is a message that holds it.
            let mut list = Vec::new();
            each_of_first(value.bytes()?, |item| add_items(&mut list, inner, item))?;
            Value::Array(list)
        }
        FieldType::Map(_) => return Err(Malformed("a map within a map")),
    })
}

/// Calls back for every value of field 1.
fn each_of_first<'b>(
    bytes: &'b [u8],
    mut then: impl FnMut(Wire<'b>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next_field()? {
        if number == 1 {
            then(value)?;
        }
    }
    Ok(())
}

fn time(bytes: &[u8], write: fn(Timestamp) -> String) -> Result<Value, Malformed> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next_field()? {
        match number {
            1 => seconds = value.number()?,
            2 => nanos = value.number()?,
            _ => {}
        }
    }
    // No time at all is written as an empty message.
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).map_err(|_| Malformed("a time is out of range"))?;
    let at = Timestamp::new(seconds, nanos).map_err(|_| Malformed("a time is out of range"))?;
    Ok(Value::from(write(at)))
}

fn amount(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut text = "0";
    each_of_first(bytes, |value| {
        text = value.text()?;
        Ok(())
    })?;
    Ok(Value::from(text))
}

fn int_or_text(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    let mut reader = Reader::new(bytes);
    while let Some((field, value)) = reader.next_field()? {
        match field {
            1 => is_text = value.number()? == 1,
            2 => number = value.number()?,
            3 => text = value.text()?,
            _ => {}
        }
    }
    Ok(if is_text {
        Value::from(text)
    } else {
        Value::from(number)
    })
}

/// JSON, wrapped in a message of its own.
fn any(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut found = Value::Null;
    each_of_first(bytes, |value| {
        let raw = value.bytes()?;
        if !raw.is_empty() {
            let read = serde_json::from_slice(raw);
            found = read.map_err(|_| Malformed("the JSON in it cannot be read"))?;
        }
        Ok(())
    })?;
    Ok(found)
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place <= chunk.len() {
                let sign = bits >> (18 - 6 * place) & 63;
                text.push(char::from(SIGNS[sign as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"\xff\xfe\xfd", "//79"),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }
}
