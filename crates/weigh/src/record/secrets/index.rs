//! The table of rules by lookup key, built once.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::rules::{Finds, FindsText, NameRule, OptionRule, RULES};

pub(super) static INDEX: LazyLock<Index> = LazyLock::new(Index::new);

pub(super) struct Index {
    pub(super) names: Vec<&'static NameRule>,
    pub(super) texts: Vec<FindsText>,
    /// Prefixes of tokens, and how many characters must follow.
    pub(super) marks: Vec<(&'static str, usize)>,
    /// Whether a prefix begins with a byte.
    pub(super) begins_mark: [bool; 256],
    /// Options that every program may have.
    general: Vec<&'static OptionRule>,
    programs: HashMap<&'static str, WordRole>,
    /// Programs that match by the prefix of their names.
    prefixes: Vec<(&'static str, WordRole)>,
}

/// What is known of a program.
#[derive(Default, Clone)]
pub(super) struct WordRole {
    /// Whether it runs another one.
    pub(super) runs_others: bool,
    own: Vec<&'static OptionRule>,
}

impl WordRole {
    /// Whether it has options of its own that take secrets.
    pub(super) fn is_known(&self) -> bool {
        !self.own.is_empty()
    }
}

impl Index {
    fn new() -> Index {
        let mut index = Index {
            names: Vec::new(),
            texts: Vec::new(),
            marks: Vec::new(),
            begins_mark: [false; 256],
            general: Vec::new(),
            programs: HashMap::new(),
            prefixes: Vec::new(),
        };
        for rule in RULES {
            match &rule.finds {
                Finds::Name(rule) => index.names.push(rule),
                Finds::Text(find) => index.texts.push(*find),
                Finds::Token { marks, at_least } => {
                    index.marks.extend(marks.iter().map(|mark| (*mark, *at_least)));
                }
                Finds::Option(rule) if rule.programs.is_empty() => index.general.push(rule),
                Finds::Option(rule) => {
                    for program in rule.programs {
                        index.role(program).own.push(rule);
                    }
                }
                Finds::Runner(programs) => {
                    for program in *programs {
                        index.role(program).runs_others = true;
                    }
                }
            }
        }
        for (mark, _) in &index.marks {
            index.begins_mark[usize::from(mark.as_bytes()[0])] = true;
        }
        index
    }

    /// The entry of a program of the table: `mysql*` also stands for `mysqldump`.
    fn role(&mut self, program: &'static str) -> &mut WordRole {
        let Some(prefix) = program.strip_suffix('*') else {
            return self.programs.entry(program).or_default();
        };
        let known = self.prefixes.iter().position(|(other, _)| *other == prefix);
        let at = known.unwrap_or_else(|| {
            self.prefixes.push((prefix, WordRole::default()));
            self.prefixes.len() - 1
        });
        &mut self.prefixes[at].1
    }

    /// What is known of a program by the name of its file.
    pub(super) fn role_of(&self, name: &str) -> Option<&WordRole> {
        let by_prefix = || self.prefixes.iter().find(|(prefix, _)| name.starts_with(prefix));
        self.programs.get(name).or_else(|| by_prefix().map(|(_, role)| role))
    }

    /// The options of a program that may take secrets.
    pub(super) fn options_of(
        &self,
        name: &str,
        role: Option<&WordRole>,
    ) -> Vec<&'static OptionRule> {
        let own = role.map_or(&[][..], |role| &role.own);
        let general = self.general.iter().filter(|rule| !rule.not.contains(&name));
        general.chain(own).copied().collect()
    }
}
