//! What this process inherited, as one line of JSON, to show that nothing of
//! the monitor leaks into what it starts.
//!
//! Surprise: `ru_maxrss` survives exec. A child begins with the peak of the
//! process that forked it, so a large monitor shows up here, while `VmHWM`
//! begins anew.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;

use libc::c_int;

use crate::{Failure, failed};

const STATUS: &str = "/proc/self/status";
const DESCRIPTORS: &CStr = c"/proc/self/fd";

/// The line of JSON.
pub(crate) fn as_json() -> Result<String, Failure> {
    // First, so that nothing we open ourselves is in it.
    let descriptors = descriptors()?
        .into_iter()
        .map(|(fd, target)| format!("{{\"fd\":{fd},\"target\":{}}}", quoted(&target)))
        .collect::<Vec<_>>();
    let status = fs::read_to_string(STATUS).map_err(|why| failed(STATUS, why))?;
    let peak_kib = field(&status, "VmHWM")?.trim_end_matches(" kB").parse::<u64>();
    let peak_kib = peak_kib.map_err(|why| Failure::Failed(format!("{STATUS}: VmHWM: {why}")))?;
    let (soft, hard) = descriptor_limits()?;
    let mut variables = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.as_bytes().starts_with(b"WEIGH"))
        .map(|name| quoted(&name))
        .collect::<Vec<_>>();
    variables.sort();
    // SAFETY: these take numbers only and cannot fail for the caller itself, so
    // a nice value of -1 is one.
    let (nice, pgid, sid, ppid) = unsafe {
        (
            libc::getpriority(libc::PRIO_PROCESS, 0),
            libc::getpgrp(),
            libc::getsid(0),
            libc::getppid(),
        )
    };
    let members = [
        ("signals_blocked", quoted(field(&status, "SigBlk")?.as_ref())),
        ("signals_ignored", quoted(field(&status, "SigIgn")?.as_ref())),
        ("fds", format!("[{}]", descriptors.join(","))),
        ("nofile_soft", soft),
        ("nofile_hard", hard),
        ("nice", nice.to_string()),
        ("pid", std::process::id().to_string()),
        ("pgid", pgid.to_string()),
        ("sid", sid.to_string()),
        ("ppid", ppid.to_string()),
        ("maxrss_bytes", maxrss_bytes()?.to_string()),
        ("vmhwm_bytes", (peak_kib * 1024).to_string()),
        ("child_subreaper", is_child_subreaper()?.to_string()),
        ("weigh_variables", format!("[{}]", variables.join(","))),
    ];
    let members = members.map(|(name, value)| format!("\"{name}\":{value}"));
    Ok(format!("{{{}}}", members.join(",")))
}

/// The value of one line of /proc/self/status.
fn field<'a>(status: &'a str, name: &str) -> Result<&'a str, Failure> {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(str::trim).ok_or_else(|| Failure::Failed(format!("{STATUS}: has no {name}")))
}

/// The open descriptors and what they lead to, ascending, without the one of
/// the listing. std does not expose which one that is, hence opendir(3).
fn descriptors() -> Result<Vec<(c_int, std::ffi::OsString)>, Failure> {
    // SAFETY: the path is a C string.
    let listing = unsafe { libc::opendir(DESCRIPTORS.as_ptr()) };
    if listing.is_null() {
        return Err(failed(DESCRIPTORS.to_string_lossy(), io::Error::last_os_error()));
    }
    // SAFETY: `listing` is open until the end of this function.
    let own = unsafe { libc::dirfd(listing) };
    let mut open = Vec::new();
    loop {
        // SAFETY: as above; the entry is valid until the next readdir, and its
        // name ends with NUL.
        let name = unsafe {
            let entry = libc::readdir(listing);
            if entry.is_null() {
                break;
            }
            CStr::from_ptr((*entry).d_name.as_ptr())
        };
        // `.` and `..` are no numbers.
        let number = name.to_str().ok().and_then(|name| name.parse::<c_int>().ok());
        if let Some(fd) = number.filter(|&fd| fd != own) {
            let path = format!("/proc/self/fd/{fd}");
            let target = fs::read_link(&path).map_err(|why| failed(path, why))?;
            open.push((fd, target.into_os_string()));
        }
    }
    // SAFETY: `listing` is from opendir and is not used after this.
    unsafe { libc::closedir(listing) };
    open.sort();
    Ok(open)
}

/// RLIMIT_NOFILE as JSON, soft and hard; `null` is no limit.
fn descriptor_limits() -> Result<(String, String), Failure> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place to write to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == -1 {
        return Err(failed("RLIMIT_NOFILE", io::Error::last_os_error()));
    }
    let json = |value| match value {
        libc::RLIM_INFINITY => "null".to_owned(),
        value => value.to_string(),
    };
    Ok((json(limit.rlim_cur), json(limit.rlim_max)))
}

fn maxrss_bytes() -> Result<i64, Failure> {
    // SAFETY: rusage is plain numbers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is a valid place to write to.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } == -1 {
        return Err(failed("getrusage", io::Error::last_os_error()));
    }
    Ok(usage.ru_maxrss * 1024)
}

fn is_child_subreaper() -> Result<bool, Failure> {
    let mut set: c_int = 0;
    // SAFETY: PR_GET_CHILD_SUBREAPER writes one int to the address given.
    if unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut set, 0, 0, 0) } == -1 {
        return Err(failed("PR_GET_CHILD_SUBREAPER", io::Error::last_os_error()));
    }
    Ok(set != 0)
}

/// The text as a JSON string; bytes that are not UTF-8 become U+FFFD.
fn quoted(text: &OsStr) -> String {
    let mut json = String::from('"');
    for letter in text.to_string_lossy().chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            '\0'..='\u{1f}' => json.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => json.push(letter),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_stay_valid_json() {
        assert_eq!(quoted(OsStr::new("a\"b\\c\nd")), r#""a\"b\\c\u000ad""#);
    }
}
