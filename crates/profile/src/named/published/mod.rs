//! The profiles of published programs: the same fingerprints, bit for bit.

mod cppjieba;
mod gaoya;
mod hanlp_java;
mod java;
mod mllearning;
mod python_simhash;
mod seomoz;
mod shared;
mod simhash_crate;
pub(super) mod sing1ee;

use super::NamedProfile;

pub(super) const PROFILES: &[NamedProfile] = &[
    ("java", java::ABOUT, java::profile, &[32, 64, 128]),
    ("hanlp-java", hanlp_java::ABOUT, hanlp_java::profile, &[32, 64, 128]),
    ("cppjieba", cppjieba::ABOUT, cppjieba::profile, &[64]),
    ("gaoya", gaoya::ABOUT, gaoya::profile, &[64, 128]),
    ("mllearning", mllearning::ABOUT, mllearning::profile, &[32]),
    ("mllearning-bytes2", mllearning::ABOUT_BYTES2, mllearning::profile_bytes2, &[32]),
    ("python-simhash", python_simhash::ABOUT, python_simhash::profile, &[32, 64, 128]),
    ("seomoz", seomoz::ABOUT, seomoz::profile, &[64]),
    ("simhash-crate", simhash_crate::ABOUT, simhash_crate::profile, &[64]),
    ("sing1ee", sing1ee::ABOUT, sing1ee::profile, &[32, 64]),
];
