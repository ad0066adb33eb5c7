//! Completions and manual pages, from the same declaration as the parser.

use clap::CommandFactory;

use crate::args::Args;
use crate::failure::{Failure, USAGE};
use crate::print;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "weigh", &mut script);
    print::out(&String::from_utf8_lossy(&script));
    Ok(0)
}

/// Prints a manual page.
pub(crate) fn man(verb: Option<&str>) -> Result<u8, Failure> {
    let mut weigh = Args::command();
    weigh.build();
    let command = match verb {
        None => weigh,
        Some(verb) => match weigh.find_subcommand(verb) {
            Some(found) => found.clone().display_name(format!("weigh-{verb}")),
            None => {
                let cause = format!("weigh has no verb \"{verb}\"");
                let hint = "list the verbs: weigh --help";
                return Err(Failure::new("no such manual page", cause, hint).code(USAGE));
            }
        },
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::new("cannot write the page", error, "see weigh --help"))?;
    print::out(&String::from_utf8_lossy(&page));
    Ok(0)
}
