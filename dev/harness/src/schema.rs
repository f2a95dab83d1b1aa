//! The published schemas of summaries and manifests, to which tests hold what the command says and writes.

use std::path::Path;
use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use crate::Result;

static SUMMARY: LazyLock<Option<Schema>> = LazyLock::new(|| Schema::read("summary").ok());
static MANIFEST: LazyLock<Option<Schema>> = LazyLock::new(|| Schema::read("manifest").ok());

/// Checks that a summary is one that `docs/schema/summary.json` describes.
pub fn summary(value: &Value) -> std::result::Result<(), String> {
    SUMMARY.as_ref().ok_or("docs/schema/summary.json is no schema".to_owned())?.admits(value)
}

/// Checks that a manifest is one that `docs/schema/manifest.json` describes.
pub fn manifest(value: &Value) -> std::result::Result<(), String> {
    MANIFEST.as_ref().ok_or("docs/schema/manifest.json is no schema".to_owned())?.admits(value)
}

/// A schema, and those of each kind of value that it describes, by the command that the kind names.
struct Schema {
    schemas: Schemas,
    whole: SchemaIndex,
    kinds: Vec<(Value, SchemaIndex)>,
}

impl Schema {
    fn read(name: &str) -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"));
        let content: Value = serde_json::from_slice(&std::fs::read(path)?)?;
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let mut kinds = Vec::new();
        compiler.add_resource("urn:schema", content.clone()).map_err(|e| e.to_string())?;
        let mut compile = |place: &str| compiler.compile(place, &mut schemas).map_err(|e| e.to_string());
        let whole = compile("urn:schema")?;
        for kind in content["anyOf"].as_array().into_iter().flatten() {
            let place = kind["$ref"].as_str().unwrap_or_default();
            let pointer = place.trim_start_matches('#');
            let command = content.pointer(&format!("{pointer}/properties/command/const"));
            kinds.push((command.cloned().unwrap_or_default(), compile(&format!("urn:schema{place}"))?));
        }
        Ok(Self { schemas, whole, kinds })
    }

    /// Checks a value against the kinds of its command, which say what is not described elsewhere.
    fn admits(&self, value: &Value) -> std::result::Result<(), String> {
        let Err(whole) = self.schemas.validate(value, self.whole) else { return Ok(()) };
        let own = self.kinds.iter().filter(|(command, _)| *command == value["command"]);
        let said = own.filter_map(|(_, kind)| Some(format!("{:#}", self.schemas.validate(value, *kind).err()?)));
        let said: Vec<String> = said.collect();
        let said = if said.is_empty() { format!("{whole:#}") } else { said.join("\n") };
        Err(format!("{said}\nof {value:#}"))
    }
}
