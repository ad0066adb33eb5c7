//! Monitors one command, from exec to the last of its children.
//!
//! One thread and one loop: it waits for the next deadline, a signal or a control message,
//! whichever is first.

mod close;
mod reap;
mod start;

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::control::Control;
use super::live::LiveEvent;
use super::sampling_loop::{ENDS, SamplingLoop};
use crate::host::cgroup::Cgroup;
use crate::host::child::{self, ForkedChild, PreExecUsage};
use crate::host::kernel_log::KernelLog;
use crate::host::run_cgroup::RunCgroup;
use crate::host::signals::{self, ReceivedSignal, Signals};
use crate::host::{own, wait};
use crate::model::settings::Settings;
use crate::model::{End, FaultSource, Io, ProcessId, Usage};
use crate::record::inbox::Inbox;
use crate::record::{self, Manifest};
pub(super) use reap::PreRunBaseline;
use start::Start;

/// What ended a sleep early.
struct Woken {
    by_signal: bool,
    by_message: bool,
}

pub(super) struct Monitor {
    sampling: SamplingLoop,
    control: Control,
    signals: Signals,
    root: ProcessId,
    wait_all: bool,
    job_control: bool,
    executed: Duration,
    /// What the child used before exec.
    pause: PreExecUsage,
    reaped: Usage,
    /// When the last process was reaped.
    reaped_at: Duration,
    ended: Option<(End, Duration)>,
    stop_waiting: bool,
    pre_run_baseline: PreRunBaseline,
    /// Whether orphaned descendants are reparented to another process, which reaps them.
    loses_orphans: bool,
    /// The cgroup that is the command's alone.
    own_group: Option<RunCgroup>,
    /// The cgroup that the command is in, and its OOM kills before the run.
    group: Option<(Cgroup, u64)>,
    /// The kernel log that names them.
    kernel_log: Option<KernelLog>,
    /// The memory of the command in its first moments, until they are over.
    start: Option<Start>,
}

impl Monitor {
    pub(super) fn new(
        sampling: SamplingLoop,
        settings: &Settings,
        manifest: &Manifest,
        signals: Signals,
    ) -> Monitor {
        Monitor {
            sampling,
            control: Control::default(),
            signals,
            root: manifest.main(),
            wait_all: settings.wait_all,
            job_control: signals::under_job_control(),
            executed: Duration::ZERO,
            pause: PreExecUsage::default(),
            reaped: Usage::default(),
            reaped_at: Duration::ZERO,
            ended: None,
            stop_waiting: false,
            pre_run_baseline: PreRunBaseline { children: HashSet::new(), io: Io::default() },
            loses_orphans: false,
            own_group: None,
            group: None,
            kernel_log: None,
            start: None,
        }
    }

    /// Records what could not be measured.
    pub(super) fn fault(&mut self, source: impl Into<FaultSource>, why: String) {
        self.sampling.fault(source, why);
    }

    /// Notes that this process is no child subreaper, and why.
    pub(super) fn lose_orphans(&mut self, error: &std::io::Error) {
        self.loses_orphans = true;
        let why = "orphaned descendants (daemons) may be missing, in part or altogether";
        let why = format!("{why}: prctl(PR_SET_CHILD_SUBREAPER): {error}");
        self.fault(FaultSource::ChildSubreaper, why);
    }

    /// Adds the machine's hardware to the recording.
    pub(super) fn describe_machine(&mut self, manifest: Manifest, settings: &Settings) {
        self.sampling.describe_machine(manifest, settings);
    }

    pub(super) fn take_pre_run_baseline(&mut self, pre_run_baseline: PreRunBaseline) {
        self.pre_run_baseline = pre_run_baseline;
    }

    /// Uses the cgroup that was created for the command, or the one that it is in anyway.
    pub(super) fn take_group(&mut self, own: Option<RunCgroup>, around: Option<Cgroup>) {
        let group = own.as_ref().map(|own| own.group.clone()).or(around);
        self.own_group = own;
        self.group = group.and_then(|group| group.oom_kills().map(|kills| (group, kills)));
        // Not every user may read it, and the count is worth reporting without names.
        self.kernel_log = self.group.as_ref().and_then(|_| KernelLog::from_now().ok());
    }

