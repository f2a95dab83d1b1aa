//! The error of all crates that read or write.

use std::any::Any;
use std::error::Error;
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

use crate::kind::ErrorKind;
use crate::words::{Part, Words, key};

/// The result of functions that read or write.
pub type Result<T> = std::result::Result<T, Fault>;

/// An error: its kind, its place, the key of the setting that it is about, the reason, the remedy, and the error behind it.
/// A clone shares the error behind it.
#[derive(Debug, Clone)]
pub struct Fault(Box<Fields>);

/// Behind a pointer, so that results stay small.
#[derive(Debug, Clone)]
struct Fields {
    kind: ErrorKind,
    place: Place,
    key: Option<String>,
    /// What was done when the fault came up. It comes before everything else.
    context: Words,
    reason: Words,
    /// Whether the reason is a whole message, which begins with nothing else.
    is_whole: bool,
    remedy: Option<Words>,
    source: Option<Arc<dyn Error + Send + Sync>>,
    matter: Option<Arc<dyn Any + Send + Sync>>,
}

/// The file that a fault is about, and the place in it, as far as it is about one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The path or URL of a file, or of the place where files were expected.
    pub file: Option<String>,
    /// The whole path of the file, for a reader who may not know where its path begins.
    pub whole: Option<String>,
    /// The row group, counted from 0.
    pub row_group: Option<usize>,
    /// The number of the row, counted from 1. For a text file it is the line.
    pub row: Option<u64>,
    /// The column.
    pub column: Option<String>,
}

/// Tells the fault of a place that must have input and has none. A store that is not there, or does not answer, has
/// another fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingInput;

impl Fault {
    /// Makes a fault that is about no file and no setting.
    pub fn new(kind: ErrorKind, reason: impl Into<Words>) -> Self {
        Self(Box::new(Fields {
            kind,
            place: Place::default(),
            key: None,
            context: Words::default(),
            reason: reason.into(),
            is_whole: false,
            remedy: None,
            source: None,
            matter: None,
        }))
    }

    /// Makes a fault of a message that is whole already, such as that of a task that ran elsewhere.
    pub fn told(kind: ErrorKind, message: impl Into<Words>, place: Place) -> Self {
        let mut told = Self::new(kind, message).placed(place);
        told.0.is_whole = true;
        told
    }

    /// Makes the fault of a request that is made in the wrong way, or that the state of the store forbids. The reason says
    /// what to do.
    pub fn usage(reason: impl Into<Words>) -> Self {
        Self::new(ErrorKind::Usage, reason)
    }

    /// Makes the fault of a setting whose value cannot be used. `key` is the key or flag.
    pub fn config(key: impl Into<String>, reason: impl Into<Words>) -> Self {
        Self::new(ErrorKind::Config, reason).key(key)
    }

    /// Makes the fault of a store or dataset that was written for another purpose or with other settings. The reason says
    /// what to do.
    pub fn refused(url: impl Into<String>, reason: impl Into<Words>) -> Self {
        Self::new(ErrorKind::Config, reason).at(url)
    }

    /// Makes the fault of something that changed meanwhile, or that another process holds. The next try may succeed.
    pub fn try_again(reason: impl Into<Words>) -> Self {
        Self::new(ErrorKind::TryAgain, reason).remedy("try again")
    }

    /// Makes the fault of a memory limit that is too small. The reason says how much is needed, and for what.
    pub fn resources(reason: impl Into<Words>) -> Self {
        Self::new(ErrorKind::LocalIo, reason).remedy(words!["raise ", key("memory_limit")])
    }

    /// Makes the fault of nearprint itself, which a stage found.
    pub fn internal(stage: &str, reason: impl Display) -> Self {
        Self::new(ErrorKind::Bug, format!("internal error in {stage}: {reason}")).remedy("please report it")
    }

    /// Makes the fault of a place that must have input and has none.
    pub fn input_missing(what: &str, url: impl Into<String>, remedy: impl Into<Words>) -> Self {
        let reason = words![format!("no {what} at "), Part::Whereabouts];
        Self::new(ErrorKind::InputMissing, reason).at(url).remedy(remedy).about(MissingInput)
    }

    /// Makes the fault of a place for a result that holds other content already. The reason says what to do.
    pub fn output_exists(url: impl Into<String>, reason: impl Into<Words>) -> Self {
        Self::new(ErrorKind::OutputExists, reason).at(url)
    }

    /// Makes the fault of a file with bad content. The reason says what to do, unless a [remedy](Self::remedy) does.
    pub fn bad_data(file: impl Into<String>, reason: impl Into<Words>) -> Self {
        Self::new(ErrorKind::BadData, reason).at(file)
    }

