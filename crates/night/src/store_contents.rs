//! What is in a store: its nights with what was decided there, its segments and its indexes.

use futures::StreamExt;
use nearprint_fault::Result;
use nearprint_storage::Storage;
use nearprint_store::{Night, NightInfo, Store, StoreInfo};
use schemars::JsonSchema;
use serde::Serialize;

use crate::published::{manifest_of, open_store};

/// What is in a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreContents {
    /// What the store says.
    #[serde(flatten)]
    pub info: StoreInfo,
    /// The nights, by date.
    pub nights: Vec<ListedNight>,
}

/// A night of a store, and what its manifest says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedNight {
    /// The night in the store.
    #[serde(flatten)]
    pub night: NightInfo,
    /// The counts of its manifest. `None` means that it cannot be read.
    #[serde(flatten)]
    pub counts: Option<ListedCounts>,
    /// The reason why the manifest cannot be read, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// The counts of a night that its manifest has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedCounts {
    /// The number of documents. Those that were forgotten since are counted here and below.
    pub n_documents: u64,
    /// The number of kept documents.
    pub n_keep: u64,
    /// The number of dropped documents.
    pub n_drop: u64,
    /// The number of skipped documents.
    pub n_skip: u64,
    /// The number of documents whose ids an earlier night has.
    pub n_same_id: u64,
    /// The number of the night's documents that were forgotten since.
    pub n_forgotten: u64,
}

/// The manifests that are read at the same time.
const AT_ONCE: usize = 16;

/// Describes the store at a place by its newest commit and the manifests of its nights. A manifest that cannot be read is
/// said in its night.
///
/// # Errors
/// [`ErrorKind::InputMissing`](nearprint_fault::ErrorKind::InputMissing) if there is no store; an error if the store
/// cannot be read.
pub async fn store_contents(storage: &Storage, url: &str) -> Result<StoreContents> {
    let store = open_store(storage, url).await?;
    let info = store.info();
    let read =
        store.nights().iter().zip(&info.nights).map(|(night, info)| listed(storage, &store, night, info.clone()));
    let nights = futures::stream::iter(read.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
    Ok(StoreContents { info, nights })
}

async fn listed(storage: &Storage, store: &Store, night: &Night, info: NightInfo) -> ListedNight {
    debug_assert_eq!(night.dt, info.dt, "the store describes its nights in their order");
    match manifest_of(storage, store, night).await {
        Ok(manifest) => {
            let (documents, decisions) = (&manifest.counts.documents, &manifest.counts.decisions);
            let counts = ListedCounts {
                n_documents: documents.n_documents,
                n_keep: decisions.n_keep,
                n_drop: decisions.n_drop,
                n_skip: decisions.n_skip,
                n_same_id: manifest.counts.n_same_id,
                n_forgotten: manifest.n_forgotten(),
            };
            ListedNight { night: info, counts: Some(counts), unread: None }
        }
        Err(error) => ListedNight { night: info, counts: None, unread: Some(error.to_string()) },
    }
}
