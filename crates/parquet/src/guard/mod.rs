//! Checks of what a file claims about itself, before memory is reserved for it. They cover footers, page indexes, page
//! headers and pages.

pub mod page_claims;
pub mod page_guard;
pub mod thrift;
