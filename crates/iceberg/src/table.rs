//! The metadata of a table.

use std::collections::BTreeMap;
use std::io::Read;

use nearprint_fault::{Result, foreign};
use nearprint_storage::{ColumnIds, Folder, bad_file, bad_format};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The newest version of the format that is known.
const NEWEST_FORMAT: u8 = 3;
/// The most bytes of metadata that are unpacked. A table of a million snapshots has fewer.
const MOST_BYTES: u64 = 1 << 30;
/// The name of changes that write files anew.
const REPLACE: &str = "replace";
/// The bytes with which a compressed file of metadata begins.
const GZIP: [u8; 2] = [0x1F, 0x8B];

/// A file of metadata: the schemas, the ways in which files were partitioned, and the snapshots.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Table {
    format_version: u8,
    /// The place of the table, as its writer named it.
    pub location: String,
    current_schema_id: Option<i32>,
    #[serde(default)]
    schemas: Vec<Schema>,
    /// The schema of a table of version 1 that has no list of them.
    schema: Option<Schema>,
    #[serde(default)]
    partition_specs: Vec<PartitionSpec>,
    /// The partitioning of a table of version 1 that has no list of them.
    partition_spec: Option<Vec<PartitionField>>,
    current_snapshot_id: Option<i64>,
    #[serde(default)]
    snapshots: Vec<Snapshot>,
}

/// The columns of a table at some time.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Schema {
    #[serde(default)]
    schema_id: i32,
    fields: Vec<SchemaField>,
}

/// A column, or one within another. Its number stays, whatever its name becomes.
#[derive(Debug, Clone, Deserialize)]
pub struct SchemaField {
    id: i32,
    name: String,
    #[serde(default, rename = "type")]
    kind: FieldType,
}

/// The type of a column, as far as it has columns within.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum FieldType {
    Struct { fields: Vec<SchemaField> },
    Other(IgnoredAny),
}

