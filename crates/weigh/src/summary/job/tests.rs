//! Jobs of made-up nodes: who is missing, who was waited for, what memory was needed.

use std::collections::BTreeMap;

use super::*;
use crate::catalog::metrics::ProcessMemory;
use crate::model::Entity;
use crate::model::batch_job::Scheduler;
use crate::record::Target;
use crate::record::job_directory::JobFile;
use crate::summary::Figure;
use crate::testing::{BEGIN, FakeRun, GIB, MAIN, MIB, cpu, memory};

fn ended(name: &str, cpu: f64, start: i64, seconds: f64) -> NodeSummary {
    let mut node = missing(&JobNode { name: name.to_owned(), requested: Requested::default() });
    node.state = NodeState::Ended;
    node.started = Timestamp::from_second(start).ok();
    node.duration_seconds = Some(seconds);
    node.figures.insert(FigureId::CpuTime, Figure::exact(cpu, "test"));
    node
}

#[test]
fn figures_of_nodes_are_summed_and_their_imbalance_is_told() {
    let nodes = [ended("n1", 10.0, 0, 60.0), ended("n2", 30.0, 0, 60.0)];
    let cpu = combined(FigureId::CpuTime, &nodes).unwrap();
    assert_eq!((cpu.sum, cpu.mean, cpu.max, cpu.max_node.as_str()), (40.0, 20.0, 30.0, "n2"));
    assert!((cpu.imbalance_ratio.unwrap() - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!(combined(FigureId::MemoryPeak, &nodes), None, "it is known of no node");
}

#[test]
fn nodes_that_are_missing_lost_or_early_are_named() {
    let mut lost = ended("n3", 1.0, 0, 60.0);
    lost.state = NodeState::Lost;
    let absent = missing(&JobNode { name: "n4".to_owned(), requested: Requested::default() });
    let mut first = ended("n1", 1.0, 0, 60.0);
    first.processes = Some(0);
    let nodes = [first, ended("n2", 1.0, 5, 20.0), lost, absent];
    let found = coverage(&nodes, Some(4));
    assert_eq!((found.expected, found.recorded), (Some(4), 3));
    assert_eq!(found.idle, ["n1"]);
    assert_eq!(
        (found.silent, found.ended_early),
        (vec!["n4".to_owned()], vec!["n2".to_owned(), "n3".to_owned()])
    );
}

/// A node of a job, and what it did: cores until a moment, memory, and how much of it is no page
/// cache.
#[derive(Clone, Copy)]
struct Did {
    cores: f64,
    until: f64,
    memory: u64,
    without_cache: u64,
    /// How far its clock is ahead.
    ahead: f64,
}

const DID: Did = Did { cores: 2.0, until: 100.0, memory: GIB, without_cache: GIB, ahead: 0.0 };

/// The directory of a job of 100 seconds, whose last node has no recording.
fn job(parent: &Path, nodes: &[Did], requested: Requested) -> PathBuf {
    let directory = parent.join("job-7");
    let name = |place: usize| format!("n{}", place + 1);
    let listed = (0..=nodes.len()).map(|place| JobNode { name: name(place), requested });
    let listed: Vec<JobNode> = listed.collect();
    let mut batch = BatchJob::of(Scheduler::Slurm);
    (batch.id, batch.node_count) = (Some("7".to_owned()), Some(listed.len() as u32));
    let wall = Duration::from_secs(BEGIN);
    let file = JobFile::new(batch.clone(), listed, None, wall);
    job_directory::claim(&directory).unwrap().unwrap().write(&file).unwrap();
    let mut times = LaunchTimes::new(Some("boot 0".to_owned()), wall - Duration::from_secs(1));
    for (place, did) in nodes.iter().enumerate() {
        let mut run = FakeRun::new();
        let manifest = &mut run.manifest;
        manifest.host.name = name(place);
        manifest.host.boot = Some(format!("boot {place}"));
        manifest.started += jiff::SignedDuration::from_secs_f64(did.ahead);
        manifest.target = Some(Target::Job { id: "7".to_owned(), found_by: String::new() });
        manifest.attach_clock_ticks = Some(MAIN.started - 1);
        manifest.job = Some(batch.clone());
        (manifest.interval_seconds, manifest.pid) = (1.0, 0);
        run.starts(0.0, MAIN, "./solve");
        for second in 0..=100 {
            let at = f64::from(second);
            run.sample(at, |tick| {
                cpu(tick, MAIN, did.cores * at.min(did.until), 0.0);
                memory(tick, MAIN, did.memory, did.memory, Some(did.memory));
                let without_cache = Some(did.without_cache);
                let row = ProcessMemory { without_cache, ..ProcessMemory::default() };
                tick.put(Entity::Process(MAIN), &row);
            });
        }
        run.stops(100.0, |_| {});
        run.record(&job_directory::of_node(&directory, &name(place)));
        times.see(&directory, &name(place), wall + Duration::from_secs(1));
    }
    times.write(&directory).unwrap();
    directory
}

fn read(nodes: &[Did], requested: Requested) -> JobReading {
    let parent = tempfile::tempdir().unwrap();
    let directory = job(parent.path(), nodes, requested);
    JobReading::of(&directory, Duration::from_secs(BEGIN + 200), |_| {}).unwrap()
}

fn findings(job: &JobReading) -> BTreeMap<&str, String> {
    let found = job.summary.findings.iter();
    found.map(|one| (one.code.as_str(), format!("{} {}", one.sentence, one.advice))).collect()
}

#[test]
fn node_that_others_waited_for_and_node_without_recording_are_named() {
    let short = Did { until: 20.0, ..DID };
    let job = read(&[short, short, DID], Requested::default());
    let summary = &job.summary;
    assert_eq!((summary.coverage.expected, summary.coverage.recorded), (Some(4), 3));
    assert_eq!(summary.coverage.silent, ["n4"]);
    assert_eq!((&summary.coverage.ended_early[..], summary.is_running), (&[][..], false));
    let cpu = summary.figure(FigureId::CpuTime).unwrap();
    assert!((cpu.sum - 280.0).abs() < 1e-6 && cpu.max_node == "n3", "{cpu:?}");
    let found = findings(&job);
    let late = &found["job.stragglers"];
    assert!(late.starts_with("n3 worked up to 1 min 20 s longer than most of the 3"), "{late}");
    assert_eq!(job.curves.len(), 4);
    assert!(job.curves[3].cores().next().is_none(), "it has no recording");
}

#[test]
fn shifted_clock_of_a_node_is_corrected_and_told() {
    let off = Did { ahead: 90.0, ..DID };
    let job = read(&[DID, off], Requested::default());
    let summary = &job.summary;
    assert!((summary.duration_seconds - 100.0).abs() < 1.0, "{}", summary.duration_seconds);
    assert_eq!(summary.coverage.ended_early, [""; 0]);
    let clock = summary.nodes[1].clock.as_ref().unwrap();
    assert!((clock.seconds - 90.0).abs() <= clock.uncertainty_seconds, "{clock:?}");
    assert_eq!((clock.uncertainty_seconds, clock.source.as_str()), (1.0, "the launcher"));
    let started = summary.nodes[1].started.unwrap().as_second();
    assert_eq!(started, BEGIN as i64, "its times are corrected");
    let cores: Vec<Vec<f64>> = job.curves.iter().map(|curve| curve.cores().collect()).collect();
    assert_eq!(cores[0].len(), cores[1].len(), "both worked at the same time");
}

#[test]
fn page_cache_is_no_reason_to_request_more_memory() {
    let requested = Requested { memory_bytes: Some(4 * GIB), ..Requested::default() };
    let full = Did { memory: 4 * GIB - MIB, ..DID };
    let cached = read(&[Did { without_cache: 300 * MIB, ..full }, DID], requested);
    let found = findings(&cached);
    assert!(!found.contains_key("job.memory_nearly_full"), "{found:?}");
    let need = memory_need(&cached.summary).unwrap();
    assert_eq!((need.node.name.as_str(), need.bytes), ("n2", GIB as f64));
    let needed = read(&[Did { without_cache: 4 * GIB - MIB, ..full }, DID], requested);
    let found = findings(&needed);
    let advice = &found["job.memory_nearly_full"];
    assert!(advice.contains("n1 needed") && advice.contains("#SBATCH --mem=5G"), "{advice}");
}

#[test]
fn too_much_memory_is_only_told_when_every_node_is_known_to_its_end() {
    let requested = Requested { memory_bytes: Some(16 * GIB), ..Requested::default() };
    let job = read(&[DID, DID], requested);
    // The third node is missing.
    assert!(!findings(&job).contains_key("job.memory_requested"));
    let nodes = job.summary.nodes.into_iter().filter(|node| node.state == NodeState::Ended);
    let summary = summary(job.summary.job, nodes.collect(), Some(2));
    let found = summary.findings.iter().find(|one| one.code == "job.memory_requested").unwrap();
    assert!(found.advice.ends_with("#SBATCH --mem=2G"), "{found:?}");
}

#[test]
fn gpus_that_were_requested_and_never_ran_anything_are_counted() {
    let gpu = |is_idle| NodeGpu {
        name: "nvidia0".to_owned(),
        model: None,
        utilization_mean_ratio: None,
        memory_peak_bytes: None,
        is_idle,
    };
    let node = |name, gpus: Vec<NodeGpu>| NodeSummary {
        processes: Some(1),
        requested: Requested { gpus: Some(2), ..Requested::default() },
        gpus,
        ..ended(name, 1.0, 0, 60.0)
    };
    let used = node("n1", vec![gpu(Some(false)), gpu(Some(true))]);
    // It crashed at the start: nothing ever ran there.
    let crashed = NodeSummary { processes: Some(0), ..node("n2", Vec::new()) };
    let told = |nodes: &[NodeSummary]| {
        let found = summary(None, nodes.to_vec(), None).findings;
        found.into_iter().find(|one| one.code == "job.idle_gpus").map(|one| one.sentence)
    };
    let sentence = told(&[used.clone(), crashed]).unwrap();
    assert_eq!(sentence, "3 of 4 GPUs never ran anything: on n1, n2.");
    let unknown = node("n3", vec![gpu(None), gpu(Some(true))]);
    assert_eq!(told(&[used, unknown]), None, "who is on a GPU is not known");
}

#[test]
fn jobs_of_an_array_are_compared_by_least_middle_and_most() {
    let parent = tempfile::tempdir().unwrap();
    let place = |number: usize| parent.path().join(number.to_string());
    let one = |number: usize| {
        std::fs::create_dir(place(number)).unwrap();
        let did = Did { cores: number as f64, memory: number as u64 * GIB, ..DID };
        job(&place(number), &[did, DID], Requested::default())
    };
    let directories: Vec<PathBuf> = [3, 1, 4].map(one).into();
    let wall = Duration::from_secs(BEGIN + 200);
    let array = array::ArraySummary::of(&directories, wall).unwrap();
    let of = |id: FigureId| array.figures.iter().find(|one| one.name == id.name()).unwrap();
    let cpu = of(FigureId::CpuTime);
    // 100 s with so many cores, and 200 s of the other node.
    assert_eq!((cpu.min, cpu.median, cpu.max, cpu.max_job), (300.0, 500.0, 600.0, 2));
    let memory = of(FigureId::MemoryPeak);
    assert_eq!((memory.min, memory.max), (GIB as f64, 4.0 * GIB as f64));
    assert_eq!((array.jobs.len(), array.jobs[0].nodes_recorded), (3, 2));
    let text = crate::report::job_array::text(&array, Default::default());
    assert!(text.contains("3 jobs") && text.contains("CPU time"), "{text}");
    assert!(text.contains("3 with nodes that are missing or ended early: 7, 7, 7"), "{text}");
}

/// Jobs for the tests of reports.
pub(crate) fn of_nodes(count: usize) -> JobReading {
    let node = |place: usize| Did { cores: 0.5 + place as f64 / 10.0, ..DID };
    let nodes: Vec<Did> = (0..count).map(node).collect();
    read(&nodes, Requested { cores: Some(4), memory_bytes: Some(4 * GIB), gpus: None })
}
