//! A small reader of Delta tables, by the protocol and by nothing of nearprint's.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::{Result, require};

/// The tables of an output.
pub const TABLES: [&str; 8] =
    ["decisions", "hosts", "pairs", "quarantine", "redecided", "skipped", "stubs", "superseded"];

/// The newest version of a table: the `add` actions of its files, by path below the table.
pub type Active = BTreeMap<String, Value>;

/// Reads the table at a path, such as `results/decisions`, among files that are given by their paths. A table that is not
/// there has no files.
pub fn active(now: &BTreeMap<String, Vec<u8>>, table: &str) -> Result<Active> {
    let prefix = format!("{table}/_delta_log/");
    let versions = now.iter().filter_map(|(key, content)| Some((key.strip_prefix(&prefix)?, content)));
    let mut active = Active::new();
    for (number, (name, content)) in versions.filter(|(name, _)| name.ends_with(".json")).enumerate() {
        require!(name == format!("{number:020}.json"), "{table}: version {number} is called {name}");
        let wrong = |what: &str| format!("{table}: version {number} {what}");
        let lines: Vec<Value> =
            std::str::from_utf8(content)?.lines().map(serde_json::from_str).collect::<serde_json::Result<_>>()?;
        let first = |key: &str| lines.iter().filter(|line| line.get(key).is_some()).count();
        if number == 0 {
            let protocol = lines.iter().find_map(|line| line.get("protocol")).ok_or(wrong("has no protocol"))?;
            require!(protocol["minReaderVersion"] == 1 && protocol["minWriterVersion"] == 2, "{protocol}");
            let metadata = lines.iter().find_map(|line| line.get("metaData")).ok_or(wrong("has no metadata"))?;
            require!(metadata["partitionColumns"] == serde_json::json!(["dt"]), "{metadata}");
            let schema: Value = serde_json::from_str(metadata["schemaString"].as_str().ok_or(wrong("has no schema"))?)?;
            let columns = schema["fields"].as_array().ok_or(wrong("has no columns"))?;
            let known = |column: &&Value| {
                ["string", "boolean", "integer", "long", "double", "date"].map(Value::from).contains(&column["type"])
            };
            require!(columns.iter().all(|c| known(&c)), "{schema}");
        }
        require!(first("commitInfo") == 1, "{}", wrong("does not say who wrote it"));
        for line in &lines {
            if let Some(path) = line["remove"]["path"].as_str() {
                require!(active.remove(path).is_some(), "{}", wrong(&format!("removes {path}, which is not there")));
            }
        }
        for add in lines.iter().filter_map(|line| line.get("add")) {
            let path = add["path"].as_str().ok_or(wrong("adds no path"))?;
            let dt = add["partitionValues"]["dt"].as_str().ok_or(wrong("adds no night"))?;
            require!(path.starts_with(&format!("dt={dt}/")), "{}", wrong(&format!("adds {path} of {dt}")));
            let is_new = active.insert(path.to_owned(), add.clone()).is_none();
            require!(is_new, "{}", wrong(&format!("adds {path} again")));
        }
    }
    Ok(active)
}

/// The paths of a night's files of a table, below the output.
pub fn night(output: &Path, table: &str, dt: &str) -> Result<Vec<String>> {
    let of_night = |path: &String| path.starts_with(&format!("{table}/dt={dt}/"));
    Ok(files(output, table)?.into_iter().filter(of_night).collect())
}

/// The paths of all files of a table, below the output.
pub fn files(output: &Path, table: &str) -> Result<Vec<String>> {
    let mut now = BTreeMap::new();
    for entry in std::fs::read_dir(output.join(table).join("_delta_log")).into_iter().flatten() {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        now.insert(format!("{table}/_delta_log/{name}"), std::fs::read(entry.path())?);
    }
    Ok(active(&now, table)?.into_keys().map(|path| format!("{table}/{path}")).collect())
}

/// The generation in the name of a published file.
pub fn generation(path: &str) -> Option<&str> {
    path.strip_suffix(".parquet")?.rsplit_once('-').map(|(_, generation)| generation)
}

/// The rows that the statistics of an `add` action count.
pub fn n_records(add: &Value) -> Result<u64> {
    let stats: Value = serde_json::from_str(add["stats"].as_str().ok_or("no statistics")?)?;
    Ok(stats["numRecords"].as_u64().ok_or("no number of rows")?)
}
