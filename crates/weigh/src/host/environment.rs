//! Environment variables, read by name. The environment is never recorded.

use std::ffi::{CStr, OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The variable by which a command finds the recording it runs in.
pub const RUN_VARIABLE: &str = "WEIGH_RUN";

/// The variable by which a script finds the pipe for its phases and marks.
pub const INBOX_VARIABLE: &str = "WEIGH_INBOX";

/// The recording this process runs in, if it is part of a run.
pub fn running_recording() -> Option<PathBuf> {
    variable(RUN_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// One variable of this process's environment.
#[expect(clippy::disallowed_methods, reason = "host is the access to the machine")]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

unsafe extern "C" {
    static environ: *const *const libc::c_char;
}

/// This process's environment as exec takes it, to the byte, with these variables set.
///
/// Not `std::env::vars_os`, which leaves out what has no `=`.
pub fn with(variables: &[(&str, &OsStr)]) -> Vec<OsString> {
    let sets = |entry: &[u8]| {
        let name = entry.split(|byte| *byte == b'=').next();
        variables.iter().any(|(one, _)| Some(one.as_bytes()) == name)
    };
    let mut all = Vec::new();
    // SAFETY: `environ` is null or an array of strings that ends with a null pointer; a program
    // that changes it while another thread reads it is wrong with or without weigh.
    unsafe {
        let mut place = environ;
        while !place.is_null() && !(*place).is_null() {
            let entry = CStr::from_ptr(*place).to_bytes();
            if !sets(entry) {
                all.push(OsString::from_vec(entry.to_vec()));
            }
            place = place.add(1);
        }
    }
    for (name, value) in variables {
        let mut entry = OsString::from(name);
        entry.push("=");
        entry.push(value);
        all.push(entry);
    }
    all
}

/// A file that a variable names, if it is a small one of text.
#[expect(clippy::disallowed_methods, reason = "host is the access to the machine")]
pub fn small_file(path: &Path) -> Option<String> {
    const MOST_BYTES: u64 = 16 << 20;
    let mut options = std::fs::OpenOptions::new();
    // A pipe in its place must not block.
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let is_small = file.metadata().is_ok_and(|file| file.is_file() && file.len() <= MOST_BYTES);
    let mut text = String::new();
    (is_small && file.take(MOST_BYTES).read_to_string(&mut text).is_ok()).then_some(text)
}
