//! The state that this process inherited, saved before Rust's runtime changes it.
//!
//! Before `main` the runtime ignores SIGPIPE and opens `/dev/null` where a standard stream is
//! closed. The command must get both as weigh inherited them, so a constructor, which runs
//! earlier, saves them.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use weigh::model::Usage;
use weigh::program::Inherited;

const IGNORES_SIGPIPE: u8 = 1 << 3;

static NOTED: AtomicU8 = AtomicU8::new(0);
/// Usage of this process before exec (by `cargo run`, a shell's last command, and exec itself):
/// user and system time as bits, minor and major faults, voluntary and involuntary switches.
static USED: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

extern "C" fn note() {
    let mut noted = 0;
    for stream in 0..3 {
        // SAFETY: F_GETFD only reads; on a closed descriptor it returns an error.
        if unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0 {
            noted |= 1 << stream;
        }
    }
    // SAFETY: a null action only reads; all zeros is a valid place for the result.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action);
        action
    };
    if action.sa_sigaction == libc::SIG_IGN {
        noted |= IGNORES_SIGPIPE;
    }
    NOTED.store(noted, Ordering::Relaxed);
    let used = Usage::own();
    let used = [
        used.user_seconds.to_bits(),
        used.system_seconds.to_bits(),
        used.minor_faults,
        used.major_faults,
        used.voluntary_switches,
        used.involuntary_switches,
    ];
    for (place, used) in USED.iter().zip(used) {
        place.store(used, Ordering::Relaxed);
    }
}

// SAFETY: the loader calls what is in this section, before `main`, with nothing that the
// function needs; it makes only system calls and touches only the atomics above.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

/// The saved state.
pub(crate) fn saved() -> Inherited {
    let noted = NOTED.load(Ordering::Relaxed);
    let [user, system, minor_faults, major_faults, voluntary_switches, involuntary_switches] =
        std::array::from_fn(|which| USED[which].load(Ordering::Relaxed));
    Inherited {
        ignores_sigpipe: noted & IGNORES_SIGPIPE != 0,
        closed: [0, 1, 2].map(|stream| noted & (1 << stream) != 0),
        used: Usage {
            user_seconds: f64::from_bits(user),
            system_seconds: f64::from_bits(system),
            largest_rss_bytes: 0,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
        },
    }
}
