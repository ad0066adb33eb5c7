//! The arguments that select GPUs (`--gpus`): which GPUs they match, and which match none.
//!
//! Source: before a run, the names in `/proc/driver/nvidia/gpus`, one for each GPU, and
//! `/sys/class/drm`, which every user may list. That takes a few microseconds. The driver is not
//! called, because it may take its time; so UUIDs are compared during the run.

use super::drm;
use crate::catalog::metrics::gpu::whole_of;
use crate::host::{Host, nvml};
use crate::model::Gpu;
use crate::model::gpu::GpuSelector;

/// The first argument that selects a GPU that this machine does not have, and the GPUs that it
/// has. Nothing where only the driver knows.
pub fn not_available<'w>(host: &Host, wanted: &'w [String]) -> Option<(&'w str, Vec<String>)> {
    let counts = counts(host)?;
    let has_none = counts.iter().all(|(_, count)| *count == 0);
    let is_missing = |argument: &&String| match GpuSelector::parse(argument) {
        Some(GpuSelector::Index(maker, number)) => counts
            .iter()
            .filter(|(name, _)| maker.is_none_or(|maker| maker == *name))
            .all(|(_, count)| number as usize >= *count),
        Some(GpuSelector::Uuid) | None => has_none,
    };
    let argument = wanted.iter().find(is_missing)?;
    let names = |(maker, count)| (0..count).map(move |number| format!("{maker}{number}"));
    Some((argument, counts.into_iter().flat_map(names).collect()))
}