    /// Returns a function that wraps an I/O error on a local file.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| {
            Self::new(ErrorKind::of_io(source.kind()), source.to_string())
                .at(path.display().to_string())
                .because(source)
        }
    }

    /// Returns the fault with the file that it is about.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>) -> Self {
        self.0.place.file = Some(file.into());
        self
    }

    /// Returns the fault with the row group, counted from 0, that it is about.
    #[must_use]
    pub fn row_group(mut self, row_group: usize) -> Self {
        self.0.place.row_group = Some(row_group);
        self
    }

    /// Returns the fault with the row, counted from 1, that it is about.
    #[must_use]
    pub fn row(mut self, row: u64) -> Self {
        self.0.place.row = Some(row);
        self
    }

    /// Returns the fault with the column that it is about.
    #[must_use]
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.0.place.column = Some(column.into());
        self
    }

    /// Returns the fault at another place.
    #[must_use]
    pub fn placed(mut self, place: Place) -> Self {
        self.0.place = place;
        self
    }

    /// Returns the fault with the key of the setting that it is about. The message begins with it.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(key.into());
        self
    }

    /// Returns the fault with another reason.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<Words>) -> Self {
        self.0.reason = reason.into();
        self
    }

    /// Returns the fault with what the user should do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<Words>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Returns the fault with the error behind it, which the reason describes.
    #[must_use]
    pub fn because(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Returns the fault with what a caller may [tell it by](Self::matter).
    #[must_use]
    pub fn about(mut self, matter: impl Any + Send + Sync) -> Self {
        self.0.matter = Some(Arc::new(matter));
        self
    }

    /// Returns the fault with what was done when it came up. The message begins with it.
    #[must_use]
    pub fn within(mut self, context: impl Into<Words>) -> Self {
        let inner = std::mem::take(&mut self.0.context);
        self.0.context = words![context.into(), inner];
        self
    }

    /// Returns the kind, which tells a scheduler how to react.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the place.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Returns the key of the setting that the fault is about.
    #[must_use]
    pub fn of_key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Returns what the user should do, if that is said apart from the reason.
    #[must_use]
    pub fn advice(&self) -> Option<&Words> {
        self.0.remedy.as_ref()
    }

    /// Returns what a caller tells the fault by, if it is a `T`.
    #[must_use]
    pub fn matter<T: 'static>(&self) -> Option<&T> {
        self.0.matter.as_deref()?.downcast_ref()
    }

    /// Returns the error behind the fault, if it is a `T`.
    #[must_use]
    pub fn cause<T: Error + 'static>(&self) -> Option<&T> {
        self.0.source.as_deref()?.downcast_ref()
    }

    /// Returns what is wrong, for a list of files: without the file, and without a remedy.
    #[must_use]
    pub fn reason_in_file(&self) -> String {
        words![self.in_file(), self.0.reason.clone()].to_string()
    }

    /// Returns the whole message.
    #[must_use]
    pub fn words(&self) -> Words {
        self.said(self.0.remedy.as_ref())
    }

    /// Returns the message without the [remedy](Self::advice).
    #[must_use]
    pub fn words_without_remedy(&self) -> Words {
        self.said(None)
    }

    fn said(&self, remedy: Option<&Words>) -> Words {
        let Fields { place, key, context, reason, is_whole, .. } = &*self.0;
        let mut all = context.clone();
        match &place.file {
            Some(file) if !is_whole && !reason.name_place() => all.extend(words![format!("{file}: "), self.in_file()]),
            _ => {}
        }
        if let Some(key) = key {
            all.extend(Words::from(format!("{key}: ")));
        }
        all.extend(reason.clone());
        if let Some(remedy) = remedy {
            all.extend(words![": ", remedy.clone()]);
        }
        match &place.file {
            Some(file) => all.at(file, place.whole.as_deref()),
            None => all,
        }
    }

    /// Returns the row group or row, as a message begins with it.
    fn in_file(&self) -> Words {
        let Place { row_group, row, .. } = self.0.place;
        let row_group = row_group.map(|row_group| format!("row group {row_group}: "));
        let row = row.map(|row| format!("row {row}: "));
        row_group.into_iter().chain(row).collect::<String>().into()
    }

    /// Returns the keys of settings that the message names in its sentences, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let Fields { context, reason, remedy, .. } = &*self.0;
        context.keys().chain(reason.keys()).chain(remedy.iter().flat_map(Words::keys))
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.words().fmt(f)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
