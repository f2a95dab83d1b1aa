//! Sizes in bytes, in the notation that people use.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// A number of bytes, written as `512MiB`, `4GB` or plain digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BytesText")]
pub struct Bytes(pub usize);

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BytesText {
    Number(usize),
    Text(String),
}

impl TryFrom<BytesText> for Bytes {
    type Error = String;

    fn try_from(text: BytesText) -> Result<Self, String> {
        match text {
            BytesText::Number(n) => Ok(Self(n)),
            BytesText::Text(text) => text.parse(),
        }
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor: usize = match unit.trim() {
            "" | "B" => 1,
            "kB" | "KB" => 1000,
            "KiB" => 1 << 10,
            "MB" => 1_000_000,
            "MiB" => 1 << 20,
            "GB" => 1_000_000_000,
            "GiB" => 1 << 30,
            _ => return Err(format!("'{text}' is not a size like 512MiB or 4GiB")),
        };
        let bytes = number.parse::<usize>().ok().and_then(|n| n.checked_mul(factor));
        bytes.filter(|&n| n > 0).map(Self).ok_or_else(|| format!("'{text}' is not a size like 512MiB or 4GiB"))
    }
}
