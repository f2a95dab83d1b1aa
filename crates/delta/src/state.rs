//! The state of a table at a version.

use std::collections::BTreeMap;

use nearprint_storage::known_scheme;

use super::actions::{Action, Add, Metadata, Protocol, Remove};

/// The tag of a removal in nearprint's checkpoints that has the version which removed the file.
const VERSION_TAG: &str = "nearprint.version";

/// The state of a table at a version: that of a checkpoint, and what later commits changed.
#[derive(Debug, Clone, Default)]
pub struct LogState {
    /// The abilities that a reader needs.
    pub protocol: Option<Protocol>,
    /// The columns and the settings.
    pub metadata: Option<Metadata>,
    /// The files of the table, by the [path](path_of) that tells them apart.
    pub files: BTreeMap<String, Add>,
    /// The files that were removed and not added again, by that path, with the versions that removed them. Other
    /// programs leave them out of their checkpoints after some time.
    pub removed: BTreeMap<String, (u64, Remove)>,
}

impl LogState {
    /// Applies the actions of a version, which have no order among each other: a path that is both removed and added is
    /// added. The actions of a checkpoint are applied to the empty state.
    pub fn apply(&mut self, version: u64, actions: Vec<Action>) {
        let mut added = Vec::new();
        for action in actions {
            if let Some(remove) = action.remove {
                let path = path_of(&remove.path);
                let tag = remove.tags.get(VERSION_TAG).cloned().flatten().and_then(|tag| tag.parse().ok());
                self.files.remove(&path);
                self.removed.insert(path, (tag.unwrap_or(version), remove));
            }
            added.extend(action.add);
            self.protocol = action.protocol.or(self.protocol.take());
            self.metadata = action.meta_data.or(self.metadata.take());
        }
        for add in added {
            let path = path_of(&add.path);
            self.removed.remove(&path);
            self.files.insert(path, add);
        }
    }

    /// Returns the actions of a checkpoint of this state, in one order. They change no data.
    pub fn actions(&self) -> Vec<Action> {
        let protocol = self.protocol.iter().cloned().map(Action::protocol);
        let metadata = self.metadata.iter().cloned().map(Action::metadata);
        let removed = self.removed.values().map(|(version, remove)| {
            let tags = BTreeMap::from([(VERSION_TAG.to_owned(), Some(version.to_string()))]);
            Action::remove(Remove { data_change: false, tags, ..remove.clone() })
        });
        let files = self.files.values().map(|add| Action::add(Add { data_change: false, ..add.clone() }));
        protocol.chain(metadata).chain(removed).chain(files).collect()
    }
}

/// Returns the path of a file of which a log has this one: unescaped, and with a scheme that a storage knows. Writers may give one file
/// as `file:/a` and as `file:///a`.
#[must_use]
pub fn path_of(path: &str) -> String {
    known_scheme(&unescaped(path))
}

/// Replaces each `%` and two hex digits with the byte that they stand for.
pub fn unescaped(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let coded = path.get(at + 1..at + 3).filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(coded.unwrap_or(byte));
        at += if coded.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn percent_escapes_are_bytes_of_the_path_and_stray_percent_signs_are_themselves() {
        assert_eq!(unescaped("dt=2026-11-20/part%20%C3%A9.parquet"), "dt=2026-11-20/part é.parquet");
        for plain in ["100%", "%zz", "%é", "a%2", ""] {
            assert_eq!(unescaped(plain), plain);
        }
    }
}
