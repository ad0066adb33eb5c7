//! Which GPUs a run could use, by `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES` and
//! `HIP_VISIBLE_DEVICES` of its process.
//!
//! Source: for a command that weigh starts, weigh's own environment, which the command inherits;
//! for a process that is followed, `/proc/<pid>/environ`, which its own user may read. What a
//! program sets for itself or for its children later is not known. Of the variables only what
//! they mean is recorded: whether each GPU could be used.
//!
//! What surprised us: CUDA counts the fastest card first unless `CUDA_DEVICE_ORDER` says
//! `PCI_BUS_ID`, so on a machine with several models a number may mean another card than NVML's of
//! the same number. A word that means nothing ends the list: those after it are not seen. HIP
//! counts what ROCR has left, so its number 0 is the first of ROCR's list; where its own variable
//! is not there or empty, it takes CUDA's. An empty list of ROCR's or CUDA's own is none at all.

use super::choice::is_number;
use super::{is_whole, whole_of};
use crate::host::{Host, ProcPath, environment};
use crate::sample::Gpu;

const CUDA: &str = "CUDA_VISIBLE_DEVICES";
const CUDA_ORDER: &str = "CUDA_DEVICE_ORDER";
const ROCR: &str = "ROCR_VISIBLE_DEVICES";
const HIP: &str = "HIP_VISIBLE_DEVICES";

/// What a process is told of the GPUs it may see; a list that is not there means all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible {
    cuda: Option<String>,
    /// Whether CUDA counts cards as NVML does.
    is_by_bus: bool,
    rocr: Option<String>,
    hip: Option<String>,
}

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

    /// Notes of all GPUs of one driver whether they could be used. Of Intel's that is not known.
    pub(super) fn mark(&self, all: &mut [Gpu]) {
        let told = |list: &&String| !list.is_empty();
        let hip = self.hip.as_ref().filter(told).or(self.cuda.as_ref().filter(told));
        mark_of("nvidia", self.is_by_bus, &[self.cuda.as_ref()], all);
        mark_of("amd", false, &[self.rocr.as_ref(), hip], all);
    }
}

/// Notes it of one maker's: each list chooses among those that the one before it has left.
fn mark_of(maker: &str, is_by_bus: bool, lists: &[Option<&String>], all: &mut [Gpu]) {
    let mut left: Vec<usize> =
        (0..all.len()).filter(|place| all[*place].name.starts_with(maker)).collect();
    let theirs = left.clone();
    let mut models = left.iter().map(|place| &all[*place]).filter(|gpu| is_whole(&gpu.name));
    let first = models.next().map(|gpu| &gpu.model);
    let numbers_tell = is_by_bus || models.all(|gpu| Some(&gpu.model) == first);
    for list in lists.iter().flatten() {
        let words = list.split(',').map(str::trim);
        let words: Vec<&str> = words.take_while(|word| meant(word, &left, all).is_some()).collect();
        if !numbers_tell && words.iter().any(|word| is_number(word)) {
            return;
        }
        left = words.iter().filter_map(|word| meant(word, &left, all)).collect();
    }
    let is_chosen = lists.iter().any(Option::is_some);
    let usable = |place: &usize| {
        if is_chosen { could_use(&all[*place], &left, all) } else { Some(true) }
    };
    let usable: Vec<Option<bool>> = theirs.iter().map(usable).collect();
    theirs.iter().zip(usable).for_each(|(place, usable)| all[*place].usable = usable);
}

