//! The texts of a document file: what a night compared, and where it is from, in rows of one form for all formats.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Arc, LazyLock};

use arrow::array::builder::{LargeStringBuilder, StringBuilder, TimestampMicrosecondBuilder};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, SecondsFormat};
use futures::TryStreamExt;
use nearprint_fault::{Fault, Result};
use nearprint_parquet::value;
use nearprint_storage::InputFile;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::Serialize;
use tokio::sync::mpsc;
use unicode_script::{Script, UnicodeScript};

use super::batch::{DocumentBatch, DocumentColumns};
use super::filter::{FileFilter, FilterTarget, Judge, RowCounts};
use super::parquet_filter::cannot_write;
use super::piped::piped;
use super::reader::{Format, Rows};
use super::web_rows::{FETCH_TIME, HOST, TITLE, URL, url_host};

/// The format of a file of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// Parquet, compressed with zstd.
    Parquet,
    /// JSON lines.
    Jsonl,
}

impl TextFormat {
    /// Returns the name of the file of texts for a file of this name: the same, with the ending of the format after it, if it
    /// is of another one.
    #[must_use]
    pub fn name_for(self, name: &str) -> String {
        let ending = match self {
            Self::Parquet => "parquet",
            Self::Jsonl => "jsonl",
        };
        if name.to_ascii_lowercase().ends_with(&format!(".{ending}")) {
            name.to_owned()
        } else {
            format!("{name}.{ending}")
        }
    }
}

/// The columns of texts. A row of a Parquet or JSONL file has a `url` and a `host` if its id is a URL, and neither `fetch_time`
/// nor `title`.
static TEXTS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new(URL, DataType::Utf8, true),
        Field::new(HOST, DataType::Utf8, true),
        Field::new(FETCH_TIME, time, true),
        Field::new("script", DataType::Utf8, true),
        Field::new(TITLE, DataType::Utf8, true),
        Field::new("text", DataType::LargeUtf8, false),
    ]))
});

/// Batches that may wait to be written while the next one is read.
const BATCHES_AHEAD: usize = 2;
/// The bytes of texts that make a row group.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Writes the texts of the documents that a filter lets through, in the order of the file's rows. They are the texts that a
/// night fingerprints, before they are normalised. The memory that this takes does not grow with the file.
///
/// # Errors
/// The file cannot be read, the target cannot be written, or a row is no document although it is not among those of which
/// the filter says so.
pub async fn write_texts(
    file: InputFile,
    filter: FileFilter,
    target: FilterTarget,
    format: TextFormat,
) -> Result<RowCounts> {
    let read = |batches| read(file, filter, batches);
    piped(BATCHES_AHEAD, read, move |batches| write(target, format, batches)).await
}

async fn read(file: InputFile, filter: FileFilter, batches: mpsc::Sender<RecordBatch>) -> Result<RowCounts> {
    let format = Format::required(&file.url)?;
    let (keep, keep_types) = match format.rows {
        Rows::Counted => (Vec::new(), Vec::new()),
        Rows::AtBytes | Rows::One => (
            [URL, HOST, FETCH_TIME, TITLE].map(str::to_owned).to_vec(),
            vec![DataType::LargeUtf8, DataType::LargeUtf8, DataType::Int64, DataType::LargeUtf8],
        ),
    };
    let columns = DocumentColumns { keep, newest_by: None, ..filter.columns.clone() };
    let context = filter.context();
    let url = file.url.clone();
    let reader = (format.open)(file, columns.clone(), context.clone()).await?;
    let mut judge = Judge::new(filter);
    for range in reader.row_group_ranges(u64::MAX) {
        let mut rows = reader.read(range, &columns, &keep_types, &context);
        while let Some(batch) = rows.try_next().await? {
            let kept = kept(&url, &batch, &mut judge)?;
            if kept.num_rows() > 0 && batches.send(kept).await.is_err() {
                break;
            }
        }
    }
    Ok(judge.finish_unseen())
}

