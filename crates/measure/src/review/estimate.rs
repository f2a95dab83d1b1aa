//! What the answers say of the nights.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::answers::{Answer, ReviewedPair};
use crate::audit::wilson;
use crate::random::{Random, percentile_interval};

/// What the answers say.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReviewEstimate {
    /// Each night with answers, in order.
    pub nights: Vec<NightEstimate>,
    /// Each month with answers, such as `2026-11`, in order: its nights together.
    pub months: Vec<NightEstimate>,
}

/// What the answers say of a night, or of the nights of a month.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NightEstimate {
    /// The night, or the month.
    pub dt: String,
    /// The number of drawn pairs.
    pub n_pairs: u64,
    /// The number of pairs that somebody called the same.
    pub n_same: u64,
    /// The number of pairs that somebody called different.
    pub n_different: u64,
    /// The estimated share of the dropped near-duplicates that are the same as the documents that stay for them. `None`:
    /// there are no answers.
    pub precision: Option<f64>,
    /// The 95 % interval of the precision.
    pub precision_ci: Option<[f64; 2]>,
    /// The estimated share that was dropped of the pairs that are the same, among dropped near-duplicates and pairs of kept
    /// documents whose fingerprints are within the profile's distance.
    pub recall: Option<f64>,
    /// The 95 % interval of the recall.
    pub recall_ci: Option<[f64; 2]>,
    /// The kinds of pairs, by name.
    pub strata: Vec<StratumEstimate>,
}

/// What the answers say of a kind of pairs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StratumEstimate {
    /// The kind, such as `dropped, 4 to 7 bits`.
    pub name: String,
    /// Whether the night drops the first document of such a pair for the second.
    pub is_drop: bool,
    /// The number of such pairs, drawn or not.
    pub n_stratum: u64,
    /// The number that somebody called the same.
    pub n_same: u64,
    /// The number that somebody called different.
    pub n_different: u64,
    /// The number that somebody could not tell. Such pairs count neither way: the kind has that much fewer of them.
    pub n_skipped: u64,
    /// The share of the same among those that somebody could tell.
    pub same: Option<f64>,
    /// The 95 % interval of the share (Wilson).
    pub same_ci: Option<[f64; 2]>,
}

impl StratumEstimate {
    fn unanswered(name: &str, is_drop: bool, n_stratum: u64) -> Self {
        Self {
            name: name.to_owned(),
            is_drop,
            n_stratum,
            n_same: 0,
            n_different: 0,
            n_skipped: 0,
            same: None,
            same_ci: None,
        }
    }
}

/// The number of draws for an interval.
const DRAWS: usize = 1000;
const SEED: u64 = 1;

/// Estimates how good the nights are from the answers about pairs, each of which is there once. Of a night, the pairs of its
/// published generation count, which `published` has by date; of a night that is no longer published, those of the generation
/// that stands last.
#[must_use]
pub fn estimate_review(pairs: &[ReviewedPair], published: &BTreeMap<String, String>) -> ReviewEstimate {
    let mut counting: BTreeMap<&str, &str> = pairs.iter().map(|pair| (&*pair.dt, &*pair.generation)).collect();
    counting.extend(published.iter().map(|(dt, generation)| (&**dt, &**generation)));
    let is_counted = |pair: &&ReviewedPair| counting.get(&*pair.dt) == Some(&&*pair.generation);
    let counted: Vec<&ReviewedPair> = pairs.iter().filter(is_counted).collect();
    let of = |name: fn(&str) -> &str| {
        let names: BTreeSet<&str> = counted.iter().map(|pair| name(&pair.dt)).collect();
        let estimates = names.into_iter().map(|wanted| {
            let own: Vec<&ReviewedPair> = counted.iter().copied().filter(|pair| name(&pair.dt) == wanted).collect();
            estimate(wanted, &own)
        });
        estimates.filter(|night| night.n_same + night.n_different > 0).collect()
    };
    ReviewEstimate { nights: of(|dt| dt), months: of(|dt| dt.get(..7).unwrap_or(dt)) }
}

