//! Filtering WARC files. Records that survive are copied byte for byte, and so are records that are no documents.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;

use futures::{FutureExt, TryStreamExt};
use nearprint_fault::{Fault, Result};
use nearprint_storage::{InputFile, bad_format, blocking, in_memory};
use nearprint_warc::Next;

use super::batch::ReadBytes;
use super::filter::{FileFilter, FilterOutput, FilterTarget, Filtered, Judge, RowCounts};
use super::warc::limits;
use super::warc_file::WarcPart;
use super::warc_page::{Page, page_of};

/// Bytes of the file that are copied at once.
const COPIED_BYTES: u64 = 8 << 20;

/// Copies the records of a file that a filter lets through, and all records that are no documents. If there are none of
/// either, nothing is written.
pub fn filter(file: InputFile, filter: FileFilter, target: FilterTarget) -> Filtered {
    async move {
        refuse_flags(&file, filter.output)?;
        let part = WarcPart::of_file(&file, Vec::new());
        copy_records(file, vec![part], filter, target).await
    }
    .boxed()
}

/// Copies the records of the WARC files in a file, as [`filter`] does.
pub async fn copy_records(
    file: InputFile,
    parts: Vec<WarcPart>,
    filter: FileFilter,
    target: FilterTarget,
) -> Result<RowCounts> {
    let judged = file.clone();
    let (kept, counts) = blocking("filtering", move || judge(&judged, &parts, filter)).await?;
    let FilterTarget { file: into, name } = target;
    let mut into = BufWriter::new(into);
    for range in kept {
        copy(&file, range, &mut into, &name).await?;
    }
    into.flush().map_err(Fault::io(name))?;
    Ok(counts)
}

/// Refuses to write flags in a format that has no rows.
pub fn refuse_flags(file: &InputFile, output: FilterOutput) -> Result<()> {
    match output {
        FilterOutput::Survivors => Ok(()),
        FilterOutput::Flags => {
            let reason = "its format has no rows for flags: filter without flags, or read the table of decisions";
            Err(bad_format(&file.url, reason.to_owned()))
        }
    }
}

/// Returns the ranges of the file that are kept.
fn judge(file: &InputFile, parts: &[WarcPart], filter: FileFilter) -> Result<(Vec<Range<u64>>, RowCounts)> {
    let mut judge = Judge::new(filter);
    let mut kept = Vec::new();
    for part in parts {
        judge_part(file, part, &mut judge, &mut kept)?;
    }
    Ok((kept, judge.finish(&file.url)?))
}

fn judge_part(file: &InputFile, part: &WarcPart, judge: &mut Judge, kept: &mut Vec<Range<u64>>) -> Result<()> {
    let (context, warc_id) = (judge.filter().context(), judge.filter().columns.web.warc_id);
    let mut records = part.records(file, 0..part.size(), limits(&context), &ReadBytes::default());
    while let Some(next) = records.next_record().map_err(|error| part.fault(&file.url, error))? {
        let record = match next {
            Next::Record(record) => record,
            Next::Broken(broken) => {
                judge.keeps(&file.url, part.place(broken.position + 1), || None::<&str>)?;
                continue;
            }
        };
        let keeps = match page_of(&record, warc_id, &context, None) {
            // It may have been a row by the rules of the release that made the night.
            Page::Passed(_) => !judge.passes(part.place(record.position + 1)),
            Page::Revisit(row) => row.id.is_none_or(|id| judge.keeps_revisit(part.place(row.row), &id)),
            Page::Row(row) => judge.keeps(&file.url, part.place(row.row), || row.id.as_deref())?,
        };
        let Some((start, end)) = record.alone else {
            let reason = "its records share compressed members, so they cannot be copied one by one: pack it anew with a \
                          member for each record, for example with: warcio recompress";
            return Err(bad_format(&file.url, part.said(reason.to_owned())));
        };
        let (start, end) = (part.place(start), part.place(end));
        match kept.last_mut() {
            Some(last) if keeps && last.end == start => last.end = end,
            _ if keeps => kept.push(start..end),
            _ => {}
        }
    }
    Ok(())
}

async fn copy(file: &InputFile, range: Range<u64>, into: &mut BufWriter<File>, name: &str) -> Result<()> {
    let starts = range.clone().step_by(in_memory(COPIED_BYTES));
    let pieces = starts.map(|start| start..range.end.min(start + COPIED_BYTES));
    let mut pieces = futures::stream::iter(pieces.map(Ok::<_, Fault>));
    while let Some(piece) = pieces.try_next().await? {
        let bytes = file.read_range(piece).await?;
        into.write_all(&bytes).map_err(Fault::io(name))?;
    }
    Ok(())
}
