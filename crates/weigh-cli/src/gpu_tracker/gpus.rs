//! `--guuids` and `--gb`: the GPUs of the machine, read before the command starts.
//!
//! Only a driver knows UUIDs, and its library stays in the process that has loaded it. The
//! command is forked from this process and would inherit the library's memory, so the driver is
//! queried by a separate process: this program again.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use weigh::catalog::SourceId;
use weigh::catalog::metrics::gpu::is_whole;
use weigh::collect::gpu::devices;
use weigh::collect::{self, Probe};
use weigh::host::Host;
use weigh::model::Gpu;

use super::usage;
use crate::failure::Failure;
use crate::print;

/// The hidden verb of that process.
pub(super) const LIST_GPUS: &str = "list-gpus";

/// The values of `--gb`.
const BRANDS: [&str; 2] = ["nvidia", "amd"];

/// Prints the GPUs that drivers report, as JSON.
pub(super) fn list() -> Result<u8, Failure> {
    let gpus = Host::at(Path::new("/")).map(|host| devices(&host)).unwrap_or_default();
    print::out(&(serde_json::to_string(&gpus).unwrap_or_default() + "\n"));
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
    if let Some(brand) = brand
        && !BRANDS.contains(&brand)
    {
        return Err(usage(format!(
            "\"{brand}\" is not a valid GPU brand. Supported values are \"nvidia\" and \"amd\"."
        )));
    }
    if uuids.is_some_and(|uuids| uuids.split(',').any(str::is_empty)) {
        return Err(usage("gpu_uuids is not None but the set is empty, or one of it is"));
    }
    if uuids.is_none() && brand.is_none() {
        return Ok(None);
    }
    match query_gpus() {
        Some(gpus) => chosen(&gpus, uuids, brand).map_err(usage),
        // A driver that does not answer now may do so while the command runs.
        None => Ok(None),
    }
}

/// The GPUs of this machine; `None` where a driver does not answer.
fn query_gpus() -> Option<Vec<Gpu>> {
    if !has_driver() {
        return Some(Vec::new());
    }
    let mut itself = Command::new("/proc/self/exe");
    itself.arg0("gpu-tracker").arg(LIST_GPUS).stdin(Stdio::null()).stderr(Stdio::null());
    let answer = itself.output().ok()?;
    let gpus: Vec<Gpu> = serde_json::from_slice(&answer.stdout).ok()?;
    Some(gpus).filter(|gpus| !gpus.is_empty())
}

/// Whether this machine has a GPU driver that weigh can query.
fn has_driver() -> bool {
    let gpu = collect::provider(SourceId::Gpu);
    let host = Host::at(Path::new("/")).ok();
    gpu.zip(host).is_some_and(|(gpu, host)| matches!((gpu.probe)(&host), Probe::Ready))
}

fn chosen(
    gpus: &[Gpu],
    uuids: Option<&str>,
    brand: Option<&str>,
) -> Result<Option<Vec<String>>, String> {
    let is_of = |gpu: &&Gpu, brand: &str| gpu.name.starts_with(brand);
    let supported = gpus.iter().filter(|gpu| BRANDS.iter().any(|brand| is_of(gpu, brand)));
    let whole: Vec<&Gpu> = supported.filter(|gpu| is_whole(&gpu.name)).collect();
    let of_brand: Vec<&Gpu> =
        whole.iter().copied().filter(|gpu| brand.is_none_or(|brand| is_of(gpu, brand))).collect();
    if let (Some(brand), true) = (brand, of_brand.is_empty()) {
        let names: Vec<&str> = whole.iter().map(|gpu| gpu.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(format!("no GPU of the brand \"{brand}\" is found. Available GPUs: {names}"));
    }
    let mut available: Vec<&str> = of_brand.iter().filter_map(|gpu| gpu.uuid.as_deref()).collect();
    available.sort_unstable();
    let is_missing = |uuid: &&str| !whole.is_empty() && !available.contains(uuid);
    if let Some(uuid) = uuids.into_iter().flat_map(|uuids| uuids.split(',')).find(is_missing) {
        let available = available.join(", ");
        return Err(format!("GPU UUID of {uuid} is not valid. Available UUIDs are: {available}"));
    }
    let names = || of_brand.iter().map(|gpu| gpu.name.clone()).collect();
    Ok((brand.is_some() && of_brand.len() < gpus.len()).then(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(gpus: &[(&str, &str)]) -> Vec<Gpu> {
        let gpu = |(name, uuid): &(&str, &str)| Gpu {
            name: (*name).to_owned(),
            uuid: Some((*uuid).to_owned()),
            ..Gpu::default()
        };
        gpus.iter().map(gpu).collect()
    }

    #[test]
    fn unknown_uuid_is_refused_with_the_available_ones() {
        let two = machine(&[("nvidia1", "GPU-b"), ("nvidia0", "GPU-a"), ("nvidia0:0", "MIG-c")]);
        assert_eq!(chosen(&two, Some("GPU-b,GPU-a"), None), Ok(None));
        let why = "GPU UUID of GPU-x is not valid. Available UUIDs are: GPU-a, GPU-b";
        assert_eq!(chosen(&two, Some("GPU-a,GPU-x"), None), Err(why.to_owned()));
        assert_eq!(chosen(&[], Some("GPU-x"), None), Ok(None), "as gpu-tracker without a GPU");
        let laptop = machine(&[("intel0", "x")]);
        assert_eq!(
            chosen(&laptop, Some("GPU-x"), None),
            Ok(None),
            "gpu-tracker does not know Intel GPUs"
        );
    }

    #[test]
    fn missing_brand_is_refused_and_one_of_two_brands_is_measured_alone() {
        let two = machine(&[("nvidia0", "GPU-a"), ("nvidia1", "GPU-b")]);
        let why = "no GPU of the brand \"amd\" is found. Available GPUs: nvidia0, nvidia1";
        assert_eq!(chosen(&two, None, Some("amd")), Err(why.to_owned()));
        assert_eq!(chosen(&two, None, Some("nvidia")), Ok(None), "that is all of them");
        assert!(chosen(&[], None, Some("nvidia")).is_err(), "as gpu-tracker");
        let mixed = machine(&[("nvidia0", "GPU-a"), ("amd0", "GPU-b")]);
        let amd = Some(vec!["amd0".to_owned()]);
        assert_eq!(chosen(&mixed, Some("GPU-b"), Some("amd")), Ok(amd));
        assert!(chosen(&mixed, Some("GPU-a"), Some("amd")).is_err(), "it is of the other brand");
    }
}
