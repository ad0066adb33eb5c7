//! Secrets that are found by the arguments before them: `--password S`, `mysql -pS`.
//!
//! Programs match by the name of their file. After `env`, `timeout`, `sudo`, an interpreter or `--`
//! every word may be the program, because the options of the wrapper are not known here.

use super::index::{INDEX, WordRole};
use super::names::rule_of;
use super::rules::{NameRule, OptionRule, SecretPlace, SecretValue, Takes};
use super::{FoundSecret, ScannedWord, scan, shell};

/// How many levels of nested shell strings are parsed.
const DEEPEST: usize = 3;

/// Finds the secrets of a command line.
pub(super) fn find(arguments: &[String], found: &mut FoundSecret) {
    let words = arguments.iter().enumerate();
    let words: Vec<ScannedWord> =
        words.map(|(argument, text)| ScannedWord { text, argument, start: 0 }).collect();
    for word in &words {
        scan::text(word, found);
    }
    simple_command(&words, 0, found);
}

/// Finds those of one command, and of the scripts among its arguments.
fn simple_command(words: &[ScannedWord], depth: usize, found: &mut FoundSecret) {
    let mut line = CommandLine::default();
    for word in words {
        let is_script = line.takes_script;
        let expected = std::mem::take(&mut line.expected);
        line.takes_script = is_script_option(word.text) || line.program.runs_text;
        if !expected.masks(word, found) {
            line.option(word, found);
            line.program(word.text);
        }
        let has_blanks = word.text.bytes().any(|byte| byte.is_ascii_whitespace());
        scan::pairs(word, !(is_script && has_blanks), found);
        if has_blanks && depth < DEEPEST {
            for command in shell::commands(word) {
                simple_command(&command, depth + 1, found);
            }
        }
    }
}

/// `-c` of shells and interpreters, also among others: `-lc`.
fn is_script_option(word: &str) -> bool {
    let is_short = word.len() <= 5 && word.starts_with('-') && word.ends_with('c');
    is_short && !word.starts_with("--")
}

/// What is known of a command from its words so far.
#[derive(Default)]
struct CommandLine {
    program: CommandProgram,
    /// Whether the next words may name the program.
    seeks: Option<bool>,
    says_login: bool,
    says_set: bool,
    expected: Expected,
    /// Whether the next word is a text for a shell.
    takes_script: bool,
}

#[derive(Default)]
struct CommandProgram {
    rules: Vec<&'static OptionRule>,
    /// Its arguments are run by a shell: `ssh host '…'`.
    runs_text: bool,
}

