//! Clusters: connected components of pairs, and the spanning forest that is enough to tell them.

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
        let node = self.parent.len() as u32;
        self.parent.push(node);
        self.size.push(1);
        node
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

/// The cluster of each row of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusters {
    /// The smallest row of each row's cluster.
    pub first_row: Vec<u32>,
    /// The number of the batch's rows in each row's cluster.
    pub n_rows: Vec<u32>,
}

impl Clusters {
    /// The clusters of the nodes 0 to `n_rows` − 1; further nodes connect but are not counted.
    #[must_use]
    pub fn of(sets: &mut UnionFind, n_rows: u32) -> Self {
        let mut first: Vec<u32> = vec![u32::MAX; sets.parent.len()];
        let mut count: Vec<u32> = vec![0; sets.parent.len()];
        for row in 0..n_rows {
            let root = sets.find(row) as usize;
            first[root] = first[root].min(row);
            count[root] += 1;
        }
        let roots: Vec<usize> = (0..n_rows).map(|row| sets.find(row) as usize).collect();
        Self {
            first_row: roots.iter().map(|&root| first[root]).collect(),
            n_rows: roots.iter().map(|&root| count[root]).collect(),
        }
    }
}
