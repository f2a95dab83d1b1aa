//! The rows of decisions and pairs, as they are compared.

use arrow::array::{
    Array, ArrayAccessor, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, StringArray,
};
use arrow::datatypes::{Date32Type, Float64Type, Int32Type, Int64Type};
use nearprint_fault::Result;
use nearprint_parquet::schema::{FAMILY_ID, FIRST_SEEN, LAST_CHANGED, LOST_SHARE, REASON, RECRAWL, REFERENCE, REVISIT};
use nearprint_parquet::{Columns, value};

use super::sorted::SortedRows;

/// Decisions.
pub struct Decisions {
    ids: StringArray,
    decisions: StringArray,
    reasons: StringArray,
    canonical: StringArray,
    references: StringArray,
    distances: Int32Array,
    clusters: StringArray,
    cluster_sizes: Int64Array,
    lost_shares: Float64Array,
    // Files of release 0.2.0 lack these.
    recrawls: Option<StringArray>,
    first_seen: Option<Date32Array>,
    last_changed: Option<Date32Array>,
    revisits: Option<BooleanArray>,
    families: Option<StringArray>,
}

impl SortedRows for Decisions {
    const COLUMNS: &'static [&'static str] = &[
        "doc_id",
        "decision",
        "canonical_id",
        "distance",
        REASON,
        "cluster_id",
        "cluster_size",
        LOST_SHARE,
        REFERENCE,
        RECRAWL,
        FIRST_SEEN,
        LAST_CHANGED,
        REVISIT,
        FAMILY_ID,
    ];

    fn of(columns: Columns<'_>) -> Result<Self> {
        Ok(Self {
            ids: columns.strings("doc_id")?.clone(),
            decisions: columns.strings("decision")?.clone(),
            reasons: columns.strings(REASON)?.clone(),
            canonical: columns.strings("canonical_id")?.clone(),
            references: columns.strings(REFERENCE)?.clone(),
            distances: columns.primitive::<Int32Type>("distance")?.clone(),
            clusters: columns.strings("cluster_id")?.clone(),
            cluster_sizes: columns.primitive::<Int64Type>("cluster_size")?.clone(),
            lost_shares: columns.primitive::<Float64Type>(LOST_SHARE)?.clone(),
            recrawls: columns.optional(RECRAWL, Columns::strings)?.cloned(),
            first_seen: columns.optional(FIRST_SEEN, Columns::primitive::<Date32Type>)?.cloned(),
            last_changed: columns.optional(LAST_CHANGED, Columns::primitive::<Date32Type>)?.cloned(),
            revisits: columns.optional(REVISIT, Columns::booleans)?.cloned(),
            families: columns.optional(FAMILY_ID, Columns::strings)?.cloned(),
        })
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn key(&self, row: usize) -> (&str, &str) {
        (self.ids.value(row), "")
    }
}

impl Decisions {
    /// Returns a row's decision and reason.
    pub fn decided(&self, row: usize) -> (&str, &str) {
        (self.decisions.value(row), self.reasons.value(row))
    }

    /// Returns the canonical document of a row.
    pub fn canonical(&self, row: usize) -> Option<&str> {
        value(&self.canonical, row)
    }

    /// Returns whether two rows have the same canonical document, of the same store.
    pub fn has_same_canonical(&self, row: usize, other: &Self, at: usize) -> bool {
        self.canonical(row) == other.canonical(at) && value(&self.references, row) == value(&other.references, at)
    }

    /// Returns whether two rows have the same distance, cluster, lost share, family and history. What a file of release 0.2.0
    /// does not say is no difference.
    pub fn has_same_details(&self, row: usize, other: &Self, at: usize) -> bool {
        let lost = |rows: &Self, row| value(&rows.lost_shares, row).map(f64::to_bits);
        value(&self.distances, row) == value(&other.distances, at)
            && value(&self.clusters, row) == value(&other.clusters, at)
            && value(&self.cluster_sizes, row) == value(&other.cluster_sizes, at)
            && lost(self, row) == lost(other, at)
            && agree(known(&self.recrawls, row), known(&other.recrawls, at))
            && agree(known(&self.first_seen, row), known(&other.first_seen, at))
            && agree(known(&self.last_changed, row), known(&other.last_changed, at))
            && agree(known(&self.revisits, row), known(&other.revisits, at))
            && agree(known(&self.families, row), known(&other.families, at))
    }
}

/// Returns the value of a column that files may lack.
fn known<'a, A>(values: &'a Option<A>, row: usize) -> Option<<&'a A as ArrayAccessor>::Item>
where
    &'a A: ArrayAccessor,
{
    value(values.as_ref()?, row)
}

/// Returns whether two values are the same, or one of them is not known.
fn agree<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
    a.zip(b).is_none_or(|(a, b)| a == b)
}

/// Pairs.
pub struct Pairs {
    a: StringArray,
    b: StringArray,
    distances: Int32Array,
    sketch_distances: Int32Array,
    scopes: StringArray,
    references: StringArray,
    // Files of release 0.2.0 lack it.
    reasons: Option<StringArray>,
}

impl SortedRows for Pairs {
    const COLUMNS: &'static [&'static str] =
        &["id_a", "id_b", "distance", "sketch_distance", "scope", REFERENCE, REASON];

    fn of(columns: Columns<'_>) -> Result<Self> {
        Ok(Self {
            a: columns.strings("id_a")?.clone(),
            b: columns.strings("id_b")?.clone(),
            distances: columns.primitive::<Int32Type>("distance")?.clone(),
            sketch_distances: columns.primitive::<Int32Type>("sketch_distance")?.clone(),
            scopes: columns.strings("scope")?.clone(),
            references: columns.strings(REFERENCE)?.clone(),
            reasons: columns.optional(REASON, Columns::strings)?.cloned(),
        })
    }

    fn len(&self) -> usize {
        self.a.len()
    }

    fn key(&self, row: usize) -> (&str, &str) {
        (self.a.value(row), self.b.value(row))
    }
}

impl Pairs {
    /// Returns whether two rows have the same distances, scope, reason and store of the existing document. What a file of
    /// release 0.2.0 does not say is no difference.
    pub fn has_same_details(&self, row: usize, other: &Self, at: usize) -> bool {
        value(&self.distances, row) == value(&other.distances, at)
            && value(&self.sketch_distances, row) == value(&other.sketch_distances, at)
            && self.scopes.value(row) == other.scopes.value(at)
            && value(&self.references, row) == value(&other.references, at)
            && agree(known(&self.reasons, row), known(&other.reasons, at))
    }
}
