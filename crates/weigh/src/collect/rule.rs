//! Which programs match.
//!
//! A process matches by the program it runs: the base name of its first argument, or the script
//! that an interpreter runs. An editor, a `grep` or a `sh -c` whose command line only mentions the
//! program does not match.

use regex_lite::Regex;

use crate::model::Program;

/// Suffixes of scripts: `gulmc` is also `gulmc.py`.
const SUFFIXES: [&str; 7] = [".py", ".sh", ".pl", ".rb", ".js", ".R", ".r"];

/// Why a rule is invalid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing would ever match.
    #[error("no program is named")]
    Nothing,
    /// The pattern is not a regular expression.
    #[error("{pattern}: {source}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The error.
        source: regex_lite::Error,
    },
}

/// Programs by name or by pattern.
#[derive(Debug, Clone)]
pub struct ProgramRule {
    names: Vec<String>,
    pattern: Option<Regex>,
    /// The names as words anywhere in a command line, if that is enough to match.
    anywhere: Option<Regex>,
}

impl ProgramRule {
    /// Programs with one of these names, or whose name matches the pattern; with `anywhere`,
    /// also all that mention them in their command line.
    pub fn new(
        names: Vec<String>,
        pattern: Option<&str>,
        anywhere: bool,
    ) -> Result<ProgramRule, Error> {
        let is_nothing = |name: &String| name.trim().is_empty();
        if (names.is_empty() && pattern.is_none()) || names.iter().any(is_nothing) {
            return Err(Error::Nothing);
        }
        let compiled = |pattern: &str| {
            let failed = |source| Error::Pattern { pattern: pattern.to_owned(), source };
            Regex::new(pattern).map_err(failed)
        };
        let words = names.iter().map(|name| regex_lite::escape(name)).collect::<Vec<_>>();
        let words = match (anywhere, pattern) {
            (false, _) => None,
            (true, None) => Some(format!(r"\b({})\b", words.join("|"))),
            (true, Some(pattern)) if words.is_empty() => Some(format!("({pattern})")),
            (true, Some(pattern)) => Some(format!(r"\b({})\b|({pattern})", words.join("|"))),
        };
        Ok(ProgramRule {
            names,
            pattern: pattern.map(compiled).transpose()?,
            anywhere: words.as_deref().map(compiled).transpose()?,
        })
    }

    /// The tool that a process counts for, if it matches.
    pub fn tool(&self, program: &Program) -> Option<String> {
        let name = program.called();
        let is_named = |known: &&String| {
            let suffix = name.strip_prefix(known.as_str());
            suffix.is_some_and(|suffix| suffix.is_empty() || SUFFIXES.contains(&suffix))
        };
        if let Some(known) = self.names.iter().find(is_named) {
            return Some(known.clone());
        }
        if self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(&name)) {
            return Some(name);
        }
        let anywhere = self.anywhere.as_ref()?;
        let line = program.line()?.join(" ");
        let mentioned = anywhere.find(&line)?;
        Some(mentioned.as_str().to_owned()).filter(|word| !word.is_empty())
    }

    /// A name for the whole rule.
    pub fn called(&self) -> String {
        match &self.words()[..] {
            [first, others @ ..] if others.len() > 2 => {
                format!("{first}-and-{}-more", others.len())
            }
            words => words.join("-"),
        }
    }

    /// The names and the pattern, one entry each.
    pub fn words(&self) -> Vec<String> {
        let pattern = self.pattern.iter().map(|pattern| format!("/{}/", pattern.as_str()));
        self.names.iter().cloned().chain(pattern).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::oasis::TOOLS;

    fn tool(rule: &ProgramRule, line: &str) -> Option<String> {
        let arguments: Vec<Vec<u8>> =
            line.split('|').map(|word| word.as_bytes().to_vec()).collect();
        rule.tool(&Program { name: b"comm".to_vec(), arguments: Some(arguments), tool: None })
    }

    fn oasis(anywhere: bool) -> ProgramRule {
        ProgramRule::new(TOOLS.map(str::to_owned).to_vec(), None, anywhere).unwrap()
    }

    #[test]
    fn program_or_script_identifies_the_tool() {
        for (line, expected) in [
            ("fmpy|-a2", Some("fmpy")),
            ("/opt/oasis/bin/gulmc|-S100", Some("gulmc")),
            ("/usr/bin/python3|/opt/oasis/bin/summarypy|-t", Some("summarypy")),
            ("python3|-u|gulmc.py", Some("gulmc")),
            ("fmpyx", None),
            ("gulmc.csv", None),
        ] {
            assert_eq!(tool(&oasis(false), line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn command_line_that_only_mentions_a_tool_does_not_match() {
        for line in [
            "vim|gulmc.py",
            "grep|-r|katpy|.",
            "sh|-c|cat fmpy notes",
            "bash|-c|evepy 1 1 | modelpy | gulmc",
            "python3|-c|import fmpy",
            "python3|check.py|fmpy",
        ] {
            assert_eq!(tool(&oasis(false), line), None, "{line}");
        }
    }

    #[test]
    fn anywhere_matches_the_first_mention_in_the_command_line() {
        let rule = oasis(true);
        assert_eq!(tool(&rule, "bash|-c|evepy 1 1 | modelpy").as_deref(), Some("evepy"));
        assert_eq!(tool(&rule, "vim|notes/gulmc/manager.py").as_deref(), Some("gulmc"));
        assert_eq!(tool(&rule, "fmpyx|summarypy_2"), None);
    }

    #[test]
    fn pattern_is_matched_against_the_program_name() {
        let rule = ProgramRule::new(Vec::new(), Some("^ca.*py$"), false).unwrap();
        assert_eq!(tool(&rule, "/bin/cappy|x").as_deref(), Some("cappy"));
        assert_eq!(tool(&rule, "vim|cappy"), None);
        assert!(matches!(
            ProgramRule::new(Vec::new(), Some("("), false),
            Err(Error::Pattern { .. })
        ));
        assert!(matches!(ProgramRule::new(Vec::new(), None, true), Err(Error::Nothing)));
    }

    #[test]
    fn kernel_name_is_used_without_arguments() {
        let program = Program { name: b"fmpy".to_vec(), arguments: None, tool: None };
        assert_eq!(oasis(false).tool(&program).as_deref(), Some("fmpy"));
    }
}
