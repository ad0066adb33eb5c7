//! Known loads, for the tests of `weigh` (`weigh run -- burner …`).
//!
//! Times of CPU are ended by the kernel's own clock of the process or thread,
//! so neither the machine's speed nor a debug build changes them. The test
//! knows what the program used; the figures of `weigh` must match it.
//!
//! There is no Rust `main`: the runtime in front of it ignores SIGPIPE, opens
//! /dev/null over closed descriptors 0 to 2 and reads /proc/self/maps. Each
//! would falsify `state` (what was inherited?) or the count of bytes read.
//!
//! Exit codes: 0 done, 1 failed, 2 bad usage, 3 cannot be had here (`reuse-pid`,
//! `huge-pages`, `signal`), 143 `spawn-sleepers` after SIGTERM.

#![cfg_attr(not(test), no_main)]
#![cfg_attr(test, allow(dead_code, reason = "the test harness brings its own `main`"))]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the bans keep the library's readings behind `host`; a load has no such door"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test reads what a load prints")]

mod arguments;
mod files;
mod memory;
mod network;
mod process;
mod processor;
mod sleepers;
mod state;

use std::ffi::{CStr, OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use arguments::Arguments;

const USAGE: &str = "\
usage: burner LOAD …      durations: 20ms, 1.5s, 2m; sizes: 4096, 64KiB, 400MiB

  cpu DUR                 use DUR of CPU in total, the program's start included
  threads N DUR           N threads use DUR of CPU each, at once
  children N DUR [--ignore-sigchld] [--at-once K] [--print-cpu] [--print-events]
                          N forked children use DUR of CPU each, K at a time (1);
                          --print-cpu: print the seconds that the kernel has counted for
                          all of it, forks and exits included; --print-events: the minor
                          and major page faults and the context switches, too
  daemon DUR              a double-forked grandchild uses DUR of CPU; returns at once
  reuse-pid-often N DUR   N children, one after the other, sleep DUR under one pid;
                          prints `reused N` (root)
  reuse-pid DUR           two children use DUR of CPU each under one pid, one after
                          the other; prints `reused PID` (root; 20ms or more, so
                          that the start times in /proc differ)
  touch SIZE DUR [--after DUR] [--linger DUR]
                          hold SIZE of touched 4 KiB pages for DUR
  map-file PATH SIZE DUR  hold SIZE of a file in memory, mapped and read, for DUR
  private SIZE N DUR      N children hold SIZE each, all of them for DUR
  shared SIZE N DUR       N children share SIZE of the parent's memory for DUR
  vfork SIZE N DUR [--exec]
                          N vfork children in turn sleep DUR in the parent's SIZE of
                          memory; --exec: and then DUR as a program of their own
  huge-pages SIZE DUR     hold SIZE of touched huge pages (MAP_HUGETLB) for DUR
  write PATH SIZE N       N children in turn append SIZE bytes in total
  read PATH SIZE N        N children in turn read the first SIZE bytes in total
  receive ADDRESS         take one TCP connection and read it to its end
  send ADDRESS SIZE       send SIZE bytes over TCP, also to one who listens only soon,
                          and wait until they are taken
  talk N SIZE [--after DUR] [--linger DUR]
                          send SIZE bytes to itself through each of N connections;
                          --linger: keep them open for DUR at the end
  datagrams N SIZE        send N datagrams of SIZE bytes to itself over UDP
  fds N DUR               hold N descriptors of /dev/null for DUR
  thread-forks N DUR      N threads fork one child each that sleeps DUR
  spawn-sleepers N DUR [--tree]
                          N children sleep DUR; --tree: in chains of 10; SIGTERM
                          ends them all
  named NAME DUR          sleep DUR under the thread name NAME (15 bytes, taken raw)
  sleep DUR               sleep
  exit CODE               exit with CODE
  signal NUM              die of signal NUM, without a core dump
  state                   print what was inherited, as one line of JSON
";

/// Why a load did not run to its end.
enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// A call failed that should not have.
    Failed(String),
    /// This machine or user cannot provide what the load needs.
    CannotBeHad(String),
}

/// The failure of a call.
fn failed(what: impl Display, why: io::Error) -> Failure {
    Failure::Failed(format!("{what}: {why}"))
}

/// The entry point that the C library calls.
///
/// # Safety
///
/// `argv` must hold `argc` C strings, as the C library guarantees for `main`.
#[cfg_attr(not(test), unsafe(export_name = "main"))]
unsafe extern "C" fn start(argc: libc::c_int, argv: *const *const libc::c_char) -> libc::c_int {
    let arguments = (1..usize::try_from(argc).unwrap_or(0)).map(|index| {
        // SAFETY: index is below argc, so the pointer is there and its string ends with NUL.
        let argument = unsafe { CStr::from_ptr(*argv.add(index)) };
        OsStr::from_bytes(argument.to_bytes()).to_owned()
    });
    match run(arguments.collect()) {
        Ok(code) => code,
        Err(Failure::Usage(what)) => {
            eprintln!("burner: {what} (`burner help` lists the loads)");
            2
        }
        Err(Failure::Failed(what)) => {
            eprintln!("burner: {what}");
            1
        }
        Err(Failure::CannotBeHad(what)) => {
            eprintln!("burner: {what}");
            3
        }
    }
}