fn estimate(name: &str, pairs: &[&ReviewedPair]) -> NightEstimate {
    // A kind has another number of pairs in each night.
    let mut nights: BTreeMap<(&str, &str), StratumEstimate> = BTreeMap::new();
    for pair in pairs {
        // A kind may have no pair here, because no text of it was found.
        for kind in &pair.strata {
            let key = (pair.dt.as_str(), kind.name.as_str());
            nights.entry(key).or_insert_with(|| StratumEstimate::unanswered(&kind.name, kind.is_drop, kind.n_pairs));
        }
        let own = || StratumEstimate::unanswered(&pair.stratum, pair.is_drop, pair.n_stratum);
        let stratum = nights.entry((pair.dt.as_str(), pair.stratum.as_str())).or_insert_with(own);
        stratum.n_same += u64::from(pair.answer == Some(Answer::Same));
        stratum.n_different += u64::from(pair.answer == Some(Answer::Different));
        stratum.n_skipped += u64::from(pair.answer == Some(Answer::Skipped));
    }
    // A night of which nothing is answered yet says nothing about the others.
    let answered: BTreeSet<&str> =
        pairs.iter().filter(|pair| pair.answer.is_some()).map(|pair| pair.dt.as_str()).collect();
    let of_answered: Vec<StratumEstimate> =
        nights.iter().filter(|((dt, _), _)| answered.contains(dt)).map(|(_, night)| night.clone()).collect();
    let nights: Vec<StratumEstimate> = nights.into_values().collect();
    let mut strata: BTreeMap<String, StratumEstimate> = BTreeMap::new();
    for night in &nights {
        match strata.get_mut(&night.name) {
            None => drop(strata.insert(night.name.clone(), night.clone())),
            Some(all) => {
                all.n_stratum += night.n_stratum;
                all.n_same += night.n_same;
                all.n_different += night.n_different;
                all.n_skipped += night.n_skipped;
            }
        }
    }
    let mut strata: Vec<StratumEstimate> = strata.into_values().collect();
    for stratum in &mut strata {
        let n = stratum.n_same + stratum.n_different;
        stratum.same = (n > 0).then(|| ratio(stratum.n_same, n));
        stratum.same_ci = wilson(stratum.n_same, n);
    }
    let mut random = Random::new(SEED);
    let (precision, recall) = figures(&of_answered, |stratum| {
        let n = stratum.n_same + stratum.n_different;
        (n > 0).then(|| ratio(stratum.n_same, n))
    });
    // Each share is drawn from what is known of it after its answers (Beta distribution, Jeffreys' prior).
    let drawn: Vec<(Option<f64>, Option<f64>)> = (0..DRAWS)
        .map(|_| {
            figures(&of_answered, |stratum| {
                let n = stratum.n_same + stratum.n_different;
                let [same, other] = [stratum.n_same, stratum.n_different].map(|n| random.gamma(ratio(n, 1) + 0.5));
                (n > 0).then(|| same / (same + other))
            })
        })
        .collect();
    let interval = |value: Option<f64>, draws: Vec<f64>| value.and_then(|value| percentile_interval(draws, value));
    NightEstimate {
        dt: name.to_owned(),
        n_pairs: pairs.len() as u64,
        n_same: strata.iter().map(|stratum| stratum.n_same).sum(),
        n_different: strata.iter().map(|stratum| stratum.n_different).sum(),
        precision,
        precision_ci: interval(precision, drawn.iter().filter_map(|(precision, _)| *precision).collect()),
        recall,
        recall_ci: interval(recall, drawn.iter().filter_map(|(_, recall)| *recall).collect()),
        strata,
    }
}

