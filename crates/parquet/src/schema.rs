//! The columns of all datasets. docs/store-format.md describes them.
//!
//! Published datasets have signed numbers only: engines disagree about unsigned ones, and `distance - 10` must not be 246.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

/// The size of a sketch in bytes.
pub const SKETCH_BYTES: i32 = 32;
/// The size of a fingerprint of 128 bits in bytes.
pub const WIDE_BYTES: i32 = 16;
/// The size of a text hash in bytes.
pub const TEXT_HASH_BYTES: i32 = 16;

/// The metadata key of files for the digest of the configuration that made their fingerprints.
pub const CONFIG_DIGEST: &str = "nearprint.config_digest";

/// The column of document ids.
pub const DOC_ID: &str = "doc_id";
/// The decision about a document that stays, in datasets and answers.
pub const KEEP: &str = "keep";
/// The decision about a document that another one represents.
pub const DROP: &str = "drop";
/// The decision about a document without text.
pub const SKIP: &str = "skip";
/// The column of fingerprints.
pub const FINGERPRINT: &str = "fingerprint";
/// The column of sketches.
pub const SKETCH: &str = "sketch";
/// The column of the numbers of distinct features that sketches see.
pub const N_FEATURES: &str = "n_features";
/// The column of the shares of their features that dropped documents lose.
pub const LOST_SHARE: &str = "lost_share";
/// The column of hashes of normalised texts.
pub const TEXT_HASH: &str = "text_hash";
/// The column of the ids of canonical documents.
pub const CANONICAL_ID: &str = "canonical_id";
/// The column of the ids that name the families of documents.
pub const FAMILY_ID: &str = "family_id";
/// The column of the reasons of decisions.
pub const REASON: &str = "reason";
/// The column that says how the text of a document compares with what the newest earlier night had under its id.
pub const RECRAWL: &str = "recrawl";
/// The column that says whether the record of a document is a revisit, which has the text of another record.
pub const REVISIT: &str = "revisit";
/// The column of the dates of the first nights that had the ids of documents.
pub const FIRST_SEEN: &str = "first_seen";
/// The column of the dates of the nights since which documents have had their texts.
pub const LAST_CHANGED: &str = "last_changed";
/// The column of the reference stores of existing documents, as jobs name them. NULL is the night's own store.
pub const REFERENCE: &str = "reference";

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn nullable(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn sketch() -> Field {
    nullable(SKETCH, DataType::FixedSizeBinary(SKETCH_BYTES))
}

/// Returns the columns of `schema` for rows of which each has a sketch: `sketch` and `n_features` are not nullable.
#[must_use]
pub fn with_all_sketches(schema: &SchemaRef) -> SchemaRef {
    let not_null = |field: &FieldRef| match field.name().as_str() {
        SKETCH | N_FEATURES => Arc::new(required(field.name(), field.data_type().clone())),
        _ => Arc::clone(field),
    };
    Arc::new(Schema::new(schema.fields().iter().map(not_null).collect::<Fields>()))
}

fn text_hash() -> Field {
    nullable(TEXT_HASH, DataType::FixedSizeBinary(TEXT_HASH_BYTES))
}

fn first_seen() -> Field {
    nullable(FIRST_SEEN, DataType::Date32)
}

fn last_changed() -> Field {
    nullable(LAST_CHANGED, DataType::Date32)
}

/// The columns of a fingerprints dataset, which is sorted by (`fingerprint`, `doc_id`).
pub static FINGERPRINTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![required(DOC_ID, DataType::Utf8), required(FINGERPRINT, DataType::UInt64), sketch(), text_hash()])
});

/// The columns of a fingerprints dataset of 128 bits, which is sorted by (`fingerprint`, `doc_id`). The fingerprints
/// are big-endian, so that their bytes have the same order as the numbers.
pub static WIDE_FINGERPRINTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fingerprint = required(FINGERPRINT, DataType::FixedSizeBinary(WIDE_BYTES));
    schema(vec![required(DOC_ID, DataType::Utf8), fingerprint, sketch(), text_hash()])
});

/// The columns of a run's documents with a fingerprint, sorted by (`fingerprint`, `doc_id`). A date that is missing in the
/// run's files is that of its night, and a reason that is missing is unknown: the files of release 0.2.0 have neither.
pub static RUN: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(FINGERPRINT, DataType::UInt64),
        required(DOC_ID, DataType::Utf8),
        sketch(),
        text_hash(),
        nullable(CANONICAL_ID, DataType::Utf8),
        nullable(N_FEATURES, DataType::UInt32),
        first_seen(),
        last_changed(),
        nullable(REASON, DataType::Utf8),
        nullable(REFERENCE, DataType::Utf8),
    ])
});

