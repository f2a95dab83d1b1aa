//! The feature hashes of published programs, bit for bit.

mod bkdr131;
mod fnv1a;
mod java;
mod lookup3;
mod md5;
mod murmur;
mod siphash24;

use super::{FeatureHash, xxh3};
use crate::fingerprint::Fingerprint;

#[inline]
pub(super) fn hash<F: Fingerprint>(hash: &FeatureHash, feature: &[u8]) -> F {
    match hash {
        FeatureHash::Xxh3 { seed } => xxh3::hash(feature, *seed),
        FeatureHash::JavaPlain => java::plain(feature),
        FeatureHash::JavaPad3 => java::pad3(feature),
        FeatureHash::Md5First => md5::first(feature),
        FeatureHash::Md5Last => md5::last(feature),
        FeatureHash::RustSipHash24 { k0, k1 } => siphash24::hash_str(feature, *k0, *k1),
        FeatureHash::RustFnv1a => fnv1a::hash_str(feature),
        FeatureHash::Lookup3 => lookup3::hash(feature),
        FeatureHash::Bkdr131 => bkdr131::hash(feature),
        FeatureHash::MurmurSigned => murmur::hash(feature),
    }
}
