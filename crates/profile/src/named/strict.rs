//! The default profile with narrower rules of what is alike. Its fingerprints are those of the default, and so are its stores.

use nearprint_fingerprint::JudgeConfig;

use super::default::EARLIER;
use crate::config::{JoinConfig, ProfileConfig};

pub(super) const ABOUT: &str = "the default's fingerprints, of which fewer are near-duplicates: sketches within 24, and texts that are nearly equal";

pub(super) fn profile() -> ProfileConfig {
    ProfileConfig {
        join: JoinConfig { max_distance: 12, max_sketch_distance: Some(24), earlier: Some(EARLIER) },
        judge: Some(JudgeConfig {
            min_sketch_distance: 24,
            max_sketch_distance: 80,
            min_edit_similarity: 0.88,
            min_contained: 0.98,
            min_opening: 0.9,
            max_looks: 16,
        }),
        max_lost_share: 0.04,
        ..super::default::profile()
    }
}
