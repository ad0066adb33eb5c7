//! The name of a process among programs.
//!
//! `python train.py` and `python evaluate.py` are two programs to their author: an interpreter is
//! named by the script it runs. A process may overwrite its arguments (`postgres: writer process`);
//! then the kernel's name is its name.

/// How an interpreter finds its script.
struct Interpreter {
    name: &'static str,
    /// Options behind which code follows, not a script.
    code: &'static str,
    /// Options behind which a module follows.
    module: &'static str,
    /// Options behind which something else follows.
    value: &'static str,
}

const fn shell(name: &'static str) -> Interpreter {
    Interpreter { name, code: "cs", module: "", value: "oO" }
}

const INTERPRETERS: [Interpreter; 11] = [
    Interpreter { name: "python", code: "c", module: "m", value: "WX" },
    Interpreter { name: "pypy", code: "c", module: "m", value: "WX" },
    shell("sh"),
    shell("bash"),
    shell("dash"),
    shell("zsh"),
    shell("ksh"),
    Interpreter { name: "perl", code: "eE", module: "", value: "I" },
    Interpreter { name: "ruby", code: "e", module: "", value: "IrC" },
    Interpreter { name: "node", code: "ep", module: "", value: "r" },
    Interpreter { name: "Rscript", code: "e", module: "", value: "" },
];

/// The name of a process of this kernel name and command line.
pub fn program_name(name: &str, command: Option<&[String]>) -> String {
    let program = command.and_then(|command| {
        let (first, rest) = without_env(command).split_first()?;
        // A login shell has a dash before its name.
        let program = base_name(first.strip_prefix('-').unwrap_or(first));
        if program.is_empty() || first.contains(": ") {
            return None;
        }
        Some(script(program, rest).unwrap_or(program))
    });
    // A kernel may know no name, and a legend needs one.
    program.or(Some(name).filter(|name| !name.is_empty())).unwrap_or("?").to_owned()
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// The command that `env` is about to exec, and others as they are.
fn without_env(command: &[String]) -> &[String] {
    let is_env = command.first().is_some_and(|first| base_name(first) == "env");
    let is_setting = |word: &String| word.starts_with('-') || word.contains('=');
    let program = command.iter().skip(1).position(|word| !is_setting(word));
    program.filter(|_| is_env).map_or(command, |place| &command[place + 1..])
}

/// The script or module that an interpreter runs.
fn script<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    // python3.12 is python.
    let family = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let interpreter = INTERPRETERS.iter().find(|known| known.name == family)?;
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        let Some(letters) = argument.strip_prefix(['-', '+']) else {
            return Some(base_name(argument)).filter(|name| !name.is_empty());
        };
        if letters.is_empty() {
            return None;
        }
        if letters == "-" {
            return arguments.next().map(base_name);
        }
        if letters.starts_with('-') {
            continue;
        }
        // Letters may be combined, with a value after its letter: -uc, -Wignore.
        for (place, letter) in letters.char_indices() {
            let behind = &letters[place + letter.len_utf8()..];
            if interpreter.code.contains(letter) {
                return None;
            }
            if interpreter.module.contains(letter) {
                return if behind.is_empty() { arguments.next() } else { Some(behind) };
            }
            if interpreter.value.contains(letter) {
                if behind.is_empty() {
                    arguments.next();
                }
                break;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(line: &str) -> String {
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        program_name("kernel", Some(&command))
    }

    #[test]
    fn a_program_is_named_by_its_base_name() {
        assert_eq!(name("/usr/bin/gcc -O2 main.c"), "gcc");
        assert_eq!(name("./solver"), "solver");
        assert_eq!(program_name("kworker", None), "kworker");
        assert_eq!(program_name("kworker", Some(&[])), "kworker");
        assert_eq!(program_name("kworker", Some(&[String::new()])), "kworker");
    }

    #[test]
    fn an_interpreter_is_named_by_its_script() {
        for (line, expected) in [
            ("python3.12 -u /home/me/train.py --epochs 3", "train.py"),
            ("python -W ignore -Xdev train.py", "train.py"),
            ("/opt/bin/python3 -m torch.distributed.run x.py", "torch.distributed.run"),
            ("python3 -Bm pytest", "pytest"),
            ("bash -e -o pipefail ./build.sh all", "build.sh"),
            ("sh -- ./-odd", "-odd"),
            ("perl -w -I lib tool.pl", "tool.pl"),
            ("node --max-old-space-size=4096 server.js", "server.js"),
            ("Rscript --vanilla fit.R", "fit.R"),
            ("/usr/bin/env LANG=C bash ./build.sh", "build.sh"),
        ] {
            assert_eq!(name(line), expected, "{line}");
        }
    }

    #[test]
    fn an_interpreter_without_a_script_is_itself() {
        for (line, expected) in [
            ("sh -c make -j4", "sh"),
            ("bash -lc x", "bash"),
            ("-bash", "bash"),
            ("python3.12 -c print(1)", "python3.12"),
            ("python3 - < script", "python3"),
            ("perl -ne print", "perl"),
            ("node", "node"),
            ("env", "env"),
        ] {
            assert_eq!(name(line), expected, "{line}");
        }
    }

    #[test]
    fn a_title_that_a_process_gave_itself_is_no_program() {
        let titled = ["nginx: worker process".to_owned()];
        assert_eq!(program_name("nginx", Some(&titled)), "nginx");
    }
}
