//! The batches of tasks as values of one binary column, which is what an engine moves from its workers to the driver.
//!
//! A message begins with its kind, in one byte, so that messages in ascending order come kind by kind. Numbers are big
//! endian. What a task sends depends on its description alone, except the order of keys, so that a task that ran twice,
//! or whose output was lost in part and made again, adds nothing and takes nothing away.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{BinaryArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use nearprint_fault::{Fault, Result};

use crate::map::{MapCounts, class_pair_schema, undecided_schema};
use crate::stream::{TaskBatch, TaskBatches};

/// The messages of tasks: values of a binary column.
pub type Messages = BoxStream<'static, Result<BinaryArray>>;

/// The form in which the batches of a stage's tasks travel.
#[derive(Debug, Clone)]
pub enum Form {
    /// Each batch is one message. They may arrive in any order.
    Batches,
    /// Each row, of the schema, is a key, and so is each pair of classes. Pairs of classes come before rows. Keys sort by
    /// their bytes as rows sort by their columns, NULL first. Whoever moves them sorts all messages and drops the repeated
    /// ones.
    Keys(SchemaRef),
}

/// The end of a task: its number, and the number of its batches.
const END: u8 = 0;
/// A batch of notes: the number of the task, the number of the batch in the task, and the batch as an Arrow stream.
const NOTES: u8 = 1;
/// A batch of rows, likewise.
const ROWS: u8 = 2;
/// The counts of a map task, likewise. They are for logs: of a task that ran twice, one counts.
const COUNTS: u8 = 3;
/// A pair of classes.
const CLASS_PAIR: u8 = 4;
/// A pair of classes that the judge decides. All of them come before the first row.
const UNDECIDED: u8 = 5;
/// A row.
const KEY: u8 = 6;

/// The bytes before the batch of a message: the kind and two numbers.
const HEAD_BYTES: usize = 9;

/// The number of keys in an array of messages, and in a batch that was one.
const ARRAY_KEYS: usize = 8192;