/// The columns of a run's documents below the feature floor, sorted by (`text_hash`, `doc_id`).
pub static SHORT: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        text_hash(),
        required(DOC_ID, DataType::Utf8),
        nullable(CANONICAL_ID, DataType::Utf8),
        first_seen(),
        last_changed(),
        nullable(REASON, DataType::Utf8),
        nullable(REFERENCE, DataType::Utf8),
    ])
});

/// The columns of a run's documents without text, sorted by `doc_id`. Such documents shadow earlier versions of
/// themselves and take part in nothing else.
pub static EMPTY: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![required(DOC_ID, DataType::Utf8), first_seen(), last_changed(), nullable(REASON, DataType::Utf8)])
});

/// The columns of a run's ids, sorted by (`id_hash`, `row`).
pub static IDS: LazyLock<SchemaRef> =
    LazyLock::new(|| schema(vec![required("id_hash", DataType::UInt64), required("row", DataType::UInt32)]));

/// The columns of a run's shadows, sorted by all of them. A shadow is a row of an earlier night's run whose document a
/// later night's run has again.
pub static SHADOWS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![required("run", DataType::Utf8), required("by", DataType::Utf8), required("row", DataType::UInt32)])
});

/// The column of the upper 32 bits of the hash of a canonical document's id.
pub const CANONICAL_HASH: &str = "canonical_hash";

/// The columns of a run's dependents, sorted by both: one row for each document that is dropped for a document of its own
/// store.
pub static DEPENDENTS: LazyLock<SchemaRef> =
    LazyLock::new(|| schema(vec![required(CANONICAL_HASH, DataType::UInt32), required("row", DataType::UInt32)]));

/// The columns of what a night decided again, sorted by (`run`, `by`, `row`). `canonical_id` is NULL if the document is
/// kept now, and `canonical_hash` also if its canonical document is in a reference store.
pub static REDECISIONS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("run", DataType::Utf8),
        required("by", DataType::Utf8),
        required("row", DataType::UInt32),
        nullable(CANONICAL_ID, DataType::Utf8),
        nullable(CANONICAL_HASH, DataType::UInt32),
        required(REASON, DataType::Utf8),
        nullable(REFERENCE, DataType::Utf8),
        required(DOC_ID, DataType::Utf8),
        required(FAMILY_ID, DataType::Utf8),
    ])
});

/// The columns of the families of a run that do not follow from its decisions, sorted by `row`.
pub static FAMILIES: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("row", DataType::UInt32),
        required(DOC_ID, DataType::Utf8),
        required(FAMILY_ID, DataType::Utf8),
    ])
});

/// The columns of a segment, sorted by all of them. `run` is the position of the fingerprint's run among the runs of
/// the segment, and `row` is the row in that run's fingerprints.
pub static SEGMENT: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(FINGERPRINT, DataType::UInt64),
        required("run", DataType::UInt32),
        required("row", DataType::UInt32),
    ])
});

/// The column of an index with permuted fingerprints.
pub const PERMUTED: &str = "permuted";
/// The column of an index with the places of fingerprints.
pub const PLACE: &str = "place";

/// The columns of a table of an index, sorted by both. `permuted` is a fingerprint in the table's order of bits. `place`
/// counts the rows of all runs of the index, one after another.
pub static INDEX: LazyLock<SchemaRef> =
    LazyLock::new(|| schema(vec![required(PERMUTED, DataType::UInt64), required(PLACE, DataType::UInt64)]));

/// The columns of pairs, sorted by (`id_a`, `id_b`). Equal ones are in the order of the references, the own store last.
/// `reason` is missing in the files of release 0.2.0.
pub static PAIRS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("id_a", DataType::Utf8),
        required("id_b", DataType::Utf8),
        required("distance", DataType::Int32),
        nullable("sketch_distance", DataType::Int32),
        required("scope", DataType::Utf8),
        nullable(REFERENCE, DataType::Utf8),
        nullable("reason", DataType::Utf8),
    ])
});

