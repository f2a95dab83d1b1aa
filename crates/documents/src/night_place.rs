//! Places of nights: paths in which placeholders stand for the date of a night.

use std::fmt::{Display, Formatter};

use nearprint_storage::is_date;

use super::formats::is_document_name;

/// A text, a slash or a number of a date in a path of nights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathItem {
    /// A text without `/`.
    Text(String),
    /// The end of a folder's name.
    Slash,
    Field(Field),
}

/// A number of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Year,
    /// With two digits, or with as many as the number has.
    Month {
        padded: bool,
    },
    Day {
        padded: bool,
    },
}

/// The path of a crawl's nights. `{dt}` stands for the date, `{yyyy}`, `{mm}` and `{dd}` for its numbers, and
/// `{dt:%Y%m%d}` for the date in another form: `%Y`, `%m`, `%d`, and `%-m` and `%-d` without a leading zero. A path without
/// any of them has the nights below it, in folders `dt=DATE`.
///
/// ```
/// use nearprint_documents::NightPlace;
///
/// let of = |documents: &str| NightPlace::parse(documents).of("2026-03-05");
/// assert_eq!(of("s3://crawl/pages/"), "s3://crawl/pages/dt=2026-03-05");
/// assert_eq!(of("crawl/{yyyy}/{mm}/{dd}/*.warc.gz"), "crawl/2026/03/05/*.warc.gz");
/// assert_eq!(of("crawl/year={yyyy}/month={dt:%-m}/day={dt:%-d}"), "crawl/year=2026/month=3/day=5");
/// assert_eq!(of("crawl/pages-{dt:%Y%m%d}.parquet"), "crawl/pages-20260305.parquet");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NightPlace {
    pub(super) items: Vec<PathItem>,
    /// The first placeholder that stands for nothing.
    unknown: Option<String>,
    /// The path has placeholders.
    has_date: bool,
    /// The path has none, and is a glob of files, below which no night can be.
    is_of_files: bool,
}

/// How a path writes months and days: each with two digits, or with as many as the number has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digits {
    two_of_month: bool,
    two_of_day: bool,
}

impl Digits {
    /// What most crawls have comes first: a date that several of them fit is written like its neighbours.
    pub(super) const ALL: [Self; 4] = [
        Self { two_of_month: false, two_of_day: false },
        Self { two_of_month: true, two_of_day: true },
        Self { two_of_month: false, two_of_day: true },
        Self { two_of_month: true, two_of_day: false },
    ];

    pub(super) fn of(self, item: &PathItem) -> PathItem {
        match item {
            PathItem::Field(Field::Month { .. }) => PathItem::Field(Field::Month { padded: self.two_of_month }),
            PathItem::Field(Field::Day { .. }) => PathItem::Field(Field::Day { padded: self.two_of_day }),
            item => item.clone(),
        }
    }
}

impl Display for NightPlace {
    /// Writes the path with its placeholders.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let name = |field| match field {
            Field::Year => "{yyyy}",
            Field::Month { padded: true } => "{mm}",
            Field::Month { padded: false } => "{dt:%-m}",
            Field::Day { padded: true } => "{dd}",
            Field::Day { padded: false } => "{dt:%-d}",
        };
        f.write_str(&written(&self.items, |field| name(field).to_owned()))
    }
}

impl NightPlace {
    /// Parses a path. What stands for nothing is left as it is: [`fault`](Self::fault) names it.
    #[must_use]
    pub fn parse(documents: &str) -> Self {
        let mut place = Self { items: Vec::new(), unknown: None, has_date: false, is_of_files: false };
        let mut rest = documents;
        while let Some((before, after)) = rest.split_once('{') {
            place.text(before);
            let Some((name, left)) = after.split_once('}') else {
                place.text("{");
                rest = after;
                continue;
            };
            if let Some(form) = form(name) {
                place.has_date = true;
                place.form(form);
            } else {
                place.unknown.get_or_insert_with(|| name.to_owned());
                place.text(&format!("{{{name}}}"));
            }
            rest = left;
        }
        place.text(rest);
        if !place.has_date {
            place.is_of_files = is_document_name(documents) && documents.contains(['*', '?', '[']);
            while place.items.pop_if(|last| *last == PathItem::Slash).is_some() {}
            place.text("/dt=");
            place.form("%Y-%m-%d");
        }
        place
    }

