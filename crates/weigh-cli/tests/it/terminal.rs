//! A program at a terminal behaves as without weigh: input, job control, size.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::weighed::{is_installed, output, plain, wait_until};

/// An interactive bash in its own terminal, which ends with the test.
struct Terminal {
    directory: TempDir,
}

impl Terminal {
    /// `None`, with a message on stderr, where there is no tmux.
    fn open() -> Option<Terminal> {
        if !is_installed("tmux") || !is_installed("bash") {
            return None;
        }
        let terminal = Terminal { directory: tempfile::tempdir().unwrap() };
        let shell = "exec bash --norc --noprofile -i";
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "50", shell]);
        terminal.type_line("PS1='ready> '");
        terminal.wait_for("\nready> ");
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = tmux(self.directory.path());
        let output = output(command.args(arguments));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn type_line(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn wait_for(&self, text: &str) {
        let mut shown = String::new();
        wait_until(&format!("{text:?} is on the terminal"), || {
            shown = format!("\n{}", self.tmux(&["capture-pane", "-p", "-J"]));
            shown.contains(text)
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After an exit of the shell its terminal is closed already.
        let _ = tmux(self.directory.path()).arg("kill-server").output();
    }
}

fn tmux(directory: &Path) -> Command {
    let mut command = plain("tmux", directory);
    command.env("TMUX_TMPDIR", directory).env("TERM", "xterm");
    command
}

#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    let Some(terminal) = Terminal::open() else { return };
    // Typed text is echoed on the terminal: hence the quotes in the expected text.
    let script = "echo be\"\"gun; \"$BURNER\" sleep 500ms; echo en\"\"ded; exit 7";
    terminal.type_line(&format!("\"$WEIGH\" run -q --no-record -- sh -c '{script}'"));
    terminal.wait_for("\nbegun");
    terminal.press("C-z");
    terminal.wait_for("Stopped");
    terminal.type_line("jobs -l; echo st''ill");
    terminal.wait_for("\nstill");
    terminal.type_line("fg");
    terminal.wait_for("\nended");
    terminal.type_line("echo code=''$?");
    terminal.wait_for("\ncode=7");
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let Some(terminal) = Terminal::open() else { return };
    let script = "trap \"echo in\"\"terrupted\" INT; echo be\"\"gun; \
        \"$BURNER\" sleep 300ms; \"$BURNER\" sleep 300ms; exit 7";
    terminal.type_line(&format!("\"$WEIGH\" run -q --no-record -- sh -c '{script}'"));
    terminal.wait_for("\nbegun");
    terminal.press("C-c");
    terminal.wait_for("interrupted");
    terminal.type_line("echo code=''$?");
    terminal.wait_for("\ncode=7");
    let shown = terminal.tmux(&["capture-pane", "-p", "-J"]);
    assert_eq!(shown.matches("interrupted").count(), 1, "{shown}");
}

#[test]
fn typed_text_reaches_the_command() {
    let Some(terminal) = Terminal::open() else { return };
    let script = "echo na\"\"me?; read name; echo hel\"\"lo $name";
    terminal.type_line(&format!("\"$WEIGH\" run -q --no-record -- sh -c '{script}'"));
    terminal.wait_for("\nname?");
    terminal.type_line("world");
    terminal.wait_for("\nhello world");
}

#[test]
fn command_keeps_its_terminal() {
    if !is_installed("script") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let inner = "test -t 0 && test -t 1 && test -t 2 && tty && : < /dev/tty && exit 7";
    let line = format!("tty; \"$WEIGH\" run -q --no-record -- sh -c '{inner}'");
    let mut command = plain("script", directory.path());
    let output = output(command.args(["-qec", &line, "/dev/null"]));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(7), "{shown}");
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(lines[0].contains("/dev/") && lines[0] == lines[1], "{shown}");
}
