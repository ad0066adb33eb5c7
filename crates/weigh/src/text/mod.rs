//! Text from outside, made safe to show: a process may have any name.

pub(crate) mod markdown;

/// Text with control characters and bidirectional overrides escaped.
pub fn printable(text: &str) -> String {
    let acts = |c: char| {
        let is_bidi = ['\u{200e}', '\u{200f}', '\u{061c}'].contains(&c)
            || ('\u{202a}'..='\u{202e}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c);
        c.is_control() || is_bidi
    };
    text.chars()
        .flat_map(|c| {
            let escaped = acts(c).then(|| c.escape_default());
            let plain = (!acts(c)).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

/// A label in lower case, except words like `PCIe`, `SM` and `BAR1`.
pub fn lowercase_label(label: &str) -> String {
    let is_plain = |word: &str| !word.chars().skip(1).any(char::is_uppercase);
    let small = |word: &str| if is_plain(word) { word.to_lowercase() } else { word.to_owned() };
    label.split(' ').map(small).collect::<Vec<_>>().join(" ")
}

/// Text of at most `most` characters, with an ellipsis where it was cut.
pub fn ellipsize(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let start: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// The same, cut in the middle: names often differ at their end.
pub fn ellipsize_middle(text: &str, most: usize) -> String {
    let letters = text.chars().count();
    if letters <= most {
        return text.to_owned();
    }
    let start = most.saturating_sub(1);
    // The end gets more characters: it identifies the item, the start only its kind.
    let begin: String = text.chars().take(start * 2 / 5).collect();
    let end: String = text.chars().skip(letters - (start - start * 2 / 5)).collect();
    format!("{}…{}", begin.trim_end(), end.trim_start())
}

/// Text in lines of at most `width` characters, wrapped after a space or a comma.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    // A number and its percent sign stay together.
    let text = text.replace(" %", "\u{a0}%");
    for piece in text.split_inclusive([' ', ',']) {
        let last = lines.last_mut().filter(|line| {
            line.is_empty() || line.chars().count() + piece.trim_end().chars().count() <= width
        });
        match last {
            Some(line) => line.push_str(piece),
            None => lines.push(piece.to_owned()),
        }
    }
    lines.into_iter().map(|line| line.trim_end().replace("\u{a0}%", " %")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[31m\nb é"), "a\\u{1b}[31m\\nb é");
    }

    #[test]
    fn a_label_keeps_its_abbreviations() {
        assert_eq!(lowercase_label("Received over PCIe"), "received over PCIe");
        assert_eq!(lowercase_label("SM clock"), "SM clock");
        assert_eq!(lowercase_label("BAR1 used"), "BAR1 used");
    }

    #[test]
    fn cut_text_has_an_ellipsis() {
        assert_eq!(ellipsize("a short one", 11), "a short one");
        assert_eq!(ellipsize("a longer one", 9), "a longer…");
        assert_eq!(ellipsize("été", 0), "…");
        assert_eq!(ellipsize_middle("a short one", 11), "a short one");
        assert_eq!(ellipsize_middle("trainer.py 15375 · nvidia7:0", 20), "trainer…· nvidia7:0");
        assert_eq!(ellipsize_middle("été", 0), "…");
    }
}