    /// Returns what is wrong with the placeholders of the path.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        if let Some(name) = &self.unknown {
            return Some(format!(
                "'{{{name}}}' stands for nothing: {{dt}} is the night, such as 2026-11-20, {{yyyy}}, {{mm}} and {{dd}} are its numbers, \
                 and {{dt:%Y%m%d}} is the night in another form, of %Y, %m, %d, %-m and %-d"
            ));
        }
        if is_ambiguous(&self.items) {
            return Some(
                "the path has a month and a day without leading zeros and nothing between them, so several nights would have the same \
                 files: write {mm} and {dd}, or a character between them"
                    .to_owned(),
            );
        }
        if self.is_of_files {
            return Some(
                "the path is a glob of files, and no night lies below these: put {dt} where a path has the date"
                    .to_owned(),
            );
        }
        let has = |wanted: fn(&Field) -> bool| self.fields().any(|field| wanted(&field));
        let missing = [
            ("year", has(|field| *field == Field::Year)),
            ("month", has(|field| matches!(field, Field::Month { .. }))),
            ("day", has(|field| matches!(field, Field::Day { .. }))),
        ];
        let (name, _) = missing.into_iter().find(|(_, is_there)| !is_there)?;
        Some(format!(
            "the path has no {name}, so several nights would have the same files: put {{dt}}, or {{yyyy}}, {{mm}} and {{dd}}, into it"
        ))
    }

    /// Returns whether the path has placeholders.
    #[must_use]
    pub fn has_date(&self) -> bool {
        self.has_date
    }

    /// Returns the same path with such months and days.
    #[must_use]
    pub fn with_digits(&self, digits: Digits) -> Self {
        Self { items: self.items.iter().map(|item| digits.of(item)).collect(), ..self.clone() }
    }

    fn fields(&self) -> impl Iterator<Item = Field> {
        self.items.iter().filter_map(|item| if let PathItem::Field(field) = item { Some(*field) } else { None })
    }

    fn text(&mut self, text: &str) {
        for (at, name) in text.split('/').enumerate() {
            if at > 0 {
                self.items.push(PathItem::Slash);
            }
            match self.items.last_mut() {
                _ if name.is_empty() => {}
                Some(PathItem::Text(before)) => before.push_str(name),
                _ => self.items.push(PathItem::Text(name.to_owned())),
            }
        }
    }

    /// Adds a date in a form of which [`form`] says that it is one.
    fn form(&mut self, mut form: &str) {
        while let Some((before, after)) = form.split_once('%') {
            self.text(before);
            let field = FIELDS.iter().find_map(|(name, field)| Some((*field, after.strip_prefix(name)?)));
            let Some((field, rest)) = field else { break };
            self.items.push(PathItem::Field(field));
            form = rest;
        }
        self.text(form);
    }

    /// Returns the place of a night, whose date has the form `YYYY-MM-DD`.
    #[must_use]
    pub fn of(&self, dt: &str) -> String {
        on(&self.items, dt)
    }

    /// Returns a glob that has the nights.
    #[must_use]
    pub fn of_any_night(&self) -> String {
        let digits = |field| match field {
            Field::Year => "[0-9][0-9][0-9][0-9]".to_owned(),
            Field::Month { padded: true } | Field::Day { padded: true } => "[0-9][0-9]".to_owned(),
            Field::Month { padded: false } | Field::Day { padded: false } => "[0-9]*".to_owned(),
        };
        written(&self.items, digits)
    }
}

/// Returns a place that has the documents of all nights: a glob if the path has placeholders, otherwise the path itself.
#[must_use]
pub fn all_nights(documents: &str) -> String {
    let place = NightPlace::parse(documents);
    if place.has_date { place.of_any_night() } else { documents.to_owned() }
}

/// Returns the files of all nights: the folder that has them, or a glob. A path with placeholders that does not end like the
/// name of a document file is that of a folder.
#[must_use]
pub fn files_of_all_nights(documents: &str) -> String {
    let nights = all_nights(documents);
    if nights == documents || documents.ends_with('*') || is_document_name(&nights) {
        return nights;
    }
    format!("{}/**", nights.trim_end_matches('/'))
}

/// Returns the form of a date that a placeholder stands for. `None` if it stands for nothing.
fn form(name: &str) -> Option<&str> {
    let form = match name {
        "dt" => "%Y-%m-%d",
        "yyyy" => "%Y",
        "mm" => "%m",
        "dd" => "%d",
        _ => name.strip_prefix("dt:")?,
    };
    let mut fields = form.split('%').skip(1);
    let is_field = |after: &str| FIELDS.iter().any(|(name, _)| after.starts_with(name));
    (form.contains('%') && fields.all(is_field)).then_some(form)
}

