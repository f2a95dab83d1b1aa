//! The columns of every dataset (docs/store-format.md draws them).

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// Bytes of a sketch.
pub const SKETCH_BYTES: i32 = 32;
/// Bytes of a fingerprint of 128 bits.
pub const WIDE_BYTES: i32 = 16;
/// Bytes of a text hash.
pub const TEXT_HASH_BYTES: i32 = 16;

/// Metadata of files: the digest of the configuration that made their fingerprints.
pub const CONFIG_DIGEST: &str = "nearprint.config_digest";

/// Column of document ids.
pub const DOC_ID: &str = "doc_id";
/// Column of fingerprints.
pub const FINGERPRINT: &str = "fingerprint";
/// Column of sketches.
pub const SKETCH: &str = "sketch";
/// Column of hashes of normalised texts.
pub const TEXT_HASH: &str = "text_hash";
/// Column of the ids of canonical documents.
pub const CANONICAL_ID: &str = "canonical_id";

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

fn text_hash() -> Field {
    nullable(TEXT_HASH, DataType::FixedSizeBinary(TEXT_HASH_BYTES))
}

/// Fingerprints dataset, sorted by (`fingerprint`, `doc_id`).
pub static FINGERPRINTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![required(DOC_ID, DataType::Utf8), required(FINGERPRINT, DataType::UInt64), sketch(), text_hash()])
});

/// Fingerprints dataset of 128 bits, sorted by (`fingerprint`, `doc_id`): big-endian, so that bytes sort as the number does.
pub static WIDE_FINGERPRINTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fingerprint = required(FINGERPRINT, DataType::FixedSizeBinary(WIDE_BYTES));
    schema(vec![required(DOC_ID, DataType::Utf8), fingerprint, sketch(), text_hash()])
});

/// A run of the store, sorted by (`fingerprint`, `doc_id`).
pub static RUN: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(FINGERPRINT, DataType::UInt64),
        required(DOC_ID, DataType::Utf8),
        sketch(),
        text_hash(),
        nullable(CANONICAL_ID, DataType::Utf8),
    ])
});

/// Texts of a run below the feature floor, sorted by (`text_hash`, `doc_id`).
pub static SHORT: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![text_hash(), required(DOC_ID, DataType::Utf8), nullable(CANONICAL_ID, DataType::Utf8)])
});

/// Documents of a run without text, sorted by `doc_id`: they shadow earlier versions, and nothing else.
pub static EMPTY: LazyLock<SchemaRef> = LazyLock::new(|| schema(vec![required(DOC_ID, DataType::Utf8)]));

/// The ids of a run by their hash, sorted by (`id_hash`, `row`).
pub static IDS: LazyLock<SchemaRef> =
    LazyLock::new(|| schema(vec![required("id_hash", DataType::UInt64), required("row", DataType::UInt32)]));

/// Rows of earlier-dated runs whose documents a later-dated run has again, sorted.
pub static SHADOWS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![required("run", DataType::Utf8), required("by", DataType::Utf8), required("row", DataType::UInt32)])
});

/// A segment of the store, sorted by all columns: whose fingerprint it is, as the run's position among the segment's runs, and
/// its row in that run's fingerprints.
pub static SEGMENT: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(FINGERPRINT, DataType::UInt64),
        required("run", DataType::UInt32),
        required("row", DataType::UInt32),
    ])
});

/// Pairs, sorted by (`id_a`, `id_b`).
pub static PAIRS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("id_a", DataType::Utf8),
        required("id_b", DataType::Utf8),
        required("distance", DataType::UInt8),
        nullable("sketch_distance", DataType::UInt16),
        required("scope", DataType::Utf8),
    ])
});

/// Decisions, sorted by `doc_id`.
pub static DECISIONS: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required(DOC_ID, DataType::Utf8),
        required("decision", DataType::Utf8),
        nullable(CANONICAL_ID, DataType::Utf8),
        nullable("distance", DataType::UInt8),
        required("reason", DataType::Utf8),
        nullable("cluster_id", DataType::Utf8),
        nullable("cluster_size", DataType::UInt64),
    ])
});

/// Documents without a fingerprint, sorted by `doc_id`.
pub static SKIPPED: LazyLock<SchemaRef> =
    LazyLock::new(|| schema(vec![required(DOC_ID, DataType::Utf8), required("reason", DataType::Utf8)]));

/// Rows that are no documents, sorted by (`file`, `row`).
pub static QUARANTINE: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema(vec![
        required("file", DataType::Utf8),
        nullable("row_group", DataType::UInt32),
        required("row", DataType::UInt64),
        required("reason", DataType::Utf8),
        nullable("id", DataType::Utf8),
    ])
});
