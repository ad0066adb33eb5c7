//! Jobs from the environments and answers in `fixtures/schedulers`.
#![expect(clippy::disallowed_methods, reason = "fixtures are files of the repository")]

use std::path::{Path, PathBuf};

use super::*;

/// The variables of a fixture; the files that they name are beside it.
struct Fixture {
    directory: PathBuf,
    text: String,
}

fn text(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/schedulers");
    std::fs::read_to_string(directory.join(name)).unwrap()
}

fn fixture(name: &str) -> Fixture {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/schedulers");
    Fixture { directory, text: text(name) }
}

impl JobEnvironment for Fixture {
    fn variable(&self, name: &str) -> Option<String> {
        let of = |line: &str| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        self.text.lines().find_map(of)
    }

    fn file(&self, path: &Path) -> Option<String> {
        std::fs::read_to_string(self.directory.join(path)).ok()
    }
}

fn found(name: &str) -> JobHere {
    of(&fixture(name)).unwrap()
}

/// Name, cores, MiB and GPUs of each node.
fn nodes(here: &JobHere) -> Vec<String> {
    let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
    let shown = |node: &JobNode| {
        let Requested { cores, memory_bytes, gpus } = node.requested;
        let mib = memory_bytes.map(|bytes| bytes >> 20);
        let [cores, gpus] = [cores, gpus].map(|count| number(count.map(u64::from)));
        format!("{} {cores} {} {gpus}", node.name, number(mib))
    };
    here.nodes.iter().map(shown).collect()
}

#[test]
fn no_job_is_found_where_there_is_none() {
    struct Empty;
    impl JobEnvironment for Empty {
        fn variable(&self, _: &str) -> Option<String> {
            None
        }
        fn file(&self, _: &Path) -> Option<String> {
            None
        }
    }
    assert_eq!(of(&Empty), None);
}

#[test]
fn slurm_step_knows_its_job_and_what_each_node_gives() {
    let here = found("slurm-step.env");
    let job = &here.job;
    assert_eq!((job.scheduler, job.id.as_deref()), (Scheduler::Slurm, Some("3")));
    assert_eq!((job.node.as_deref(), job.node_count), (Some("n2"), Some(2)));
    assert_eq!((job.name.as_deref(), job.partition.as_deref()), (Some("solve"), Some("all")));
    assert_eq!((here.step.as_deref(), job.user.as_deref()), (Some("0"), Some("ada")));
    assert_eq!(nodes(&here), ["n1 2 - -", "n2 2 - -"]);
    assert_eq!(here.marker, JobMarker { name: "SLURM_JOB_ID", value: "3".to_owned() });
}

#[test]
fn scontrol_adds_time_limit_memory_and_gpus_of_each_node() {
    let mut here = found("slurm-step.env");
    slurm::add(&mut here, &text("slurm.scontrol")).unwrap();
    assert_eq!((here.job.time_limit_seconds, here.ends), (Some(300), Some(1_700_000_300)));
    assert_eq!(nodes(&here), ["n1 2 2000 2", "n2 1 1000 1"]);
    assert_eq!(slurm::add(&mut here, "slurm_load_jobs error: Invalid job id specified"), None);
}

#[test]
fn slurm_array_and_restart_are_known() {
    let here = found("slurm-array.env");
    let job = &here.job;
    assert_eq!((job.array_id.as_deref(), job.array_index.as_deref()), (Some("40"), Some("7")));
    assert_eq!(here.directory_name(), "job-47-restart-1");
    assert_eq!(nodes(&here), ["n1 4 8192 2"]);
    assert_eq!(here.job.requested.memory_bytes, Some(8 << 30));
}

#[test]
fn pbs_job_has_the_hosts_of_its_node_file_once() {
    let here = found("pbs.env");
    assert_eq!((here.job.scheduler, here.job.id.as_deref()), (Scheduler::Pbs, Some("0.vm")));
    assert_eq!((here.job.user.as_deref(), here.job.node_count), (Some("ada"), Some(2)));
    assert_eq!(nodes(&here), ["n1 - - -", "n2 - - -"]);
    assert_eq!(here.job.requested.cores, Some(2), "NCPUS is that of this node");
}

#[test]
fn qstat_adds_what_each_node_gives_and_the_time_that_is_left() {
    let mut here = found("pbs.env");
    pbs::add(&mut here, &text("pbs.qstat.json"), 1_700_000_100).unwrap();
    assert_eq!((here.job.time_limit_seconds, here.ends), (Some(300), Some(1_700_000_300)));
    assert_eq!(nodes(&here), ["n1 2 1024 -", "n2 2 2048 1"], "chunks on one node add up");
    assert_eq!(pbs::add(&mut here, "{}", 0), None);
}

#[test]
fn torque_array_has_its_own_variables() {
    let here = found("torque.env");
    let job = &here.job;
    assert_eq!((job.array_id.as_deref(), job.array_index.as_deref()), (Some("12"), Some("3")));
    assert_eq!((job.requested.cores, job.time_limit_seconds), (Some(2), Some(3600)));
}

#[test]
fn oar_job_has_the_cores_of_its_node_file() {
    let mut here = found("oar.env");
    assert_eq!((here.job.array_id.clone(), here.job.array_index.clone()), (None, None));
    assert_eq!((here.job.user.as_deref(), here.job.time_limit_seconds), (Some("ada"), Some(300)));
    assert_eq!(nodes(&here), ["n1 2 - -", "n2 2 - -"]);
    oar::add(&mut here, &text("oar.oarstat.json")).unwrap();
    assert_eq!((here.ends, here.job.partition.as_deref()), (Some(1_700_000_300), Some("default")));
}

#[test]
fn flux_inside_slurm_is_the_inner_job() {
    let here = found("flux-task.env");
    assert_eq!((here.job.scheduler, here.job.node_count), (Scheduler::Flux, Some(2)));
    assert_eq!((here.job.id.as_deref(), here.marker.name), (Some("f23xKUUm7"), "FLUX_JOB_ID"));
    let script = found("flux-batch.env");
    assert_eq!((script.job.id.as_deref(), script.marker.name), (Some("f23xKUUm7"), "FLUX_URI"));
}

/// Answers are cut off at every byte, as a program that is killed leaves them.
#[test]
fn truncated_answer_is_used_as_far_as_it_goes_or_refused() {
    let (scontrol, qstat) = (text("slurm.scontrol"), text("pbs.qstat.json"));
    for end in (0..scontrol.len()).filter(|end| scontrol.is_char_boundary(*end)) {
        let _ = slurm::add(&mut found("slurm-step.env"), &scontrol[..end]);
    }
    for end in 0..qstat.trim_end().len() {
        assert_eq!(pbs::add(&mut found("pbs.env"), &qstat[..end], 0), None, "{end}");
    }
}