/// The numbers of a date by their names in a form, those of `strftime`.
const FIELDS: [(&str, Field); 5] = [
    ("Y", Field::Year),
    ("m", Field::Month { padded: true }),
    ("d", Field::Day { padded: true }),
    ("-m", Field::Month { padded: false }),
    ("-d", Field::Day { padded: false }),
];

pub(super) fn written(items: &[PathItem], field: impl Fn(Field) -> String) -> String {
    let item = |item: &PathItem| match item {
        PathItem::Text(text) => text.clone(),
        PathItem::Slash => "/".to_owned(),
        PathItem::Field(of) => field(*of),
    };
    items.iter().map(item).collect()
}

/// Returns the path of a night, whose date has the form `YYYY-MM-DD`.
pub(super) fn on(items: &[PathItem], dt: &str) -> String {
    let number = |at| dt.split('-').nth(at).unwrap_or(dt);
    written(items, |field| {
        let (at, padded) = match field {
            Field::Year => (0, true),
            Field::Month { padded } => (1, padded),
            Field::Day { padded } => (2, padded),
        };
        let number = number(at);
        if padded { number } else { number.trim_start_matches('0') }.to_owned()
    })
}

/// Returns whether the same numbers may be a month and a day in two ways: 111 is 1 and 11, and 11 and 1.
pub(super) fn is_ambiguous(items: &[PathItem]) -> bool {
    const UNPADDED: [Field; 2] = [Field::Month { padded: false }, Field::Day { padded: false }];
    let is_unpadded = |item: &PathItem| matches!(item, PathItem::Field(field) if UNPADDED.contains(field));
    items.windows(2).any(|pair| pair.iter().all(is_unpadded))
}

/// Returns the placeholders that would fit a folder with this name, if it looks like that of a night or of a year.
///
/// ```
/// use nearprint_documents::layout_of;
///
/// assert_eq!(layout_of("year=2026").as_deref(), Some("year={yyyy}/month={mm}/day={dd}"));
/// assert_eq!(layout_of("dt=20261120").as_deref(), Some("dt={dt:%Y%m%d}"));
/// assert_eq!(layout_of("pages"), None);
/// ```
#[must_use]
pub fn layout_of(name: &str) -> Option<String> {
    let (key, value) = match name.split_once('=') {
        Some((key, value)) => (format!("{key}="), value),
        None => (String::new(), name),
    };
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.len() {
        4 if is_number && key.eq_ignore_ascii_case("year=") => {
            // The others are spelt like the first.
            let (month, day) = if key == "year=" { ("month", "day") } else { ("Month", "Day") };
            Some(format!("{key}{{yyyy}}/{month}={{mm}}/{day}={{dd}}"))
        }
        4 if is_number && key.is_empty() => Some("{yyyy}/{mm}/{dd}".to_owned()),
        8 if is_number => Some(format!("{key}{{dt:%Y%m%d}}")),
        10 if is_date(value) && key != "dt=" => Some(format!("{key}{{dt}}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::NightPlace;

    #[test]
    fn a_path_that_lacks_a_part_of_the_date_or_has_an_unknown_placeholder_is_at_fault() {
        let fault = |documents: &str| NightPlace::parse(documents).fault();
        for sound in ["crawl", "{dt}", "{yyyy}/{mm}/{dd}", "{dt:%Y/%m/%d}", "y{dt:%Y}/{dt:%-m}/{dd}", "a{b"] {
            assert_eq!(fault(sound), None, "{sound}");
        }
        for (wrong, says) in [
            ("{date}", "'{date}' stands for nothing"),
            ("{dt:%H}", "'{dt:%H}' stands for nothing"),
            ("{dt:}", "'{dt:}' stands for nothing"),
            ("{dt:2026}", "'{dt:2026}' stands for nothing"),
            ("{yyyy}/{dd}", "has no month"),
            ("{dt:%Y%m}", "has no day"),
            ("{dt:%Y%-m%-d}", "nothing between them"),
            ("crawl/*/*.jsonl", "a glob of files"),
        ] {
            assert!(fault(wrong).is_some_and(|fault| fault.contains(says)), "{wrong}: {:?}", fault(wrong));
        }
    }
}
