//! Sentences that keep the names of settings and the place apart from the text around them.

use std::borrow::Cow;
use std::fmt::{Display, Formatter};

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Text that is shown as it is.
    Text(Cow<'static, str>),
    /// The key of a setting, such as `memory_limit` or `breakers.max_cluster`.
    Key(Cow<'static, str>),
    /// The file, table or folder that the fault is about. Without one it is called "it".
    Place,
    /// The same place, together with its whole path if the sentence is shown where the place may not be known by its own.
    Whereabouts,
}

/// Makes the part of a sentence that names a setting.
pub fn key(name: impl Into<Cow<'static, str>>) -> Part {
    Part::Key(name.into())
}

impl From<&'static str> for Part {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Cow<'static, str>> for Part {
    fn from(text: Cow<'static, str>) -> Self {
        Self::Text(text)
    }
}

/// A sentence, or a piece of one, in parts. As text, a key stands in backticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(Vec<Part>);

impl<P: Into<Part>> From<P> for Words {
    fn from(part: P) -> Self {
        Self(vec![part.into()])
    }
}

impl IntoIterator for Words {
    type Item = Part;
    type IntoIter = std::vec::IntoIter<Part>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Extend<Part> for Words {
    fn extend<T: IntoIterator<Item = Part>>(&mut self, parts: T) {
        self.0.extend(parts);
    }
}

impl Words {
    /// Returns the keys of the settings that are named, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Key(key) => Some(&**key),
            _ => None,
        })
    }

    /// Writes each key as `name` does, or in backticks if it gives no name.
    pub fn named(&self, name: impl Fn(&str) -> Option<String>) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(said) => text.push_str(said),
                Part::Key(key) => text.push_str(&name(key).unwrap_or_else(|| format!("`{key}`"))),
                Part::Place | Part::Whereabouts => text.push_str("it"),
            }
        }
        text
    }

    /// Turns each key for which `name` gives a name into that text.
    pub fn name_keys(&mut self, name: impl Fn(&str) -> Option<String>) {
        for part in &mut self.0 {
            if let Part::Key(key) = part
                && let Some(named) = name(key)
            {
                *part = named.into();
            }
        }
    }

    /// Returns whether the words name the place.
    pub(crate) fn name_place(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Place | Part::Whereabouts))
    }

    /// Returns the words with the name of the place, and its whole path if there is one.
    pub(crate) fn at(&self, place: &str, whole: Option<&str>) -> Self {
        let named = |part: &Part| match (part, whole) {
            (Part::Whereabouts, Some(whole)) => format!("{place} ({whole})").into(),
            (Part::Place | Part::Whereabouts, _) => place.to_owned().into(),
            _ => part.clone(),
        };
        Self(self.0.iter().map(named).collect())
    }

    /// Joins several words with a text between them.
    #[must_use]
    pub fn joined(all: impl IntoIterator<Item = Self>, between: &'static str) -> Self {
        let mut joined = Self::default();
        for (i, words) in all.into_iter().enumerate() {
            if i > 0 {
                joined.extend(Self::from(between));
            }
            joined.extend(words);
        }
        joined
    }
}

impl serde::Serialize for Words {
    /// Writes the text.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for Words {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

impl Display for Words {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.named(|_| None))
    }
}
