//! One pass over the candidates of the spanning forest, which also gathers the input of the decisions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::decide::cluster::UnionFind;
use crate::decide::origin::Origin;
use crate::error::{JoinError, Result};
use crate::rows::lost_share::{LossLimit, lost_share};
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
    /// The distance of their sketches, if sketches are verified.
    pub sketch_distance: Option<u16>,
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
        /// The store of the document.
        origin: Origin,
        /// The hash of its normalised text.
        text_hash: Option<[u8; 16]>,
        /// The number of its distinct features, if they were counted.
        n_features: Option<u32>,
        /// The pair may join two components. Otherwise it only tells which document is kept.
        is_edge: bool,
        /// The document is kept.
        is_kept: bool,
    },
}

/// The state of a pass over candidates sorted by (distance, row, id of the far side, origin).
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
    limit: LossLimit,
    classes: ClassOfRows,
    kept: HashMap<u32, KeptExisting>,
    less: RowSet,
    superseding: Vec<Superseding>,
    held_bytes: usize,
    paired: RowSet,
}

/// The data from which the decisions follow.
#[derive(Debug)]
pub struct Gathered {
    /// The rows of the batch and the existing fingerprints, in their components.
    pub sets: UnionFind,
    /// The class of each row.
    pub classes: ClassOfRows,
    /// The kept existing document for each class that the rule asks for, among those near the class for which its rows
    /// may be dropped: for the star rule the first by (distance, id, origin), which is the nearest; for the component
    /// rule the first by (id, origin).
    pub kept: HashMap<u32, KeptExisting>,
    /// The classes near a kept existing document for which their rows may not be dropped, because too much would be
    /// lost.
    pub less: RowSet,
    /// The kept existing documents that could be dropped for a row of a class of `less`, in no particular order.
    pub superseding: Vec<Superseding>,
    /// The rows in verified pairs.
    pub paired: RowSet,
}

/// A kept existing document near a class.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptExisting {
    /// The Hamming distance from the class.
    pub distance: u8,
    /// The id of the document.
    pub id: Box<str>,
    /// The store of the document.
    pub origin: Origin,
    /// The hash of its normalised text.
    pub text_hash: Option<[u8; 16]>,
    /// The fingerprint of the document.
    pub fingerprint: u64,
    /// The node of its fingerprint among the sets.
    pub node: u32,
    /// The lost share of the class for the document, if it is known.
    pub lost_share: Option<f64>,
}

/// A kept existing document that could be dropped for the rows of a class, while these may not be dropped for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Superseding {
    /// The class.
    pub class: u32,
    /// The id of the existing document.
    pub id: Box<str>,
    /// The store of the existing document.
    pub origin: Origin,
    /// The Hamming distance from the class.
    pub distance: u8,
    /// The distance of the sketches.
    pub sketch_distance: u16,
    /// The lost share of the existing document for the class.
    pub lost_share: f64,
    /// The lost share of the class for the existing document.
    pub lost_share_of_class: f64,
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

    /// Makes the pass gather the input of the decisions by a rule, and by the largest lost share that it allows.
    ///
    /// # Panics
    /// If the batch has a row that is not below `n_rows`.
    #[must_use]
    pub fn gathering(self, n_rows: u32, rule: DropRule, limit: LossLimit) -> Self {
        let classes = self.rows.class_of_rows(n_rows);
        let (kept, superseding, held_bytes) = (HashMap::new(), Vec::new(), 0);
        let (less, paired) = (RowSet::default(), RowSet::default());
        let gathering = Gathering { rule, limit, classes, kept, less, superseding, held_bytes, paired };
        Self { gathering: Some(gathering), ..self }
    }

    /// Returns the bytes that a pass over `n_rows` rows takes from the start.
    #[must_use]
    pub fn bytes_of(n_rows: usize, gathers: bool) -> usize {
        let gathered = if gathers { ClassOfRows::bytes_of(n_rows) + n_rows / 4 } else { 0 };
        n_rows * 4 + gathered
    }

    /// Returns the bytes that the pass has taken since the start.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let gathered = self.gathering.as_ref().map_or(0, |gathering| gathering.held_bytes);
        gathered + self.existing_nodes.len() * (entry_bytes::<u64, u32>() + 16)
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
        let Candidate { row, distance, sketch_distance, far } = *candidate;
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
                Far::Existing { fingerprint, id, origin, text_hash, n_features, is_kept: true, .. } => {
                    let id = id.into();
                    let found = KeptExisting { distance, id, origin, text_hash, fingerprint, node, lost_share: None };
                    gathering.offer(&self.rows, row, found, n_features.zip(sketch_distance), has_id)?;
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
        let Gathering { classes, kept, less, superseding, paired, .. } = self.gathering.take()?;
        Some(Gathered { sets, classes, kept, less, superseding, paired })
    }

    fn existing_node(&mut self, fingerprint: u64) -> u32 {
        *self.existing_nodes.entry(fingerprint).or_insert_with(|| self.sets.add())
    }
}

impl Gathering {
    /// Takes a kept existing document near a row. `counted` is the number of its features and the distance of the
    /// sketches, if both are known.
    fn offer(
        &mut self,
        rows: &QueryRows,
        row: u32,
        found: KeptExisting,
        counted: Option<(u32, u16)>,
        has_id: impl Fn(u32, &str) -> bool,
    ) -> Result<()> {
        let class = self.classes.of(row).ok_or(JoinError::NoFingerprint { row })?;
        // The members of a larger class already make pairs with each other. An id of a reference names another document.
        if let [only] = *rows.members(class)
            && (found.origin != Origin::OWN || !has_id(only, &found.id))
        {
            self.paired.insert(only);
        }
        let counted = rows.n_features(class).zip(counted);
        let lost = counted.map(|(own, (existing, distance))| lost_share(own, existing, distance));
        if let Some((lost_share_of_class, (own, (existing, sketch_distance)))) = lost.zip(counted)
            && !self.limit.allows(lost)
        {
            let KeptExisting { distance, id, origin, .. } = found;
            let lost_share = lost_share(existing, own, sketch_distance);
            self.less.insert(class);
            if self.limit.allows(Some(lost_share)) {
                // A vector that grows may hold half as much again, and its former memory.
                self.held_bytes += 3 * size_of::<Superseding>() + id.len() + 16;
                self.superseding.push(Superseding {
                    class,
                    id,
                    origin,
                    distance,
                    sketch_distance,
                    lost_share,
                    lost_share_of_class,
                });
            }
            return Ok(());
        }
        let found = KeptExisting { lost_share: lost, ..found };
        match self.kept.entry(class) {
            Entry::Vacant(entry) => {
                self.held_bytes += entry_bytes::<u32, KeptExisting>() + found.id.len() + 16;
                entry.insert(found);
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get();
                let is_better = match self.rule {
                    DropRule::Star => {
                        (found.distance, &found.id, found.origin) < (known.distance, &known.id, known.origin)
                    }
                    DropRule::Component => (&found.id, found.origin) < (&known.id, known.origin),
                };
                if is_better {
                    entry.insert(found);
                }
            }
        }
        Ok(())
    }
}
