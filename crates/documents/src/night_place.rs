//! Places of nights: paths in which placeholders stand for the date of a night.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{Display, Formatter};

use nearprint_fault::Result;
use nearprint_storage::{Folder, Storage, is_date};

use super::formats::is_document_name;

/// A text, a slash or a number of a date in a path of nights.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathItem {
    /// A text without `/`.
    Text(String),
    /// The end of a folder's name.
    Slash,
    Field(Field),
}

/// A number of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
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
    items: Vec<PathItem>,
    /// The first placeholder that stands for nothing.
    unknown: Option<String>,
    /// The path has placeholders.
    has_date: bool,
}

/// How a path writes months and days: each with two digits, or with as many as the number has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digits {
    two_of_month: bool,
    two_of_day: bool,
}

impl Digits {
    /// What most crawls have comes first: a date that several of them fit is written like its neighbours.
    const ALL: [Self; 4] = [
        Self { two_of_month: false, two_of_day: false },
        Self { two_of_month: true, two_of_day: true },
        Self { two_of_month: false, two_of_day: true },
        Self { two_of_month: true, two_of_day: false },
    ];

    fn of(self, item: &PathItem) -> PathItem {
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
        let mut place = Self { items: Vec::new(), unknown: None, has_date: false };
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

    /// Returns the folders of the nights. `None` means that wildcards come before the date.
    ///
    /// # Errors
    /// The path or URL is not supported.
    pub fn nights(&self, storage: &Storage) -> Result<Option<NightFolders>> {
        let is_field = |item: &PathItem| matches!(item, PathItem::Field(_));
        let (Some(first), Some(last)) = (self.items.iter().position(is_field), self.items.iter().rposition(is_field))
        else {
            return Ok(None);
        };
        let root = self.items[..first].iter().rposition(|item| *item == PathItem::Slash);
        let end = self.items[last..].iter().position(|item| *item == PathItem::Slash);
        let dated = &self.items[root.map_or(0, |at| at + 1)..end.map_or(self.items.len(), |at| last + at)];
        let root = match root {
            None => ".".to_owned(),
            Some(0) => "/".to_owned(),
            Some(at) => written(&self.items[..at], |_| String::new()),
        };
        let levels: Vec<Vec<PathItem>> = dated
            .split(|item| *item == PathItem::Slash)
            .map(<[PathItem]>::to_vec)
            .filter(|level| !level.is_empty())
            .collect();
        let before = levels.iter().flat_map(|level| {
            let dated = level.iter().rposition(is_field).unwrap_or(level.len());
            &level[..dated]
        });
        let is_wild = |item: &PathItem| matches!(item, PathItem::Text(text) if is_wild(text));
        if is_wild(&PathItem::Text(root.clone())) || before.into_iter().any(is_wild) {
            return Ok(None);
        }
        Ok(Some(NightFolders { root: storage.folder(&root)?, levels }))
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

fn written(items: &[PathItem], field: impl Fn(Field) -> String) -> String {
    let item = |item: &PathItem| match item {
        PathItem::Text(text) => text.clone(),
        PathItem::Slash => "/".to_owned(),
        PathItem::Field(of) => field(*of),
    };
    items.iter().map(item).collect()
}

/// Returns the path of a night, whose date has the form `YYYY-MM-DD`.
fn on(items: &[PathItem], dt: &str) -> String {
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
fn is_ambiguous(items: &[PathItem]) -> bool {
    const UNPADDED: [Field; 2] = [Field::Month { padded: false }, Field::Day { padded: false }];
    let is_unpadded = |item: &PathItem| matches!(item, PathItem::Field(field) if UNPADDED.contains(field));
    items.windows(2).any(|pair| pair.iter().all(is_unpadded))
}

fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The folders of nights below a root.
#[derive(Debug)]
pub struct NightFolders {
    /// The folder above all that has a part of the date in its name.
    pub root: Folder,
    /// The names of folders, one below the other, of which the last has the last part of the date.
    levels: Vec<Vec<PathItem>>,
}

/// The numbers of a date that names have so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Numbers {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
}

impl NightFolders {
    /// Returns the dates of all nights that have a folder or a file, in ascending order. One listing is made for each folder
    /// above those of the nights.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub async fn dates(&self) -> Result<BTreeSet<String>> {
        self.dates_of(&mut HashMap::new(), |_| true).await
    }

    /// Returns whether a night has a folder or a file. Only folders that the night may be in are listed.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub async fn has(&self, dt: &str) -> Result<bool> {
        Ok(!self.dates_of(&mut HashMap::new(), |numbers| numbers.may_be(dt)).await?.is_empty())
    }

    /// Returns the digits with which a night has its month and day in its names, if it is there with others than those of the path.
    /// Only folders that the night may be in are listed, each once.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub async fn other_digits(&self, dt: &str) -> Result<Option<Digits>> {
        let mut listed = HashMap::new();
        for digits in Digits::ALL {
            let other = self.with_digits(digits);
            let is_sound = !other.levels.iter().any(|level| is_ambiguous(level));
            if is_sound
                && other.name_of(dt) != self.name_of(dt)
                && !other.dates_of(&mut listed, |numbers| numbers.may_be(dt)).await?.is_empty()
            {
                return Ok(Some(digits));
            }
        }
        Ok(None)
    }

