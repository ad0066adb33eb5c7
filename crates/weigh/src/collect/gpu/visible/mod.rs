//! Which GPUs a run could use, by `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES` and
//! `HIP_VISIBLE_DEVICES` of its process.
//!
//! Source: for a command that weigh starts, weigh's own environment, which the command inherits;
//! for a process that is followed, `/proc/<pid>/environ`, which its own user may read. What a
//! program sets for itself or for its children later is not known. Of the variables only what
//! they mean is recorded: whether each GPU could be used.
//!
//! What CUDA makes of its list is in [`cuda`], what ROCm makes of its two in [`rocm`]. An empty
//! list of CUDA's or ROCR's means no GPU at all. An empty one of HIP's is as good as not there, and
//! then HIP takes CUDA's, if that is not empty.

mod cuda;
mod rocm;

pub(super) use rocm::{Node, Nodes};

use crate::host::{Host, ProcPath, environment};
use crate::model::Gpu;
use crate::model::gpu::Visible;

const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const CUDA_ORDER: &str = "CUDA_DEVICE_ORDER";
const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";

impl Visible {
    /// What a command is told that is started from here.
    pub fn from_here() -> Visible {
        Visible::said(|name| Some(environment::variable(name)?.to_string_lossy().into_owned()))
    }

    /// What a process was told when it began; nothing where that may not be read.
    pub fn of_process(host: &Host, pid: u32) -> Option<Visible> {
        let mut buffer = Vec::new();
        let path = ProcPath::new(pid, "environ");
        let environment = host.proc.read(path.as_c_str(), &mut buffer).ok()?;
        // The kernel gives none of a process that has ended, or that hides its memory.
        if environment.is_empty() {
            return None;
        }
        Some(Visible::said(|name| {
            let mut pairs = environment.split(|byte| *byte == 0);
            let value =
                pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
            value.map(|value| String::from_utf8_lossy(value).into_owned())
        }))
    }

    fn said(variable: impl Fn(&str) -> Option<String>) -> Visible {
        Visible {
            cuda: variable(CUDA),
            is_by_bus: variable(CUDA_ORDER).is_some_and(|order| order.trim() == "PCI_BUS_ID"),
            rocr: variable(ROCR),
            hip: variable(HIP),
        }
    }

    /// Notes of NVIDIA's GPUs, which are all of these, whether they could be used.
    pub(super) fn mark(&self, all: &mut [Gpu]) {
        cuda::mark(self.cuda.as_deref(), self.is_by_bus, all);
    }

    /// Notes of AMD's GPUs among these whether they could be used, by what ROCm sees of them. Of
    /// Intel's that is not known.
    pub(super) fn mark_by_rocm(&self, all: &mut [Gpu], nodes: &Nodes) {
        let told = |list: &&String| !list.is_empty();
        let hip = self.hip.as_ref().filter(told).or(self.cuda.as_ref().filter(told));
        rocm::mark(self.rocr.as_deref(), hip.map(String::as_str), all, nodes);
    }
}

/// The place, among some, of the only UUID that begins with a word, whatever its case.
fn named<'u>(word: &str, uuids: impl Iterator<Item = Option<&'u str>>) -> Option<usize> {
    let begins =
        |uuid: &str| uuid.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let of_it =
        |(place, uuid): (usize, Option<&str>)| uuid.filter(|uuid| begins(uuid)).map(|_| place);
    let mut places = uuids.enumerate().filter(|_| !word.is_empty()).filter_map(of_it);
    places.next().filter(|_| places.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn where_hip_s_list_is_not_there_or_empty_it_takes_cuda_s() {
        let usable = |hip: Option<&str>, cuda: Option<&str>| {
            let gpu = |name: &str| Gpu { name: name.to_owned(), ..Gpu::default() };
            let mut all = ["amd0", "amd1"].map(gpu);
            let node = |card| Node { card: Some(card), uuid: None };
            let nodes = Nodes { each: vec![node(0), node(1)], some_hidden: false };
            let [hip, cuda] = [hip, cuda].map(|list| list.map(str::to_owned));
            Visible { hip, cuda, ..Visible::default() }.mark_by_rocm(&mut all, &nodes);
            all.map(|gpu| gpu.usable == Some(true))
        };
        assert_eq!(usable(Some("0"), Some("1")), [true, false]);
        assert_eq!(usable(Some(""), Some("1")), [false, true]);
        assert_eq!(usable(None, Some("1")), [false, true]);
        assert_eq!(usable(None, Some("")), [true, true], "an empty one is none");
    }

    #[test]
    fn a_process_that_is_followed_is_asked_for_its_own() {
        let told = "HOME=/\0XCUDA_VISIBLE_DEVICES=7\0CUDA_VISIBLE_DEVICES=1\0\
                    CUDA_DEVICE_ORDER=PCI_BUS_ID\0";
        let fake = FakeHost::new().proc("7/environ", told).proc("8/environ", "HOME=/\0");
        let fake = fake.proc("9/environ", "");
        let of = |pid| Visible::of_process(&fake.host(), pid);
        assert_eq!(
            of(7),
            Some(Visible { is_by_bus: true, cuda: Some("1".to_owned()), ..Visible::default() })
        );
        assert_eq!(of(8), Some(Visible::default()));
        assert_eq!((of(9), of(10)), (None, None), "it does not say, and it is not there");
    }
}
