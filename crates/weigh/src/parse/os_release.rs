//! The distribution: `/etc/os-release`, readable by every user.
//!
//! Lines `KEY=value` as a shell would read them (os-release(5)): values may be in single or double
//! quotes, with backslashes before `$`, `"`, `\` and `` ` ``. Other keys, comments and malformed
//! lines are ignored.

use super::MalformedFile;
use super::fields::FieldCursor;

/// Name and version of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OsRelease {
    /// The display name: `Debian GNU/Linux 12 (bookworm)`.
    pub pretty_name: Option<String>,
    /// The identifier: `debian`.
    pub id: Option<String>,
    /// The version: `12`; rolling releases have none.
    pub version: Option<String>,
}

/// Reads the bytes of `/etc/os-release`.
pub fn parse(bytes: &[u8]) -> Result<OsRelease, MalformedFile> {
    let mut found = OsRelease::default();
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let Some((key, value)) = line.trim().split_once('=') else { continue };
        let slot = match key {
            "PRETTY_NAME" => &mut found.pretty_name,
            "ID" => &mut found.id,
            "VERSION_ID" => &mut found.version,
            _ => continue,
        };
        *slot = Some(unquoted(value)).filter(|value| !value.is_empty());
    }
    Ok(found)
}

fn unquoted(value: &str) -> String {
    let within = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let inner = match (within('\''), within('"')) {
        (Some(literal), _) => return literal.to_owned(),
        (None, inner) => inner.unwrap_or(value),
    };
    let mut plain = String::with_capacity(inner.len());
    let mut letters = inner.chars().peekable();
    while let Some(letter) = letters.next() {
        let escapes = letter == '\\' && letters.peek().is_some_and(|next| "$\"\\`".contains(*next));
        plain.push(if escapes { letters.next().unwrap_or(letter) } else { letter });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    const DEBIAN: &[u8] = b"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n# a comment\n\
        NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\nHOME_URL=\"https://x\"\n";

    #[test]
    fn values_are_read_as_a_shell_would() {
        let debian = parse(DEBIAN).unwrap();
        assert_eq!(debian.pretty_name.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!((debian.id.as_deref(), debian.version.as_deref()), (Some("debian"), Some("12")));
        let odd = parse(b"ID='a b'\nPRETTY_NAME=\"a \\\"b\\\" \\$c \\d\"\nVERSION_ID=\n").unwrap();
        assert_eq!(odd.id.as_deref(), Some("a b"));
        assert_eq!(odd.pretty_name.as_deref(), Some("a \"b\" $c \\d"));
        assert_eq!(odd.version, None);
    }

    parser_tests! {
        cut: fn truncated_file_loses_values_but_changes_none() {
            parse, DEBIAN => may_lose(pretty_name, id, version);
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; DEBIAN
        }
    }
}