    /// Returns the dates of the nights that have a folder or a file, below folders whose numbers `may_be` those of a night that is
    /// looked for. `listed` has the names in folders that were listed already.
    async fn dates_of(
        &self,
        listed: &mut HashMap<String, Vec<String>>,
        may_be: impl Fn(Numbers) -> bool,
    ) -> Result<BTreeSet<String>> {
        let mut dates = BTreeSet::new();
        let mut open = vec![(self.root.clone(), 0, Numbers::default())];
        while let Some((folder, depth, known)) = open.pop() {
            if !listed.contains_key(folder.url()) {
                listed.insert(folder.url().to_owned(), folder.names().await?);
            }
            for name in listed.get(folder.url()).into_iter().flatten() {
                let numbers = self.levels.get(depth).and_then(|level| known.with(level, name));
                let Some(numbers) = numbers.filter(|&numbers| may_be(numbers)) else { continue };
                if depth + 1 < self.levels.len() {
                    open.push((folder.join(name), depth + 1, numbers));
                } else {
                    dates.extend(numbers.date());
                }
            }
        }
        Ok(dates)
    }

    /// Returns the same folders with such months and days in their names.
    #[must_use]
    pub fn with_digits(&self, digits: Digits) -> Self {
        let level = |level: &Vec<PathItem>| level.iter().map(|item| digits.of(item)).collect();
        Self { root: self.root.clone(), levels: self.levels.iter().map(level).collect() }
    }

    /// Returns the names of the folders of a night, below the root.
    #[must_use]
    pub fn name_of(&self, dt: &str) -> String {
        let levels: Vec<PathItem> = self.levels.join(&PathItem::Slash);
        on(&levels, dt)
    }

    /// Returns whether the names of nights have the form `COLUMN=VALUE`, as partitions of tables have them.
    #[must_use]
    pub fn are_partitions(&self) -> bool {
        self.levels.iter().flatten().any(|item| matches!(item, PathItem::Text(text) if text.contains('=')))
    }
}

impl Numbers {
    /// Returns these numbers and those that a name has. `None` if the name has another form, or other numbers.
    fn with(mut self, level: &[PathItem], name: &str) -> Option<Self> {
        let mut rest = name;
        for item in level {
            match item {
                PathItem::Text(text) if is_wild(text) => return Some(self),
                PathItem::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                PathItem::Slash => {}
                PathItem::Field(field) => {
                    let (number, digits) = match field {
                        Field::Year => (&mut self.year, 4..=4),
                        Field::Month { padded } => (&mut self.month, if *padded { 2..=2 } else { 1..=2 }),
                        Field::Day { padded } => (&mut self.day, if *padded { 2..=2 } else { 1..=2 }),
                    };
                    let n = rest.bytes().take(*digits.end()).take_while(u8::is_ascii_digit).count();
                    if !digits.contains(&n) {
                        return None;
                    }
                    let (found, after) = rest.split_at(n);
                    if *digits.start() == 1 && found.starts_with('0') {
                        return None;
                    }
                    let found = found.parse().ok()?;
                    if number.is_some_and(|known| known != found) {
                        return None;
                    }
                    (*number, rest) = (Some(found), after);
                }
            }
        }
        rest.is_empty().then_some(self)
    }

    /// Returns whether these are numbers of a date.
    fn may_be(self, dt: &str) -> bool {
        let mut of_date = dt.split('-').map(|number| number.parse().ok());
        [self.year, self.month, self.day].into_iter().all(|own| {
            let number: Option<u32> = of_date.next().flatten();
            own.is_none() || own == number
        })
    }

    fn date(self) -> Option<String> {
        let date = format!("{:04}-{:02}-{:02}", self.year?, self.month?, self.day?);
        is_date(&date).then_some(date)
    }
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
    use super::{NightPlace, Numbers};

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
        ] {
            assert!(fault(wrong).is_some_and(|fault| fault.contains(says)), "{wrong}: {:?}", fault(wrong));
        }
    }

    #[test]
    fn names_are_read_back_as_they_are_written() {
        for documents in ["a/dt={dt}", "{yyyy}{mm}{dd}", "y={yyyy}-{dt:%-m}-{dt:%-d}.parquet", "{dt}-{yyyy}"] {
            let place = NightPlace::parse(documents);
            for date in ["2026-01-02", "2026-11-20", "1999-12-31"] {
                let name = place.of(date);
                let name = name.rsplit('/').next().unwrap_or_default();
                let level: Vec<_> =
                    place.items.rsplit(|item| *item == super::PathItem::Slash).next().unwrap_or_default().to_vec();
                let read = Numbers::default().with(&level, name).and_then(Numbers::date);
                assert_eq!(read.as_deref(), Some(date), "{documents}");
                assert_eq!(Numbers::default().with(&level, &format!("{name}x")), None);
            }
        }
        let two = NightPlace::parse("{yyyy}-{dt}");
        assert_eq!(Numbers::default().with(&two.items, "2025-2026-11-20"), None, "one year, not two");
    }
}
