//! A few trials of `cargo xtask soak`, with seeds that are always the same.

#[path = "../../../../xtask/src/soak/trial.rs"]
mod trial;

use crate::weighed::{skipped, weigh_path};
use trial::{Program, Random, Whole, Wrong};

fn program() -> Program {
    Program { weigh: weigh_path().to_owned() }
}

fn try_seeds(seeds: std::ops::Range<u64>, trial: impl Fn(&mut Random) -> Result<(), Wrong>) {
    for seed in seeds {
        trial(&mut Random::of(seed)).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn changed_recording_is_not_reported_as_exact_or_complete() {
    let program = program();
    let whole = Whole::record(&program).unwrap();
    try_seeds(0..40, |random| whole.mutated(&program, random));
}

#[test]
fn recording_of_a_killed_monitor_is_not_reported_as_complete() {
    try_seeds(0..4, |random| trial::killed(&program(), random));
}

#[test]
fn recording_on_a_full_disk_does_not_contradict_the_summary() {
    if !trial::can_mount() {
        return skipped("mounting needs root");
    }
    try_seeds(0..4, |random| trial::filled(&program(), random));
}
