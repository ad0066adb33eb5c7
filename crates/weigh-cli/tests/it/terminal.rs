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

/// A command that writes more lines than the terminal has, and waits in the middle of a line until
/// the file `go` exists.
const LINES: &str = "seq 1 70; printf part; until [ -e go ]; do \"$BURNER\" sleep 20ms; done; \
    echo ial; seq 71 90; echo finished";

const LIVE: &str = "\"$WEIGH\" run --live -q --no-record --";

impl Terminal {
    fn type_lines(&self, before: &str) {
        std::fs::write(self.directory.path().join("lines"), LINES).unwrap();
        self.type_line(&format!("{before} sh lines"));
    }

    /// Lets the command continue, and returns all that was written until it has exited.
    fn finish_lines(&self) -> String {
        std::fs::write(self.directory.path().join("go"), "").unwrap();
        self.wait_for("\nfinished\nready> ");
        let text = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        let text = lines.join("\n");
        // Whether the shell was ready when the first line was typed is luck.
        let (_, written) = text.split_once("sh lines\n").unwrap();
        written.trim_end().to_owned()
    }

    /// Changes the size, and waits until programs can know it: tmux tells them a little later.
    fn resize(&self, columns: &str, rows: &str) {
        self.tmux(&["resize-window", "-x", columns, "-y", rows]);
        let tty = self.tmux(&["display-message", "-p", "#{pane_tty}"]);
        wait_until("the terminal has its new size", || {
            let size =
                output(plain("stty", self.directory.path()).args(["-F", tty.trim(), "size"]));
            String::from_utf8_lossy(&size.stdout).trim() == format!("{rows} {columns}")
        });
    }

    fn rows(&self) -> Vec<String> {
        let shown = self.tmux(&["capture-pane", "-p", "-J"]);
        shown.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until the last row, which is this one, has the line of `--live`.
    fn wait_for_the_line(&self, row: usize) {
        wait_until("the line of --live is the last one", || {
            self.rows().get(row - 1).is_some_and(|last| last.starts_with("weigh 0:"))
        });
    }
}

#[test]
fn live_line_leaves_no_trace_in_the_output() {
    let (Some(with), Some(without)) = (Terminal::open(), Terminal::open()) else { return };
    with.type_lines(LIVE);
    with.wait_for_the_line(50);
    // A sample between two commands of the script finds its shell alone.
    wait_until("a sample has the shell and its child", || {
        with.rows().get(49).is_some_and(|last| last.ends_with(" processes"))
    });
    let rows = with.rows();
    assert!(rows[49].contains(" · memory "), "{rows:?}");
    assert_eq!(rows[48], "part");
    without.type_lines("env");
    without.wait_for("\npart");
    assert_eq!(with.finish_lines(), without.finish_lines());
}

#[test]
fn live_line_follows_the_size_of_the_terminal_and_leaves_no_trace() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.type_lines(LIVE);
    for (columns, rows) in [("100", "20"), ("30", "20"), ("120", "40")] {
        terminal.resize(columns, rows);
        // What tmux has moved there is an old one.
        let before = terminal.rows();
        terminal.wait_for_the_line(rows.parse().unwrap());
        wait_until("the line is drawn again", || terminal.rows().last() != before.last());
    }
    let shown = terminal.finish_lines();
    let lines: Vec<_> = shown.lines().filter(|line| !line.is_empty()).collect();
    assert!(!shown.contains("weigh 0:"), "{shown}");
    let expected = (1..=70).map(|n| n.to_string()).chain(["partial".to_owned()]);
    let expected = expected.chain((71..=90).map(|n| n.to_string()));
    let begin = lines.iter().position(|line| *line == "1").unwrap();
    assert_eq!(lines[begin..begin + 91], expected.collect::<Vec<_>>(), "{shown}");
}

#[test]
fn ctrl_c_and_ctrl_z_erase_the_live_line() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.type_line(&format!("{LIVE} \"$BURNER\" sleep 50s"));
    terminal.wait_for_the_line(50);
    terminal.press("C-z");
    terminal.wait_for("Stopped");
    let shown = terminal.rows().join("\n");
    assert!(!shown.contains("weigh 0:"), "{shown}");
    terminal.type_line("fg");
    terminal.wait_for_the_line(50);
    terminal.press("C-c");
    terminal.type_line("echo code=''$?");
    terminal.wait_for("\ncode=130");
    let shown = terminal.rows().join("\n");
    assert!(!shown.contains("weigh 0:"), "{shown}");
    // All rows are scrolled again.
    terminal.type_line("seq 1 60; echo th''ere");
    terminal.wait_for("\nthere\nready> ");
    assert_eq!(terminal.rows()[49], "ready>");
}

