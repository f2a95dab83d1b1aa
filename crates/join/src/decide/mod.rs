//! What becomes of near-duplicates: stars, components, the spanning forest.

pub mod cluster;
pub mod component;
pub mod forest;
pub mod star;
