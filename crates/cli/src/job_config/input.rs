//! Which rows of the input are documents, and by which columns one of them stays.

use nearprint_documents::{DocumentColumns, DuplicateIds, InputPolicy, KeepKey, LENGTH, Repeats, WebPages};
use nearprint_fault::Fault;
use nearprint_profile::HtmlText;

use super::JobConfig;
use crate::args::InputArgs;
use crate::exit_code::Failure;

/// The column that says which row is the newest, unless the job names another.
const NEWEST_BY: &str = "fetch_time";

impl JobConfig {
    /// Returns the keys of the keep order, and the columns that they need. Without a list, longer documents come first.
    pub fn keep(&self) -> Result<(Vec<KeepKey>, DocumentColumns), Failure> {
        let keys = self.keep_order()?;
        let mut keep: Vec<String> = keys.iter().map(|k| k.column.clone()).filter(|c| c != LENGTH).collect();
        keep.extend(self.source_column.clone().filter(|source| !keep.contains(source)));
        let (id, text) = (self.id_column.clone(), self.text_column.clone());
        let html_text = self.checked_html_text()?.clone();
        let web = WebPages { warc_id: self.warc_id, html_text, root: None };
        let is_asked = self.on_duplicate_id == Some(DuplicateIds::KeepNewest);
        let newest_by = is_asked.then(|| self.newest_by.clone().unwrap_or_else(|| NEWEST_BY.to_owned()));
        Ok((keys, DocumentColumns { id, text, keep, newest_by, binary_as_utf8: self.binary_as_utf8, web }))
    }

    pub(super) fn keep_order(&self) -> Result<Vec<KeepKey>, Failure> {
        self.keep.as_deref().map_or_else(|| keep_keys(&[format!("{LENGTH} desc")]), keep_keys)
    }

    pub(super) fn checked_html_text(&self) -> Result<&HtmlText, Failure> {
        self.html_text.check().map_err(|e| Failure::from(Fault::config("html_text", e.to_string())))?;
        Ok(&self.html_text)
    }

    /// Returns the job with the command's input options applied.
    pub fn with_input_args(mut self, args: &InputArgs) -> Self {
        self.binary_as_utf8 |= args.binary_as_utf8;
        self.max_doc_bytes = args.max_doc_bytes.unwrap_or(self.max_doc_bytes);
        self.max_bad_rows = args.max_bad_rows.unwrap_or(self.max_bad_rows);
        self.max_bad_files = args.max_bad_files.unwrap_or(self.max_bad_files);
        self.max_ignored_files = args.max_ignored_files.unwrap_or(self.max_ignored_files);
        if args.strict {
            (self.max_bad_rows, self.max_bad_files, self.max_ignored_files) = (0, 0, 0);
        }
        self.on_duplicate_id = args.on_duplicate_id.map(Into::into).or(self.on_duplicate_id);
        self.max_repeated_ids = args.max_repeated_ids.unwrap_or(self.max_repeated_ids);
        self
    }

    /// Returns the policy for rows and files that are set aside.
    pub fn input(&self) -> Result<InputPolicy, Failure> {
        if let Some(marker) = self.require_marker.as_ref().filter(|m| m.is_empty() || m.contains('/')) {
            return Err(Fault::config("require_marker", format!("'{marker}' is no file name, such as _SUCCESS")).into());
        }
        let share = self.max_repeated_ids;
        if !(0.0..=1.0).contains(&share) {
            let reason = format!("{share} is not a share: write a number from 0 to 1, 1 is off");
            return Err(Fault::config("max_repeated_ids", reason).into());
        }
        Ok(InputPolicy {
            max_bad_rows: self.max_bad_rows,
            max_bad_files: self.max_bad_files,
            max_ignored_files: self.max_ignored_files,
            max_doc_bytes: self.max_doc_bytes.0 as u64,
            on_duplicate_id: self.on_duplicate_id,
            max_repeated_ids: share,
            allow_empty: self.allow_empty,
            require_marker: self.require_marker.clone(),
        })
    }

    /// Returns the columns of ids and texts alone. The keep order is validated nevertheless, so that a job file is right or
    /// wrong for every command.
    pub fn columns(&self) -> Result<DocumentColumns, Failure> {
        let (_, columns) = self.keep()?;
        Ok(DocumentColumns { keep: Vec::new(), newest_by: None, ..columns })
    }

    /// Returns the rule for rows with one id, and the columns of ids and texts with those that the rule needs.
    pub fn repeats(&self) -> Result<(Repeats, DocumentColumns), Failure> {
        let (keys, columns) = self.keep()?;
        let (keep, columns) = match self.on_duplicate_id {
            Some(DuplicateIds::KeepBest) => (keys, columns),
            _ => (Vec::new(), DocumentColumns { keep: Vec::new(), ..columns }),
        };
        let InputPolicy { on_duplicate_id, max_repeated_ids, .. } = self.input()?;
        Ok((Repeats { on_duplicate_id, max_repeated_ids, keep }, columns))
    }
}

/// Parses the keys of a keep order. `existing` is always the first key and `id` the last, so they need not stand there.
pub(super) fn keep_keys(texts: &[String]) -> Result<Vec<KeepKey>, Failure> {
    let texts = texts.strip_prefix(&["existing".to_owned()]).unwrap_or(texts);
    let last = ["id", "id asc"].map(|id| [id.to_owned()]);
    let texts = last.iter().find_map(|id| texts.strip_suffix(id)).unwrap_or(texts);
    let keys: Vec<KeepKey> = texts.iter().map(|text| KeepKey::parse(text)).collect::<Result<_, _>>()?;
    for (key, text) in keys.iter().zip(texts) {
        let refused = |reason: &str| Err(Fault::config("keep", format!("'{text}' {reason}")).into());
        match key.column.as_str() {
            "existing" => return refused("is always first: write it first or not at all, and without an order"),
            "id" => return refused("is always last, and ascending: write 'id' last or not at all"),
            _ => {}
        }
    }
    Ok(keys)
}