/// Returns precision and recall for shares of pairs that are the same. Kinds of which no pair can be told are left out; where a kind
/// has no answer at all, nobody knows what depends on it.
fn figures(
    strata: &[StratumEstimate],
    mut share: impl FnMut(&StratumEstimate) -> Option<f64>,
) -> (Option<f64>, Option<f64>) {
    let (mut n_drops, mut same_drops, mut same_kept) = (0.0, 0.0, 0.0);
    let (mut unknown_drops, mut unknown_kept) = (false, false);
    for stratum in strata {
        let Some(share) = share(stratum) else {
            let is_unknown = stratum.n_skipped == 0;
            unknown_drops |= is_unknown && stratum.is_drop;
            unknown_kept |= is_unknown && !stratum.is_drop;
            continue;
        };
        let n_told = stratum.n_same + stratum.n_different;
        let n = ratio(stratum.n_stratum, 1) * ratio(n_told, n_told + stratum.n_skipped);
        if stratum.is_drop {
            n_drops += n;
            same_drops += n * share;
        } else {
            same_kept += n * share;
        }
    }
    let of = |part: f64, whole: f64, is_unknown: bool| (whole > 0.0 && !is_unknown).then(|| part / whole);
    (of(same_drops, n_drops, unknown_drops), of(same_drops, same_drops + same_kept, unknown_drops || unknown_kept))
}

#[allow(clippy::cast_precision_loss, reason = "counts of pairs")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Answer, ReviewEstimate, ReviewedPair};

    /// Estimates of nights that are no longer published.
    fn estimate_review(pairs: &[ReviewedPair]) -> ReviewEstimate {
        super::estimate_review(pairs, &BTreeMap::new())
    }

    fn pair(dt: &str, is_drop: bool, n_stratum: u64, answer: Option<Answer>) -> ReviewedPair {
        ReviewedPair {
            dt: dt.to_owned(),
            generation: "g".to_owned(),
            stratum: format!("{is_drop} of {n_stratum}"),
            is_drop,
            n_stratum,
            strata: Vec::new(),
            doc_id: "a".to_owned(),
            other_id: "b".to_owned(),
            other_dt: dt.to_owned(),
            distance: None,
            sketch_distance: None,
            lost_share: None,
            text: String::new(),
            other_text: String::new(),
            answer,
            more: BTreeMap::new(),
        }
    }

    #[test]
    fn kinds_count_as_often_as_they_have_pairs_and_months_add_their_nights() {
        let (same, different) = (Some(Answer::Same), Some(Answer::Different));
        let mut pairs = vec![pair("2026-11-20", true, 900, same); 9];
        pairs.push(pair("2026-11-20", true, 900, different));
        pairs.extend(vec![pair("2026-11-20", true, 100, different); 5]);
        // Of 120 kept pairs, half can be told, and half of these are the same.
        let skipped = Some(Answer::Skipped);
        pairs.extend([same, different, skipped, skipped].map(|answer| pair("2026-11-20", false, 120, answer)));
        pairs.extend(vec![pair("2026-11-21", true, 1000, same); 4]);
        let estimate = estimate_review(&pairs);
        let night = &estimate.nights[0];
        // 810 of 1,000 drops are the same, and 30 kept pairs are.
        assert_eq!((night.precision, night.recall), (Some(0.81), Some(810.0 / 840.0)));
        let [low, high] = night.precision_ci.unwrap();
        assert!(low < 0.81 && 0.81 < high && high < 1.0, "{low} {high}");
        assert_eq!((estimate.nights.len(), estimate.months.len()), (2, 1));
        assert_eq!(estimate.months[0].precision, Some(1810.0 / 2000.0));
        assert_eq!(estimate_review(&[pair("2026-11-20", true, 5, None)]).nights, []);
        // Of a kind without an answer nobody knows what was missed, or what was dropped for nothing.
        let month = |pairs: &[ReviewedPair]| estimate_review(pairs).months[0].precision;
        let drawn = [&pairs[..], &[pair("2026-11-22", true, 50, None)]].concat();
        assert_eq!(month(&drawn), month(&pairs), "a night that was only drawn");
        pairs.push(pair("2026-11-20", false, 7, None));
        let night = estimate_review(&pairs).nights[0].clone();
        assert_eq!((night.precision, night.recall, night.recall_ci), (Some(0.81), None, None));
        pairs.push(pair("2026-11-20", true, 3, None));
        assert_eq!(estimate_review(&pairs).nights[0].precision, None);
    }
}
