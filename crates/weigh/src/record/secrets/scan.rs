//! Secrets that a text shows by itself: names with values, URLs, tokens that are marked.
//!
//! Each scan passes through the text once and continues after each match.

use super::index::INDEX;
use super::names::rule_of;
use super::rules::SecretPlace;
use super::{FoundSecret, ScannedWord};

/// Masks what every rule for texts finds.
pub(super) fn text(word: &ScannedWord, found: &mut FoundSecret) {
    for find in &INDEX.texts {
        find(word, found);
    }
    tokens(word, found);
}

/// Masks values behind names: `password=S`, `"token": "S"`, `Authorization: Bearer S`.
///
/// `is_one`: the word is one argument, so the value of a name at its beginning is all the rest.
pub(super) fn pairs(word: &ScannedWord, is_one: bool, found: &mut FoundSecret) {
    let bytes = word.text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_name(bytes[at]) {
            at += 1;
            continue;
        }
        let begin = at;
        at += bytes[at..].iter().take_while(|byte| is_name(**byte)).count();
        let Some(pair) = Pair::behind(bytes, begin, at) else { continue };
        let name = word.text.get(begin..at).unwrap_or_default();
        let Some(rule) = rule_of(name, pair.place(name)) else { continue };
        let is_whole = is_one && begin == 0 && !pair.is_quoted_name;
        let end = if is_whole { bytes.len() } else { pair.value_end(bytes, rule.to_line_end) };
        let value = word.part(pair.value, end);
        if rule.hides(value.text) {
            found.add(word.argument, value.range(0..value.text.len()));
            at = end.max(at);
        }
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// A sign behind a name, and where the value behind it begins.
struct Pair {
    is_quoted_name: bool,
    sign: u8,
    before: Option<u8>,
    value: usize,
    quote: Option<u8>,
}

impl Pair {
    fn behind(bytes: &[u8], begin: usize, end: usize) -> Option<Pair> {
        let before = begin.checked_sub(1).map(|at| bytes[at]);
        // The value of a referenced variable is not here.
        if matches!(before, Some(b'$')) || (before == Some(b'{') && bytes[..begin].ends_with(b"${"))
        {
            return None;
        }
        let (at, quote) = skip_quote(bytes, end);
        // `environ["API_KEY"] = "S"`
        let at = at + usize::from(quote.is_some() && bytes.get(at) == Some(&b']'));
        let at = skip_blanks(bytes, at);
        let sign = *bytes.get(at)?;
        let next = bytes.get(at + 1).copied();
        let is_sign = match sign {
            // Neither `a == b` nor `a := b` nor `a::b`; `a => b` is one.
            b'=' => next != Some(b'='),
            b':' => !matches!(next, Some(b'=' | b':')),
            _ => false,
        };
        if !is_sign {
            return None;
        }
        let at = if sign == b'=' && next == Some(b'>') { at + 2 } else { at + 1 };
        let value = skip_blanks(bytes, at);
        // A path of a volume: `-v /run/secret:/secret`.
        let is_path = before == Some(b'/') && (begin > 1 || bytes.get(value) == Some(&b'/'));
        if sign == b':' && is_path {
            return None;
        }
        let (inner, opening) = skip_quote(bytes, value);
        let value = if opening.is_some() { inner } else { value };
        Some(Pair { is_quoted_name: quote.is_some(), sign, before, value, quote: opening })
    }

    fn place(&self, name: &str) -> SecretPlace {
        if name.starts_with('-') {
            SecretPlace::Option
        } else if matches!(self.before, Some(b'?' | b'&')) || self.is_quoted_name {
            SecretPlace::Query
        } else if self.sign == b'=' && name.contains(['_', '.'])
            || name.bytes().all(|byte| byte.is_ascii_uppercase())
        {
            SecretPlace::Variable
        } else {
            SecretPlace::Pair { is_colon: self.sign == b':' }
        }
    }

    fn value_end(&self, bytes: &[u8], to_line_end: bool) -> usize {
        let rest = bytes.get(self.value..).unwrap_or_default();
        let ends = |byte: &u8| match self.quote {
            Some(quote) => *byte == quote,
            None if to_line_end => b"\r\n'\"".contains(byte),
            None => byte.is_ascii_whitespace() || b"&;,|<>)}]'\"`".contains(byte),
        };
        let mut escaped = false;
        let length = rest.iter().position(|byte| {
            let is_end = ends(byte) && !(escaped && self.quote.is_some());
            escaped = *byte == b'\\' && !escaped;
            is_end
        });
        self.value + length.unwrap_or(rest.len())
    }
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    // More than a few are no sign and its value.
    at + bytes.get(at..).unwrap_or_default().iter().take(8).take_while(|b| **b == b' ').count()
}

/// Goes past a quote, perhaps one with backslashes before it.
fn skip_quote(bytes: &[u8], at: usize) -> (usize, Option<u8>) {
    let rest = bytes.get(at..).unwrap_or_default();
    let slashes = rest.iter().take(4).take_while(|byte| **byte == b'\\').count();
    match rest.get(slashes) {
        Some(quote @ (b'"' | b'\'')) => (at + slashes + 1, Some(*quote)),
        _ => (at, None),
    }
}

/// Masks tokens that begin with their service's mark.
fn tokens(word: &ScannedWord, found: &mut FoundSecret) {
    let bytes = word.text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let begins = INDEX.begins_mark[usize::from(bytes[at])]
            && (at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_'));
        match begins.then(|| token(&bytes[at..])).flatten() {
            Some(Token { length, is_secret }) => {
                if is_secret {
                    found.add(word.argument, word.range(at..at + length));
                }
                at += length;
            }
            None => at += 1,
        }
    }
}

/// A word that begins with a mark.
struct Token {
    length: usize,
    is_secret: bool,
}

/// The token that a text begins with.
fn token(bytes: &[u8]) -> Option<Token> {
    let mut marks = INDEX.marks.iter();
    let (mark, at_least) = marks.find(|(mark, _)| bytes.starts_with(mark.as_bytes()))?;
    let rest = &bytes[mark.len()..];
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let length = rest.iter().take_while(|byte| is_letter(byte)).count();
    let rest = &rest[..length];
    // `sk-learn-contrib-something` is a name of words.
    let is_random = rest.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        || !rest.iter().any(|byte| b"-_.".contains(byte));
    Some(Token { length: mark.len() + length, is_secret: length >= *at_least && is_random })
}

/// `https://me:S@host`, and `https://S@host` where `S` is not the name of a user.
pub(super) fn urls(word: &ScannedWord, found: &mut FoundSecret) {
    let mut done = 0;
    while let Some(sign) = word.text[done..].find("://") {
        let (sign, begin) = (done + sign, done + sign + 3);
        let rest = &word.text[begin..];
        let end = rest.find(|c: char| c.is_whitespace() || "/?#'\"<>`".contains(c));
        let authority = &rest[..end.unwrap_or(rest.len())];
        done = begin + authority.len();
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        let is_web = word.text[..sign].ends_with("http") || word.text[..sign].ends_with("https");
        let secret = match user.split_once(':') {
            // A token in the place of the user, as some services take it.
            Some((_, "" | "x-oauth-basic")) => 0..user.len(),
            Some((name, _)) => name.len() + 1..user.len(),
            None if is_web && !is_user(user) => 0..user.len(),
            None => continue,
        };
        found.add(word.argument, word.range(begin + secret.start..begin + secret.end));
    }
}

/// Whether it may well be the name of a user.
fn is_user(word: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || b"._-".contains(&byte);
    word.len() < 16 && word.bytes().all(is_letter)
}

/// Addresses that are secrets themselves: web hooks, bots.
pub(super) fn hooks(word: &ScannedWord, found: &mut FoundSecret) {
    const HOOKS: [&str; 4] = [
        "hooks.slack.com/services/",
        "discord.com/api/webhooks/",
        "webhook.office.com/webhookb2/",
        "api.telegram.org/bot",
    ];
    for hook in HOOKS {
        let mut done = 0;
        while let Some(at) = word.text[done..].find(hook) {
            let begin = done + at + hook.len();
            let rest = &word.text[begin..];
            let length = rest.find(|c: char| c.is_whitespace() || "'\"<>`".contains(c));
            done = begin + length.unwrap_or(rest.len());
            found.add(word.argument, word.range(begin..done));
        }
    }
}

/// `Bearer S`, wherever it is said.
pub(super) fn bearers(word: &ScannedWord, found: &mut FoundSecret) {
    let small = word.text.to_ascii_lowercase();
    for (at, mark) in small.match_indices("bearer ") {
        let begin = at + mark.len();
        let rest = &word.text[begin..];
        let length = rest.find(|c: char| c.is_whitespace() || "'\"`,;".contains(c));
        let token = &rest[..length.unwrap_or(rest.len())];
        if token.len() >= 8 && token.bytes().any(|byte| byte.is_ascii_digit()) {
            found.add(word.argument, word.range(begin..begin + token.len()));
        }
    }
}

/// What is between the lines of a private key.
pub(super) fn private_keys(word: &ScannedWord, found: &mut FoundSecret) {
    let mut done = 0;
    while let Some(at) = word.text[done..].find("PRIVATE KEY-----") {
        let begin = done + at + "PRIVATE KEY-----".len();
        let end = word.text[begin..].find("-----END");
        let end = end.map_or(word.text.len(), |end| begin + end);
        found.add(word.argument, word.range(begin..end));
        done = (end + "-----END".len()).min(word.text.len());
        // Past the second line's own name.
        if let Some(own) = word.text[done..].find("PRIVATE KEY-----").filter(|own| *own < 40) {
            done += own + "PRIVATE KEY-----".len();
        }
    }
}

/// `me:S@tcp(host)/database`, as Go's drivers take it.
pub(super) fn go_sources(word: &ScannedWord, found: &mut FoundSecret) {
    for sign in ["@tcp(", "@unix("] {
        let mut done = 0;
        for (at, _) in word.text.match_indices(sign) {
            let before = &word.text[done..at];
            let begin = before.rfind(|c: char| c.is_whitespace() || "='\"/".contains(c));
            let begin = done + begin.map_or(0, |begin| begin + 1);
            if let Some(colon) = word.text.get(begin..at).and_then(|user| user.find(':')) {
                found.add(word.argument, word.range(begin + colon + 1..at));
            }
            done = at + sign.len();
        }
    }
}

/// `PASSWORD 'S'` and `IDENTIFIED BY 'S'` of SQL.
pub(super) fn sql(word: &ScannedWord, found: &mut FoundSecret) {
    let small = word.text.to_ascii_lowercase();
    for keyword in ["password ", "identified by "] {
        let mut done = 0;
        while let Some(at) = small[done..].find(keyword) {
            done += at + keyword.len();
            let Some(quote) = small[done..].chars().next().filter(|c| "'\"".contains(*c)) else {
                continue;
            };
            let begin = done + 1;
            let length = small[begin..].find(quote).unwrap_or(small.len() - begin);
            found.add(word.argument, word.range(begin..begin + length));
            done = begin + length;
        }
    }
}