/// The columns of decisions, sorted by `doc_id`. The last five are missing in the files of release 0.2.0.
pub static DECISIONS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(DOC_ID, DataType::Utf8),
        required("decision", DataType::Utf8),
        nullable(CANONICAL_ID, DataType::Utf8),
        nullable("distance", DataType::Int32),
        required("reason", DataType::Utf8),
        nullable("cluster_id", DataType::Utf8),
        nullable("cluster_size", DataType::Int64),
        nullable(LOST_SHARE, DataType::Float64),
        nullable(REFERENCE, DataType::Utf8),
        nullable(RECRAWL, DataType::Utf8),
        first_seen(),
        last_changed(),
        nullable(REVISIT, DataType::Boolean),
        nullable(FAMILY_ID, DataType::Utf8),
    ])
});

/// The columns of kept existing documents that a new document contains, sorted by (`earlier_id`, `new_id`). Equal ones are
/// in the order of the references, the own store last.
pub static SUPERSEDED: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("earlier_id", DataType::Utf8),
        required("new_id", DataType::Utf8),
        required("distance", DataType::Int32),
        required("sketch_distance", DataType::Int32),
        required("earlier_lost_share", DataType::Float64),
        required("new_lost_share", DataType::Float64),
        nullable(REFERENCE, DataType::Utf8),
    ])
});

/// The columns of documents of earlier nights that were decided again, sorted by `doc_id`.
pub static REDECIDED: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(DOC_ID, DataType::Utf8),
        required("of_dt", DataType::Date32),
        required("decision", DataType::Utf8),
        nullable(CANONICAL_ID, DataType::Utf8),
        nullable("distance", DataType::Int32),
        required("reason", DataType::Utf8),
        nullable(LOST_SHARE, DataType::Float64),
        nullable(REFERENCE, DataType::Utf8),
        nullable("former_canonical_id", DataType::Utf8),
        required("cause", DataType::Utf8),
        nullable(FAMILY_ID, DataType::Utf8),
    ])
});

/// The columns of stubs, sorted by `doc_id`.
pub static STUBS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(DOC_ID, DataType::Utf8),
        required(SOURCE, DataType::Utf8),
        required("signal", DataType::Utf8),
        nullable(STUB_ID, DataType::Utf8),
        required("n_documents", DataType::Int64),
        required("share", DataType::Float64),
        required("n_earlier_texts", DataType::Int64),
    ])
});

/// The columns of what each source gave in a night, sorted by `source`.
pub static HOSTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let count = |name: &str| required(name, DataType::Int64);
    schema(vec![
        required(SOURCE, DataType::Utf8),
        count("n_documents"),
        count("n_new"),
        count("n_same"),
        count("n_changed"),
        count("n_keep"),
        count("n_near"),
        count("n_exact"),
        count("n_stub"),
        count("n_skip"),
        count("n_texts"),
        count("n_of_largest_text"),
        nullable(LOST_SHARE, DataType::Float64),
    ])
});

/// The column of the sources of documents.
pub const SOURCE: &str = "source";
/// The column of the page whose text a stub has.
pub const STUB_ID: &str = "stub_id";

/// The columns of the documents whose states in the corpus a commit changed, sorted by `doc_id`.
pub static CHANGES: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(CHANGE_SET, DataType::Int64),
        required(DOC_ID, DataType::Utf8),
        required("change", DataType::Utf8),
        required("text_changed", DataType::Boolean),
        nullable("of_dt", DataType::Date32),
        nullable("decision", DataType::Utf8),
        nullable(CANONICAL_ID, DataType::Utf8),
        nullable(REFERENCE, DataType::Utf8),
        nullable(REASON, DataType::Utf8),
        nullable("decision_before", DataType::Utf8),
        nullable(CANONICAL_ID_BEFORE, DataType::Utf8),
        nullable("reference_before", DataType::Utf8),
        nullable("reason_before", DataType::Utf8),
    ])
});

/// The column of the numbers of the sets of changes, in the order of the commits that made them.
pub const CHANGE_SET: &str = "change_set";
/// The column of the ids of the documents that were canonical before a change.
pub const CANONICAL_ID_BEFORE: &str = "canonical_id_before";

/// The columns of documents without a fingerprint, sorted by `doc_id`.
pub static SKIPPED: LazyLock<SchemaRef> =
    LazyLock::new(|| schema(vec![required(DOC_ID, DataType::Utf8), required("reason", DataType::Utf8)]));

/// The columns of rows that are not documents, sorted by (`file`, `row`).
pub static QUARANTINE: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("file", DataType::Utf8),
        nullable("row_group", DataType::Int32),
        required("row", DataType::Int64),
        required("reason", DataType::Utf8),
        nullable("id", DataType::Utf8),
    ])
});