/// Monitors a process of the shell with `--live` until Ctrl-C: the line is there, leaves no trace,
/// and the process is still running.
fn live_line_of(monitor: &str) {
    let Some(terminal) = Terminal::open() else { return };
    terminal.type_line("set +m; \"$BURNER\" sleep 50s & echo st''arted");
    terminal.wait_for("\nstarted");
    terminal.type_line(&format!("\"$WEIGH\" {monitor} --live -q --no-record"));
    terminal.wait_for_the_line(50);
    let row = terminal.rows()[49].clone();
    assert!(row.contains(" · memory ") && row.ends_with(" · 1 process"), "{row}");
    terminal.press("C-c");
    terminal.type_line("kill -0 $! && echo code=''$?");
    terminal.wait_for("\ncode=0");
    let shown = terminal.rows().join("\n");
    assert!(!shown.contains("weigh 0:"), "{shown}");
    // All rows are scrolled again.
    terminal.type_line("kill $!; seq 1 60; echo th''ere");
    terminal.wait_for("\nthere\nready> ");
    assert_eq!(terminal.rows()[49], "ready>");
}

#[test]
fn live_line_of_attach_leaves_no_trace() {
    live_line_of("attach $!");
}

#[test]
fn live_line_of_watch_leaves_no_trace() {
    live_line_of("watch burner --under $$");
}

#[test]
fn live_line_ends_with_the_process_that_is_attached_to() {
    let Some(terminal) = Terminal::open() else { return };
    let wait = "until [ -e go ]; do \"$BURNER\" sleep 20ms; done";
    terminal.type_line(&format!("set +m; ({wait}) & \"$WEIGH\" attach --live -q --no-record $!"));
    terminal.wait_for_the_line(50);
    std::fs::write(terminal.directory.path().join("go"), "").unwrap();
    terminal.type_line("echo th''ere");
    terminal.wait_for("\nthere\nready> ");
    let shown = terminal.rows().join("\n");
    assert!(!shown.contains("weigh 0:"), "{shown}");
}

/// What is written to a terminal of 24 rows and 40 columns by a shell.
fn written(line: &str) -> Option<String> {
    if !is_installed("script") {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = plain("script", directory.path());
    command.env("TERM", "xterm");
    let line = format!("stty rows 24 cols 40; {line}");
    let output = output(command.args(["-qec", &line, "/dev/null"]));
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn live_line_is_cut_where_the_terminal_ends_and_has_no_colour_with_no_color() {
    let sleep = "run --live -q --no-record -- \"$BURNER\" sleep 1500ms";
    let Some(shown) = written(&format!("\"$WEIGH\" {sleep}")) else { return };
    let (_, line) = shown.split_once("\x1b[24;1H\x1b[0;2m").unwrap();
    let (line, _) = line.split_once("\x1b[0m\x1b[K\x1b8").unwrap();
    assert_eq!(line.chars().count(), 39, "{line}");
    assert!(line.starts_with("weigh 0:0") && line.ends_with('…'), "{line}");
    assert!(shown.ends_with("\x1b7\x1b[r\x1b[24;1H\x1b[0m\x1b[2K\x1b8"), "{shown:?}");
    let Some(shown) = written(&format!("NO_COLOR=1 \"$WEIGH\" {sleep}")) else { return };
    assert!(shown.contains("\x1b[24;1H\x1b[0mweigh") && !shown.contains(";2m"), "{shown:?}");
}

#[test]
fn live_title_is_put_back() {
    let sleep = "run --live=title -q --no-record -- \"$BURNER\" sleep 1500ms";
    let Some(shown) = written(&format!("\"$WEIGH\" {sleep}")) else { return };
    assert!(shown.starts_with("\x1b[22;2t\x1b]2;weigh 0:0"), "{shown:?}");
    assert!(shown.ends_with("\x07\x1b]2;\x07\x1b[23;2t"), "{shown:?}");
}

#[test]
fn live_writes_nothing_where_the_terminal_is_not_ours_or_a_program_has_the_whole_screen() {
    let sleep = "\"$WEIGH\" run --live -q --no-record -- \"$BURNER\" sleep 1500ms";
    for line in [
        // A write of a background job would stop it.
        format!("set -m; stty tostop; {sleep} & wait"),
        format!("stty -icanon; {sleep}"),
        format!("TERM=dumb {sleep}"),
        format!("TERM= {sleep}"),
        format!("{sleep} 2>file; cat file"),
        format!("stty rows 3; {sleep}"),
    ] {
        let Some(shown) = written(&line) else { return };
        assert!(!shown.contains('\x1b'), "{line}: {shown:?}");
    }
}
