//! `cargo xtask soak`: recordings that are killed, filled up and changed at random, then the fuzz
//! targets.
//!
//! Three campaigns, each trial with its own seed, which is printed on failure and can be given
//! again. They take turns until all trials are done or the time is over.

mod fuzz;
mod trial;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use trial::{Program, Random, Whole, Wrong};

/// What to do, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// For at most this long
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// The seed of the first trial; the others follow it [default: the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// The program to try [default: target/release/weigh, else target/debug/weigh]
    #[arg(long)]
    weigh: Option<PathBuf>,
    /// Monitors killed by SIGKILL
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// Small disks filled
    #[arg(long, default_value_t = 100)]
    fills: u64,
    /// Recordings changed
    #[arg(long, default_value_t = 3000)]
    mutations: u64,
    /// Seconds for each fuzz target, after the trials
    #[arg(long, default_value_t = 60)]
    fuzz_seconds: u64,
}

type Trial<'a> = Box<dyn Fn(&mut Random) -> Result<(), Wrong> + 'a>;

struct Campaign<'a> {
    name: &'static str,
    wanted: u64,
    done: u64,
    trial: Trial<'a>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let program = Program { weigh: program(options)? };
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let first = options.seed.unwrap_or_else(|| clock().as_nanos() as u64 >> 10);
    println!("soak: {} from seed {first}", program.weigh.display());
    let whole = Whole::record(&program).map_err(anyhow::Error::msg)?;
    let fills = if trial::can_mount() {
        options.fills
    } else {
        println!("soak: no small disks are filled: mounting needs root");
        0
    };
    let (program, whole) = (&program, &whole);
    let campaign = |name, wanted, trial| Campaign { name, wanted, done: 0, trial };
    let mut campaigns = [
        campaign(
            "kills",
            options.kills,
            Box::new(|random: &mut _| trial::killed(program, random)) as Trial<'_>,
        ),
        campaign("fills", fills, Box::new(|random: &mut _| trial::filled(program, random))),
        campaign(
            "mutations",
            options.mutations,
            Box::new(|random: &mut _| whole.mutated(program, random)),
        ),
    ];
    let until = Instant::now() + Duration::from_secs(60 * options.minutes);
    let mut wrong = 0;
    let mut seed = first;
    while Instant::now() < until {
        // The campaign that is furthest behind, so that all get their part of the time.
        let share = |one: &Campaign<'_>| one.done as f64 / one.wanted.max(1) as f64;
        let open = campaigns.iter_mut().filter(|one| one.done < one.wanted);
        let Some(next) = open.min_by(|a, b| share(a).total_cmp(&share(b))) else { break };
        next.done += 1;
        if let Err(what) = (next.trial)(&mut Random::of(seed)) {
            wrong += 1;
            println!("soak: {} --seed {seed}: {what}", next.name);
        }
        seed = seed.wrapping_add(1);
    }
    for one in &campaigns {
        println!("soak: {} of {} {}", one.done, one.wanted, one.name);
    }
    if wrong > 0 {
        bail!("{wrong} trials found something wrong; the seeds are above");
    }
    fuzz::run(options.fuzz_seconds)
}

fn program(options: &Options) -> Result<PathBuf> {
    let built = ["target/release/weigh", "target/debug/weigh"].map(PathBuf::from);
    let found = options.weigh.iter().chain(&built).find(|path| path.exists());
    let path = found.context("no weigh to try: cargo build --release")?;
    Ok(path.canonicalize()?)
}
