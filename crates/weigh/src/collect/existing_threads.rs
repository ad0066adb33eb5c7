//! Counters on processes that run already: one set for each thread, inherited by what it starts.
//!
//! Processes may fork while counters are opened on them. A child that was forked before its parent
//! was counted needs its own; a child that was forked later inherits them and must not get a second
//! set. `/proc/loadavg` decides: the threads of a process are counted again until no pid was
//! assigned meanwhile. Then the pid shows whether a child is older.

use std::collections::{HashMap, HashSet};

use crate::host::{Host, ProcPath, clock};
use crate::model::ProcessId;
use crate::parse;

/// Processes whose existing threads are counted.
#[derive(Debug, Default)]
pub(super) struct ExistingThreads {
    /// By pid.
    counted: HashMap<u32, CountedProcess>,
    threads: usize,
}

/// A process that is counted.
#[derive(Debug, Clone, Copy)]
struct CountedProcess {
    /// Clock ticks from boot to its start.
    started: u64,
    /// Clock ticks from boot to when it was counted.
    since: u64,
    /// The last pid that was allocated before: a child with a later pid inherits its counters.
    last_pid: u32,
}

impl CountedProcess {
    /// Whether a child inherits its counters.
    fn passes_on(&self, pid: u32, started: u64) -> bool {
        // Pids begin again at some time; start times are truncated.
        pid > self.last_pid || started > self.since + 1
    }
}

/// How often opening counters is tried for a process that keeps starting others.
const TRIES: usize = 200;

/// The last pid that was allocated to a process or a thread.
fn last_pid(host: &Host, buffer: &mut Vec<u8>) -> Option<u32> {
    let bytes = host.proc.read(c"loadavg", buffer).ok()?;
    parse::loadavg::parse(bytes).ok().map(|loadavg| loadavg.last_pid)
}

impl ExistingThreads {
    /// What counts a running process from now on, and all it starts; nothing where that is counted
    /// already. Parents come first, and there are at most so many threads.
    pub(super) fn count<C>(
        &mut self,
        host: &Host,
        pid: u32,
        most: usize,
        open: &mut dyn FnMut(u32) -> std::io::Result<C>,
    ) -> Result<Vec<C>, String> {
        let mut buffer = Vec::new();
        let stat = host.proc.read(ProcPath::new(pid, "stat").as_c_str(), &mut buffer).ok();
        let Some(stat) = stat.and_then(|bytes| parse::stat::parse(bytes).ok()) else {
            return Ok(Vec::new());
        };
        let (parent, started) = (stat.parent, stat.started);
        if self.has(ProcessId { pid, started }) {
            return Ok(Vec::new());
        }
        let passes_on = |parent: &CountedProcess| parent.passes_on(pid, started);
        if self.counted.get(&parent).is_some_and(passes_on) {
            // Its children inherit the counters, too.
            self.counted.insert(pid, CountedProcess { started, since: started, last_pid: 0 });
            return Ok(Vec::new());
        }
        // Children started while the counters were being opened may have them or not: then they are
        // opened again.
        for _ in 0..TRIES {
            let before = last_pid(host, &mut buffer);
            let opened = self.of_threads(host, pid, most, open)?;
            if before.is_some() && before == last_pid(host, &mut buffer) {
                let (since, last_pid) = (host.ticks(clock::since_boot()), before.unwrap_or(0));
                self.counted.insert(pid, CountedProcess { started, since, last_pid });
                self.threads += opened.len();
                return Ok(opened);
            }
        }
        Err("processes are started here faster than counters can be attached".to_owned())
    }

    /// Whether a process is counted.
    pub(super) fn has(&self, id: ProcessId) -> bool {
        self.counted.get(&id.pid).is_some_and(|counted| counted.started == id.started)
    }

    /// How many processes are counted.
    pub(super) fn processes(&self) -> usize {
        self.counted.len()
    }

    /// Counts every thread of a process.
    fn of_threads<C>(
        &self,
        host: &Host,
        pid: u32,
        most: usize,
        open: &mut dyn FnMut(u32) -> std::io::Result<C>,
    ) -> Result<Vec<C>, String> {
        let (mut opened, mut known, mut found) = (Vec::new(), HashSet::new(), Vec::new());
        loop {
            found.clear();
            // A process that exited has no threads.
            let _ = host.proc.each_name(ProcPath::new(pid, "task").as_c_str(), |name| {
                found.extend(name.to_str().ok().and_then(|name| name.parse::<u32>().ok()));
            });
            found.retain(|tid| known.insert(*tid));
            // A thread started by a counted one inherits its counters.
            if found.is_empty() {
                return Ok(opened);
            }
            for tid in &found {
                if self.threads + opened.len() == most {
                    return Err(format!("more than {most} threads run already"));
                }
                match open(*tid) {
                    Ok(counter) => opened.push(counter),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(format!("perf_event_open: {error}")),
                }
            }
        }
    }
}
