//! An argument as a shell would read it: simple commands of words.
//!
//! Not a shell: quotes group, a backslash escapes the next character, operators end a command.
//! Words keep their inner quotes, because masks are put into the text as it is.

use super::ScannedWord;

/// The simple commands of a text: `a b; c | d` has three.
pub(super) fn commands<'a>(script: &ScannedWord<'a>) -> Vec<Vec<ScannedWord<'a>>> {
    let bytes = script.text.as_bytes();
    // An unclosed quote is a plain character, as in `don't`.
    let last_of = |quote: u8| bytes.iter().rposition(|byte| *byte == quote).unwrap_or(0);
    let (last_single, last_double) = (last_of(b'\''), last_of(b'"'));
    let (mut commands, mut words, mut begin) = (Vec::new(), Vec::new(), None);
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let is_operator = b";|&()`\n".contains(byte);
        if byte.is_ascii_whitespace() || is_operator {
            if let Some(begin) = begin.take() {
                words.push(script.part(begin, at).unquoted());
            }
            if is_operator && !words.is_empty() {
                commands.push(std::mem::take(&mut words));
            }
            at += 1;
            continue;
        }
        begin.get_or_insert(at);
        at = match byte {
            b'\\' => at + 2,
            b'\'' if at < last_single => closing(bytes, at, b'\'') + 1,
            b'"' if at < last_double => closing(bytes, at, b'"') + 1,
            _ => at + 1,
        };
    }
    if let Some(begin) = begin {
        words.push(script.part(begin, bytes.len()).unquoted());
    }
    if !words.is_empty() {
        commands.push(words);
    }
    commands
}

/// Where a quote is closed.
fn closing(bytes: &[u8], open: usize, quote: u8) -> usize {
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' => at += 2,
            _ if *byte == quote => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}
