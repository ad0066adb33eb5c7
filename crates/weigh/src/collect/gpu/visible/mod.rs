//! Which GPUs a run could use, by `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES` and
//! `HIP_VISIBLE_DEVICES` of its process.
//!
//! Source: for a command that weigh starts, weigh's own environment, which the command inherits;
//! for an attached process, `/proc/<pid>/environ`, which its own user may read. What a program
//! sets for itself or for its children later is not known. The variables are not recorded, only
//! whether each GPU could be used.
//!
//! How CUDA reads its list is in [`cuda`], how ROCm reads its two in [`rocm`]. An empty list of
//! CUDA's or ROCR's means no GPU at all. An empty one of HIP's counts as unset, and then HIP takes
//! CUDA's, if that is not empty.

mod cuda;
mod rocm;

pub(super) use rocm::{RocmNode, RocmNodes};

use crate::host::{Host, ProcPath, environment};
use crate::model::Gpu;
use crate::model::gpu::Visible;

const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const CUDA_ORDER: &str = "CUDA_DEVICE_ORDER";
const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";

impl Visible {
    /// The variables of a command that is started from here.
    pub fn from_here() -> Visible {
        Visible::read(|name| Some(environment::variable(name)?.to_string_lossy().into_owned()))
    }

    /// The variables of a process when it started; nothing where they may not be read.
    pub fn of_process(host: &Host, pid: u32) -> Option<Visible> {
        let mut buffer = Vec::new();
        let path = ProcPath::new(pid, "environ");
        let environment = host.proc.read(path.as_c_str(), &mut buffer).ok()?;
        // The kernel gives none of a process that exited, or that is not dumpable.
        if environment.is_empty() {
            return None;
        }
        Some(Visible::read(|name| {
            let mut pairs = environment.split(|byte| *byte == 0);
            let value =
                pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
            value.map(|value| String::from_utf8_lossy(value).into_owned())
        }))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Visible {
        Visible {
            cuda: variable(CUDA),
            is_by_bus: variable(CUDA_ORDER).is_some_and(|order| order.trim() == "PCI_BUS_ID"),
            rocr: variable(ROCR),
            hip: variable(HIP),
        }
    }

    /// Sets of NVIDIA's GPUs, which are all of these, whether they could be used.
    pub(super) fn mark(&self, all: &mut [Gpu]) {
        cuda::mark(self.cuda.as_deref(), self.is_by_bus, all);
    }

    /// Sets of AMD's GPUs among these whether they could be used, by the nodes of ROCm. Of Intel's
    /// that is not known.
    pub(super) fn mark_by_rocm(&self, all: &mut [Gpu], nodes: &RocmNodes) {
        let is_set = |list: &&String| !list.is_empty();
        let hip = self.hip.as_ref().filter(is_set).or(self.cuda.as_ref().filter(is_set));
        rocm::mark(self.rocr.as_deref(), hip.map(String::as_str), all, nodes);
    }
}

/// The position of the only UUID that starts with a prefix, in any case.
fn by_uuid<'u>(prefix: &str, uuids: impl Iterator<Item = Option<&'u str>>) -> Option<usize> {
    let is_match = |uuid: &str| {
        uuid.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let position = |(position, uuid): (usize, Option<&str>)| {
        uuid.filter(|uuid| is_match(uuid)).map(|_| position)
    };
    let mut positions = uuids.enumerate().filter(|_| !prefix.is_empty()).filter_map(position);
    positions.next().filter(|_| positions.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn hip_takes_the_list_of_cuda_where_its_own_is_unset_or_empty() {
        let usable = |hip: Option<&str>, cuda: Option<&str>| {
            let gpu = |name: &str| Gpu { name: name.to_owned(), ..Gpu::default() };
            let mut all = ["amd0", "amd1"].map(gpu);
            let node = |gpu| RocmNode { gpu: Some(gpu), uuid: None };
            let nodes = RocmNodes { each: vec![node(0), node(1)], some_hidden: false };
            let [hip, cuda] = [hip, cuda].map(|list| list.map(str::to_owned));
            Visible { hip, cuda, ..Visible::default() }.mark_by_rocm(&mut all, &nodes);
            all.map(|gpu| gpu.usable == Some(true))
        };
        assert_eq!(usable(Some("0"), Some("1")), [true, false]);
        assert_eq!(usable(Some(""), Some("1")), [false, true]);
        assert_eq!(usable(None, Some("1")), [false, true]);
        assert_eq!(usable(None, Some("")), [true, true], "an empty one is unset");
    }

    #[test]
    fn attached_process_has_its_own_variables() {
        let environ = "HOME=/\0XCUDA_VISIBLE_DEVICES=7\0CUDA_VISIBLE_DEVICES=1\0\
                    CUDA_DEVICE_ORDER=PCI_BUS_ID\0";
        let fake = FakeHost::new().proc("7/environ", environ).proc("8/environ", "HOME=/\0");
        let fake = fake.proc("9/environ", "");
        let of = |pid| Visible::of_process(&fake.host(), pid);
        assert_eq!(
            of(7),
            Some(Visible { is_by_bus: true, cuda: Some("1".to_owned()), ..Visible::default() })
        );
        assert_eq!(of(8), Some(Visible::default()));
        assert_eq!((of(9), of(10)), (None, None), "it may not be read, and it does not exist");
    }
}
