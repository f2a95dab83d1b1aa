//! Pairs of classes that the star rule decides by, past the reduce: it needs them in no order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nearprint_join::ClassNeighbours;

use crate::error::{PipelineError, Result};
use nearprint_storage::locked;

/// Verified pairs of different classes, each once, from all mappers.
#[derive(Debug)]
pub(crate) struct ClassPairs {
    chunks: Mutex<Vec<Chunk>>,
    n_pairs: AtomicUsize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Chunk {
    classes: Vec<[u32; 2]>,
    distances: Vec<u8>,
}

/// Those of one mapper, on their way to all.
#[derive(Debug, Default)]
pub(super) struct OwnClassPairs(Vec<(u32, u32, u8)>);

/// Pairs of a chunk.
const CHUNK_PAIRS: usize = 1 << 16;

/// A pair here, and in the index of neighbours.
const PAIR_BYTES: usize = 9 + 10;

impl ClassPairs {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { chunks: Mutex::default(), n_pairs: AtomicUsize::new(0), max_bytes }
    }

    /// Bytes of the pairs, once they are indexed.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.n_pairs.load(Ordering::Relaxed).saturating_mul(PAIR_BYTES)
    }

    pub(super) fn add(&self, own: &mut OwnClassPairs, pair: (u32, u32, u8)) -> Result<()> {
        own.0.push(pair);
        if own.0.len() < CHUNK_PAIRS { Ok(()) } else { self.take(own) }
    }

    /// Takes what a mapper has.
    pub(super) fn take(&self, own: &mut OwnClassPairs) -> Result<()> {
        let n_pairs = self.n_pairs.fetch_add(own.0.len(), Ordering::Relaxed) + own.0.len();
        if self.memory_bytes() > self.max_bytes {
            let reason = format!(
                "the star rule over more than {n_pairs} pairs takes more than the {} bytes that are left",
                self.max_bytes
            );
            return Err(PipelineError::Resources { reason });
        }
        let chunk = Chunk {
            classes: own.0.iter().map(|&(a, b, _)| [a, b]).collect(),
            distances: own.0.iter().map(|&(_, _, distance)| distance).collect(),
        };
        own.0.clear();
        locked(&self.chunks).push(chunk);
        Ok(())
    }

    /// The pairs, by class.
    pub(crate) fn neighbours(&self, n_classes: usize) -> ClassNeighbours {
        let chunks = std::mem::take(&mut *locked(&self.chunks));
        let pairs = |chunk: &'_ Chunk| {
            let pairs = chunk.classes.iter().zip(&chunk.distances);
            pairs.map(|(&[a, b], &distance)| (a, b, distance)).collect::<Vec<_>>()
        };
        ClassNeighbours::new(n_classes, || chunks.iter().flat_map(pairs))
    }
}
