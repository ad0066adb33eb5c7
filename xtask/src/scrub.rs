//! Removes from a capture what identifies a machine or a person.

use std::path::Path;

/// Names that must not be published, and their replacements.
pub(crate) struct Scrub(Vec<(String, &'static str)>);

/// Container and machine ids are this long or longer.
const LONG_ID: usize = 32;

impl Scrub {
    /// The host name and the user's name of this machine.
    pub(crate) fn of_this_machine() -> Scrub {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut names = vec![(host.trim().to_owned(), "host")];
        let users = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(std::env::var_os);
        names.extend(users.map(|user| (user.to_string_lossy().into_owned(), "user")));
        if let Some(home) = std::env::var_os("HOME")
            && let Some(name) = Path::new(&home).file_name()
        {
            names.push((name.to_string_lossy().into_owned(), "user"));
        }
        // Every machine has root, and its name identifies no one.
        names.retain(|(name, _)| !name.is_empty() && name != "root");
        Scrub(names)
    }

    /// The text with these words, and long hexadecimal ids, replaced.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end.max(first.len_utf8()));
            clean.push_str(self.name(name));
            rest = after;
        }
        clean
    }

    fn name<'t>(&self, name: &'t str) -> &'t str {
        let hexadecimal = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        // Masks of CPUs and signals are long as well, and mostly zeros.
        let telling = |name: &str| name.bytes().filter(|byte| *byte != b'0').count() > LONG_ID / 2;
        match self.0.iter().find(|(hidden, _)| hidden == name) {
            Some((_, shown)) => shown,
            None if name.len() >= LONG_ID && hexadecimal(name) && telling(name) => "id",
            None => name,
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
