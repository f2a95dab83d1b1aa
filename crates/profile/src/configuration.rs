//! The configuration, whose digest keeps stores from mixing fingerprints, and what in it differs from that of another digest.

use nearprint_fault::{Part, Words, words};
use nearprint_html::{EXTRACTOR_VERSION, HtmlText};
use nearprint_tokenize::Resources;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::config::{ALGORITHM_VERSION, ProfileConfig};
use crate::error::Result;
use crate::named::{by_name_and_bits, profiles};

/// Everything that a fingerprint, sketch or text hash depends on, among that which text of web pages is taken. The
/// distances of the join are not part of it, so a store can be joined at any distance.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    profile: ProfileConfig,
    html_text: HtmlText,
    files: [Option<String>; 3],
}

/// The keys of the user's files, whose digests are [`Configuration::files`].
const FILES: [&str; 3] = ["user_dictionary", "stop_words", "idf"];

/// A setting in which two configurations differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key of a job file.
    pub key: String,
    /// Its value in the other configuration, as far as it is known.
    pub other: String,
    /// Its value in this one.
    pub own: String,
}

impl From<Difference> for Words {
    fn from(Difference { key, other, own }: Difference) -> Self {
        words!["its ", Part::Key(key.into()), format!(" is {other}, this one's is {own}")]
    }
}

impl ProfileConfig {
    /// Returns the digest of everything that a fingerprint, sketch or text hash depends on, among that which text of
    /// web pages is taken. The distances of the join are not part of it, so a store can be joined at any distance.
    ///
    /// # Errors
    /// A valid config causes no error.
    pub fn digest(&self, resources: &Resources, html_text: &HtmlText) -> Result<String> {
        Ok(Configuration::new(self, resources, html_text).digest())
    }
}

impl Configuration {
    /// Makes the configuration of a profile, of the contents of the user's files, and of the text of web pages.
    #[must_use]
    pub fn new(profile: &ProfileConfig, resources: &Resources, html_text: &HtmlText) -> Self {
        let Resources { user_dictionary, stop_words, idf, .. } = resources;
        let digest = |text: &Option<String>| text.as_ref().map(|text| sha256_hex(text.as_bytes()));
        let files = [user_dictionary, stop_words, idf].map(digest);
        Self { profile: profile.clone(), html_text: html_text.clone(), files }
    }

    /// Returns the digest by which stores of the configuration are recognised: 64 hex digits.
    #[must_use]
    pub fn digest(&self) -> String {
        let Self { profile, html_text, files: [user_dictionary, stop_words, idf] } = self;
        let mut parts = serde_json::json!({
            "algorithm": ALGORITHM_VERSION,
            "bits": profile.bits,
            "tokenize": profile.tokenize,
            "fingerprint": profile.fingerprint,
            "sketch": profile.sketch,
            "user_dictionary": user_dictionary,
            "stop_words": stop_words,
        });
        // Left out at 1 and where there is no table, so that stores from before there were any keep their digests.
        if profile.tokenize.tokenizer.rules_version() > 1 {
            parts["tokenizer_rules"] = profile.tokenize.tokenizer.rules_version().into();
        }
        if *html_text != HtmlText::Main {
            parts["html_text"] = serde_json::json!(html_text);
        }
        if EXTRACTOR_VERSION > 1 {
            parts["html_extractor"] = EXTRACTOR_VERSION.into();
        }
        if let Some(idf) = idf {
            parts["idf"] = idf.as_str().into();
        }
        sha256_hex(parts.to_string().as_bytes())
    }

    /// Returns the settings in which the configuration of another digest differs from this one. A digest does not say
    /// what it is of, so configurations are tried: all named profiles, this profile with other bits, the texts of web
    /// pages but for selectors, and this configuration without its files. The result is empty if it is none of these.
    #[must_use]
    pub fn differences(&self, digest: &str) -> Vec<Difference> {
        let found = self.others().filter(|other| other.digest() == digest).map(|other| self.differences_from(&other));
        found.min_by_key(Vec::len).unwrap_or_default()
    }

