//! What a file claims about itself, looked at before any memory is taken for it: footers, page indexes, page headers, pages.

pub mod page_claims;
pub mod page_guard;
pub mod thrift;
