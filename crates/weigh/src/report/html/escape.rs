//! Escapes text from outside for the page.
//!
//! A process may be called `</script>`, and a label may hold a bidirectional override. Every `{{
//! }}` of the template is escaped here.

use std::fmt::{self, Write};

use askama::filters::{Escaper, Html};

use crate::text::printable;

/// Text of a page: no markup, no control characters, no bidirectional overrides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Plain;

impl Escaper for Plain {
    fn write_escaped_str<W: Write>(&self, mut out: W, text: &str) -> fmt::Result {
        // Newlines stay: advice and commands may have several lines.
        for (place, line) in text.split('\n').enumerate() {
            if place > 0 {
                out.write_char('\n')?;
            }
            Html.write_escaped_str(&mut out, &printable(line))?;
        }
        Ok(())
    }
}

/// JSON for a script element, without markup and line separators.
///
/// All of these occur only inside strings, where the escape is equivalent.
pub(super) fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        if matches!(letter, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') {
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        Plain.write_escaped_str(&mut out, text).unwrap();
        out
    }

    #[test]
    fn markup_and_bidi_characters_are_escaped() {
        assert_eq!(escaped("<b a='1'>&\"\n"), "&#60;b a=&#39;1&#39;&#62;&#38;&#34;\n");
        assert_eq!(escaped("a\u{202e}b\0"), "a\\u{202e}b\\u{0}");
    }

    #[test]
    fn json_cannot_close_its_script_element() {
        let names = ["</script><!--", "a&b\u{2028}\u{2029}"];
        let json = json_in_script(&serde_json::to_string(&names).unwrap());
        assert!(json.is_ascii() && !json.contains(['<', '>', '&']), "{json}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), names);
    }
}
