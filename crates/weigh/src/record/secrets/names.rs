//! Whether something of a name is a secret: `--db-password`, `DB_PASSWORD`, `dbPassword`.

use super::index::INDEX;
use super::rules::{NameRule, SecretPlace, Spelled};

/// What a name ends with that says something about a secret, and is none.
const ABOUT: &[&str] = &[
    "age",
    "arn",
    "budget",
    "cmd",
    "command",
    "count",
    "directory",
    "disabled",
    "enabled",
    "endpoint",
    "env",
    "expiration",
    "expires",
    "expiry",
    "fd",
    "field",
    "files",
    "format",
    "helper",
    "host",
    "index",
    "jar",
    "len",
    "length",
    "lifetime",
    "limit",
    "manager",
    "method",
    "mode",
    "name",
    "policy",
    "provider",
    "rate",
    "ref",
    "required",
    "size",
    "store",
    "ttl",
    "type",
    "uri",
    "url",
    "user",
    "username",
    "var",
    "version",
];
/// The same, also where it is written as one word: `passwordfile`, `PGPASSFILE`.
const ABOUT_JOINED: &[&str] = &["dir", "file", "path", "prompt", "stdin"];
/// What a name begins with that only switches something: `--ask-pass`, `--no-password`.
const SWITCHES: &[&str] = &["allow", "ask", "hide", "no", "public", "show", "skip", "without"];

/// The rule for values of this name, if there is one.
pub(super) fn rule_of(name: &str, place: SecretPlace) -> Option<&'static NameRule> {
    let parts = parts(name);
    let (first, last) = (parts.first()?, parts.last()?);
    let is_about = ABOUT.contains(&last.as_str())
        || ABOUT_JOINED.iter().any(|about| last.ends_with(about))
        || SWITCHES.contains(&first.as_str());
    if is_about {
        return None;
    }
    let joined = parts.concat();
    INDEX.names.iter().copied().find(|rule| {
        let is_called = match rule.spelled {
            Spelled::Within(words) => words.iter().any(|word| joined.contains(word)),
            Spelled::PartEnds(word, not) => {
                parts.iter().any(|part| part.ends_with(word))
                    && !parts.iter().any(|part| not.contains(&part.as_str()))
            }
            Spelled::LastEnds(words, not) => {
                words.iter().any(|word| last.ends_with(word)) && !not.contains(&last.as_str())
            }
            Spelled::Last(words) => words.contains(&last.as_str()),
        };
        is_called && rule.places.contains(&place)
    })
}

impl NameRule {
    /// Whether this value of such a name is a secret.
    pub(super) fn hides(&self, value: &str) -> bool {
        // What is long is no word that everybody knows.
        const LONG: usize = 256;
        !is_switch(value) && (value.len() > LONG || !(self.ordinary)(value))
    }
}

/// Whether a value only switches something on or off.
fn is_switch(value: &str) -> bool {
    const VALUES: [&str; 8] = ["", "true", "false", "yes", "no", "none", "null", "None"];
    VALUES.contains(&value)
}

/// The words of a name, in small letters: cut at signs and before capitals.
fn parts(name: &str) -> Vec<String> {
    let (mut parts, mut part, mut was_small) = (Vec::new(), String::new(), false);
    for letter in name.chars() {
        let is_letter = letter.is_ascii_alphanumeric();
        if (!is_letter || (was_small && letter.is_ascii_uppercase())) && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if is_letter {
            part.push(letter.to_ascii_lowercase());
        }
        was_small = letter.is_ascii_lowercase();
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}