/// Runs the load that the arguments name and returns the exit code.
fn run(arguments: Vec<OsString>) -> Result<libc::c_int, Failure> {
    let mut rest = Arguments::new(arguments);
    let load = rest.argument("LOAD")?;
    match load.to_str() {
        Some("cpu") => {
            let duration = rest.duration("DUR")?;
            rest.end()?;
            process::burn_process(duration);
        }
        Some("threads") => {
            let (count, duration) = (rest.count("N")?, rest.duration("DUR")?);
            rest.end()?;
            processor::threads(count, duration)?;
        }
        Some("children") => {
            let ignore_sigchld = rest.flag("--ignore-sigchld");
            let (prints_cpu, prints_events) =
                (rest.flag("--print-cpu"), rest.flag("--print-events"));
            let at_once = rest.option("--at-once", Arguments::count)?.unwrap_or(1);
            let (count, duration) = (rest.count("N")?, rest.duration("DUR")?);
            rest.end()?;
            processor::children(count, duration, at_once, ignore_sigchld)?;
            if prints_cpu {
                println!("{}", process::used_with_children().as_secs_f64());
            }
            if prints_events {
                let [minor, major, voluntary, involuntary] = process::faults_and_switches();
                println!("{minor} {major} {voluntary} {involuntary}");
            }
        }
        Some("daemon") => {
            let duration = rest.duration("DUR")?;
            rest.end()?;
            processor::daemon(duration)?;
        }
        Some("reuse-pid") => {
            let duration = rest.duration("DUR")?;
            rest.end()?;
            println!("reused {}", processor::reuse_pid(duration)?);
        }
        Some("reuse-pid-often") => {
            let (count, duration) = (rest.count("N")?, rest.duration("DUR")?);
            rest.end()?;
            println!("reused {}", processor::reuse_pid_often(count, duration)?);
        }
        Some("vfork") => {
            let execs = rest.flag("--exec");
            let (size, count) = (rest.size("SIZE")?, rest.count("N")?);
            let duration = rest.duration("DUR")?;
            rest.end()?;
            memory::vfork(size, count, duration, execs)?;
        }
        Some("huge-pages") => {
            let (size, duration) = (rest.size("SIZE")?, rest.duration("DUR")?);
            rest.end()?;
            memory::huge_pages(size, duration)?;
        }
        Some("touch") => {
            let after = rest.option("--after", Arguments::duration)?.unwrap_or_default();
            let linger = rest.option("--linger", Arguments::duration)?.unwrap_or_default();
            let (size, duration) = (rest.size("SIZE")?, rest.duration("DUR")?);
            rest.end()?;
            memory::touch(size, duration, after, linger)?;
        }
        Some("map-file") => {
            let path = PathBuf::from(rest.argument("PATH")?);
            let (size, duration) = (rest.size("SIZE")?, rest.duration("DUR")?);
            rest.end()?;
            memory::map_file(&path, size, duration)?;
        }
        Some(whose @ ("private" | "shared")) => {
            let (size, count) = (rest.size("SIZE")?, rest.count("N")?);
            let duration = rest.duration("DUR")?;
            rest.end()?;
            let hold = if whose == "private" { memory::private } else { memory::shared };
            hold(size, count, duration)?;
        }
        Some(direction @ ("write" | "read")) => {
            let path = rest.argument("PATH")?;
            let (size, count) = (rest.size("SIZE")?, rest.count("N")?);
            rest.end()?;
            if direction == "write" {
                files::write(path.as_ref(), size, count)?;
            } else {
                files::read(path.as_ref(), size, count)?;
            }
        }
        Some("receive") => {
            let address = rest.argument("ADDRESS")?;
            rest.end()?;
            network::receive(&address)?;
        }
        Some("send") => {
            let (address, size) = (rest.argument("ADDRESS")?, rest.size("SIZE")?);
            rest.end()?;
            network::send(&address, size)?;
        }
        Some("talk") => {
            let after = rest.option("--after", Arguments::duration)?.unwrap_or_default();
            let linger = rest.option("--linger", Arguments::duration)?.unwrap_or_default();
            let (count, size) = (rest.count("N")?, rest.size("SIZE")?);
            rest.end()?;
            network::talk(&network::Talk { count, size, after, linger })?;
        }
        Some("datagrams") => {
            let (count, size) = (rest.count("N")?, rest.size("SIZE")?);
            rest.end()?;
            network::datagrams(count, size)?;
        }
        Some("fds") => {
            let (count, duration) = (rest.count("N")?, rest.duration("DUR")?);
            rest.end()?;
            files::hold_descriptors(count, duration)?;
        }
        Some("thread-forks") => {
            let (count, duration) = (rest.count("N")?, rest.duration("DUR")?);
            rest.end()?;
            sleepers::thread_forks(count, duration)?;
        }
        Some("spawn-sleepers") => {
            let tree = rest.flag("--tree");
            let (count, duration) = (rest.count("N")?, rest.duration("DUR")?);
            rest.end()?;
            return sleepers::spawn(count, duration, tree);
        }
        Some("named") => {
            let (name, duration) = (rest.argument("NAME")?, rest.duration("DUR")?);
            rest.end()?;
            sleepers::named(&name, duration)?;
        }
        Some("sleep") => {
            let duration = rest.duration("DUR")?;
            rest.end()?;
            process::sleep(duration);
        }
        Some("exit") => {
            let code = rest.byte("CODE")?;
            rest.end()?;
            return Ok(code.into());
        }
        Some("signal") => {
            let number = rest.byte("NUM")?;
            rest.end()?;
            return Err(process::die_of(number.into()));
        }
        Some("state") => {
            rest.end()?;
            println!("{}", state::as_json()?);
        }
        Some("help" | "--help" | "-h") => print!("{USAGE}"),
        _ => return Err(Failure::Usage(format!("there is no load `{}`", load.display()))),
    }
    Ok(0)
}
