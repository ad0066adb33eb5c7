//! The backend of AMD's and Intel's GPUs: which there are, which are selected, and one poll of
//! them.

use std::time::Duration;

use super::super::backend::Backend;
use super::super::poll::{GpuProcessRow, Poll, PolledPid};
use super::super::selection::is_wanted;
use super::clients::Clients;
use super::device::{DrmCard, DrmDevice, DrmDriver};
use super::kfd::Kfd;
use super::sensor::SensorContext;
use super::usage::DrmProcess;
use crate::catalog::metrics::GpuActivity;
use crate::host::{Descriptors, Dir};
use crate::model::gpu::Visible;
use crate::model::{Gpu, Name, ProcessId};

/// Files that are cached of GPUs: all files of eight of them.
pub(super) const CACHED_FILES: usize = 160;

/// The selected GPUs.
pub(super) struct DrmBackend {
    proc: Dir,
    sys: Dir,
    selected: Vec<DrmDevice>,
    clients: Clients,
    kfd: Kfd,
    /// All GPUs, also those that are not selected.
    all: Vec<Gpu>,
    /// The selected ones, until the first poll reports them.
    new_devices: Vec<Gpu>,
    /// What failed when it was opened, until the first poll reports it.
    problems: Vec<String>,
    buffer: Vec<u8>,
}

impl DrmBackend {
    pub(super) fn open(
        proc: Dir,
        sys: Dir,
        wanted: Option<&[String]>,
        visible: Option<&Visible>,
    ) -> DrmBackend {
        let allowance = Descriptors::at_most(CACHED_FILES);
        let (mut buffer, mut problems) = (Vec::new(), Vec::new());
        let mut context = SensorContext { sys: &sys, buffer: &mut buffer, problems: &mut problems };
        let mut found: Vec<(DrmDevice, Gpu)> = Vec::new();
        for card in DrmCard::all(&sys) {
            let vendor = card.driver.vendor();
            let index =
                found.iter().filter(|(device, _)| device.card.driver.vendor() == vendor).count();
            let name = Name::new(format!("{vendor}{index}").as_bytes());
            let mut device = DrmDevice::new(&sys, name, card, &allowance);
            let gpu = device.describe(&mut context);
            found.push((device, gpu));
        }
        let mut all: Vec<Gpu> = found.iter().map(|(_, gpu)| gpu.clone()).collect();
        let kfd = Kfd::open(&sys, &proc, &mut buffer);
        if let Some(visible) = visible {
            let addresses = found.iter().map(|(device, _)| device.card.address.as_slice());
            visible.mark_by_rocm(&mut all, &kfd.nodes(&addresses.collect::<Vec<_>>()));
            found.iter_mut().zip(&all).for_each(|((_, gpu), marked)| gpu.usable = marked.usable);
        }
        found.retain(|(_, gpu)| wanted.is_none_or(|wanted| is_wanted(wanted, gpu, &all)));
        let (selected, new_devices) = found.into_iter().unzip();
        let clients = Clients::new(proc.clone(), sys.clone());
        DrmBackend { proc, sys, selected, clients, kfd, all, new_devices, problems, buffer }
    }
}

impl Backend for DrmBackend {
    fn devices(&self) -> Vec<Gpu> {
        self.all.clone()
    }

    fn poll(&mut self, at: Duration, changed: &[ProcessId]) -> Poll {
        let mut poll = Poll {
            new_devices: std::mem::take(&mut self.new_devices),
            problems: std::mem::take(&mut self.problems),
            ..Poll::default()
        };
        let (sys, buffer, problems) = (&self.sys, &mut self.buffer, &mut poll.problems);
        self.selected.retain(|device| {
            let exists = device.exists(sys);
            if !exists {
                problems.push(format!("{}: it was removed from the machine", device.name));
            }
            exists
        });
        for device in &mut self.selected {
            device.read_power_state(at, &mut SensorContext { sys, buffer, problems });
        }
        let usage = self.clients.poll(at, changed, &self.selected, buffer);
        let computing = self.kfd.poll(sys, &self.proc, &self.clients, buffer);
        for device in &mut self.selected {
            let mut processes = usage.on(&device.card.address);
            if device.card.driver == DrmDriver::Amdgpu {
                computing.add_to(&device.card.address, &mut processes);
            }
            let unknown = computing.unknown(&device.card.address);
            let used_by = processes.iter().filter(|process| process.uses).count() as u64;
            let mut context = SensorContext { sys, buffer, problems };
            let mut rows = device.poll(at, used_by > 0, &mut context);
            // Without permission to read its files, the GPUs of a process are not known.
            let count = (!self.clients.some_are_hidden()).then_some(used_by + unknown);
            rows.activity = GpuActivity {
                processes: count,
                processes_unknown: count.map(|_| unknown),
                ..rows.activity
            };
            poll.devices.push(rows);
            let row = |process: DrmProcess| {
                GpuProcessRow::new(device.name, PolledPid::Resolved(process.id), process.share)
            };
            poll.processes.extend(processes.into_iter().map(row));
        }
        poll
    }
}
