//! Filtering JSON lines. Lines that survive are copied byte for byte.

use std::fs::File;
use std::io::{BufWriter, Write};

use flate2::write::GzEncoder;
use futures::FutureExt;
use nearprint_fault::{Fault, Result};
use nearprint_storage::InputFile;
use nearprint_warc::Packing;
use tokio::sync::mpsc;

use super::batch::ReadBytes;
use super::filter::{FileFilter, FilterOutput, FilterTarget, Filtered, Judge, RowCounts};
use super::jsonl_lines::{IdColumn, LineId, Numbered};
use super::piped::piped;

/// Bytes of lines that are written, and packed, at once.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that may wait to be written while the next one is filled.
const PIECES_AHEAD: usize = 2;

/// Copies the lines of a file that a filter lets through. The copy is packed like the file.
pub fn filter(file: InputFile, filter: FileFilter, target: FilterTarget) -> Filtered {
    let packing = Packing::of(&file.url);
    let read = |pieces| read(file, filter, pieces);
    piped(PIECES_AHEAD, read, move |pieces| write(target, packing, pieces)).boxed()
}

async fn read(file: InputFile, filter: FileFilter, pieces: mpsc::Sender<Vec<u8>>) -> Result<RowCounts> {
    let mut lines = Numbered::open(&file, filter.context().max_line_bytes(), &ReadBytes::default()).await?;
    let (column, output) = (filter.columns.id.clone(), filter.output);
    let ids = IdColumn::new(&column);
    let mut judge = Judge::new(filter);
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    while let Some((number, text)) = lines.next_numbered().await? {
        if text == Some(&[]) {
            continue;
        }
        let id = text.and_then(|text| ids.of(text));
        let keep = judge.keeps(&file.url, number, || id.as_ref().map(|id| &id.text))?;
        match output {
            FilterOutput::Survivors if keep => piece.extend_from_slice(&lines.line),
            FilterOutput::Survivors => continue,
            FilterOutput::Flags => piece.extend_from_slice(flag(&column, id, keep).as_bytes()),
        }
        piece.push(b'\n');
        if piece.len() >= PIECE_BYTES {
            let full = std::mem::replace(&mut piece, Vec::with_capacity(PIECE_BYTES));
            if pieces.send(full).await.is_err() {
                break;
            }
        }
    }
    // If nobody takes the piece, the writer's error says why.
    let _ = pieces.send(piece).await;
    judge.finish(&file.url)
}

/// Returns the line that says whether a document is kept.
fn flag(column: &str, id: Option<LineId>, keep: bool) -> String {
    let id = match id {
        None => "null".to_owned(),
        Some(LineId { text, is_integer: true }) => text,
        Some(LineId { text, .. }) => serde_json::Value::from(text).to_string(),
    };
    format!("{{{}: {id}, \"keep\": {keep}}}", serde_json::Value::from(column))
}

enum Packed {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

fn write(target: FilterTarget, packing: Packing, mut pieces: mpsc::Receiver<Vec<u8>>) -> Result<()> {
    let FilterTarget { file, name } = target;
    let failed = || Fault::io(name.clone());
    let file = BufWriter::new(file);
    let mut packed = match packing {
        Packing::Plain => Packed::Plain(file),
        Packing::Gzip => Packed::Gzip(GzEncoder::new(file, flate2::Compression::default())),
        Packing::Zstd => Packed::Zstd(zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(failed())?),
    };
    while let Some(piece) = pieces.blocking_recv() {
        let written = match &mut packed {
            Packed::Plain(file) => file.write_all(&piece),
            Packed::Gzip(file) => file.write_all(&piece),
            Packed::Zstd(file) => file.write_all(&piece),
        };
        written.map_err(failed())?;
    }
    let ended = match packed {
        Packed::Plain(file) => Ok(file),
        Packed::Gzip(file) => file.finish(),
        Packed::Zstd(file) => file.finish(),
    };
    ended.and_then(|mut file| file.flush()).map_err(failed())
}
