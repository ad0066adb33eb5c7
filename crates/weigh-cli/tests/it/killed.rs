//! SIGKILL to the monitor at any moment: the command keeps running, the recording opens.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::recorded::shown;
use crate::weighed::{end_of, signal, wait_until, weigh};

/// How many monitors are killed, and how many of them run at once.
const KILLS: usize = 50;
const AT_ONCE: usize = 10;

/// What may be missing at most.
const LOST: f64 = 2.0;

/// Commands that run until the test sends `go`: one that starts a process every now and then,
/// and one without any events.
const BUSY: &str = ": > begun; while [ ! -s said ]; do \"$BURNER\" sleep 20ms; done; : > done";
const QUIET: &str = ": > begun; read word < go; : > done";

/// When each of them is killed, in milliseconds after its command started.
///
/// Most early, some later than a batch stays in memory, and some at the
/// moments at which most would be lost if batches were two seconds apart.
fn moments() -> Vec<u64> {
    // A different seed each time; xorshift is random enough to choose a moment.
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let mut state = clock.as_nanos() as u64 | 1;
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let late = (0..12).map(|_| 600 + below(3500)).collect::<Vec<_>>();
    let worst = (0..8).map(|number| 3965 + 5 * number).collect::<Vec<_>>();
    let early = (0..KILLS - 20).map(|_| below(600)).collect::<Vec<_>>();
    [worst, late, early].concat()
}

#[test]
fn killing_the_monitor_ends_neither_the_command_nor_the_recording() {
    let moments = Mutex::new(moments());
    assert_eq!(moments.lock().unwrap().len(), KILLS);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        // The slow ones are first in the list and should start first.
                        let mut left = moments.lock().unwrap();
                        if left.is_empty() {
                            return;
                        }
                        let moment = left.remove(0);
                        drop(left);
                        let command = if moment.is_multiple_of(2) { QUIET } else { BUSY };
                        kill_after(Duration::from_millis(moment), command);
                    }
                })
            })
            .collect();
        let failed = workers.into_iter().filter_map(|worker| worker.join().err()).count();
        assert_eq!(failed, 0, "see above");
    });
}

fn kill_after(moment: Duration, command: &str) {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    assert!(Command::new("mkfifo").arg(here.join("go")).status().unwrap().success());
    let arguments = ["run", "-q", "-i", "10ms", "-o", "run", "--", "sh", "-c", command];
    let monitor = weigh(here, &arguments).spawn().unwrap();
    wait_until("the command has begun", || here.join("begun").exists());
    thread::sleep(moment);
    signal(monitor.id(), libc::SIGKILL);
    let killed = SystemTime::now();
    end_of(monitor);

    assert!(!here.join("done").exists(), "the command waits for us");
    send_go(here);
    wait_until("the command finished", || here.join("done").exists());

    let recording = here.join("run");
    assert!(!recording.join("summary.json").exists());
    let shown = shown(&recording);
    assert_eq!(shown["run"]["complete"], false, "killed after {moment:?}");
    assert!(shown["run"]["exit_code"].is_null() && shown["run"]["ended"].is_null());
    let lasted = killed.duration_since(started(&recording)).unwrap().as_secs_f64();
    let known = shown["run"]["duration_seconds"].as_f64().unwrap();
    assert!(known <= lasted + 0.001, "{known} s are known of {lasted} s");
    assert!(lasted - known <= LOST, "{:.3} s of {lasted:.3} s are missing", lasted - known);
    crate::recorded::every_figure_is_explained(&shown);
}

fn send_go(here: &Path) {
    fs::write(here.join("said"), "go").unwrap();
    let mut pipe = fs::OpenOptions::new();
    pipe.write(true).custom_flags(libc::O_NONBLOCK);
    // Opening blocks until there is a reader; the other command polls the file.
    wait_until("the command reads or is done", || match pipe.open(here.join("go")) {
        Ok(mut pipe) => pipe.write_all(b"go\n").is_ok(),
        Err(_) => here.join("done").exists(),
    });
}

/// The run's zero by the wall clock, from `run.json`.
fn started(recording: &Path) -> SystemTime {
    let run = fs::read(recording.join("run.json")).unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    let text = run["started"].as_str().unwrap();
    // 2026-11-15T22:06:20.823925164Z: `date` knows the calendar.
    let seconds = Command::new("date").args(["-d", text, "+%s.%N"]).output().unwrap();
    let seconds = String::from_utf8(seconds.stdout).unwrap().trim().parse::<f64>().unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds)
}