/// What the next word is.
#[derive(Default)]
enum Expected {
    #[default]
    Anything,
    /// Of an option with the name of a secret.
    Named(&'static NameRule),
    /// Of an option of this program.
    SecretValue(SecretValue),
}

impl Expected {
    /// Whether it was what it should be, and is masked as far as it must.
    fn masks(self, word: &ScannedWord, found: &mut FoundSecret) -> bool {
        match self {
            Expected::Anything => false,
            Expected::Named(rule) => {
                let hides = !is_option(word.text) && rule.hides(word.text);
                if hides {
                    found.add(word.argument, word.range(0..word.text.len()));
                }
                hides
            }
            Expected::SecretValue(value) => {
                !(is_option(word.text) && value == SecretValue::All) && value.mask(word, found)
            }
        }
    }
}

/// Whether it is rather another option than a value that begins with a dash.
fn is_option(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('-') else { return false };
    let (rest, is_long) = rest.strip_prefix('-').map_or((rest, false), |rest| (rest, true));
    let name = rest.split('=').next().unwrap_or(rest);
    let is_plain = name.bytes().all(|byte| {
        byte.is_ascii_lowercase() || b"-_".contains(&byte) || (is_long && byte.is_ascii_digit())
    });
    (rest.is_empty() || rest.len() == 1 || is_plain) && !rest.contains(char::is_whitespace)
}

/// Several options of one letter, this the last: `-sSLu`.
fn is_bundle(word: &str, option: &str) -> bool {
    let letters = word.strip_prefix('-').and_then(|rest| rest.strip_suffix(option));
    letters.is_some_and(|letters| {
        letters.len() <= 8 && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
    })
}

impl CommandLine {
    fn option(&mut self, word: &ScannedWord, found: &mut FoundSecret) {
        let rules = std::mem::take(&mut self.program.rules);
        for rule in rules.iter().filter(|rule| !rule.behind_login || self.says_login) {
            if rule.takes == Takes::Bundled {
                if is_bundle(word.text, rule.option) {
                    self.expected = Expected::SecretValue(rule.value);
                }
                continue;
            }
            match word.text.strip_prefix(rule.option) {
                Some("") if rule.takes != Takes::Joined && !rule.option.is_empty() => {
                    self.expected = Expected::SecretValue(rule.value);
                }
                Some(rest) if !rest.is_empty() && rule.takes != Takes::Next => {
                    let value = word.part(word.text.len() - rest.len(), word.text.len());
                    rule.value.mask(&value, found);
                }
                _ => {}
            }
        }
        self.program.rules = rules;
        // Neither a sentence nor a part of a program is a name.
        if word.text.contains(|c: char| c.is_whitespace() || "=({;".contains(c)) {
            return;
        }
        // `//registry.example/:_authToken`
        let name = word.text.rsplit(['/', ':']).next().unwrap_or_default();
        let place = match word.text.starts_with('-') {
            true => SecretPlace::Option,
            // `aws configure set aws_secret_access_key S`
            false if self.says_set => SecretPlace::Pair { is_colon: false },
            false => return,
        };
        if let Some(rule) = rule_of(name, place) {
            self.expected = Expected::Named(rule);
        }
    }

    /// Notes which program it is.
    fn program(&mut self, word: &str) {
        if word == "--" {
            self.seeks = Some(true);
        }
        if word.starts_with('-') || word.contains(char::is_whitespace) {
            return;
        }
        self.says_login |= word == "login";
        self.says_set |= ["set", "config", "config:set", "configure"].contains(&word);
        let is_first = self.seeks.is_none();
        // Variables before the program are none.
        if word.contains('=') || !(is_first || self.seeks == Some(true) || word == "exec") {
            return;
        }
        let name = word.rsplit('/').next().unwrap_or(word);
        let role = INDEX.role_of(name);
        let is_known = role.is_some_and(WordRole::is_known);
        let runs_others = role.is_some_and(|role| role.runs_others);
        self.program.runs_text |= ["ssh", "su", "watch", "parallel", "eval"].contains(&name);
        if is_known || is_first || runs_others {
            self.program.rules = INDEX.options_of(name, role);
        }
        self.seeks = Some(runs_others || (self.seeks == Some(true) && !is_known));
    }
}

impl SecretValue {
    /// Masks what of a value is secret; whether it was a value of this kind.
    fn mask(self, word: &ScannedWord, found: &mut FoundSecret) -> bool {
        let text = word.text;
        let secret = match self {
            SecretValue::All => Some(0..text.len()),
            SecretValue::User(sign) => text.split_once(sign).and_then(|(user, secret)| {
                // Numbers are those of a user and a group; `https://…` has rules of its own.
                let is_none = secret.parse::<u32>().is_ok() || secret.starts_with("//");
                (!is_none).then_some(user.len() + sign.len_utf8()..text.len())
            }),
            SecretValue::Pairs => text.find('=').map(|sign| sign + 1..text.len()),
            SecretValue::Login => text.split_once('/').map(|(user, secret)| {
                let begin = user.len() + 1;
                begin..begin + secret.rfind('@').unwrap_or(secret.len())
            }),
        };
        let is_value = secret.is_some();
        if let Some(secret) = secret {
            found.add(word.argument, word.range(secret));
        }
        is_value
    }
}