    pub(super) fn take_inbox(&mut self, inbox: Option<Result<Inbox, record::Error>>) {
        if let Some(inbox) = inbox {
            self.control.take_inbox(&mut self.sampling, inbox);
        }
    }

    /// Lets the child exec the command.
    pub(super) fn start(&mut self, waiting: ForkedChild) -> Result<(), child::Error> {
        self.sampling.sample_before_exec();
        let (host, pid) = (&self.sampling.host, self.root.pid);
        self.start = self.sampling.collectors.processes.as_mut().map(|processes| {
            processes.before_exec(host);
            Start::of(host, pid)
        });
        self.executed = self.sampling.now();
        self.pause = match waiting.exec() {
            Ok(pause) => pause,
            Err(error) => {
                // The child has nothing more to do; it is ours to reap.
                while wait::reap(self.root.pid).is_none() && wait::has_children() {
                    std::thread::yield_now();
                }
                return Err(error);
            }
        };
        self.sampling.schedule_from(self.executed);
        Ok(())
    }

    /// Monitors until the command has exited, and with `--wait-all` all its descendants.
    pub(super) fn sample_until_the_end(&mut self) {
        self.sample_before_the_first_tick();
        if self.has_exited_silently() && self.handle_signals() {
            return;
        }
        loop {
            let time = self.sampling.work();
            let woken = self.sleep_sampling_the_start(time);
            if woken.by_message {
                self.control.receive(&mut self.sampling);
            }
            if woken.by_signal && self.handle_signals() {
                return;
            }
        }
    }

    /// Whether the command has exited before the first tick, and nothing else has happened. Then the
    /// tick at its exit is the first. Otherwise one comes before: a child of it that has exited, too,
    /// must be in a tick, and a phase must begin before the exit.
    fn has_exited_silently(&self) -> bool {
        let has_exited = wait::next_exited() == Some(self.root.pid);
        has_exited && !self.sleep(Duration::ZERO).by_message
    }

    /// Passes signals on and reaps what has exited; returns whether the run is over.
    fn handle_signals(&mut self) -> bool {
        while let Some(signal) = self.signals.arrived() {
            self.signal(signal);
        }
        self.reap();
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() && (!self.wait_all || self.stop_waiting || !self.has_children())
    }

    /// Whether any process of the run is left, apart from those before it.
    fn has_children(&self) -> bool {
        wait::has_children()
            && (self.pre_run_baseline.children.is_empty()
                || !own::children(&self.sampling.host).is_subset(&self.pre_run_baseline.children))
    }

    /// Sleeps until a signal or a control message arrives, at most so long.
    fn sleep(&self, time: Duration) -> Woken {
        let signals = self.signals.as_fd();
        let inbox = self.control.fd().unwrap_or(signals);
        let mut sources = [signals, inbox].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let time =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut sources, Some(&time)) {
            Ok(0) => Woken { by_signal: false, by_message: false },
            Ok(_) => Woken {
                by_signal: !sources[0].revents().is_empty(),
                by_message: self.control.fd().is_some() && !sources[1].revents().is_empty(),
            },
            // Better one sample too many.
            Err(_) => Woken { by_signal: true, by_message: true },
        }
    }

    /// Forwards a signal to the command, unless it already got it.
    fn signal(&mut self, signal: ReceivedSignal) {
        if signal.number == libc::SIGCHLD {
            return;
        }
        if signal.number == libc::SIGWINCH {
            self.sampling.tell(LiveEvent::Resized);
        }
        if self.ended.is_some() {
            // Only descendants are left, and a request to end is for us.
            self.stop_waiting |= ENDS.contains(&signal.number);
            return;
        }
        // The rest of the foreground group gets SIGHUP when its leader exits, which is us.
        self.stop_waiting |= signal.is_hang_up();
        if signal.is_for(self.root.pid) {
            signals::send(self.root.pid, signal.number);
        }
    }
}
