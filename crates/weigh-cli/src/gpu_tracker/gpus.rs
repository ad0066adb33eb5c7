//! `--guuids` and `--gb`: the GPUs of the machine, read before the command starts.
//!
//! Only a driver knows UUIDs, and its library stays in the process that has loaded it. The
//! command is forked from this process and would inherit the library's memory, so the driver is
//! queried by a separate process: this program again.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use weigh::compat::gpu_tracker::{check_brand, choose_gpus};
use weigh::doctor;
use weigh::model::Gpu;

use super::usage;
use crate::failure::Failure;
use crate::print;

/// The hidden verb of that process.
pub(super) const LIST_GPUS: &str = "list-gpus";

/// Prints the GPUs that drivers report, as JSON.
pub(super) fn list() -> Result<u8, Failure> {
    print::out(&(serde_json::to_string(&doctor::gpus()).unwrap_or_default() + "\n"));
    Ok(0)
}

/// Refuses UUIDs and a brand that this machine does not have. Returns the names of the GPUs to
/// measure, where not all are measured.
///
/// A machine without GPUs takes any UUID, as gpu-tracker does there: nothing is measured.
pub(super) fn check(
    uuids: Option<&str>,
    brand: Option<&str>,
) -> Result<Option<Vec<String>>, Failure> {
    brand.map_or(Ok(()), check_brand).map_err(usage)?;
    if uuids.is_some_and(|uuids| uuids.split(',').any(str::is_empty)) {
        return Err(usage("gpu_uuids is not None but the set is empty, or one of it is"));
    }
    if uuids.is_none() && brand.is_none() {
        return Ok(None);
    }
    let uuids: Option<Vec<&str>> = uuids.map(|uuids| uuids.split(',').collect());
    match query_gpus() {
        Some(gpus) => choose_gpus(&gpus, uuids.as_deref(), brand).map_err(usage),
        // A driver that does not answer now may do so while the command runs.
        None => Ok(None),
    }
}

/// The GPUs of this machine; `None` where a driver does not answer.
fn query_gpus() -> Option<Vec<Gpu>> {
    if !doctor::has_gpu_driver() {
        return Some(Vec::new());
    }
    let mut itself = Command::new("/proc/self/exe");
    itself.arg0("gpu-tracker").arg(LIST_GPUS).stdin(Stdio::null()).stderr(Stdio::null());
    let answer = itself.output().ok()?;
    let gpus: Vec<Gpu> = serde_json::from_slice(&answer.stdout).ok()?;
    Some(gpus).filter(|gpus| !gpus.is_empty())
}
