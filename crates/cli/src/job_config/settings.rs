//! The settings of a job in words, for reports.

use nearprint_documents::{DuplicateIds, LENGTH};
use nearprint_night::usual_lost_share;
use nearprint_pipeline::ClusterRule;
use nearprint_profile::{EarlierConfig, JoinConfig, ProfileConfig};

use super::JobConfig;
use crate::exit_code::Failure;

impl JobConfig {
    /// Returns the largest lost share with which a document is dropped; 1 is any.
    pub fn lost_share(&self, profile: &ProfileConfig) -> f64 {
        self.max_lost_share.unwrap_or_else(|| usual_lost_share(profile, self.clusters))
    }

    /// Returns the settings that decide what a night keeps, as pairs of a key and its value, for people.
    pub fn settings(&self) -> Result<Vec<(String, String)>, Failure> {
        let profile = self.profile_config()?;
        let list = |values: &[String]| if values.is_empty() { "none".to_owned() } else { values.join(", ") };
        let keep = self.keep.as_deref().map_or_else(|| format!("{LENGTH} desc"), list);
        let lost_share = self.lost_share(&profile);
        let off = |value: Option<u32>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
        let clusters = match self.clusters {
            ClusterRule::Star => "star",
            ClusterRule::Component => "component",
        };
        let on_duplicate_id = match self.on_duplicate_id {
            None => "keep_newest in WARC files, else fail",
            Some(DuplicateIds::Fail) => "fail",
            Some(DuplicateIds::KeepFirst) => "keep_first",
            Some(DuplicateIds::KeepLast) => "keep_last",
            Some(DuplicateIds::KeepNewest) => "keep_newest",
            Some(DuplicateIds::KeepBest) => "keep_best",
        };
        let settings = [
            ("profile", self.profile.clone()),
            ("bits", profile.bits.to_string()),
            ("join.max_distance", profile.join.max_distance.to_string()),
            ("join.max_sketch_distance", off(profile.join.max_sketch_distance)),
            ("join.earlier", earlier_in_words(&profile.join)),
            ("judge.max_looks", profile.judge().map_or_else(|| "none".to_owned(), |j| j.config.max_looks.to_string())),
            ("clusters", clusters.to_owned()),
            ("keep", keep),
            ("max_lost_share", lost_share.to_string()),
            ("source_column", self.source_column.clone().unwrap_or_else(|| "none: the host of the id".to_owned())),
            ("on_duplicate_id", on_duplicate_id.to_owned()),
        ];
        Ok(settings.map(|(key, value)| (key.to_owned(), value)).to_vec())
    }
}

/// Describes what finds documents of earlier nights, as in "within 8 bits, or 2 words of the sketch within 8".
fn earlier_in_words(join: &JoinConfig) -> String {
    join.earlier.map_or_else(
        || "as within the night".to_owned(),
        |EarlierConfig { max_distance, words, max_word_distance }| {
            format!("within {max_distance} bits, or {words} words of the sketch within {max_word_distance}")
        },
    )
}
