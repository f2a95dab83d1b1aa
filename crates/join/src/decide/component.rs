//! The component rule: all documents of a connected component but one are dropped.

use std::collections::HashMap;

use crate::decide::cluster::UnionFind;

/// What represents a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representative {
    /// It represents itself.
    Itself,
    /// An existing document of its component, of which this is the root.
    Existing(u32),
    /// A row of the batch.
    Row(u32),
}

/// What represents each row of `keep_order`: an existing document of its component where `has_existing` says of the component's root that
/// there is one, else the component's first row in this order. `sets` are the components; calls `decided` with each row in turn.
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
