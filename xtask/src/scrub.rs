//! Takes out of a capture what names a machine or a person.

use std::path::Path;

/// Words that must not be seen, and what stands in their place.
pub(crate) struct Scrub(Vec<(String, &'static str)>);

/// Container and machine ids are this long or longer.
const LONG_ID: usize = 32;

impl Scrub {
    /// The host name and the user's name of this machine.
    pub(crate) fn of_this_machine() -> Scrub {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut words = vec![(host.trim().to_owned(), "host")];
        let users = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(std::env::var_os);
        words.extend(users.map(|user| (user.to_string_lossy().into_owned(), "user")));
        if let Some(home) = std::env::var_os("HOME")
            && let Some(name) = Path::new(&home).file_name()
        {
            words.push((name.to_string_lossy().into_owned(), "user"));
        }
        // Everybody has a root, and its name says nothing.
        words.retain(|(word, _)| !word.is_empty() && word != "root");
        Scrub(words)
    }

    /// The text with these words, and long hexadecimal ids, replaced.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end.max(first.len_utf8()));
            clean.push_str(self.word(word));
            rest = after;
        }
        clean
    }

    fn word<'t>(&self, word: &'t str) -> &'t str {
        let hexadecimal = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
        // Masks of CPUs and signals are long as well, and mostly zeros.
        let telling = |word: &str| word.bytes().filter(|byte| *byte != b'0').count() > LONG_ID / 2;
        match self.0.iter().find(|(hidden, _)| hidden == word) {
            Some((_, shown)) => shown,
            None if word.len() >= LONG_ID && hexadecimal(word) && telling(word) => "id",
            None => word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_as_whole_words_and_the_rest_stays_as_it_is() {
        let scrub = Scrub(vec![("vm".into(), "host"), ("ada".into(), "user")]);
        let text = "0::/user/ada.slice/vm-1\nvmstat 12\tü\n";
        assert_eq!(scrub.text(text), "0::/user/user.slice/host-1\nvmstat 12\tü\n");
    }

    #[test]
    fn container_ids_go_and_masks_stay() {
        let id = "3f9a".repeat(16);
        let text = format!("/docker/{id} {}", "0".repeat(64));
        assert_eq!(Scrub(Vec::new()).text(&text), format!("/docker/id {}", "0".repeat(64)));
    }
}
