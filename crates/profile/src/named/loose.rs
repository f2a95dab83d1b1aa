//! The default profile with wider rules of what is alike. Its fingerprints are those of the default, and so are its stores.

use nearprint_fingerprint::JudgeConfig;

use crate::config::ProfileConfig;

pub(super) const ABOUT: &str = "the default's fingerprints, of which more are near-duplicates: texts of one night with more edits, or cut and added to";

pub(super) fn profile() -> ProfileConfig {
    ProfileConfig {
        judge: Some(JudgeConfig {
            min_sketch_distance: 28,
            max_sketch_distance: 80,
            min_edit_similarity: 0.78,
            min_contained: 0.92,
            min_opening: 0.6,
            max_looks: 16,
        }),
        max_lost_share: 0.15,
        ..super::default::profile()
    }
}