/// The number of GPUs of each vendor; nothing when there may be more.
fn counts(host: &Host) -> Option<[(&'static str, usize); 3]> {
    // Another library has other GPUs.
    if nvml::is_named() {
        return None;
    }
    // In WSL, and in some containers, there is no list.
    let listed = host.proc.names(c"driver/nvidia/gpus").map_or(0, |names| names.len());
    if listed == 0 && super::nvidia::is_loaded(host) {
        return None;
    }
    let of = |maker| drm::count(host, maker);
    Some([("nvidia", listed), ("amd", of("amd")), ("intel", of("intel"))])
}

/// Whether an argument matches this GPU: its name, its index, its UUID or a prefix of that.
fn matches(argument: &str, gpu: &Gpu) -> bool {
    let argument = argument.trim();
    let index = gpu.name.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    // As in CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES, a unique prefix of the UUID is enough.
    let is_prefix = |uuid: &str| {
        argument.len() > "GPU-".len()
            && uuid.get(..argument.len()).is_some_and(|start| start.eq_ignore_ascii_case(argument))
    };
    argument == gpu.name || argument == index || gpu.uuid.as_deref().is_some_and(is_prefix)
}

/// Whether a GPU is selected, itself or as a MIG instance of one that is.
pub(super) fn is_wanted(wanted: &[String], gpu: &Gpu, all: &[Gpu]) -> bool {
    let whole = whole_of(&gpu.name);
    let mut both = all.iter().filter(|one| one.name == gpu.name || one.name == whole);
    both.any(|one| wanted.iter().any(|argument| matches(argument, one)))
}

/// The arguments that match no GPU, in a sentence.
pub(super) fn unmatched(wanted: &[String], all: &[Gpu]) -> Option<String> {
    let has_match = |argument: &str| all.iter().any(|gpu| matches(argument, gpu));
    let unmatched = wanted.iter().filter(|argument| !has_match(argument));
    let unmatched: Vec<String> = unmatched.map(|argument| format!("\"{argument}\"")).collect();
    let shown = |gpu: &Gpu| match &gpu.uuid {
        Some(uuid) => format!("{} ({uuid})", gpu.name),
        None => gpu.name.clone(),
    };
    if unmatched.is_empty() {
        return None;
    }
    let available: Vec<String> = all.iter().map(shown).collect();
    Some(format!("there is no GPU {}; there are {}", unmatched.join(", "), available.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn machine() -> Vec<Gpu> {
        [("nvidia0", "GPU-aaaa-1"), ("nvidia0:0", "MIG-bbbb-2"), ("nvidia1", "GPU-cccc-3")]
            .map(|(name, uuid)| Gpu {
                name: name.to_owned(),
                uuid: Some(uuid.to_owned()),
                ..Gpu::default()
            })
            .into()
    }

    fn owned(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }

    fn selected(arguments: &[&str]) -> Vec<String> {
        let (all, arguments) = (machine(), owned(arguments));
        let selected = all.iter().filter(|gpu| is_wanted(&arguments, gpu, &all));
        selected.map(|gpu| gpu.name.clone()).collect()
    }

    #[test]
    fn gpus_are_selected_by_index_name_or_uuid_with_their_mig_instances() {
        assert_eq!(selected(&["1"]), ["nvidia1"]);
        assert_eq!(selected(&["nvidia0"]), ["nvidia0", "nvidia0:0"]);
        assert_eq!(selected(&["gpu-AAAA"]), ["nvidia0", "nvidia0:0"]);
        assert_eq!(selected(&["MIG-bbbb-2", "1"]), ["nvidia0:0", "nvidia1"]);
        assert_eq!(selected(&["GPU-"]), [""; 0], "a prefix of all of them");
    }

    #[test]
    fn missing_gpu_is_reported_with_the_available_ones() {
        let arguments = owned(&["7", "1"]);
        let why = unmatched(&arguments, &machine()).unwrap();
        assert!(why.contains("no GPU \"7\";") && why.contains("nvidia1 (GPU-cccc-3)"), "{why}");
        assert_eq!(unmatched(&arguments[1..], &machine()), None);
    }

    #[test]
    fn argument_is_an_index_a_name_or_a_uuid() {
        for argument in [
            "0",
            "12",
            "nvidia1",
            "amd0",
            "intel3",
            "0:1",
            "nvidia0:1",
            " 1 ",
            "GPU-8f",
            "gpu-8f",
            "MIG-1",
        ] {
            assert!(GpuSelector::parse(argument).is_some(), "{argument}");
        }
        for argument in ["", "all", "nvidia", "-1", "1:", ":1", "1:x", "99999999999", "0 1", "00"] {
            assert!(GpuSelector::parse(argument).is_none(), "{argument}");
        }
    }

    #[test]
    fn index_out_of_range_is_found_without_calling_the_driver() {
        let fake = FakeHost::new()
            .proc("driver/nvidia/gpus/0000:18:00.0/information", "")
            .proc("driver/nvidia/gpus/0000:3b:00.0/information", "");
        let missing = |arguments: &[&str]| {
            not_available(&fake.host(), &owned(arguments))
                .map(|(argument, available)| (argument.to_owned(), available.len()))
        };
        assert_eq!(missing(&["1", "2"]), Some(("2".to_owned(), 2)));
        assert_eq!(missing(&["nvidia7:0"]), Some(("nvidia7:0".to_owned(), 2)));
        assert_eq!(missing(&["0", "nvidia1:3", "GPU-none"]), None, "only the driver knows");
        fake.set_proc("driver/nvidia/version", "NVRM version: 575\n");
        assert_eq!(missing(&["2"]), Some(("2".to_owned(), 2)));
        let fake = fake.sys(
            "class/drm/card0/device/uevent",
            "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\nPCI_ID=8086:E20B\n",
        );
        let missing = |arguments: &[&str]| {
            not_available(&fake.host(), &owned(arguments))
                .map(|(argument, available)| (argument.to_owned(), available.len()))
        };
        assert_eq!(missing(&["1", "intel0"]), None);
        assert_eq!(missing(&["intel1"]), Some(("intel1".to_owned(), 3)), "of all vendors");
        let bare = FakeHost::new();
        let uuid = ["GPU-8f6a".to_owned()];
        let missing = not_available(&bare.host(), &uuid);
        assert_eq!(missing, Some(("GPU-8f6a", Vec::new())), "no driver is loaded");
        bare.set_proc("driver/nvidia/version", "NVRM version: 575\n");
        assert_eq!(not_available(&bare.host(), &["7".to_owned()]), None, "only the driver knows");
    }
}
