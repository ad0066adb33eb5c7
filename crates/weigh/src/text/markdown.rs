//! Text from outside, escaped for Markdown and HTML.
//!
//! A process may be called `<script>`, `|`, `[x](javascript:…)` or `@team`. Characters with a
//! meaning in Markdown or HTML become numeric character references, which cannot open a tag or form
//! a link, a table cell or emphasis, inside an HTML element or outside.
//!
//! What surprised us: GitHub and GitLab search the rendered text for mentions, issues and
//! addresses, so a reference does not stop `@team`. An invisible word joiner does. Inside `<code>`
//! they do not search, and copied text must stay unchanged, so none is added there.

use std::fmt::Write;

use super::printable;

const WORD_JOINER: &str = "&#8288;";

/// Text for a line, a list or a table cell.
pub(crate) fn plain(text: &str) -> String {
    escaped(text, true)
}

/// The same in a fixed-width font; empty text stays empty.
pub(crate) fn code(text: &str) -> String {
    if text.trim().is_empty() {
        plain(text)
    } else {
        format!("<code>{}</code>", escaped(text, false))
    }
}

fn escaped(text: &str, breaks_mentions: bool) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut before = ' ';
    let mut rest = text.chars();
    // Leading spaces indent nested names; Markdown would drop them.
    let indented = text.len() - text.trim_start_matches(' ').len();
    out.extend(std::iter::repeat_n("&#160;", indented));
    rest.by_ref().take(indented).for_each(drop);
    while let Some(letter) = rest.next() {
        let next = rest.as_str().chars().next().unwrap_or(' ');
        let acts = match letter {
            '&' | '<' | '>' | '`' | '*' | '~' | '[' | ']' | '{' | '}' | '|' | '\\' | '$' | '@'
            | '#' | '!' => true,
            // Inside a word it has no meaning.
            '_' => !(before.is_alphanumeric() && next.is_alphanumeric()),
            // URLs are linked automatically.
            ':' => next == '/',
            '.' if before == 'w' || before == 'W' => true,
            // At the start of a line these make a list or a heading.
            '-' | '+' | '=' => out.is_empty(),
            '.' | ')' => next == ' ' && out.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        };
        if acts {
            let _ = write!(out, "&#{};", u32::from(letter));
        } else {
            out.push(letter);
        }
        let is_mention = match letter {
            '@' | '$' | '~' => next.is_alphanumeric() || next == '_',
            '#' | '!' => next.is_ascii_digit(),
            ':' => next == '/',
            _ => false,
        };
        if is_mention && breaks_mentions {
            out.push_str(WORD_JOINER);
        }
        before = letter;
    }
    out
}

/// A fenced block that its content cannot close.
pub(crate) fn fenced(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}sh\n{}\n{fence}\n", lines.join("\n"))
}

/// A relative path as the address of a link.
pub(crate) fn address(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_inert_in_markdown_and_html() {
        for nasty in [
            "<script>alert(1)</script>",
            "a | b",
            "`x` ``y``",
            "[x](javascript:alert(1))",
            "![x](http://evil/a.png)",
            "one\ntwo\r\n\n# three",
            "**bold** _slanted_ ~~struck~~ $x$ {{ site }}",
            "&lt;b&gt; &#60;",
            "\\| \\",
            "<!-- -->",
            "- + = 1. 2) # x",
            "https://evil.example www.evil.example a@evil.example",
        ] {
            for set in [plain(nasty), code(nasty)] {
                let set = set.replace("<code>", "").replace("</code>", "");
                let bare = references_removed(&set);
                assert!(
                    !bare.contains([
                        '<', '>', '|', '`', '[', ']', '*', '~', '$', '\\', '\n', '\r', '@', '{',
                        '&'
                    ]),
                    "{set}"
                );
                assert!(!bare.contains("://") && !bare.contains("www."), "{set}");
                assert!(!bare.contains(" _") && !bare.contains("_ "), "{set}");
            }
        }
    }

    /// The text without its numeric references.
    fn references_removed(text: &str) -> String {
        let mut pieces = text.split("&#");
        let mut bare = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (number, rest) = piece.split_once(';').expect("a reference has an end");
            assert!(number.chars().all(|c| c.is_ascii_digit()), "{text}");
            bare.push_str(rest);
        }
        bare
    }

    #[test]
    fn mentions_do_not_notify_users() {
        assert_eq!(plain("@team #12 !7"), "&#64;&#8288;team &#35;&#8288;12 &#33;&#8288;7");
        assert_eq!(code("git@host"), "<code>git&#64;host</code>", "what is copied is what it was");
    }

    #[test]
    fn a_line_does_not_become_a_list() {
        assert_eq!(plain("- a - b"), "&#45; a - b");
        assert_eq!(plain("12. a 3."), "12&#46; a 3.");
        assert_eq!(plain("1.74 s"), "1.74 s");
    }

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(plain("train_large.py (3 of 4, 12 %) – é"), "train_large.py (3 of 4, 12 %) – é");
        assert_eq!(plain("  inner phase"), "&#160;&#160;inner phase");
        assert_eq!(plain(""), "");
    }

    #[test]
    fn fence_is_longer_than_any_inside_and_link_has_no_brackets() {
        assert_eq!(fenced("a\n````\nb"), "`````sh\na\n````\nb\n`````\n");
        assert!(!fenced("\x1b[31m").contains('\x1b'));
        assert_eq!(address("a b/c)(<d>.png"), "a%20b/c%29%28%3Cd%3E.png");
    }
}
