//! The exact resemblance of texts: the Jaccard similarity of their sets of shingles (Broder, "On the Resemblance and
//! Containment of Documents", 1997). It depends on the texts alone, not on a profile.

mod alike;
mod shingles;

pub use alike::{AlikePair, LEAST_TENTHS, alike_pairs};
pub use shingles::{Resemblance, ShingleSet, Shingler};
