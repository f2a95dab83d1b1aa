//! The Hamming join of fingerprints: which of the existing ones lie within a distance of which queries, exactly.
//!
//! The batch mode of Manku, Jain, Das Sarma, "Detecting Near-Duplicates for Web Crawling" (WWW 2007, section 3): permuted
//! tables are built of the query batch, every existing fingerprint probes them once ([`Queries::map`]), and
//! [`reduce()`] merges what the mappers found. Documents behind equal fingerprints are [`QueryRows`]; [`star()`] and
//! [`Clusters`] say what becomes of them.
//!
//! ```
//! use nearprint_join::{Kernel, MapScratch, Queries, TablePlan};
//!
//! let plan = TablePlan::new(64, 3, &[0, 0, 0, 0])?;
//! let queries = Queries::try_new(vec![0b1111_u64, u64::MAX], plan, Kernel::best())?;
//! let mut pairs = Vec::new();
//! queries.map(&[0b0001, 0b1000_0000_1111], &mut MapScratch::default(), |pair| pairs.push((pair.query, pair.existing, pair.distance)));
//! pairs.sort();
//! assert_eq!(pairs, [(0, 0, 3), (0, 1, 1)]);
//! # Ok::<(), nearprint_join::JoinError>(())
//! ```
//!
//! Pure: no I/O, no Arrow type, parallel only through rayon.

pub mod cluster;
pub mod column;
pub mod cost;
pub mod error;
pub mod kernel;
pub mod naive;
pub mod permutation;
mod permuted_table;
pub mod queries;

pub mod query_rows;
mod radix_sort;
pub mod reduce;
pub mod row_set;
pub mod star;
pub mod table_plan;
pub mod verify;
mod walk;

pub use cluster::{Clusters, UnionFind, spanning_forest};
pub use column::Column;
pub use cost::{ExistingRun, JoinCost, Workload};
pub use error::{JoinError, Result};
pub use kernel::{Kernel, KernelName, Vectors};
pub use permutation::{Block, Permutation};
pub use queries::{MapScratch, Pair, Queries, SELF_ROWS};
pub use query_rows::{ClassOfRows, QueryRows, RowPair};
pub use reduce::reduce;
pub use row_set::RowSet;
pub use star::{Canonical, ClassNeighbours, Decision, ExistingNeighbour, star};
pub use table_plan::{Table, TablePlan, chance_of_near};
pub use verify::Verifier;