/// The place of the GPU that a word means among those that are left: the number of a whole one,
/// or enough of a UUID to tell it from all others.
fn meant(word: &str, left: &[usize], all: &[Gpu]) -> Option<usize> {
    if is_number(word) {
        let mut whole = left.iter().copied().filter(|place| is_whole(&all[*place].name));
        return whole.nth(word.parse().ok()?);
    }
    let begins = |place: &usize| {
        let start = all[*place].uuid.as_deref().and_then(|uuid| uuid.get(..word.len()));
        !word.is_empty() && start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let mut places = left.iter().copied().filter(begins);
    places.next().filter(|_| places.next().is_none())
}

/// Whether a GPU could be used: itself, or one of its parts. Which part CUDA takes of a divided
/// card that was named as a whole is its own affair.
fn could_use(gpu: &Gpu, seen: &[usize], all: &[Gpu]) -> Option<bool> {
    let whole = whole_of(&gpu.name);
    let is_seen = |name: &str| seen.iter().any(|place| all[*place].name == name);
    if is_seen(&gpu.name) {
        return Some(true);
    }
    if is_whole(&gpu.name) {
        let part = format!("{whole}:");
        return Some(seen.iter().any(|place| all[*place].name.starts_with(&part)));
    }
    if is_seen(whole) { None } else { Some(false) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn machine(models: [&str; 2]) -> Vec<Gpu> {
        let gpu = |name: &str, uuid: &str, model: &str| Gpu {
            name: name.to_owned(),
            uuid: Some(uuid.to_owned()),
            model: Some(model.to_owned()),
            ..Gpu::default()
        };
        vec![
            gpu("nvidia0", "GPU-aaaa-1", models[0]),
            gpu("nvidia0:0", "MIG-bbbb-2", "1g.10gb"),
            gpu("nvidia0:1", "MIG-bbcc-3", "1g.10gb"),
            gpu("nvidia1", "GPU-aacc-4", models[1]),
        ]
    }

    fn listed(list: &str) -> Visible {
        Visible { cuda: Some(list.to_owned()), ..Visible::default() }
    }

    /// Of `nvidia0`, its two parts, and `nvidia1`.
    fn usable(visible: &Visible, models: [&str; 2]) -> Vec<Option<bool>> {
        let mut all = machine(models);
        visible.mark(&mut all);
        all.iter().map(|gpu| gpu.usable).collect()
    }

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);
    const ALIKE: [&str; 2] = ["H100", "H100"];

    #[test]
    fn numbers_uuids_and_their_beginnings_name_gpus_and_an_empty_list_none() {
        assert_eq!(usable(&listed("1"), ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable(&listed(" GPU-AACC-4 "), ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable(&listed("GPU-aac"), ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable(&listed(""), ALIKE), [NO; 4]);
        assert_eq!(usable(&listed("-1"), ALIKE), [NO; 4]);
        assert_eq!(usable(&listed("NoDevFiles"), ALIKE), [NO; 4]);
        assert_eq!(usable(&Visible::default(), ALIKE), [YES; 4]);
    }

    #[test]
    fn a_word_that_means_nothing_or_two_ends_the_list() {
        assert_eq!(usable(&listed("1,7,0"), ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable(&listed("1,GPU-aa,0"), ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable(&listed("1,,0"), ALIKE), [NO, NO, NO, YES]);
    }

    #[test]
    fn a_part_makes_its_card_usable_and_of_a_divided_card_nobody_knows_which_part() {
        assert_eq!(usable(&listed("MIG-bbcc-3"), ALIKE), [YES, NO, YES, NO]);
        assert_eq!(usable(&listed("0"), ALIKE), [YES, None, None, NO]);
    }

    #[test]
    fn among_several_models_a_number_tells_only_when_cards_are_counted_by_their_bus() {
        let models = ["T400", "H100"];
        assert_eq!(usable(&listed("0"), models), [None; 4]);
        let by_bus = Visible { is_by_bus: true, ..listed("1") };
        assert_eq!(usable(&by_bus, models), [NO, NO, NO, YES]);
        assert_eq!(usable(&listed("GPU-aacc"), models), [NO, NO, NO, YES], "no number is in it");
    }

    #[test]
    fn of_amd_s_rocr_chooses_and_hip_counts_what_is_left() {
        let gpu = |name: &str, uuid: &str| Gpu {
            name: name.to_owned(),
            uuid: Some(uuid.to_owned()),
            model: Some("MI250X".to_owned()),
            ..Gpu::default()
        };
        let usable = |rocr: Option<&str>, hip: Option<&str>, cuda: Option<&str>| {
            let [rocr, hip, cuda] = [rocr, hip, cuda].map(|list| list.map(str::to_owned));
            let names = ["amd0", "amd1", "amd2", "intel0"];
            let mut all: Vec<Gpu> = names.map(|name| gpu(name, &format!("GPU-{name}"))).into();
            Visible { rocr, hip, cuda, ..Visible::default() }.mark(&mut all);
            all.iter().map(|gpu| gpu.usable).collect::<Vec<_>>()
        };
        assert_eq!(usable(None, None, None), [YES, YES, YES, None]);
        assert_eq!(usable(Some("2,GPU-amd1"), None, None), [NO, YES, YES, None]);
        assert_eq!(usable(Some("2,GPU-amd1"), Some("1"), None), [NO, YES, NO, None]);
        assert_eq!(usable(None, Some("0"), Some("1")), [YES, NO, NO, None]);
        assert_eq!(usable(None, Some(""), Some("1")), [NO, YES, NO, None], "CUDA's, then");
        assert_eq!(usable(None, None, Some("")), [YES, YES, YES, None]);
        assert_eq!(usable(Some(""), Some("0"), None), [NO, NO, NO, None]);
    }

    #[test]
    fn a_process_that_is_followed_is_asked_for_its_own() {
        let told = "HOME=/\0XCUDA_VISIBLE_DEVICES=7\0CUDA_VISIBLE_DEVICES=1\0\
                    CUDA_DEVICE_ORDER=PCI_BUS_ID\0";
        let fake = FakeHost::new().proc("7/environ", told).proc("8/environ", "HOME=/\0");
        let fake = fake.proc("9/environ", "");
        let of = |pid| Visible::of_process(&fake.host(), pid);
        assert_eq!(of(7), Some(Visible { is_by_bus: true, ..listed("1") }));
        assert_eq!(of(8), Some(Visible::default()));
        assert_eq!((of(9), of(10)), (None, None), "it does not say, and it is not there");
    }
}
