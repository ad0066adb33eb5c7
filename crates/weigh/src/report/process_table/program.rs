//! Names and command lines as a table can hold them.

use crate::report;
use crate::text::ellipsize;

/// The longest useful name or command line in a table.
const LONGEST_NAME: usize = 60;
const LONGEST_COMMAND: usize = 400;

/// A name, truncated for a table.
pub(super) fn short_name(name: &str) -> String {
    ellipsize(name, LONGEST_NAME)
}

/// A command line as one would type it, truncated for a table.
pub(super) fn typed(command: &[String]) -> String {
    // Arguments beyond are cut off anyway; a command line may have millions of them.
    let words = command.iter().take(LONGEST_COMMAND).map(String::as_str);
    ellipsize(&report::typed(words), LONGEST_COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_command_lines_are_cut() {
        assert_eq!(short_name(&"é".repeat(100)).chars().count(), LONGEST_NAME);
        let words = vec!["word".to_owned(); 1000];
        assert_eq!(typed(&words).chars().count(), LONGEST_COMMAND);
        assert_eq!(typed(&["sh".to_owned(), "-c".to_owned(), "a b".to_owned()]), "sh -c 'a b'");
    }
}
