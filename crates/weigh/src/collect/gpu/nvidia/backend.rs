//! NVIDIA's backend: which GPUs there are, which are selected, and one poll of them.

use std::time::Duration;

use super::super::backend::Backend;
use super::super::poll::Poll;
use super::super::selection::is_wanted;
use super::device::NvidiaDevice;
use super::pid_resolver::PidResolver;
use crate::host::Dir;
use crate::host::nvml::{Error, ListBuffers, Nvml, NvmlDevice};
use crate::model::gpu::Visible;
use crate::model::{Gpu, Name, ProcessId};

/// PCIe throughput is read once a second at most: for eight GPUs it takes a third of a second.
/// Below a second, because polls are not a second apart to the millisecond.
const THROUGHPUT_INTERVAL: Duration = Duration::from_millis(950);

/// The selected GPUs.
pub(super) struct NvidiaBackend {
    selected: Vec<NvidiaDevice>,
    /// All GPUs, also those that are not selected.
    all: Vec<Gpu>,
    /// The selected ones, until the first poll reports them.
    new_devices: Vec<Gpu>,
    /// What failed when it was opened, until the first poll reports it.
    problems: Vec<String>,
    buffers: ListBuffers,
    resolver: PidResolver,
    throughput_read: Option<Duration>,
}

/// A GPU or MIG instance that NVML lists.
struct FoundDevice {
    device: NvmlDevice,
    gpu: Gpu,
    has_instances: bool,
}

impl NvidiaBackend {
    /// Loads NVML and lists the GPUs. A selected GPU brings its MIG instances.
    pub(super) fn open(
        proc: Dir,
        wanted: Option<&[String]>,
        visible: Option<&Visible>,
    ) -> Result<NvidiaBackend, Error> {
        let nvml = Nvml::load()?;
        let driver = nvml.driver().ok();
        let mut problems = Vec::new();
        let mut found = Vec::new();
        for index in 0..nvml.count()? {
            let name = format!("nvidia{index}");
            match nvml.device(index) {
                Ok(device) => add(&mut found, &name, device, driver.as_deref()),
                Err(code) => problems.push(format!("{name}: {code}")),
            }
        }
        let mut all: Vec<Gpu> = found.iter().map(|found| found.gpu.clone()).collect();
        if let Some(visible) = visible {
            visible.mark(&mut all);
            found.iter_mut().zip(&all).for_each(|(found, gpu)| found.gpu.usable = gpu.usable);
        }
        found.retain(|found| wanted.is_none_or(|wanted| is_wanted(wanted, &found.gpu, &all)));
        let new_devices = found.iter().map(|found| found.gpu.clone()).collect();
        let selected = found.into_iter().map(|found| {
            let name = Name::new(found.gpu.name.as_bytes());
            NvidiaDevice::new(name, found.device, found.has_instances)
        });
        Ok(NvidiaBackend {
            selected: selected.collect(),
            all,
            new_devices,
            problems,
            buffers: ListBuffers::default(),
            resolver: PidResolver::new(proc),
            throughput_read: None,
        })
    }

    /// Reads the PCIe throughput, if it is due; in between it is carried forward.
    fn read_throughput(&mut self, at: Duration, poll: &mut Poll) {
        let is_due = is_due(self.throughput_read, at);
        if is_due {
            self.throughput_read = Some(at);
        }
        for (device, rows) in self.selected.iter_mut().zip(&mut poll.devices) {
            if is_due {
                device.read_throughput();
            }
            [rows.link.pcie_received, rows.link.pcie_sent] = device.throughput;
        }
    }
}

impl Backend for NvidiaBackend {
    fn devices(&self) -> Vec<Gpu> {
        self.all.clone()
    }

    /// The driver lists the processes itself, so their open files are not needed.
    fn poll(&mut self, at: Duration, _: &[ProcessId]) -> Poll {
        let mut poll = Poll {
            new_devices: std::mem::take(&mut self.new_devices),
            problems: std::mem::take(&mut self.problems),
            ..Poll::default()
        };
        for device in &mut self.selected {
            poll.devices.push(device.poll(at, &mut self.buffers, &mut poll.processes));
        }
        self.resolver.resolve(&mut poll.processes);
        self.read_throughput(at, &mut poll);
        self.selected.retain(|device| {
            let Some(code) = device.calls.lost else { return true };
            // The values before it was lost are incomplete.
            poll.devices.retain(|rows| rows.name != device.name);
            poll.processes.retain(|row| row.gpu != device.name);
            poll.problems.push(format!("{}: {code}", device.name));
            false
        });
        poll
    }
}

fn is_due(last: Option<Duration>, at: Duration) -> bool {
    last.is_none_or(|last| at.saturating_sub(last) >= THROUGHPUT_INTERVAL)
}

/// Adds a GPU and its MIG instances.
fn add(found: &mut Vec<FoundDevice>, name: &str, device: NvmlDevice, driver: Option<&str>) {
    let instances = device.mig_instances().unwrap_or_default();
    let has_instances = !instances.is_empty();
    found.push(FoundDevice { device, gpu: describe(name, device, driver), has_instances });
    for (number, instance) in instances.into_iter().enumerate() {
        let gpu = describe(&format!("{name}:{number}"), instance, driver);
        found.push(FoundDevice { device: instance, gpu, has_instances: false });
    }
}

fn describe(name: &str, device: NvmlDevice, driver: Option<&str>) -> Gpu {
    Gpu {
        name: name.to_owned(),
        uuid: device.uuid().ok(),
        model: device.name().ok(),
        memory_bytes: device.memory().ok().map(|memory| memory.total),
        power_limit_watts: device.power_limit().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
        driver: driver.map(str::to_owned),
        usable: None,
        node: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_read_once_a_second_at_most() {
        let reads_in_a_minute = |interval: u64| {
            let (mut last, mut count) = (None, 0);
            for at in (0..60_000).step_by(interval as usize).map(Duration::from_millis) {
                if is_due(last, at) {
                    (last, count) = (Some(at), count + 1);
                }
            }
            count
        };
        assert_eq!([100, 500, 990, 1000, 10_000].map(reads_in_a_minute), [60, 60, 61, 60, 6]);
    }
}