impl Default for FieldType {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl Schema {
    /// Returns the columns with their numbers and the names that lead to each.
    fn columns(&self) -> Vec<(i32, Vec<String>)> {
        fn add(fields: &[SchemaField], within: &[String], found: &mut Vec<(i32, Vec<String>)>) {
            for SchemaField { id, name, kind } in fields {
                let names = [within, std::slice::from_ref(name)].concat();
                if let FieldType::Struct { fields } = kind {
                    add(fields, &names, found);
                }
                found.push((*id, names));
            }
        }
        let mut found = Vec::new();
        add(&self.fields, &[], &mut found);
        found
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct PartitionSpec {
    spec_id: i32,
    fields: Vec<PartitionField>,
}

/// A value by which files are partitioned.
#[derive(Debug, Clone, Deserialize)]
pub struct PartitionField {
    /// Its name, which is that of the column if `transform` is `identity`.
    pub name: String,
    /// How it follows from the column.
    pub transform: String,
}

/// A state of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snapshot {
    /// The number.
    #[serde(rename = "snapshot-id")]
    pub id: i64,
    /// The path of the list of manifests.
    pub manifest_list: Option<String>,
    /// The number of the change that made it. Tables of version 1 of the format have none.
    #[serde(default)]
    pub sequence_number: i64,
    /// The state before it.
    #[serde(rename = "parent-snapshot-id")]
    pub parent_id: Option<i64>,
    summary: Option<Summary>,
}

/// What a change did.
#[derive(Debug, Clone, Deserialize)]
struct Summary {
    operation: Option<String>,
}

impl Snapshot {
    /// Returns whether the change wrote files anew without changing rows, as compaction does.
    fn is_rewrite(&self) -> bool {
        self.summary.as_ref().is_some_and(|summary| summary.operation.as_deref() == Some(REPLACE))
    }
}

/// Returns the file of metadata of the newest state that the folder of a table has: the one that `version-hint.text` names, and
/// the ones that follow it, since the hint is written after them; or without a hint the one with the greatest number.
///
/// # Errors
/// There is none, two files have that number, the hint names a file that is not there, or the folder cannot be read.
pub async fn newest_metadata(root: &Folder) -> Result<Folder> {
    let folder = root.join("metadata");
    let names = folder.names().await?;
    let refused = |reason: String| bad_format(root.url(), format!("this is an Iceberg table, and {reason}"));
    if let Some(hint) = folder.join("version-hint.text").get().await? {
        let hint = String::from_utf8_lossy(&hint).trim().to_owned();
        let of = |version: &str| {
            let forms = ["metadata.json", "gz.metadata.json", "metadata.json.gz"];
            let named = forms.into_iter().map(|form| format!("v{version}.{form}")).find(|name| names.contains(name));
            named.or_else(|| Some(format!("{version}.metadata.json")).filter(|name| names.contains(name)))
        };
        let absent = || refused(format!("its version-hint.text names version {hint}, which is not there: restore it"));
        let mut newest = of(&hint).ok_or_else(absent)?;
        let mut number = hint.parse::<u64>().ok();
        while let Some(next) = number.map(|number| number + 1).and_then(|next| Some((next, of(&next.to_string())?))) {
            (number, newest) = (Some(next.0), next.1);
        }
        return Ok(folder.join(&newest));
    }
    let numbered = |name: &String| {
        let stem = name.strip_suffix(".metadata.json").or_else(|| name.strip_suffix(".metadata.json.gz"))?;
        let digits = stem.trim_start_matches('v');
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits.get(..end)?.parse::<u64>().ok().map(|number| (number, name.clone()))
    };
    let mut by_number: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (number, name) in names.iter().filter_map(numbered) {
        by_number.entry(number).or_default().push(name);
    }
    match by_number.pop_last() {
        Some((_, names)) if names.len() == 1 => Ok(folder.join(&names[0])),
        Some((_, mut names)) => {
            names.sort();
            let names = names.join(" and ");
            Err(refused(format!("{names} are of the same age: name the one that its catalog has as the documents")))
        }
        None => Err(refused("it has no metadata".to_owned())),
    }
}

impl Table {
    /// Reads a file of metadata.
    ///
    /// # Errors
    /// The file is gone, cannot be read, or is of a version of the format that is not known.
    pub async fn read(place: &Folder) -> Result<Self> {
        let mut content = place.get().await?.ok_or_else(|| bad_file(place.url(), "it is gone"))?.to_vec();
        if content.starts_with(&GZIP) {
            let mut plain = Vec::new();
            let unpacked = flate2::read::MultiGzDecoder::new(&content[..]).take(MOST_BYTES).read_to_end(&mut plain);
            unpacked.map_err(|e| bad_file(place.url(), format!("it cannot be unpacked: {e}")))?;
            content = plain;
        }
        let bad = |e| bad_file(place.url(), format!("it is no metadata of an Iceberg table ({})", foreign(&e)));
        let table: Self = serde_json::from_slice(&content).map_err(bad)?;
        if table.format_version > NEWEST_FORMAT {
            let reason = format!(
                "the Iceberg table has version {} of the format, and {NEWEST_FORMAT} is the newest known: write the rows that \
                 count to Parquet files, and name these",
                table.format_version
            );
            return Err(bad_format(place.url(), reason));
        }
        Ok(table)
    }

    /// Returns the state of a number, or the current one. `None`: the table has none yet.
    ///
    /// # Errors
    /// The numbers of the snapshots that there are, if there is none of this number.
    pub fn snapshot(&self, id: Option<u64>) -> std::result::Result<Option<&Snapshot>, Vec<i64>> {
        let current = self.current_snapshot_id.filter(|&id| id >= 0);
        let wanted = match id {
            Some(id) => i64::try_from(id).ok(),
            None if current.is_none() => return Ok(None),
            None => current,
        };
        let found = self.snapshots.iter().find(|snapshot| Some(snapshot.id) == wanted);
        found.map(Some).ok_or_else(|| self.snapshots.iter().map(|snapshot| snapshot.id).collect())
    }

    /// Returns the change of a number, if it wrote files anew without changing rows.
    #[must_use]
    pub fn rewrite(&self, id: i64) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.id == id && snapshot.is_rewrite())
    }

