//! What the recorder of a job knows of the wall clock of its node, for the offsets between nodes
//! ([`crate::record::clock`]).

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::host::clock;
use crate::record::clock::ClockReading;
use crate::record::files;

/// A server has the time of its last clock tick.
const SERVER_TICK: f64 = 0.01;

/// Reads it; it takes as long as a file on this file system, where that is NFS.
pub(super) fn reading(directory: &Path) -> ClockReading {
    let before = clock::wall();
    let server = files::server_time(directory);
    let after = clock::wall();
    let server = server.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let ahead = server.map(|server| seconds(before, server) / 2.0 + seconds(after, server) / 2.0);
    let within = server.map(|_| seconds(after, before).abs() / 2.0 + SERVER_TICK);
    ClockReading {
        ahead_of_server_seconds: ahead,
        server_within_seconds: within,
        synchronised_within_seconds: clock::synchronised_within(),
    }
}

/// How much later the first is.
fn seconds(one: Duration, other: Duration) -> f64 {
    (one.as_nanos() as i128 - other.as_nanos() as i128) as f64 / 1e9
}
