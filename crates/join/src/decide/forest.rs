//! One pass over the candidates of the spanning forest, which also gathers the input of the decisions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::decide::cluster::UnionFind;
use crate::error::{JoinError, Result};
use crate::rows::query_rows::{ClassOfRows, QueryRows};
use crate::rows::row_set::RowSet;

/// The rule that decides which documents of a cluster are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropRule {
    /// Drops the documents that make a verified pair with a kept one: see [`star`](crate::star()).
    Star,
    /// Drops all but one document of each connected component: see [`component`](crate::component()).
    Component,
}

/// A candidate of the forest: a row of the batch, and the far side of its pair.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The row.
    pub row: u32,
    /// The Hamming distance of the two documents.
    pub distance: u8,
    /// The other document.
    pub far: Far<'a>,
}

/// The far side of a pair.
#[derive(Debug, Clone, Copy)]
pub enum Far<'a> {
    /// A row of the batch.
    New(u32),
    /// An existing document.
    Existing {
        /// The fingerprint of the document.
        fingerprint: u64,
        /// The id of the document.
        id: &'a str,
        /// The hash of its normalised text.
        text_hash: Option<[u8; 16]>,
        /// Whether the pair may join two components, instead of only telling which document is kept.
        is_edge: bool,
        /// Whether the document is kept.
        is_kept: bool,
    },
}

/// The state of a pass over candidates sorted by (distance, row, id of the far side).
#[derive(Debug)]
pub struct Forest {
    rows: Arc<QueryRows>,
    /// The nodes are the rows of the batch, then existing fingerprints as they appear.
    sets: UnionFind,
    existing_nodes: HashMap<u64, u32>,
    gathering: Option<Gathering>,
}

#[derive(Debug)]
struct Gathering {
    rule: DropRule,
    classes: ClassOfRows,
    kept: HashMap<u32, KeptExisting>,
    kept_bytes: usize,
    paired: RowSet,
}

/// The data from which the decisions follow.
#[derive(Debug)]
pub struct Gathered {
    /// The rows of the batch and the existing fingerprints, in their components.
    pub sets: UnionFind,
    /// The class of each row.
    pub classes: ClassOfRows,
    /// The kept existing document for each class that the rule asks for, among those near the class: for the star rule
    /// the nearest, by (distance, id); for the component rule the one with the smallest id.
    pub kept: HashMap<u32, KeptExisting>,
    /// The rows in verified pairs.
    pub paired: RowSet,
}

/// A kept existing document near a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptExisting {
    /// The Hamming distance from the class.
    pub distance: u8,
    /// The id of the document.
    pub id: Box<str>,
    /// The hash of its normalised text.
    pub text_hash: Option<[u8; 16]>,
    /// The fingerprint of the document.
    pub fingerprint: u64,
    /// The node of its fingerprint among the sets.
    pub node: u32,
}

/// Returns the bytes of an entry of a hash table that may be half empty, with its control byte, and with the smaller
/// table that exists while the table grows.
const fn entry_bytes<K, V>() -> usize {
    3 * (size_of::<(K, V)>() + 1)
}

impl Forest {
    /// Makes a pass over the candidates of a batch of `n_rows` rows.
    #[must_use]
    pub fn new(rows: Arc<QueryRows>, n_rows: u32) -> Self {
        Self { rows, sets: UnionFind::new(n_rows), existing_nodes: HashMap::new(), gathering: None }
    }

    /// Makes the pass gather the input of the decisions by a rule.
    ///
    /// # Panics
    /// If the batch has a row that is not below `n_rows`.
    #[must_use]
    pub fn gathering(self, n_rows: u32, rule: DropRule) -> Self {
        let classes = self.rows.class_of_rows(n_rows);
        let (kept, kept_bytes, paired) = (HashMap::new(), 0, RowSet::default());
        Self { gathering: Some(Gathering { rule, classes, kept, kept_bytes, paired }), ..self }
    }

    /// Returns the bytes that a pass over `n_rows` rows takes from the start.
    #[must_use]
    pub fn bytes_of(n_rows: usize, gathers: bool) -> usize {
        let gathered = if gathers { ClassOfRows::bytes_of(n_rows) + n_rows / 8 } else { 0 };
        n_rows * 8 + gathered
    }

    /// Returns the bytes that the pass has taken since the start.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let kept = self.gathering.as_ref().map_or(0, |gathering| gathering.kept_bytes);
        kept + self.existing_nodes.len() * (entry_bytes::<u64, u32>() + 16)
    }

    /// Takes the next candidate, and returns whether its pair belongs to the forest. `has_id` returns whether a row of
    /// the batch has an id.
    ///
    /// # Errors
    /// [`JoinError::NoFingerprint`] if the pass gathers, and the row of a pair with a kept existing document has no
    /// fingerprint.
    ///
    /// # Panics
    /// May panic if a row of the candidate is not below the number of rows.
    pub fn offer(&mut self, candidate: &Candidate<'_>, has_id: impl Fn(u32, &str) -> bool) -> Result<bool> {
        let Candidate { row, distance, far } = *candidate;
        let (node, is_edge) = match far {
            Far::New(other) => (other, true),
            Far::Existing { fingerprint, is_edge, .. } => (self.existing_node(fingerprint), is_edge),
        };
        if let Some(gathering) = &mut self.gathering {
            if is_edge {
                gathering.paired.insert(row);
            }
            match far {
                Far::New(other) => gathering.paired.insert(other),
                Far::Existing { fingerprint, id, text_hash, is_kept: true, .. } => {
                    let found = KeptExisting { distance, id: id.into(), text_hash, fingerprint, node };
                    gathering.offer(&self.rows, row, found, has_id)?;
                }
                Far::Existing { .. } => {}
            }
        }
        Ok(is_edge && self.sets.union(row, node))
    }

    /// Ends the pass and returns the data that it gathered; `None` if it gathers nothing.
    pub fn finish(&mut self) -> Option<Gathered> {
        let sets = std::mem::take(&mut self.sets);
        self.existing_nodes = HashMap::new();
        let Gathering { classes, kept, paired, .. } = self.gathering.take()?;
        Some(Gathered { sets, classes, kept, paired })
    }

    fn existing_node(&mut self, fingerprint: u64) -> u32 {
        *self.existing_nodes.entry(fingerprint).or_insert_with(|| self.sets.add())
    }
}

impl Gathering {
    fn offer(
        &mut self,
        rows: &QueryRows,
        row: u32,
        found: KeptExisting,
        has_id: impl Fn(u32, &str) -> bool,
    ) -> Result<()> {
        let class = self.classes.of(row).ok_or(JoinError::NoFingerprint { row })?;
        // The members of a larger class already make pairs with each other.
        if let [only] = *rows.members(class)
            && !has_id(only, &found.id)
        {
            self.paired.insert(only);
        }
        match self.kept.entry(class) {
            Entry::Vacant(entry) => {
                self.kept_bytes += entry_bytes::<u32, KeptExisting>() + found.id.len() + 16;
                entry.insert(found);
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get();
                let is_better = match self.rule {
                    DropRule::Star => (found.distance, &found.id) < (known.distance, &known.id),
                    DropRule::Component => found.id < known.id,
                };
                if is_better {
                    entry.insert(found);
                }
            }
        }
        Ok(())
    }
}
