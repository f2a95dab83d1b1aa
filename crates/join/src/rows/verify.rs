//! The one place where a candidate becomes a pair.

use nearprint_fingerprint::{JudgeConfig, Sketch};

/// The distances that make two documents near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verifier {
    /// The largest Hamming distance of two fingerprints that counts.
    pub max_distance: u8,
    /// The largest distance of two sketches that counts; `None` leaves sketches out.
    pub max_sketch_distance: Option<u16>,
    /// The largest distance of two sketches at which a judge reads the texts of two documents whose sketches are not near. `None`
    /// leaves the judge out.
    pub judged_to: Option<u16>,
}

/// What the distances of two documents say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearness {
    /// They are near-duplicates.
    Near(SketchDistance),
    /// The judge decides, if it has the texts. The distance of the sketches.
    Undecided(u16),
    /// They are none.
    Far,
}

/// The distance of two sketches, as far as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SketchDistance {
    /// The sketches are not compared, because the fingerprints alone decide or the texts are the same.
    NotCompared,
    /// One of the two documents has no sketch. If sketches are verified, such a document matches nothing.
    Missing,
    /// The number of differing bits, out of 256.
    Bits(u16),
}

impl SketchDistance {
    /// Returns the number of differing bits, if both sketches were compared.
    #[must_use]
    pub fn bits(self) -> Option<u16> {
        match self {
            Self::Bits(bits) => Some(bits),
            Self::NotCompared | Self::Missing => None,
        }
    }

    fn of(a: Option<&Sketch>, b: Option<&Sketch>) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a sketch has 256 bits")]
        a.zip(b).map_or(Self::Missing, |(a, b)| Self::Bits(a.distance(b) as u16))
    }
}

impl Verifier {
    /// Returns the limits of two documents whose texts a judge has: it also reads texts whose sketches alone would make a
    /// pair, unless they are as near as it asks for.
    #[must_use]
    pub fn with_judge(self, judge: &JudgeConfig) -> Self {
        let limit = |bits: u32| u16::try_from(bits).ok();
        let near = self.max_sketch_distance.min(limit(judge.min_sketch_distance));
        Self { max_sketch_distance: near, judged_to: limit(judge.max_sketch_distance), ..self }
    }

    /// Returns whether two documents at these distances are near-duplicates.
    ///
    /// ```
    /// use nearprint_join::{SketchDistance, Verifier};
    ///
    /// let verifier = Verifier { max_distance: 3, max_sketch_distance: Some(40), judged_to: None };
    /// assert!(verifier.allows(3, SketchDistance::Bits(40)));
    /// assert!(!verifier.allows(4, SketchDistance::Bits(0)));
    /// assert!(!verifier.allows(0, SketchDistance::Missing));
    /// assert!(Verifier { max_sketch_distance: None, ..verifier }.allows(0, SketchDistance::Missing));
    /// ```
    #[must_use]
    pub fn allows(&self, distance: u8, sketches: SketchDistance) -> bool {
        let sketches_are_near = match (self.max_sketch_distance, sketches) {
            (None, _) | (_, SketchDistance::NotCompared) => true,
            (Some(_), SketchDistance::Missing) => false,
            (Some(limit), SketchDistance::Bits(bits)) => bits <= limit,
        };
        distance <= self.max_distance && sketches_are_near
    }

    /// Returns what the distances of two documents say.
    ///
    /// ```
    /// use nearprint_fingerprint::{JudgeConfig, Sketch};
    /// use nearprint_join::{Nearness, SketchDistance, Verifier};
    ///
    /// let verifier = Verifier { max_distance: 3, max_sketch_distance: Some(8), judged_to: Some(40) };
    /// let [a, b, c] = [[0; 32], [1; 32], [3; 32]].map(Sketch);
    /// let of = |distance, other| verifier.nearness(distance, Some(&a), Some(other));
    /// assert_eq!(of(3, &a), Nearness::Near(SketchDistance::Bits(0)));
    /// assert_eq!((of(3, &b), of(4, &b), of(3, &c)), (Nearness::Undecided(32), Nearness::Far, Nearness::Far));
    /// ```
    #[must_use]
    pub fn nearness(&self, distance: u8, a: Option<&Sketch>, b: Option<&Sketch>) -> Nearness {
        if distance > self.max_distance {
            return Nearness::Far;
        }
        let sketches = match self.max_sketch_distance {
            None => SketchDistance::NotCompared,
            Some(_) => SketchDistance::of(a, b),
        };
        if self.allows(distance, sketches) {
            return Nearness::Near(sketches);
        }
        match sketches {
            SketchDistance::Bits(bits) if self.judged_to.is_some_and(|limit| bits <= limit) => {
                Nearness::Undecided(bits)
            }
            _ => Nearness::Far,
        }
    }

    /// Returns the distance of the sketches of two documents if the two are near-duplicates, and `None` if they are
    /// not.
    #[must_use]
    pub fn verify(&self, distance: u8, a: Option<&Sketch>, b: Option<&Sketch>) -> Option<SketchDistance> {
        match self.nearness(distance, a, b) {
            Nearness::Near(sketches) => Some(sketches),
            Nearness::Undecided(_) | Nearness::Far => None,
        }
    }
}
