//! The table of the pairs that people look at, and of their answers: a file of JSON lines.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use nearprint_fault::{Fault, Result, foreign};
use nearprint_storage::{Storage, bad_file};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What somebody said of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The two are the same for the corpus: one of them is enough.
    Same,
    /// Each has something that the corpus wants.
    Different,
    /// Somebody looked, and could not tell. The pair counts neither way.
    Skipped,
}

/// A pair that was drawn, and what somebody said of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewedPair {
    /// The night.
    pub dt: String,
    /// The generation of the night.
    pub generation: String,
    /// The kind of pair, such as `dropped, 4 to 7 bits`.
    pub stratum: String,
    /// The decision of the night drops the first document for the second one. Otherwise both stay.
    pub is_drop: bool,
    /// The number of such pairs in the night, drawn or not.
    pub n_stratum: u64,
    /// All kinds of pairs that the night has, also those of which no pair is in the file. A file may lack them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strata: Vec<ReviewStratum>,
    /// The first document.
    pub doc_id: String,
    /// The second document: the one that stays, if the first one is dropped.
    pub other_id: String,
    /// The night whose text the second document has here.
    pub other_dt: String,
    /// The distance of their fingerprints.
    pub distance: Option<u32>,
    /// The distance of their sketches, of pairs that both stay.
    pub sketch_distance: Option<u16>,
    /// The lost share that the night published.
    pub lost_share: Option<f64>,
    /// The text of the first document, from before the first difference on.
    pub text: String,
    /// The text of the second document.
    pub other_text: String,
    /// The answer, or `null` until there is one.
    pub answer: Option<Answer>,
    /// What others have added to the line.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// A kind of pairs that a night has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewStratum {
    /// The kind, such as `dropped, 4 to 7 bits`.
    pub name: String,
    /// The decision of the night drops the first document of such a pair for the second one.
    pub is_drop: bool,
    /// The number of such pairs in the night, drawn or not.
    pub n_pairs: u64,
}

/// Some editors begin a file of UTF-8 with this mark. It is no part of the first line.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns whether the first line of a file is that of a pair.
#[must_use]
pub fn is_reviewed_pair(first_line: &str) -> bool {
    let line = first_line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first_line);
    serde_json::from_str::<ReviewedPair>(line).is_ok()
}

/// The lines read so far.
#[derive(Default)]
struct Rows {
    pairs: Vec<ReviewedPair>,
    /// The line of each pair of a generation of a night, and its position in `pairs`.
    places: HashMap<[String; 4], (u64, usize)>,
    n_repeated: u64,
}

impl Rows {
    /// Adds a pair, or merges it with that of an earlier line. If only one of them has an answer, that answer counts.
    fn add(&mut self, number: u64, pair: ReviewedPair) -> std::result::Result<(), String> {
        let key = key(&pair);
        let Some(&(earlier_number, at)) = self.places.get(&key) else {
            self.places.insert(key, (number, self.pairs.len()));
            self.pairs.push(pair);
            return Ok(());
        };
        let earlier = &mut self.pairs[at];
        if earlier.answer.is_some() && pair.answer.is_some() && earlier.answer != pair.answer {
            return Err(format!("this pair has another answer in row {earlier_number}: keep one of the two"));
        }
        earlier.answer = earlier.answer.or(pair.answer);
        self.n_repeated += 1;
        Ok(())
    }
}

/// Returns what tells a pair from others. Two documents that both stay are one pair in either order.
fn key(pair: &ReviewedPair) -> [String; 4] {
    let ids = (&pair.doc_id, &pair.other_id);
    let (a, b) = if pair.is_drop || ids.0 <= ids.1 { ids } else { (ids.1, ids.0) };
    [&pair.dt, &pair.generation, a, b].map(String::clone)
}

/// A file of pairs and answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    url: String,
    /// The content of the file as it was read or written last.
    content: Bytes,
    /// The pairs, in the order in which they were drawn, each once.
    pub pairs: Vec<ReviewedPair>,
    /// The number of lines that repeat the pair of another line. They are not among `pairs`.
    pub n_repeated: u64,
}

impl Answers {
    /// Reads the file, or begins with none if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, a line of it is no such pair, or two lines have different answers about one pair.
    pub async fn read(storage: &Storage, url: &str) -> Result<Self> {
        let content = storage.folder(url)?.get().await?.unwrap_or_default();
        let lines = content.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(&content);
        let lines = (1..).zip(lines.split(|&byte| byte == b'\n'));
        let mut rows = Rows::default();
        for (number, line) in lines.filter(|(_, line)| !line.trim_ascii().is_empty()) {
            let bad = |e| bad_file(url, format!("it is no line of answers ({})", foreign(&e))).row(number);
            let pair = serde_json::from_slice(line).map_err(bad)?;
            rows.add(number, pair).map_err(|reason| Fault::bad_data(url, reason).row(number))?;
        }
        let Rows { pairs, n_repeated, .. } = rows;
        Ok(Self { url: url.to_owned(), content, pairs, n_repeated })
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// Somebody else has changed it since it was read or written here, or it cannot be written. Of two that write in the same
    /// moment, the last one counts.
    pub async fn write(&mut self, storage: &Storage) -> Result<()> {
        let place = storage.folder(&self.url)?;
        if place.get().await?.unwrap_or_default() != self.content {
            let reason =
                "somebody else has changed it meanwhile, and their answers stay: the last one here is not in it";
            return Err(Fault::try_again(format!("{}: {reason}: start again", self.url)));
        }
        let mut content = Vec::new();
        for pair in &self.pairs {
            let line = serde_json::to_vec(pair).map_err(|e| Fault::internal("review", e))?;
            content.extend([&line[..], b"\n"].concat());
        }
        self.content = content.into();
        place.put(self.content.clone()).await
    }

    /// Returns whether pairs of this generation of a night were drawn.
    #[must_use]
    pub fn has(&self, dt: &str, generation: &str) -> bool {
        self.pairs.iter().any(|pair| pair.dt == dt && pair.generation == generation)
    }
}