    fn others(&self) -> impl Iterator<Item = Self> + '_ {
        let widths = [self.profile.bits, 64, 32];
        let own = widths.map(|bits| ProfileConfig { bits, ..self.profile.clone() });
        let named = profiles().flat_map(move |(name, ..)| widths.map(|bits| by_name_and_bits(name, bits)));
        let texts = [self.html_text.clone(), HtmlText::Main, HtmlText::All];
        own.into_iter().chain(named.flatten()).flat_map(move |profile| {
            let texts = texts.clone().into_iter();
            texts.flat_map(move |html_text| {
                let profile = profile.clone();
                self.files_left().into_iter().map(move |files| Self {
                    profile: profile.clone(),
                    html_text: html_text.clone(),
                    files,
                })
            })
        })
    }

    /// Returns the files, all of them but one, and none.
    fn files_left(&self) -> Vec<[Option<String>; 3]> {
        let without = |left_out: usize| {
            let mut files = self.files.clone();
            files[left_out] = None;
            files
        };
        let mut left = vec![self.files.clone(), without(0), without(1), without(2), [None, None, None]];
        left.dedup();
        left
    }

    fn differences_from(&self, other: &Self) -> Vec<Difference> {
        let mut found = self.of_profile(&other.profile);
        let mut differ = |key: &str, other: String, own: String| {
            if other != own {
                found.push(Difference { key: key.to_owned(), other, own });
            }
        };
        differ("bits", other.profile.bits.to_string(), self.profile.bits.to_string());
        differ("html_text", other.html_text.to_string(), self.html_text.to_string());
        for ((key, other), own) in FILES.iter().zip(&other.files).zip(&self.files) {
            let of = |file: &Option<String>| if file.is_some() { "a file" } else { "left out" }.to_owned();
            differ(key, of(other), of(own));
        }
        found
    }

    /// Returns the difference of two profiles whose bits do not matter: their names, or the keys if this one has settings
    /// of its own.
    fn of_profile(&self, other: &ProfileConfig) -> Vec<Difference> {
        let [mut before, mut now] = [settings(other), settings(&self.profile)];
        if before == now {
            return Vec::new();
        }
        if let (Some(other), Some(own)) = (name_of(other), name_of(&self.profile)) {
            return vec![Difference { key: "profile".to_owned(), other: other.to_owned(), own: own.to_owned() }];
        }
        let mut found = Vec::new();
        differing("", &mut before, &mut now, &mut found);
        found
    }
}

/// Returns the settings of a profile on which fingerprints depend, without their width.
fn settings(profile: &ProfileConfig) -> Value {
    serde_json::json!({
        "tokenize": profile.tokenize, "fingerprint": profile.fingerprint, "sketch": profile.sketch
    })
}

/// Returns the name of the profile that has these settings.
fn name_of(profile: &ProfileConfig) -> Option<&'static str> {
    let has_them = |named: &ProfileConfig| settings(named) == settings(profile);
    profiles().find(|(.., make, _)| has_them(&make())).map(|(name, ..)| *name)
}

/// Finds the keys whose values differ.
fn differing(path: &str, other: &mut Value, own: &mut Value, found: &mut Vec<Difference>) {
    if let (Value::Object(other), Value::Object(own)) = (&mut *other, &mut *own) {
        let keys: std::collections::BTreeSet<String> = other.keys().chain(own.keys()).cloned().collect();
        for key in keys {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let [mut other, mut own] = [&mut *other, &mut *own].map(|of| of.remove(&key).unwrap_or(Value::Null));
            differing(&path, &mut other, &mut own, found);
        }
    } else if other != own {
        let shown = |value: &Value| if value.is_null() { "left out".to_owned() } else { value.to_string() };
        found.push(Difference { key: path.to_owned(), other: shown(other), own: shown(own) });
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use nearprint_html::HtmlText;
    use nearprint_tokenize::Resources;

    use super::{Configuration, Difference};
    use crate::config::ProfileConfig;
    use crate::named::{by_name, by_name_and_bits, profiles};

    fn of(profile: &ProfileConfig) -> Configuration {
        Configuration::new(profile, &Resources::default(), &HtmlText::Main)
    }

    fn difference(key: &str, other: &str, own: &str) -> Difference {
        Difference { key: key.to_owned(), other: other.to_owned(), own: own.to_owned() }
    }

    #[test]
    fn the_setting_that_differs_is_found_from_the_digest_alone() {
        let own = of(&by_name("default").unwrap());
        for (name, ..) in profiles().filter(|(name, ..)| *name != "default") {
            if ["strict", "loose"].contains(name) {
                // They have the default's fingerprints, so its stores are theirs.
                assert_eq!(of(&by_name(name).unwrap()).digest(), own.digest());
                continue;
            }
            let Ok(other) = by_name_and_bits(name, 64) else { continue };
            assert_eq!(own.differences(&of(&other).digest()), [difference("profile", name, "default")], "{name}");
        }
        let narrow = ProfileConfig { bits: 32, ..by_name("default").unwrap() };
        assert_eq!(own.differences(&of(&narrow).digest()), [difference("bits", "32", "64")]);
        let all = Configuration { html_text: HtmlText::All, ..own.clone() };
        assert_eq!(own.differences(&all.digest()), [difference("html_text", "all", "main")]);
        let selector = Configuration { html_text: HtmlText::Selector("p".to_owned()), ..own.clone() };
        assert_eq!(selector.differences(&own.digest()), [difference("html_text", "main", "selector=p")]);
        let resources = Resources { stop_words: Some("the\n".to_owned()), ..Resources::default() };
        let with_file = Configuration::new(&by_name("default").unwrap(), &resources, &HtmlText::All);
        let both = [difference("html_text", "main", "all"), difference("stop_words", "left out", "a file")];
        assert_eq!(with_file.differences(&own.digest()), both);
        let mut changed = by_name("default").unwrap();
        changed.sketch.as_mut().unwrap().shingle += 1;
        let [found] = &of(&changed).differences(&own.digest())[..] else { panic!("one key differs") };
        assert_eq!(found.key, "sketch.shingle");
        // What cannot be told from a digest is not guessed.
        assert_eq!(own.differences(&of(&changed).digest()), []);
        assert_eq!(own.differences(&selector.digest()), []);
    }
}
