//! Which GPU of which recording is which, and its name in the merged recording.
//!
//! Every machine calls its first GPU `nvidia0`. With several machines the machine's name is a
//! prefix: `node-b/nvidia0`, or `2/nvidia0` where the machine's name is too long for a [`Name`] or
//! is not unique. Containers of one machine may see one GPU under different names, or different
//! GPUs under one name: the UUID decides, where there is one.

use std::collections::{HashMap, HashSet};

use crate::catalog::metrics::gpu::{is_whole, name_there};
use crate::model::{Facts, Gpu, Name};
use crate::record::{Event, Recording};

/// The GPUs of all recordings.
#[derive(Debug)]
pub(super) struct GpuNames {
    known: Vec<MergedGpu>,
    /// The merged name of each, by its recording and its name there.
    names: HashMap<(usize, Name), Name>,
    taken: HashSet<Name>,
    /// Those that were reported.
    reported: HashSet<Name>,
    /// Those that at least one run could use.
    usable: HashSet<Name>,
    /// The name of the machine of each recording.
    nodes: Vec<String>,
    /// Whether there may be more than one machine.
    several: bool,
}

#[derive(Debug)]
struct MergedGpu {
    attached_at: usize,
    boot: Option<String>,
    there: String,
    uuid: Option<String>,
    name: Name,
}

impl GpuNames {
    /// Of some recordings.
    pub(super) fn of(recordings: &[Recording]) -> GpuNames {
        let boot = |one: &Recording| one.manifest().host.boot.clone();
        let first = recordings.first().and_then(boot);
        let mut gpu_names = GpuNames {
            known: Vec::new(),
            names: HashMap::new(),
            taken: HashSet::new(),
            reported: HashSet::new(),
            usable: HashSet::new(),
            nodes: recordings.iter().map(|one| one.manifest().host.name.clone()).collect(),
            several: first.is_none() || recordings.iter().any(|one| boot(one) != first),
        };
        for (one, recording) in recordings.iter().enumerate() {
            for entry in recording.entries() {
                if let Event::Gpu(gpu) = &entry.event {
                    let name = gpu_names.meet(one, &recording.manifest().host, gpu);
                    // Whatever the others could: one run could use it.
                    if gpu.usable == Some(true) {
                        gpu_names.usable.insert(name);
                    }
                }
            }
        }
        gpu_names
    }

    /// The merged name of a GPU of one of the recordings.
    pub(super) fn name(&self, one: usize, there: Name) -> Name {
        let unknown = || if self.several { numbered(one, there.as_str()) } else { there };
        self.names.get(&(one, there)).copied().unwrap_or_else(unknown)
    }

    /// A GPU as the merged recording reports it; `None` when it was reported before.
    pub(super) fn merge(&mut self, one: usize, gpu: &Gpu) -> Option<Gpu> {
        let name = self.name(one, Name::new(gpu.name.as_bytes()));
        let mut gpu = self.reported.insert(name).then(|| gpu.clone())?;
        gpu.name = name.to_string();
        if gpu.name != name_there(&gpu.name) && gpu.node.is_none() {
            gpu.node = Some(self.nodes[one].clone());
        }
        if self.usable.contains(&name) {
            gpu.usable = Some(true);
        }
        Some(gpu)
    }

    fn meet(&mut self, one: usize, host: &Facts, gpu: &Gpu) -> Name {
        let there = Name::new(gpu.name.as_bytes());
        if let Some(name) = self.names.get(&(one, there)) {
            return *name;
        }
        let boot = host.boot.clone();
        let same = self.known.iter().find(|card| card.is(one, boot.as_deref(), gpu));
        let name = same.map(|card| card.name).unwrap_or_else(|| {
            let name = self.new_name(one, host, gpu);
            let (there, uuid) = (gpu.name.clone(), gpu.uuid.clone());
            self.known.push(MergedGpu { attached_at: one, boot, there, uuid, name });
            name
        });
        self.taken.insert(name);
        self.names.insert((one, there), name);
        name
    }

    fn new_name(&self, one: usize, host: &Facts, gpu: &Gpu) -> Name {
        let is_free = |name: &Name| !self.taken.contains(name);
        if let Some((whole, part)) = gpu.name.split_once(':') {
            // MIG instances belong to their GPU. Two containers may both call theirs the first.
            let whole = self.name(one, Name::new(whole.as_bytes()));
            let first: usize = part.parse().unwrap_or(0);
            let mut names = (first..).map(|part| Name::new(format!("{whole}:{part}").as_bytes()));
            return names.find(is_free).unwrap_or(whole);
        }
        debug_assert!(is_whole(&gpu.name));
        let own = name_there(&gpu.name);
        let machine = host.name.split(['.', ':', '/']).next().unwrap_or_default();
        let named = format!("{machine}/{own}");
        // In a merged recording it already has its machine's name.
        let as_it_is = (!self.several || gpu.node.is_some()).then(|| gpu.name.clone());
        let spoken = [as_it_is, (!machine.is_empty()).then_some(named)];
        let mut spoken = spoken.into_iter().flatten();
        let fitting = spoken.find_map(|name| {
            let fits = name.len() <= Name::LONGEST;
            fits.then(|| Name::new(name.as_bytes())).filter(is_free)
        });
        let mut numbers = (one..).map(|one| numbered(one, own));
        fitting.or_else(|| numbers.find(is_free)).unwrap_or(Name::new(own.as_bytes()))
    }
}

/// The name of a GPU by the number of its recording.
fn numbered(one: usize, there: &str) -> Name {
    Name::new(format!("{}/{there}", one + 1).as_bytes())
}

impl MergedGpu {
    /// Whether this GPU is in one of the recordings.
    fn is(&self, one: usize, boot: Option<&str>, gpu: &Gpu) -> bool {
        let one_machine = match (self.boot.as_deref(), boot) {
            (Some(mine), Some(other)) => Some(mine == other),
            // A recording merged from several machines has no boot id of its own.
            _ => (self.attached_at == one).then_some(true),
        };
        match (&self.uuid, &gpu.uuid) {
            (Some(mine), Some(other)) => mine == other && one_machine != Some(false),
            _ => one_machine == Some(true) && self.there == gpu.name,
        }
    }
}
