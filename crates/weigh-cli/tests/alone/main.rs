//! `weigh` on loads that burn CPU time, or whose result depends on the time of a tick: one test at
//! a time, so that no test takes the CPUs from another.
//!
//! Cargo runs test programs one after the other, and this one always uses one test thread.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends by panicking")]
#![allow(clippy::disallowed_methods, reason = "the bans on the machine's doors are the library's")]
#![allow(dead_code, reason = "what both test programs share is not all used by each")]

#[path = "../support/attached.rs"]
mod attached;
#[path = "../support/cards.rs"]
mod cards;
#[path = "../support/nodes.rs"]
mod nodes;
#[path = "../support/python.rs"]
mod python;
#[path = "../support/recorded.rs"]
mod recorded;
#[path = "../support/slurm.rs"]
mod slurm;
#[path = "../support/test_cgroups.rs"]
mod test_cgroups;
#[path = "../support/weighed.rs"]
mod weighed;

mod attach;
mod cgroups;
mod connections;
mod failures;
mod gpu_partial;
mod jobs;
mod launchers;
mod limits;
mod machine;
mod merge;
mod oar;
mod oasis;
mod packets;
mod phases;
mod run_cgroup;
mod session;
mod soak;
mod truth;
mod uml;
mod watch;

/// Before `main`, because the test harness reads the number of its threads first.
#[used]
#[unsafe(link_section = ".init_array")]
static ONE_AT_A_TIME: extern "C" fn() = {
    extern "C" fn one_at_a_time() {
        // SAFETY: the process has one thread, and both are strings of C.
        unsafe { libc::setenv(c"RUST_TEST_THREADS".as_ptr(), c"1".as_ptr(), 1) };
    }
    one_at_a_time
};
