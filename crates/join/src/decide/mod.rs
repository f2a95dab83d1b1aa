//! The decisions about near-duplicates: stars, components and the spanning forest.

pub mod cluster;
pub mod component;
pub mod forest;
pub mod origin;
pub mod star;
pub mod star_bound;
