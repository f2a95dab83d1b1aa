//! One pass over the candidates of the spanning forest, which gathers on the way what decisions need.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::decide::cluster::UnionFind;
use crate::error::{JoinError, Result};
use crate::rows::query_rows::{ClassOfRows, QueryRows};
use crate::rows::row_set::RowSet;

/// Which documents of a cluster are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropRule {
    /// Those that make a verified pair with a kept one: see [`star`](crate::star()).
    Star,
    /// All but one of each connected component: see [`component`](crate::component()).
    Component,
}

/// A candidate of the forest: a row of the batch, and the far side of its pair.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The row.
    pub row: u32,
    /// Hamming distance of the two.
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
        /// Its fingerprint.
        fingerprint: u64,
        /// Its id.
        id: &'a str,
        /// Hash of its normalised text.
        text_hash: Option<[u8; 16]>,
        /// Whether the pair may join two components, and not only tell which document is kept.
        is_edge: bool,
        /// Whether the document is kept.
        is_kept: bool,
    },
}

/// The state of a pass over candidates sorted by (distance, row, id of the far side).
#[derive(Debug)]
pub struct Forest {
    rows: Arc<QueryRows>,
    /// Nodes: the rows of the batch, then existing fingerprints as they turn up.
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

/// What decisions follow from.
#[derive(Debug)]
pub struct Gathered {
    /// Rows of the batch, and existing fingerprints, in their components.
    pub sets: UnionFind,
    /// The class of each row.
    pub classes: ClassOfRows,
    /// Of the kept existing documents near each class, the one that the rule asks for: the nearest, by (distance, id), for the star
    /// rule, and the one with the smallest id for components.
    pub kept: HashMap<u32, KeptExisting>,
    /// Rows in verified pairs.
    pub paired: RowSet,
}

/// A kept existing document near a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptExisting {
    /// Hamming distance from the class.
    pub distance: u8,
    /// Its id.
    pub id: Box<str>,
    /// Hash of its normalised text.
    pub text_hash: Option<[u8; 16]>,
    /// Its fingerprint.
    pub fingerprint: u64,
    /// Its node among the sets.
    pub node: u32,
}

/// An entry of a hash table that may be half empty, with its control byte, and while it grows the smaller table.
const fn entry_bytes<K, V>() -> usize {
    3 * (size_of::<(K, V)>() + 1)
}

impl Forest {
    /// A pass over the candidates of a batch of `n_rows` rows.
    #[must_use]
    pub fn new(rows: Arc<QueryRows>, n_rows: u32) -> Self {
        Self { rows, sets: UnionFind::new(n_rows), existing_nodes: HashMap::new(), gathering: None }
    }

    /// The same, which gathers what decisions by a rule need.
    #[must_use]
    pub fn gathering(self, n_rows: u32, rule: DropRule) -> Self {
        let classes = self.rows.class_of_rows(n_rows);
        let (kept, kept_bytes, paired) = (HashMap::new(), 0, RowSet::default());
        Self { gathering: Some(Gathering { rule, classes, kept, kept_bytes, paired }), ..self }
    }

    /// Bytes that a pass over `n_rows` rows takes from the start.
    #[must_use]
    pub fn bytes_of(n_rows: usize, gathers: bool) -> usize {
        let gathered = if gathers { ClassOfRows::bytes_of(n_rows) + n_rows / 8 } else { 0 };
        n_rows * 8 + gathered
    }

    /// Bytes that it took since.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let kept = self.gathering.as_ref().map_or(0, |gathering| gathering.kept_bytes);
        kept + self.existing_nodes.len() * (entry_bytes::<u64, u32>() + 16)
    }

    /// Takes the next candidate; whether its pair is one of the forest. `has_id` says whether a row of the batch has an id.
    ///
    /// # Errors
    /// [`JoinError::NoFingerprint`] for a row that cannot be in a pair.
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

    /// What the pass gathered, once it is at its end; `None` where it gathers nothing.
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
        // Members of a larger class are in pairs with each other already.
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
