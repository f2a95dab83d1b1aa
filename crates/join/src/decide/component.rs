//! The component rule: all documents of a connected component but one are dropped.

use std::collections::HashMap;

use crate::decide::cluster::UnionFind;

/// The document that represents a row of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representative {
    /// The row represents itself.
    Itself,
    /// An existing document of the row's component, which has this root.
    Existing(u32),
    /// A row of the batch.
    Row(u32),
}

/// Decides what represents each row of `keep_order`, and calls `decided` with each row in turn. `sets` are the
/// components. If `has_existing` returns true for the root of the row's component, an existing document of that
/// component represents the row; otherwise the component's first row in keep order does.
///
/// ```
/// use nearprint_join::{Representative, UnionFind, component};
///
/// let mut sets = UnionFind::new(3);
/// sets.union(0, 2);
/// let mut decided = Vec::new();
/// component([2, 1, 0].into_iter(), &mut sets, |_| false, |row, by| decided.push((row, by)));
/// assert_eq!(decided, [(2, Representative::Itself), (1, Representative::Itself), (0, Representative::Row(2))]);
/// ```
///
/// # Panics
/// If a row of `keep_order` is not a node of `sets`.
pub fn component(
    keep_order: impl Iterator<Item = u32>,
    sets: &mut UnionFind,
    has_existing: impl Fn(u32) -> bool,
    mut decided: impl FnMut(u32, Representative),
) {
    let mut first: HashMap<u32, u32> = HashMap::new();
    for row in keep_order {
        let root = sets.find(row);
        let canonical = *first.entry(root).or_insert(row);
        decided(
            row,
            match canonical {
                _ if has_existing(root) => Representative::Existing(root),
                canonical if canonical == row => Representative::Itself,
                canonical => Representative::Row(canonical),
            },
        );
    }
}
