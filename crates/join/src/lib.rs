//! The Hamming join of fingerprints: it finds every pair of fingerprints within a given distance, exactly.
//!
//! One call joins all fingerprints in memory:
//!
//! ```
//! let pairs = nearprint_join::pairs_within(&[0b1111_u64, 0b0001, u64::MAX], 3)?;
//! assert_eq!((pairs[0].a, pairs[0].b, pairs[0].distance), (0, 1, 3));
//! # Ok::<(), nearprint_join::JoinError>(())
//! ```
//!
//! [`pairs_between`] joins two sets, [`ids_within`] and [`ids_between`] return ids instead of positions, and
//! [`HammingJoin`] has the options.
//!
//! A join that is larger than memory runs in parts. It follows the batch mode of Manku, Jain, Das Sarma, "Detecting
//! Near-Duplicates for Web Crawling" (WWW 2007, section 3): permuted tables are built of the query batch, every
//! existing fingerprint probes them once ([`Queries::map`]), and [`reduce()`] merges the output of the mappers.
//! [`QueryRows`] holds the documents behind equal fingerprints; a [`Forest`], [`star()`], [`component()`] and
//! [`Clusters`] decide which documents are kept and which cluster each one belongs to.
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
//! The crate does no I/O, uses no Arrow type, and runs in parallel only through rayon.

mod decide;
mod error;
pub mod kernel;
pub mod naive;
mod pairs;
mod plan;
mod probe;
mod rows;

pub use decide::cluster::{Clusters, UnionFind, spanning_forest};
pub use decide::component::{Representative, component};
pub use decide::forest::{Candidate, DropRule, Far, Forest, Gathered, KeptExisting, Superseding};
pub use decide::origin::Origin;
pub use decide::star::{Canonical, ClassNeighbours, Decision, ExistingNeighbour, star};
pub use decide::star_bound::{n_kept_in_vain, star_bound};
pub use error::{JoinError, Result};
pub use kernel::{Kernel, KernelName, Width};
pub use pairs::{HammingJoin, NearIds, NearPair, ids_between, ids_within, pairs_between, pairs_within, places_of};
pub use plan::cost::{ExistingRun, JoinCost, SELF_ROWS, StepTimes, Workload};
pub use plan::lookup_plan::LookupPlan;
pub use plan::near::chance_of_near;
pub use plan::permutation::{Block, Permutation};
pub use plan::table_plan::{Table, TablePlan};
pub use probe::near_values::near_values;
pub use probe::queries::{MapScratch, NearExisting, Pair, Queries, TogetherScratch, TooManyPairs};
pub use probe::reduce::reduce;
pub use probe::together::RunOrder;
pub use rows::column::Column;
pub use rows::judged::{JudgedPair, JudgedPairs};
pub use rows::lost_share::{LossLimit, lost_share};
pub use rows::query_rows::{ClassOfRows, QueryRows, RowPair};
pub use rows::row_set::RowSet;
pub use rows::search::partition_point;
pub use rows::undecided::{UndecidedPair, nearest_undecided};
pub use rows::verify::{Key, Nearness, SketchDistance, Verifier, WordKeys};
pub use rows::word_rows::WordRows;
