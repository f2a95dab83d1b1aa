//! Clusters: connected components of pairs, and the spanning forest that is enough to tell them.

use crate::rows::query_rows::RowPair;

/// Disjoint sets of the nodes 0, 1, 2, …, by union by size with path halving.
#[derive(Debug, Default, Clone)]
pub struct UnionFind {
    parent: Vec<u32>,
    size: Vec<u32>,
}

impl UnionFind {
    /// `n` nodes, each on its own.
    #[must_use]
    pub fn new(n: u32) -> Self {
        Self { parent: (0..n).collect(), size: vec![1; n as usize] }
    }

    /// A further node on its own.
    ///
    /// The nodes must stay fewer than 2^32.
    #[allow(clippy::cast_possible_truncation, reason = "the callers' rows and values are 32-bit numbers")]
    pub fn add(&mut self) -> u32 {
        debug_assert!(u32::try_from(self.parent.len()).is_ok(), "nodes are 32-bit numbers");
        let node = self.parent.len() as u32;
        self.parent.push(node);
        self.size.push(1);
        node
    }

    /// Nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.parent.len()
    }

    /// The representative of a node's set.
    pub fn find(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let grandparent = self.parent[self.parent[node as usize] as usize];
            self.parent[node as usize] = grandparent;
            node = grandparent;
        }
        node
    }

    /// Joins two sets; false where they were one already.
    pub fn union(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        let (small, large) = if self.size[a as usize] < self.size[b as usize] { (a, b) } else { (b, a) };
        self.parent[small as usize] = large;
        self.size[large as usize] += self.size[small as usize];
        true
    }
}

/// Keeps of `pairs` those of the spanning forest that the order (distance, a, b) chooses (Kruskal, 1956). A pair left out closes a
/// ring of earlier ones, so no forest of more pairs, in the same order, would choose it either.
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
}

/// The cluster of each row of the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clusters {
    first_row: Vec<u32>,
    /// By first row; 0 for all others.
    n_rows: Vec<u32>,
}

impl Clusters {
    /// The clusters of the nodes 0 to `n_rows` − 1; further nodes connect but are not counted.
    #[must_use]
    pub fn of(mut sets: UnionFind, n_rows: u32) -> Self {
        let mut first_of_set: Vec<u32> = vec![u32::MAX; sets.parent.len()];
        let mut clusters = Self { first_row: Vec::with_capacity(n_rows as usize), n_rows: vec![0; n_rows as usize] };
        for row in 0..n_rows {
            let first = &mut first_of_set[sets.find(row) as usize];
            *first = row.min(*first);
            clusters.first_row.push(*first);
            clusters.n_rows[*first as usize] += 1;
        }
        clusters
    }

    /// The smallest row of a row's cluster.
    #[must_use]
    pub fn first_row(&self, row: u32) -> u32 {
        self.first_row[row as usize]
    }

    /// The number of the batch's rows in a row's cluster.
    #[must_use]
    pub fn n_rows(&self, row: u32) -> u32 {
        self.n_rows[self.first_row(row) as usize]
    }

    /// Bytes that telling the clusters of `n_rows` rows among `n_nodes` takes.
    #[must_use]
    pub fn bytes_of(n_rows: usize, n_nodes: usize) -> usize {
        n_rows.saturating_mul(8).saturating_add(n_nodes.saturating_mul(4))
    }
}