/// Returns the rows of a batch that are kept.
fn kept(url: &str, batch: &DocumentBatch, judge: &mut Judge) -> Result<RecordBatch> {
    let (mut ids, mut urls, mut hosts) = (StringBuilder::new(), StringBuilder::new(), StringBuilder::new());
    let (mut scripts, mut titles, mut texts) = (StringBuilder::new(), StringBuilder::new(), LargeStringBuilder::new());
    let mut times = TimestampMicrosecondBuilder::new().with_timezone("UTC");
    for (at, &row) in batch.rows.iter().enumerate() {
        judge.pass_unseen(row);
        let text = batch.text(at);
        let id = || text.ok().and_then(|_| (!batch.ids.is_null(at)).then(|| batch.ids.value(at)));
        if !judge.keeps(url, row, id)? {
            continue;
        }
        let Ok(Some(text)) = text else {
            let reason =
                "the night kept its document, but now it has no text: use the text_column of the run".to_owned();
            return Err(Fault::bad_data(url.to_owned(), reason).row(row));
        };
        let id = batch.ids.value(at);
        let column = |number: usize| {
            let strings = batch.keep.get(number)?.as_string_opt::<i64>()?;
            value(strings, at).map(str::to_owned)
        };
        let is_web = !batch.keep.is_empty();
        let of_id = || url_host(id).map(str::to_ascii_lowercase);
        ids.append_value(id);
        urls.append_option(if is_web { column(0) } else { of_id().map(|_| id.to_owned()) });
        hosts.append_option(if is_web { column(1) } else { of_id() });
        let fetched = batch.keep.get(2).and_then(|times| times.as_primitive_opt::<Int64Type>());
        times.append_option(fetched.and_then(|times| value(times, at)));
        scripts.append_option(main_script(text));
        titles.append_option(column(3));
        texts.append_value(text);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(ids.finish()),
        Arc::new(urls.finish()),
        Arc::new(hosts.finish()),
        Arc::new(times.finish()),
        Arc::new(scripts.finish()),
        Arc::new(titles.finish()),
        Arc::new(texts.finish()),
    ];
    RecordBatch::try_new(Arc::clone(&TEXTS), columns).map_err(|e| Fault::internal("filter", e))
}

/// The characters of a text by which its script is told.
const LOOKED_AT: usize = 4096;

/// Returns the name of the script that most letters of the beginning of a text have, as ISO 15924 writes it: `Latn`, `Hani`.
/// `None` if it has no letter of one script alone. Of scripts with equally many letters, the first by name.
fn main_script(text: &str) -> Option<&'static str> {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for c in text.chars().filter(|c| c.is_alphabetic()).take(LOOKED_AT) {
        let script = c.script();
        if matches!(script, Script::Common | Script::Inherited | Script::Unknown) {
            continue;
        }
        let name = script.short_name();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.into_iter().max_by_key(|&(name, count)| (count, std::cmp::Reverse(name))).map(|(name, _)| name)
}

fn write(target: FilterTarget, format: TextFormat, mut batches: mpsc::Receiver<RecordBatch>) -> Result<()> {
    let FilterTarget { file, name } = target;
    match format {
        TextFormat::Parquet => write_parquet(file, &mut batches).map_err(|error| cannot_write(&name, error)),
        TextFormat::Jsonl => write_jsonl(file, &mut batches).map_err(Fault::io(name)),
    }
}

fn write_parquet(file: File, batches: &mut mpsc::Receiver<RecordBatch>) -> std::result::Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("nearprint ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_write_page_header_statistics(false)
        .build();
    let mut writer = ArrowWriter::try_new(file, Arc::clone(&TEXTS), Some(properties))?;
    while let Some(batch) = batches.blocking_recv() {
        writer.write(&batch)?;
        if writer.in_progress_size() >= ROW_GROUP_BYTES {
            writer.flush()?;
        }
    }
    writer.close().map(drop)
}

/// A row as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    url: Option<&'a str>,
    host: Option<&'a str>,
    fetch_time: Option<String>,
    script: Option<&'a str>,
    title: Option<&'a str>,
    text: &'a str,
}

fn write_jsonl(file: File, batches: &mut mpsc::Receiver<RecordBatch>) -> std::io::Result<()> {
    let mut file = BufWriter::new(file);
    while let Some(batch) = batches.blocking_recv() {
        let [ids, urls, hosts, scripts, titles] = [0, 1, 2, 4, 5].map(|at| batch.column(at).as_string::<i32>());
        let times = batch.column(3).as_primitive::<TimestampMicrosecondType>();
        let texts = batch.column(6).as_string::<i64>();
        for row in 0..batch.num_rows() {
            let micros = value(times, row);
            let line = Line {
                id: ids.value(row),
                url: value(urls, row),
                host: value(hosts, row),
                fetch_time: micros.and_then(DateTime::from_timestamp_micros).map(|time| {
                    // As exact as the crawler wrote it.
                    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
                }),
                script: value(scripts, row),
                title: value(titles, row),
                text: texts.value(row),
            };
            serde_json::to_writer(&mut file, &line)?;
            file.write_all(b"\n")?;
        }
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::{TextFormat, main_script};

    #[test]
    fn the_script_of_a_text_is_that_of_most_of_its_letters() {
        for (text, script) in [
            ("A page about 北京 in English", Some("Latn")),
            ("北京的天气 today", Some("Hani")),
            ("Привет, world", Some("Cyrl")),
            ("1234 … ™", None),
            ("", None),
            ("aб", Some("Cyrl")),
        ] {
            assert_eq!(main_script(text), script, "{text}");
        }
    }

    #[test]
    fn a_file_of_texts_keeps_the_name_of_its_documents() {
        assert_eq!(TextFormat::Parquet.name_for("sub/a.parquet"), "sub/a.parquet");
        assert_eq!(TextFormat::Parquet.name_for("a.warc.gz"), "a.warc.gz.parquet");
        assert_eq!(TextFormat::Jsonl.name_for("a.jsonl.gz"), "a.jsonl.gz.jsonl");
    }
}
