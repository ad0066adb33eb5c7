//! Loads for the bench: many processes that sleep or wake, and a fixed amount of work.
//!
//! The burner of `weigh-cli` has loads with known usage; these have a known shape instead: a
//! number of processes, of which some run between two ticks.

use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Subcommand;

/// The kinds of loads.
#[derive(Debug, Subcommand)]
pub(crate) enum Load {
    /// A number of processes, of which some wake up again and again
    Processes {
        /// Processes, this one included
        count: u32,
        /// How many of them wake up
        running: u32,
        /// For how long at most; the caller ends it before
        seconds: u64,
    },
    /// Fork that many children one after the other, and print the seconds it took
    Forks {
        /// How many
        count: u32,
    },
    /// Pass a byte to another process and back that many times, and print the seconds it took
    Switches {
        /// How often
        count: u32,
    },
    /// For every number on stdin, do that many rounds of work in each thread and print the seconds
    /// it took, of time and of CPU
    Work {
        /// Threads at once
        threads: u32,
    },
}

/// Between two wake-ups: short enough that a process that wakes has run in every tick at 10 Hz.
const WAKE_EVERY: Duration = Duration::from_millis(50);

impl Load {
    /// Runs the load.
    pub(crate) fn run(&self) -> Result<()> {
        match *self {
            Load::Processes { count, running, seconds } => processes(count, running, seconds),
            Load::Forks { count } => timed(|| forks(count)),
            Load::Switches { count } => timed(|| switches(count)),
            Load::Work { threads } => {
                for line in std::io::stdin().lines() {
                    let (time, cpu) = work(line?.trim().parse()?, threads);
                    println!("{} {}", time.as_secs_f64(), cpu.as_secs_f64());
                }
                Ok(())
            }
        }
    }
}

/// Prints the seconds that a load took.
fn timed(load: impl FnOnce() -> Result<()>) -> Result<()> {
    let begin = Instant::now();
    load()?;
    println!("{}", begin.elapsed().as_secs_f64());
    Ok(())
}

fn forks(count: u32) -> Result<()> {
    for _ in 0..count {
        // SAFETY: one thread; the child exits at once.
        match unsafe { libc::fork() } {
            -1 => bail!("fork: {}", std::io::Error::last_os_error()),
            // SAFETY: _exit takes a number and does not return.
            0 => unsafe { libc::_exit(0) },
            // SAFETY: waitpid may be asked without a place for the status.
            child => unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) },
        };
    }
    Ok(())
}

fn switches(count: u32) -> Result<()> {
    let (mut from_us, mut to_other) = std::io::pipe()?;
    let (mut from_other, mut to_us) = std::io::pipe()?;
    let mut byte = [0];
    // SAFETY: one thread; the child reads and writes until the pipe is closed, and exits.
    match unsafe { libc::fork() } {
        -1 => bail!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            drop(to_other);
            while from_us.read_exact(&mut byte).and_then(|()| to_us.write_all(&byte)).is_ok() {}
            // SAFETY: _exit takes a number and does not return.
            unsafe { libc::_exit(0) }
        }
        _ => {}
    }
    for _ in 0..count {
        to_other.write_all(&byte)?;
        from_other.read_exact(&mut byte)?;
    }
    Ok(())
}

fn processes(count: u32, running: u32, seconds: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    for child in 1..count {
        // SAFETY: one thread; the child sleeps, adds numbers and exits.
        match unsafe { libc::fork() } {
            -1 => bail!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                // SAFETY: prctl with this option takes one number.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
                // Spread over the period, as unrelated programs would be.
                let offset = WAKE_EVERY * child / count;
                live(child <= running, end + offset, offset);
                // SAFETY: _exit takes a number and does not return.
                unsafe { libc::_exit(0) };
            }
            _ => {}
        }
    }
    live(running >= count, end, Duration::ZERO);
    // SAFETY: waitpid may be asked without a place for the status.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
    Ok(())
}

/// Sleeps until `end`, in one go or waking up to do next to nothing.
fn live(wakes: bool, end: Instant, offset: Duration) {
    if !wakes {
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        return;
    }
    std::thread::sleep(offset);
    while Instant::now() < end {
        std::thread::sleep(WAKE_EVERY);
        black_box(arithmetic(1000));
    }
}

/// The time that the work took, and the CPU time of all threads.
///
/// Threads take their rounds a block at a time from what is left, so that all of them end
/// together and none waits for one that was interrupted.
fn work(rounds: u64, threads: u32) -> (Duration, Duration) {
    const BLOCK: u64 = 100_000;
    let (begin, before) = (Instant::now(), process_cpu());
    let left = AtomicU64::new(rounds * u64::from(threads) / BLOCK);
    let take = || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while take() {
                    black_box(arithmetic(BLOCK));
                }
            });
        }
    });
    (begin.elapsed(), process_cpu().saturating_sub(before))
}

fn process_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists and the kernel fills the time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Work that fits into registers: only the time a CPU gives it counts.
fn arithmetic(rounds: u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}
