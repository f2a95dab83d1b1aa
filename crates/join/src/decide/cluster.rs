//! Clusters, which are the connected components of pairs, and the spanning forest that is enough to determine them.

use crate::rows::query_rows::RowPair;

/// Disjoint sets of the nodes 0, 1, 2, …, each represented by its smallest node. With path halving, an operation takes the
/// logarithm of the number of nodes, amortised, in whatever order sets are joined (Tarjan and van Leeuwen, 1984).
#[derive(Debug, Default, Clone)]
pub struct UnionFind {
    /// No node is smaller than its parent.
    parent: Vec<u32>,
}

impl UnionFind {
    /// Makes `n` nodes, each in a set of its own.
    #[must_use]
    pub fn new(n: u32) -> Self {
        Self { parent: (0..n).collect() }
    }

    /// Adds a node in a set of its own, and returns the node.
    ///
    /// There must be fewer than 2^32 nodes.
    ///
    /// # Panics
    /// Debug builds panic if there are 2^32 nodes already.
    #[allow(clippy::cast_possible_truncation, reason = "the callers' rows and values are 32-bit numbers")]
    pub fn add(&mut self) -> u32 {
        debug_assert!(u32::try_from(self.parent.len()).is_ok(), "nodes are 32-bit numbers");
        let node = self.parent.len() as u32;
        self.parent.push(node);
        node
    }

    /// Returns the smallest node of a node's set.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn find(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let grandparent = self.parent[self.parent[node as usize] as usize];
            self.parent[node as usize] = grandparent;
            node = grandparent;
        }
        node
    }

    /// Joins the sets of two nodes; returns false if they were already one set.
    ///
    /// # Panics
    /// If one of the nodes does not exist.
    pub fn union(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        self.parent[a.max(b) as usize] = a.min(b);
        true
    }
}

/// Keeps only those `pairs` that belong to the spanning forest chosen by the order (distance, a, b) (Kruskal, 1956). A
/// pair that is left out closes a ring of earlier ones, so no forest of more pairs, in the same order, would choose it
/// either.
///
/// # Panics
/// If the pairs name all 2^32 row numbers.
#[expect(clippy::cast_possible_truncation, reason = "asserted: distinct rows are fewer than 2^32")]
pub fn spanning_forest(pairs: &mut Vec<RowPair>) {
    pairs.sort_unstable_by_key(|pair| (pair.distance, pair.a, pair.b));
    let mut nodes: Vec<u32> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert!(u32::try_from(nodes.len()).is_ok(), "the largest 32-bit number is no row's");
    let mut sets = UnionFind::new(nodes.len() as u32);
    let node = |row: u32| nodes.partition_point(|&n| n < row) as u32;
    pairs.retain(|pair| sets.union(node(pair.a), node(pair.b)));
    debug_assert!(pairs.len() < nodes.len().max(1), "a forest has fewer edges than nodes");
}

/// The cluster of each row of the batch.
///
/// ```
/// use nearprint_join::{Clusters, UnionFind};
///
/// let mut sets = UnionFind::new(4);
/// sets.union(1, 3);
/// let clusters = Clusters::of(sets, 4);
/// assert_eq!((clusters.first_row(3), clusters.n_rows(3), clusters.n_rows(0)), (1, 2, 1));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters {
    first_row: Vec<u32>,
    /// The number of rows, by first row; 0 for all other rows.
    n_rows: Vec<u32>,
}

impl Clusters {
    /// Determines the clusters of the nodes 0 to `n_rows` − 1; further nodes connect rows but are not counted.
    ///
    /// # Panics
    /// If there are fewer than `n_rows` nodes.
    #[must_use]
    pub fn of(sets: UnionFind, n_rows: u32) -> Self {
        let (mut first_row, n) = (sets.parent, n_rows as usize);
        assert!(n <= first_row.len(), "each row is a node");
        // Parents are smaller, so the parent of a row is a row, whose smallest node is known when the row has its turn.
        first_row.truncate(n);
        let mut clusters = Self { first_row, n_rows: vec![0; n] };
        for row in 0..n {
            let first = clusters.first_row[clusters.first_row[row] as usize];
            clusters.first_row[row] = first;
            clusters.n_rows[first as usize] += 1;
        }
        debug_assert_eq!(
            clusters.n_rows.iter().map(|&n| u64::from(n)).sum::<u64>(),
            u64::from(n_rows),
            "each row is in one cluster"
        );
        clusters
    }

    /// Returns the smallest row of a row's cluster.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn first_row(&self, row: u32) -> u32 {
        self.first_row[row as usize]
    }

    /// Returns the number of the batch's rows in a row's cluster.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn n_rows(&self, row: u32) -> u32 {
        self.n_rows[self.first_row(row) as usize]
    }

    /// Returns the bytes that determining the clusters of `n_rows` rows takes, besides those of the sets.
    #[must_use]
    pub fn bytes_of(n_rows: usize) -> usize {
        n_rows.saturating_mul(4)
    }
}
