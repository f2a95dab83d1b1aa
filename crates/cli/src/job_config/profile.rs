//! The profile of a job: the named one, with the overrides of the job file and of the command line.

use std::path::Path;

use nearprint_fault::{Fault, foreign};
use nearprint_profile::{self as profile, HtmlText, ProfileConfig, ProfileError, TextFingerprinter};
use nearprint_tokenize::{Resources as AnalyzerResources, TokenizerConfig};
use toml::{Table, Value};

use super::JobConfig;
use crate::args::ProfileArgs;
use crate::exit_code::Failure;

/// The tables of a job file whose defaults are those of the named profile.
pub(super) const SECTIONS: [&str; 5] = ["tokenize", "fingerprint", "sketch", "join", "judge"];

impl JobConfig {
    /// Returns the job with the command's profile options applied.
    pub fn with_profile_args(mut self, args: &ProfileArgs) -> Result<Self, Failure> {
        if let Some(profile) = &args.profile {
            self.profile.clone_from(profile);
        }
        if let Some(column) = &args.id_column {
            self.id_column.clone_from(column);
        }
        if let Some(column) = &args.text_column {
            self.text_column.clone_from(column);
        }
        if let Some(id) = args.warc_id {
            self.warc_id = id.into();
        }
        if let Some(mode) = &args.html_text {
            self.html_text.clone_from(mode);
        }
        for text in &args.overrides {
            self.set(text)?;
        }
        Ok(self)
    }

    /// Adds one `a.b.c=value` to the override tables. The value is TOML or a bare word.
    fn set(&mut self, text: &str) -> Result<(), Failure> {
        let usage = |reason: &str| Failure::usage(format!("--set '{text}': {reason}"));
        let (key, value) = text.split_once('=').ok_or_else(|| usage("write key=value"))?;
        let mut value = toml::from_str::<Table>(&format!("v = {value}"))
            .ok()
            .and_then(|mut t| t.remove("v"))
            .unwrap_or_else(|| Value::String(value.to_owned()));
        let mut parts: Vec<&str> = key.split('.').collect();
        if parts == ["bits"] {
            self.bits = Some(value.as_integer().ok_or_else(|| usage("bits is 32, 64 or 128"))?);
            return Ok(());
        }
        let section = parts.remove(0);
        for part in parts.into_iter().rev() {
            value = Value::Table(Table::from_iter([(part.to_owned(), value)]));
        }
        let Value::Table(table) = value else {
            return Err(usage("name a key of a section, such as join.max_distance"));
        };
        match self.sections_mut().into_iter().find(|(name, _)| *name == section) {
            Some((_, into)) => merge_table(into.get_or_insert_default(), table),
            None => return Err(usage(&format!("the sections are {}", SECTIONS.join(", ")))),
        }
        Ok(())
    }

    /// Returns the named profile with the job's overrides, for a command that joins.
    pub fn profile_config(&self) -> Result<ProfileConfig, Failure> {
        let config = self.overridden(&profile::by_name(&self.profile)?, self.bits)?;
        config.join.verifier(config.bits)?;
        Ok(config)
    }

    /// Returns the profile and the contents of its files, which make an analyzer together.
    pub fn analyzed(&self) -> Result<(ProfileConfig, AnalyzerResources), Failure> {
        let (config, resources) = (self.profile_config()?, self.analyzer_resources()?);
        TextFingerprinter::try_new(config.clone(), &resources)?;
        Ok((config, resources))
    }

    /// Returns the same profile for a command that only fingerprints. If `bits` is given, it replaces the job's number
    /// of bits.
    pub fn fingerprint_profile(&self, bits: Option<u32>) -> Result<ProfileConfig, Failure> {
        match bits {
            None => self.overridden(&profile::by_name(&self.profile)?, self.bits),
            Some(bits) => {
                let named = profile::by_name_and_bits(&self.profile, bits).map_err(|e| match e {
                    ProfileError::Width { .. } => Failure::usage(format!("--{e}")),
                    other => other.into(),
                });
                self.overridden(&named?, None)
            }
        }
    }

    fn overridden(&self, base: &ProfileConfig, bits: Option<i64>) -> Result<ProfileConfig, Failure> {
        let mut base = base.clone();
        let named = self.tokenize.as_ref().and_then(|tokenize| tokenize.get("tokenizer")?.get("kind"));
        if let Some(Ok(kind)) = named.map(|kind| kind.clone().try_into()) {
            // What the profile's tokenizer uses, another one may refuse.
            base.tokenize.tokenizer = TokenizerConfig { kind, ..base.tokenize.tokenizer }.without_unused();
        }
        let mut merged = Table::try_from(&base).map_err(|e| Failure::config(e.to_string()))?;
        let invalid = |key: &str, error: &toml::de::Error| {
            // The whole error names the key within the section.
            let reason = foreign(error);
            Failure::from(Fault::config(key, format!("{reason}, in profile '{}' with its overrides", self.profile)))
        };
        for (key, section) in self.clone().sections_mut() {
            if let Some(section) = section.take() {
                let into = merged.entry(key).or_insert_with(|| Value::Table(Table::new()));
                merge(into, Value::Table(section));
                merged.clone().try_into::<ProfileConfig>().map_err(|e| invalid(key, &e))?;
            }
        }
        if let Some(bits) = bits {
            merged.insert("bits".to_owned(), Value::Integer(bits));
        }
        let mut config: ProfileConfig = merged.try_into().map_err(|e| invalid("bits", &e))?;
        // The keys of earlier nights go with the profile's own distance.
        let names_earlier = self.join.as_ref().is_some_and(|join| join.contains_key("earlier"));
        if config.join.max_distance != base.join.max_distance && !names_earlier {
            config.join.earlier = None;
        }
        config.validate()?;
        Ok(config)
    }

    /// Returns the tables that override those of the profile, with their names.
    pub(super) fn sections_mut(&mut self) -> [(&'static str, &mut Option<Table>); 5] {
        let [tokenize, fingerprint, sketch, join, judge] = SECTIONS;
        [
            (tokenize, &mut self.tokenize),
            (fingerprint, &mut self.fingerprint),
            (sketch, &mut self.sketch),
            (join, &mut self.join),
            (judge, &mut self.judge),
        ]
    }

    /// Returns which text of a web page is its document's.
    pub fn html_text(&self) -> &HtmlText {
        &self.html_text
    }

    /// Reads the user dictionary, the stop words and the idf table.
    pub fn analyzer_resources(&self) -> Result<AnalyzerResources, Failure> {
        Ok(AnalyzerResources {
            user_dictionary: content_of("user_dictionary", self.user_dictionary.as_deref())?,
            stop_words: content_of("stop_words", self.stop_words.as_deref())?,
            idf: content_of("idf", self.idf.as_deref())?,
        })
    }
}

/// Reads the file that a key names, if it names one.
pub(super) fn content_of(key: &str, file: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let unread = |e: std::io::Error| Failure::reading(&file.display().to_string(), &e).with(|fault| fault.key(key));
    std::fs::read_to_string(file).map(Some).map_err(unread)
}

/// The keys whose tables are single values. An override replaces such a table and does not merge with it.
const WHOLE: [&str; 2] = ["weight", "feature_hash"];

fn merge_table(into: &mut Table, from: Table) {
    for (key, value) in from {
        match into.get_mut(&key) {
            Some(old) if !WHOLE.contains(&key.as_str()) => merge(old, value),
            _ => drop(into.insert(key, value)),
        }
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Table(into), Value::Table(from)) => merge_table(into, from),
        (into, from) => *into = from,
    }
}
