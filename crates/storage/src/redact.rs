//! Secrets in URLs: nearprint refuses URLs that contain any, and leaves known secrets out of every message.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::locked::locked;

/// Keys, secrets and tokens that requests were signed with. A server or proxy may repeat in an answer what it was sent.
static USED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Shorter secrets are not replaced in messages, because they could occur in any text.
const MIN_SECRET_BYTES: usize = 8;

/// Registers a secret, so that all later messages leave it out.
pub fn keep_quiet_about(secret: &str) {
    if secret.len() >= MIN_SECRET_BYTES {
        locked(&USED).insert(secret.to_owned());
    }
}

/// Returns whether a URL holds credentials, either before its host or as signed query parameters.
pub fn holds_secrets(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or(rest);
    let in_authority = authority.contains('@') || (scheme == "s3" && authority.contains(':'));
    in_authority || is_presigned(rest)
}

fn is_presigned(text: &str) -> bool {
    text.to_ascii_lowercase().contains("x-amz-")
}

/// Returns a URL or message without user names and passwords in URLs, without signed query parameters, and without the
/// credentials that are in use.
pub fn redact(text: &str) -> String {
    let known = locked(&USED);
    let text = known.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "…"));
    text.split(' ').map(redact_word).collect::<Vec<_>>().join(" ")
}

fn redact_word(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |i| rest.split_at(i));
    let port =
        |(_, port): (&str, &str)| port.trim_end_matches([':', ',', ')', '(']).bytes().all(|b| b.is_ascii_digit());
    // A secret may contain slashes, so the '@' that ends it may stand in what looks like the path.
    let holds_secret = authority.contains('@') || !authority.split_once(':').is_none_or(port);
    let shown = match rest.rsplit_once('@').filter(|_| holds_secret) {
        Some((_, shown)) => shown.to_owned(),
        None if holds_secret => "…".to_owned(),
        None => format!("{authority}{path}"),
    };
    let presigned = shown.split_once('?').filter(|(_, query)| is_presigned(query));
    format!("{scheme}://{}", presigned.map_or(shown.as_str(), |(before, _)| before))
}
