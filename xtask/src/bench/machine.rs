//! The machine of the measurements, and its load.

use std::path::Path;

use anyhow::{Context, Result};
use weigh::host::Host;
use weigh::model::Facts;
use weigh::parse::system_stat::{self, CpuTicks};

/// CPU utilisation of the machine since the start of the bench.
pub(super) struct Load(CpuTicks);

impl Load {
    /// From now on.
    pub(super) fn begin() -> Result<Load> {
        now().map(Load)
    }

    /// The share of the machine that was in use since then, by all processes.
    fn share(&self) -> Result<f64> {
        let idle = |ticks: &CpuTicks| ticks.idle + ticks.iowait.unwrap_or(0);
        let busy = |ticks: &CpuTicks| ticks.user + ticks.nice + ticks.system;
        let now = now()?;
        let (idle, busy) = (idle(&now) - idle(&self.0), busy(&now) - busy(&self.0));
        Ok(busy as f64 / (busy + idle).max(1) as f64)
    }
}

fn now() -> Result<CpuTicks> {
    let bytes = std::fs::read("/proc/stat").context("/proc/stat")?;
    Ok(system_stat::parse(&bytes).context("/proc/stat")?.total)
}

/// The machine in a few lines, without its name.
pub(super) fn described(load: &Load) -> Result<String> {
    let facts = Facts::of(&Host::at(Path::new("/"))?);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": ")).map_or("", |(_, model)| model);
    let kind = if cpuinfo.contains("hypervisor") { "virtual machine" } else { "machine" };
    let gib = facts.memory_bytes.map_or(0.0, |bytes| bytes as f64 / (1u64 << 30) as f64);
    Ok(format!(
        "{} {kind}, {} cores ({}), {gib:.0} GiB, Linux {}. Everything on it together kept {:.0} % of \
         its cores busy while this was measured.",
        facts.architecture,
        facts.cores,
        model.trim(),
        facts.kernel,
        100.0 * load.share()?,
    ))
}
