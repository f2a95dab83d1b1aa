//! JSON Schemas as nearprint publishes them. They are derived from the types that are read and written, and their
//! descriptions are the doc comments of these.

use serde_json::{Map, Value};

/// Returns a derived schema in the words of those who write or read the JSON or TOML that it describes: the first paragraph
/// of a doc comment without the links and names of Rust, names of an enum in one list, numbers without the names of Rust's
/// types, and objects without further keys. A key that is left out instead of being null is not null.
pub fn in_words(mut schema: Value) -> Value {
    each(&mut schema, &mut |schema| {
        if schema.get("format").and_then(Value::as_str).is_some_and(|format| format != "path") {
            schema.remove("format");
        }
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = without_links(&text.split("\n\n").next().unwrap_or_default().replace('\n', " "));
        }
        names_in_one_list(schema);
        let required: Vec<Value> = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (key, value) in properties(schema) {
            let is_left_out = !required.contains(&key.as_str().into());
            if is_left_out {
                without_null(value);
            }
            if let Some(Value::String(text)) = value.get_mut("description") {
                *text = text
                    .replace("`None`", if is_left_out { "left out" } else { "null" })
                    .replace(". left out", ". Left out");
            }
        }
        if schema.contains_key("properties") {
            close(schema);
        }
    });
    schema
}

/// Calls a function with each schema inside a schema, those inside first, and with the schema itself.
pub fn each(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(schema) = schema else { return };
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => named.values_mut().for_each(|inner| each(inner, visit)),
            ("anyOf" | "oneOf" | "prefixItems", Value::Array(listed)) => {
                listed.iter_mut().for_each(|inner| each(inner, visit));
            }
            ("items" | "additionalProperties", inner) => each(inner, visit),
            _ => {}
        }
    }
    visit(schema);
}

/// Returns the keys of an object, each with the schema of its values.
pub fn properties(schema: &mut Map<String, Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
}

/// Refuses further keys of an object. Its alternatives, if it has some, know a part of its keys each.
fn close(schema: &mut Map<String, Value>) {
    let mut has_parts = schema.contains_key("allOf");
    if let Some(Value::Array(alternatives)) = schema.get_mut("oneOf") {
        has_parts = true;
        for one in alternatives.iter_mut().filter_map(Value::as_object_mut) {
            one.remove("additionalProperties");
        }
    }
    if has_parts {
        schema.remove("additionalProperties");
        schema.insert("unevaluatedProperties".to_owned(), false.into());
    } else {
        schema.entry("additionalProperties").or_insert(false.into());
    }
}

/// Describes the only key of an alternative as the alternative.
fn describe_key(alternative: &mut Value) {
    let Some(text) = alternative.get("description").cloned() else { return };
    let Some(Value::Object(keys)) = alternative.get_mut("properties") else { return };
    if let (1, Some(Value::Object(key))) = (keys.len(), keys.values_mut().next()) {
        key.entry("description").or_insert(text);
    }
}

/// Puts the names that an enum has into one list. Derived schemas have an alternative for each, for its doc comment.
fn names_in_one_list(schema: &mut Map<String, Value>) {
    let Some(Value::Array(of)) = schema.remove("oneOf") else { return };
    let (names, mut others): (Vec<Value>, Vec<Value>) = of.into_iter().partition(|one| one["const"].is_string());
    let listed: Vec<Value> = names.into_iter().map(|name| name["const"].clone()).collect();
    let plain = others.iter_mut().filter_map(|one| one.as_object_mut()?.remove("enum")?.as_array().cloned()).flatten();
    let listed: Vec<Value> = plain.chain(listed).collect();
    others.retain(|one| one["type"] != "string");
    others.iter_mut().for_each(describe_key);
    match (listed.is_empty(), others.is_empty()) {
        (true, _) => drop(schema.insert("oneOf".to_owned(), others.into())),
        (false, true) => schema.extend([("type".to_owned(), "string".into()), ("enum".to_owned(), listed.into())]),
        (false, false) => {
            others.insert(0, serde_json::json!({ "type": "string", "enum": listed }));
            schema.insert("oneOf".to_owned(), others.into());
        }
    }
}

/// Takes the null out of the values of a key.
fn without_null(value: &mut Value) {
    if let Some(Value::Array(types)) = value.get_mut("type") {
        types.retain(|of| of != "null");
        if let [one] = types.as_slice() {
            value["type"] = one.clone();
        }
    }
    let Some(Value::Array(alternatives)) = value.get_mut("anyOf") else { return };
    alternatives.retain(|of| of["type"] != "null");
    if let ([Value::Object(one)], Value::Object(value)) = (alternatives.clone().as_slice(), value) {
        value.remove("anyOf");
        for (key, of) in one {
            value.entry(key).or_insert_with(|| of.clone());
        }
    }
}

/// Removes the links of a doc comment, and leaves their names.
fn without_links(text: &str) -> String {
    let mut parts = text.split("[`");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("`]").unwrap_or((part, ""));
        let rest = rest.strip_prefix('(').and_then(|rest| Some(rest.split_once(')')?.1)).unwrap_or(rest);
        out += &format!("`{name}`{rest}");
    }
    out
}
