//! The answers of the stand-in: a JSON file that a test may change while it is used.
//!
//! `WEIGH_STAND_IN` names the file. `fails`, `blocks_ms` and `hangs` take the name of a call, or
//! a name and a device (`nvmlDeviceGetPowerUsage@1`); `log` is a file that gets a line for each
//! call. A value that a device does not have is not supported.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// A code that NVML returns.
pub(crate) type Code = u32;

pub(crate) const NOT_SUPPORTED: Code = 3;
pub(crate) const INVALID_ARGUMENT: Code = 2;
pub(crate) const INSUFFICIENT_SIZE: Code = 7;
pub(crate) const NOT_FOUND: Code = 6;
const DRIVER_NOT_LOADED: Code = 9;

struct Read {
    /// When the file was last changed, and how long it was then.
    version: (SystemTime, u64),
    script: Arc<Value>,
}

static LAST: Mutex<Option<Read>> = Mutex::new(None);

/// The current script. While it is being written, it is the previous one.
fn current() -> Option<Arc<Value>> {
    let path = std::env::var_os("WEIGH_STAND_IN")?;
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let file = std::fs::metadata(&path).ok()?;
    let version = (file.modified().ok()?, file.len());
    if last.as_ref().is_none_or(|read| read.version != version)
        && let Ok(script) = serde_json::from_slice(&std::fs::read(&path).ok()?)
    {
        *last = Some(Read { version, script: Arc::new(script) });
    }
    last.as_ref().map(|read| Arc::clone(&read.script))
}

/// Logs a call, and does what the script requests for it: fail, be late, never return.
pub(crate) fn enter(call: &str, device: Option<&str>) -> Result<Arc<Value>, Code> {
    let script = current().ok_or(DRIVER_NOT_LOADED)?;
    let call_on_device = device.map(|device| format!("{call}@{device}"));
    if let Some(log) = script["log"].as_str() {
        let opened: std::io::Result<File> = OpenOptions::new().append(true).create(true).open(log);
        let line = format!("{}\n", call_on_device.as_deref().unwrap_or(call));
        // A test that waits for the line will fail.
        let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    }
    let status = |what: &str| {
        let of = |name: &str| script[what].get(name).cloned();
        call_on_device.as_deref().and_then(of).or_else(|| of(call))
    };
    if let Some(late) = status("blocks_ms").and_then(|late| late.as_u64()) {
        std::thread::sleep(Duration::from_millis(late));
    }
    if status("hangs").is_some() {
        loop {
            std::thread::park();
        }
    }
    match status("fails").and_then(|code| code.as_u64()) {
        Some(code) => Err(code as Code),
        None => Ok(script),
    }
}

/// The number at a place of a device.
pub(crate) fn number(device: &Value, place: &str) -> Result<u64, Code> {
    device.pointer(place).and_then(Value::as_u64).ok_or(NOT_SUPPORTED)
}

/// The list of numbers at a place of a device, one list for each line.
pub(crate) fn lines(device: &Value, place: &str) -> Result<Vec<Vec<u64>>, Code> {
    let lines = device.pointer(place).and_then(Value::as_array).ok_or(NOT_SUPPORTED)?;
    let line = |line: &Value| line.as_array()?.iter().map(Value::as_u64).collect();
    lines.iter().map(line).collect::<Option<Vec<Vec<u64>>>>().ok_or(INVALID_ARGUMENT)
}
