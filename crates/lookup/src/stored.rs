//! Documents of the store that are themselves the question.

use std::collections::HashMap;

use nearprint_fault::Result;
use nearprint_fingerprint::Sketch;
use nearprint_store::{DocumentState, StateContent};

use crate::answer::{Decision, StoredDocument};
use crate::lookup::Lookup;
use crate::target::{Fingerprinted, Itself, Target};

/// A document of the store in its newest state, and the rows that a query by it looks for.
#[derive(Debug, Clone)]
pub struct Stored {
    pub document: StoredDocument,
    pub target: Target,
}

impl Lookup {
    /// Returns the documents with some ids that the store has.
    pub(crate) async fn stored(&self, ids: &[&str]) -> Result<HashMap<String, Stored>> {
        let mut stored = HashMap::new();
        for state in self.opened.store.states(ids).await? {
            // The newest state comes first.
            if !stored.contains_key(&state.id) {
                let target = self.target_of(&state).await?;
                let decision = match (state.content, &state.canonical_id) {
                    (StateContent::Empty, _) => Decision::Skip,
                    (_, Some(_)) => Decision::Drop,
                    (_, None) => Decision::Keep,
                };
                let DocumentState { id, dt, canonical_id, reference, .. } = state;
                let document = StoredDocument { id: id.clone(), dt, decision, canonical_id, reference };
                stored.insert(id, Stored { document, target });
            }
        }
        Ok(stored)
    }

    async fn target_of(&self, state: &DocumentState) -> Result<Target> {
        let night = self.opened.nights.iter().position(|night| night.run.night.dt == state.dt);
        let itself = night.map(|night| Itself { night, row: state.row });
        Ok(match state.content {
            StateContent::Fingerprinted { fingerprint, text_hash } => {
                let sketch = self.opened.store.sketch_of(state).await?.map(Sketch);
                Target::Near(Fingerprinted { fingerprint, sketch, text_hash, itself })
            }
            StateContent::Short { text_hash: Some(text_hash) } => Target::Same { text_hash, itself },
            StateContent::Short { text_hash: None } | StateContent::Empty => Target::Nothing,
        })
    }
}