/// Returns the messages of a task, which has a number of its own among the tasks of its stage.
///
/// # Errors
/// Any error of the task's batches is an item of the stream.
pub fn messages_of(task: u32, batches: TaskBatches, form: Form) -> Messages {
    let sending = Sending { task, n_batches: 0, form };
    let sent = futures::stream::unfold(Some((batches, sending)), |state| async move {
        let (mut batches, mut sending) = state?;
        match batches.try_next().await {
            Ok(Some(batch)) => Some((sending.messages(&batch), Some((batches, sending)))),
            Ok(None) => Some((Ok(vec![sending.end()]), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    flat(sent)
}

/// The output that a task has sent so far.
struct Sending {
    task: u32,
    n_batches: u32,
    form: Form,
}

impl Sending {
    fn messages(&mut self, batch: &TaskBatch) -> Result<Vec<BinaryArray>> {
        match (batch, &self.form) {
            (TaskBatch::Rows(rows), Form::Keys(_)) => keys(KEY, rows),
            (TaskBatch::Notes(notes), Form::Keys(_)) if notes.schema() == undecided_schema() => keys(UNDECIDED, notes),
            (TaskBatch::Notes(notes), Form::Keys(_)) if MapCounts::of(notes)?.is_none() => keys(CLASS_PAIR, notes),
            (TaskBatch::Notes(counts), Form::Keys(_)) => Ok(vec![self.message(COUNTS, counts)?]),
            (TaskBatch::Notes(notes), Form::Batches) => Ok(vec![self.message(NOTES, notes)?]),
            (TaskBatch::Rows(rows), Form::Batches) => Ok(vec![self.message(ROWS, rows)?]),
        }
    }

    fn message(&mut self, kind: u8, batch: &RecordBatch) -> Result<BinaryArray> {
        let mut bytes = self.head(kind);
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).map_err(defect)?;
        writer.write(batch).and_then(|()| writer.finish()).map_err(defect)?;
        drop(writer);
        self.n_batches += u32::from(kind != COUNTS);
        Ok(BinaryArray::from_vec(vec![&bytes]))
    }

    fn head(&self, kind: u8) -> Vec<u8> {
        let mut head = vec![kind];
        head.extend(self.task.to_be_bytes());
        head.extend(self.n_batches.to_be_bytes());
        debug_assert_eq!(head.len(), HEAD_BYTES, "the batch is found behind a head of one length");
        head
    }

    fn end(&self) -> BinaryArray {
        BinaryArray::from_vec(vec![&self.head(END)])
    }
}

/// Returns the rows of a batch as keys of a kind.
fn keys(kind: u8, batch: &RecordBatch) -> Result<Vec<BinaryArray>> {
    let converter = converter(&batch.schema())?;
    let mut arrays = Vec::new();
    for start in (0..batch.num_rows()).step_by(ARRAY_KEYS) {
        let part = batch.slice(start, ARRAY_KEYS.min(batch.num_rows() - start));
        let rows = converter.convert_columns(part.columns()).map_err(defect)?;
        let with_kind = rows.iter().map(|row| [&[kind], row.as_ref()].concat());
        arrays.push(BinaryArray::from_iter_values(with_kind));
    }
    Ok(arrays)
}

fn converter(schema: &SchemaRef) -> Result<RowConverter> {
    let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
    RowConverter::new(fields).map_err(defect)
}

/// Returns the batches that the messages of `n_tasks` tasks hold. Tasks have the numbers from 0 on. In the form of keys,
/// rows come as they were sorted, each once.
///
/// # Errors
/// The messages are those of the engine that moved them:
/// [`ErrorKind::TryAgain`](nearprint_fault::ErrorKind::TryAgain) if some are missing, repeated or out of
/// order, and any error of its own.
pub fn received(messages: Messages, n_tasks: usize, form: &Form) -> Result<TaskBatches> {
    let receiving = Receiving::new(n_tasks, form)?;
    let batches = futures::stream::unfold(Some((messages, receiving)), |state| async move {
        let (mut messages, mut receiving) = state?;
        match messages.try_next().await {
            Ok(Some(array)) => Some((receiving.batches(&array), Some((messages, receiving)))),
            Ok(None) => Some((receiving.end().map(|()| Vec::new()), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(flat(batches))
}

/// Returns the items of lists, one by one.
fn flat<T: Send + 'static>(
    lists: impl Stream<Item = Result<Vec<T>>> + Send + 'static,
) -> BoxStream<'static, Result<T>> {
    let items = lists.map_ok(|items| futures::stream::iter(items.into_iter().map(Ok)));
    items.try_flatten().boxed()
}

/// The output that arrived so far.
struct Receiving {
    n_tasks: usize,
    /// The numbers of batches of the tasks whose ends arrived.
    ended: BTreeMap<u32, u32>,
    /// The batches that arrived, as numbers of tasks and of their batches.
    arrived: BTreeSet<(u32, u32)>,
    counted: BTreeSet<u32>,
    /// The schemas of keys, and what reads them.
    keys: Option<KeyReaders>,
    last: Vec<u8>,
}

struct KeyReaders {
    rows: (SchemaRef, RowConverter),
    class_pairs: (SchemaRef, RowConverter),
    undecided: (SchemaRef, RowConverter),
}

impl Receiving {
    fn new(n_tasks: usize, form: &Form) -> Result<Self> {
        let keys = match form {
            Form::Batches => None,
            Form::Keys(schema) => Some(KeyReaders {
                rows: (Arc::clone(schema), converter(schema)?),
                class_pairs: (class_pair_schema(), converter(&class_pair_schema())?),
                undecided: (undecided_schema(), converter(&undecided_schema())?),
            }),
        };
        let (ended, arrived, counted) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Ok(Self { n_tasks, ended, arrived, counted, keys, last: Vec::new() })
    }

    fn batches(&mut self, array: &BinaryArray) -> Result<Vec<TaskBatch>> {
        let messages = array.iter().map(|m| m.filter(|m| !m.is_empty()).ok_or_else(|| astray("an empty message")));
        let messages = messages.collect::<Result<Vec<&[u8]>>>()?;
        if self.keys.is_some() {
            self.refuse_disorder(&messages)?;
        }
        let mut batches = Vec::new();
        for run in messages.chunk_by(|a, b| a[0] == b[0]) {
            match run[0][0] {
                kind @ (CLASS_PAIR | UNDECIDED | KEY) => batches.push(self.of_keys(kind, run)?),
                _ => run.iter().try_for_each(|message| self.of_message(message, &mut batches))?,
            }
        }
        Ok(batches)
    }

    /// Messages that were sorted and made distinct ascend.
    fn refuse_disorder(&mut self, messages: &[&[u8]]) -> Result<()> {
        let mut last = self.last.as_slice();
        for message in messages {
            if *message <= last {
                return Err(astray("pairs came twice or out of order"));
            }
            last = message;
        }
        self.last = last.to_vec();
        Ok(())
    }

    fn of_keys(&self, kind: u8, run: &[&[u8]]) -> Result<TaskBatch> {
        let readers = self.keys.as_ref().ok_or_else(|| astray("a key among batches"))?;
        let (schema, converter) = match kind {
            KEY => &readers.rows,
            UNDECIDED => &readers.undecided,
            _ => &readers.class_pairs,
        };
        let parser = converter.parser();
        let columns = converter.convert_rows(run.iter().map(|key| parser.parse(&key[1..]))).map_err(defect)?;
        let batch = RecordBatch::try_new(Arc::clone(schema), columns).map_err(defect)?;
        Ok(if kind == KEY { TaskBatch::Rows(batch) } else { TaskBatch::Notes(batch) })
    }

    fn of_message(&mut self, message: &[u8], batches: &mut Vec<TaskBatch>) -> Result<()> {
        let head = message.get(..HEAD_BYTES).ok_or_else(|| astray("a message without a head"))?;
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (kind, task, n) = (head[0], number(1), number(5));
        if task as usize >= self.n_tasks {
            return Err(astray("a message of a task that there is not"));
        }
        let is_new = match kind {
            END => self.ended.insert(task, n).is_none(),
            COUNTS if !self.counted.insert(task) => return Ok(()),
            COUNTS => true,
            _ => self.arrived.insert((task, n)),
        };
        if !is_new {
            return Err(astray(format!("output of task {task} came twice")));
        }
        if kind == END {
            return Ok(());
        }
        let mut reader = StreamReader::try_new(&message[HEAD_BYTES..], None).map_err(defect)?;
        let batch = reader.next().ok_or_else(|| astray("a message without a batch"))?.map_err(defect)?;
        batches.push(if kind == ROWS { TaskBatch::Rows(batch) } else { TaskBatch::Notes(batch) });
        Ok(())
    }

    /// Refuses what is incomplete.
    fn end(&self) -> Result<()> {
        let n_batches: usize = self.ended.values().map(|&n| n as usize).sum();
        if self.ended.len() != self.n_tasks || n_batches != self.arrived.len() {
            let (ended, arrived) = (self.ended.len(), self.arrived.len());
            return Err(astray(format!("{ended} of {} tasks and {arrived} of {n_batches} batches came", self.n_tasks)));
        }
        Ok(())
    }
}

/// The error of an engine that lost or repeated what it moved.
fn astray(reason: impl Display) -> Fault {
    Fault::try_again(format!("the engine that ran the tasks lost or repeated output: {reason}"))
}

fn defect(reason: impl Display) -> Fault {
    Fault::internal("messages", reason)
}
