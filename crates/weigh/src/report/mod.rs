//! A summary for people: text for a terminal, and documents with charts.

pub mod census;
pub mod document;
mod escape;
pub mod github;
pub mod markdown;
pub mod phases;
#[cfg(test)]
mod tests;
pub mod text;

pub use census::Census;
pub use document::Document;
pub use github::github;
pub use markdown::markdown;

/// Words of a command line as one would type them.
fn typed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let quoter = shlex::Quoter::new().allow_nul(true);
    let words = words.map(|word| quoter.quote(word).unwrap_or(word.into()));
    words.collect::<Vec<_>>().join(" ")
}

/// Text of at most so many letters, the last of which says when there was more.
fn shortened(text: &str, longest: usize) -> String {
    if text.chars().nth(longest).is_none() {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}
