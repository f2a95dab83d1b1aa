//! The folders of nights: which nights there are, by the names below the root of a path.

use std::collections::{BTreeSet, HashMap};

use nearprint_fault::Result;
use nearprint_storage::{Folder, Storage, is_date};

use super::night_place::{Digits, Field, NightPlace, PathItem, is_ambiguous, on, written};

/// The folders of nights below a root.
#[derive(Debug)]
pub struct NightFolders {
    /// The folder above all that has a part of the date in its name.
    pub root: Folder,
    /// The names of folders, one below the other, of which the last has the last part of the date.
    levels: Vec<Vec<PathItem>>,
}

impl NightPlace {
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

fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::{NightPlace, Numbers};

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
