//! The labels.

use std::collections::{HashMap, HashSet};

use crate::error::{PipelineError, Result};
use crate::query_batch::QueryBatch;
use crate::storage::Storage;

/// What a labelled pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Positive,
    Gray,
    Negative,
}

impl Label {
    /// `pos`, `gray` or `neg`.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "pos" => Some(Self::Positive),
            "gray" => Some(Self::Gray),
            "neg" => Some(Self::Negative),
            _ => None,
        }
    }
}

/// Positive and gray pairs of rows, the smaller first; all others are negative.
#[derive(Debug, Default)]
pub(super) struct Truth {
    pub(super) labels: HashMap<(u32, u32), Label>,
}

impl Truth {
    pub(super) fn label(&self, a: u32, b: u32) -> Label {
        self.labels.get(&(a.min(b), a.max(b))).copied().unwrap_or(Label::Negative)
    }

    fn add(&mut self, a: u32, b: u32, label: Label) -> Option<Label> {
        self.labels.insert((a.min(b), a.max(b)), label).filter(|&before| before != label)
    }
}

pub(super) async fn lines(storage: &Storage, url: &str) -> Result<Vec<String>> {
    let missing = || PipelineError::InputMissing { what: "file", url: url.to_owned(), remedy: "check the path" };
    let content = storage.folder(url)?.get().await?.ok_or_else(missing)?;
    let text = std::str::from_utf8(&content).map_err(|e| PipelineError::bad_file(url, e))?;
    Ok(text.lines().map(str::to_owned).filter(|l| !l.is_empty()).collect())
}

pub(super) async fn read(storage: &Storage, url: &str, ignored: &HashSet<String>, batch: &QueryBatch) -> Result<Truth> {
    let lines = lines(storage, url).await?;
    let bad = |row: usize, reason: String| PipelineError::BadRow { file: url.to_owned(), row: row as u64 + 1, reason };
    let columns = columns(url, lines.first().map_or("", String::as_str))?;
    let mut truth = Truth::default();
    for (row, line) in lines.iter().enumerate().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [a, b, label] = columns.map(|at| fields.get(at).copied());
        let (Some(a), Some(b), Some(name)) = (a, b, label) else {
            return Err(bad(row, "too few columns: separate them by tabs".to_owned()));
        };
        let unknown = [a, b].into_iter().find(|id| batch.row_of(id).is_none() && !ignored.contains(*id));
        if let Some(unknown) = unknown {
            return Err(bad(row, format!("no document '{}': label documents that are there", unknown.escape_debug())));
        }
        if ignored.contains(a) || ignored.contains(b) {
            continue;
        }
        let label = Label::of_name(name)
            .ok_or_else(|| bad(row, format!("label '{}' is not pos, gray or neg", name.escape_debug())))?;
        let (Some(a), Some(b)) = (batch.row_of(a), batch.row_of(b)) else { continue };
        if truth.add(a, b, label).is_some() {
            return Err(bad(row, "this pair has another label in an earlier row: keep one of the two".to_owned()));
        }
    }
    truth.labels.retain(|_, label| *label != Label::Negative);
    Ok(truth)
}

/// Positions of `id_a`, `id_b` and `label`.
fn columns(url: &str, header: &str) -> Result<[usize; 3]> {
    let names: Vec<&str> = header.split('\t').collect();
    let column = |name: &str| {
        let missing = || PipelineError::MissingColumn {
            file: url.to_owned(),
            column: name.to_owned(),
            present: names.iter().map(|n| (*n).to_owned()).collect(),
            remedy: "write a tab-separated header",
        };
        names.iter().position(|n| *n == name).ok_or_else(missing)
    };
    Ok([column("id_a")?, column("id_b")?, column("label")?])
}