    /// Returns whether the metadata have a snapshot. Those that have expired are gone.
    #[must_use]
    pub fn has_snapshot(&self, id: i64) -> bool {
        self.snapshots.iter().any(|snapshot| snapshot.id == id)
    }

    /// Returns the values by which the files of a way to partition are partitioned, in their order.
    #[must_use]
    pub fn partition_fields(&self, spec_id: i32) -> &[PartitionField] {
        let spec = self.partition_specs.iter().find(|spec| spec.spec_id == spec_id);
        spec.map(|spec| &spec.fields).or(self.partition_spec.as_ref()).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of the values by which files are or were partitioned.
    #[must_use]
    pub fn partition_names(&self) -> Vec<&str> {
        let specs = self.partition_specs.iter().map(|spec| &spec.fields).chain(&self.partition_spec);
        let mut names: Vec<&str> = specs.flatten().map(|field| field.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns a column that had another name before, or whose name was that of another column: files that were written then
    /// have it under that name. Engines drop the schemas of expired snapshots, so there may be such files though none is found.
    #[must_use]
    pub fn renamed_column(&self) -> Option<String> {
        let current = self.current_schema()?.columns();
        let before: Vec<_> = self.schemas.iter().flat_map(Schema::columns).collect();
        let is_other =
            |(id, names): &(i32, Vec<String>)| before.iter().any(|then| (then.0 == *id) != (then.1 == *names));
        current.into_iter().find(|column| is_other(column)).map(|(_, names)| names.join("."))
    }

    /// Returns the numbers of the columns. `None`: the metadata lack the current schema.
    #[must_use]
    pub fn column_ids(&self) -> Option<ColumnIds> {
        let columns = self.current_schema()?.columns();
        Some(columns.into_iter().map(|(id, names)| (names, id)).collect())
    }

    fn current_schema(&self) -> Option<&Schema> {
        let current = self.schemas.iter().find(|schema| Some(schema.schema_id) == self.current_schema_id);
        current.or(self.schema.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn table(schemas: &str) -> Table {
        let json = format!(
            r#"{{"format-version": 2, "location": "file:///t", "current-schema-id": 1, "schemas": [{schemas}],
                "current-snapshot-id": 7, "snapshots": [{{"snapshot-id": 7, "manifest-list": "m"}}]}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn a_column_that_was_renamed_or_takes_the_name_of_another_one_is_found() {
        let doc = r#"{"id": 4, "name": "doc", "type": {"type": "struct", "fields": [{"id": 5, "name": "a", "type": "int"}]}}"#;
        let before =
            format!(r#"{{"schema-id": 0, "fields": [{{"id": 1, "name": "id"}}, {{"id": 2, "name": "body"}}, {doc}]}}"#);
        for (now, renamed) in [
            (r#"{"id": 1, "name": "id"}, {"id": 2, "name": "text"}"#, Some("text")),
            (r#"{"id": 1, "name": "id"}, {"id": 3, "name": "body"}"#, Some("body")),
            (r#"{"id": 1, "name": "id"}, {"id": 2, "name": "body"}, {"id": 3, "name": "text"}"#, None),
            (
                r#"{"id": 4, "name": "doc", "type": {"type": "struct", "fields": [{"id": 6, "name": "a", "type": "int"}]}}"#,
                Some("doc.a"),
            ),
            (
                r#"{"id": 4, "name": "doc", "type": {"type": "struct", "fields": [{"id": 5, "name": "a", "type": "int"}]}}"#,
                None,
            ),
        ] {
            let table = table(&format!(r#"{before}, {{"schema-id": 1, "fields": [{now}]}}"#));
            assert_eq!(table.renamed_column().as_deref(), renamed, "{now}");
        }
    }

    #[test]
    fn a_snapshot_that_is_not_there_is_answered_with_those_that_are() {
        let table = table(r#"{"schema-id": 1, "fields": []}"#);
        assert_eq!(table.snapshot(None).unwrap().map(|snapshot| snapshot.id), Some(7));
        assert_eq!(table.snapshot(Some(8)).unwrap_err(), [7]);
    }
}
