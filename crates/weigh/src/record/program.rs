//! What a process runs, in one word: the program, or the script that an interpreter runs.

use super::manifest::base_name;

/// Programs that are known by what they run.
const INTERPRETERS: [&str; 11] =
    ["python", "bash", "sh", "dash", "zsh", "perl", "node", "ruby", "Rscript", "php", "lua"];

/// The name of the program: the script of an interpreter, else the base name of the first
/// argument, else the kernel's name for it.
pub fn program_name(name: &str, command: Option<&[String]>) -> String {
    let Some((program, arguments)) = command.and_then(<[String]>::split_first) else {
        return name.to_owned();
    };
    // A login shell has a dash in front of its name.
    let program = base_name(program).trim_start_matches('-');
    let version = |c: char| c.is_ascii_digit() || c == '.';
    let script = INTERPRETERS
        .contains(&program.trim_end_matches(version))
        .then(|| arguments.first())
        .flatten()
        // Anything else than a path is an option: what follows it only the interpreter knows.
        .filter(|argument| !argument.starts_with('-') && !argument.is_empty());
    let found = script.map_or(program, |script| base_name(script));
    if found.is_empty() { name.to_owned() } else { found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_by_its_own_name_and_not_by_its_interpreter_s() {
        let called = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            program_name("kernel", Some(&words))
        };
        assert_eq!(called("/usr/bin/python3.11 /opt/train.py --fast"), "train.py");
        assert_eq!(called("python3 -c pass"), "python3");
        assert_eq!(called("-bash"), "bash");
        assert_eq!(called("/bin/sh ./run.sh"), "run.sh");
        assert_eq!(called("/usr/bin/make -j8"), "make");
        assert_eq!(called(""), "kernel");
        assert_eq!(program_name("kernel", None), "kernel");
    }
}
