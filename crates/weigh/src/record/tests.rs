//! A recording holds what was measured, complete or torn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::catalog::metrics::{
    MadeOf, NetworkTraffic, ProcessCpu, ProcessMemory, ProcessState, TaskState,
};
use crate::catalog::{Row, Scope, Stored, Value};
use crate::model::settings::Settings;
use crate::model::{Entity, Facts, Name, ProcessId, Tick};

const SECOND: Duration = Duration::from_secs(1);

fn manifest() -> Manifest {
    let facts = Facts { cores: 2, cores_allowed: 2.0, ..Facts::example() };
    Manifest::new(
        &Settings::default(),
        &["true".to_owned()],
        facts,
        Duration::from_secs(1_700_000_000),
    )
}

fn groups() -> Vec<&'static [crate::catalog::Metric]> {
    crate::catalog::groups(Settings::default().sources())
}

fn process(pid: u32) -> Entity {
    Entity::Process(ProcessId { pid, started: 100 + u64::from(pid) })
}

/// The tick of one second: two processes, one of which has hardly any values.
fn fill(tick: &mut Tick, second: u64) {
    tick.begin(SECOND * second as u32);
    let user = Some(second as f64 / 8.0);
    tick.put(process(1), &ProcessCpu { user, ..ProcessCpu::default() });
    tick.put(process(1), &ProcessMemory { rss: Some(second << 20), ..ProcessMemory::default() });
    let doing = TaskState::from_value(Value::Symbol(1));
    tick.put(process(2), &ProcessState { threads: Some(3), doing, ..ProcessState::default() });
}

/// Records some seconds, a batch each, and returns the directory.
fn record(directory: &Path, seconds: u64) -> PathBuf {
    let path = directory.join("run");
    let mut tick = Tick::new(&groups());
    let mut writer = Writer::create(&path, &manifest(), &tick).unwrap();
    for second in 1..=seconds {
        fill(&mut tick, second);
        writer.tick(&tick);
        let text = format!("second {second}");
        writer.event(Entry::new(SECOND * second as u32, Event::Mark { text }));
        writer.flush(tick.at);
    }
    assert_eq!(writer.finish(SECOND * seconds as u32, || false), [""; 0]);
    path
}

/// Every row and event, as text.
fn replayed(path: &Path) -> Result<Vec<String>, Error> {
    let mut seen = Vec::new();
    let recording = Recording::open(path)?;
    recording.replay(&groups(), |frame| match frame.moment {
        Moment::Event(entry) => seen.push(format!("{entry:?}")),
        Moment::Tick(tick) => {
            let Some(table) = tick.table(Scope::Process) else { return };
            for row in 0..table.len() {
                seen.push(format!(
                    "{:?} {:?} {:?} {:?} {:?}",
                    tick.at,
                    table.entities()[row],
                    table.get::<ProcessCpu>(row),
                    table.get::<ProcessMemory>(row),
                    table.get::<ProcessState>(row)
                ));
            }
        }
    })?;
    Ok(seen)
}

#[test]
fn what_is_read_is_what_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path(), 3);
    let mut tick = Tick::new(&groups());
    let mut expected = Vec::new();
    for second in 1..=3 {
        fill(&mut tick, second);
        let table = tick.table(Scope::Process).unwrap();
        for row in 0..table.len() {
            let (cpu, memory) = (table.get::<ProcessCpu>(row), table.get::<ProcessMemory>(row));
            let (entity, state) = (table.entities()[row], table.get::<ProcessState>(row));
            expected.push(format!("{:?} {entity:?} {cpu:?} {memory:?} {state:?}", tick.at));
        }
        let text = format!("second {second}");
        let entry = Entry::new(SECOND * second as u32, Event::Mark { text });
        expected.push(format!("{:?}", Entry { sequence: Some(2 * second), ..entry }));
    }
    assert_eq!(replayed(&path).unwrap(), expected);
}

#[test]
fn devices_are_recorded_under_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    let device = |name: &str| Entity::Named(Name::new(name.as_bytes()));
    let mut tick = Tick::new(&groups());
    let mut writer = Writer::create(&path, &manifest(), &tick).unwrap();
    let mut expected = Vec::new();
    for second in 1..=3 {
        tick.begin(SECOND * second as u32);
        for name in ["lo", "eth0", "caf\u{e9}"].into_iter().take(second as usize) {
            let made_of = MadeOf::from_value(Value::Symbol(u8::from(name == "eth0")));
            let row =
                NetworkTraffic { received: Some(second), made_of, ..NetworkTraffic::default() };
            tick.put(device(name), &row);
            expected.push((device(name), row));
        }
        writer.tick(&tick);
        // A batch each, so that they are merged at the end.
        writer.flush(tick.at);
    }
    assert_eq!(writer.finish(4 * SECOND, || false), [""; 0]);
    let recording = Recording::open(&path).unwrap();
    let schema = recording.batches(Scope::Nic).unwrap().unwrap().schema().unwrap();
    let keys: Vec<_> = schema.fields().iter().take(3).map(|field| field.name()).collect();
    assert_eq!(keys, ["time", "seq", "device"]);
    let mut found = Vec::new();
    let each = |frame: &Frame<'_>| {
        let Moment::Tick(tick) = frame.moment else { return };
        let Some(table) = tick.table(Scope::Nic) else { return };
        found.extend((0..table.len()).map(|row| (table.entities()[row], table.get(row))));
    };
    recording.replay(&groups(), each).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn many_small_batches_are_merged_into_few_large_ones() {
    let directory = tempfile::tempdir().unwrap();
    let stream = record(directory.path(), 50).join("node-a/process.arrows");
    assert_eq!(Batches::open(&stream).unwrap().count(), 1);
    assert!(!files::partial_name(&stream).exists());
}

/// A stream of small batches as it is during the run.
fn growing(directory: &Path) -> (PathBuf, PathBuf) {
    let path = directory.join("run");
    let mut tick = Tick::new(&groups());
    let mut writer = Writer::create(&path, &manifest(), &tick).unwrap();
    let stream = path.join("node-a/process.arrows");
    for second in 1..=3 {
        fill(&mut tick, second);
        writer.tick(&tick);
        writer.flush(tick.at);
    }
    // The writer's thread ends on request; a copy of its files is what SIGKILL leaves.
    let copy = directory.join("copy");
    while Batches::open(&stream).unwrap().count() < 3 {
        std::thread::yield_now();
    }
    std::fs::create_dir_all(copy.join("node-a")).unwrap();
    for file in ["run.json", "events.jsonl", "node-a/process.arrows"] {
        std::fs::copy(path.join(file), copy.join(file)).unwrap();
    }
    (copy.clone(), copy.join("node-a/process.arrows"))
}

/// The times of a stream's rows.
fn times(stream: &Path) -> Result<Vec<Duration>, Error> {
    let mut table = crate::model::Table::new(Scope::Process, &groups());
    for batch in Batches::open(stream)? {
        stream::decode(&batch?, Duration::ZERO, &mut table);
    }
    Ok(table.times().to_vec())
}

#[test]
fn a_stream_cut_at_any_byte_gives_every_complete_batch() {
    let directory = tempfile::tempdir().unwrap();
    let (path, stream) = growing(directory.path());
    let whole = std::fs::read(&stream).unwrap();
    let all = times(&stream).unwrap();
    assert_eq!(all.len(), 6);
    let mut seen = 0;
    for end in 0..whole.len() {
        std::fs::write(&stream, &whole[..end]).unwrap();
        let part = times(&stream).unwrap_or_else(|error| panic!("cut at {end}: {error}"));
        assert_eq!(part, all[..part.len()], "cut at {end}");
        assert!(part.len() >= seen && part.len().is_multiple_of(2), "cut at {end}");
        seen = part.len();
    }
    assert_eq!(seen, 4, "without its last byte the last batch is not whole");
    assert_eq!(replayed(&path).unwrap().len(), 4);
    assert!(!Recording::open(&path).unwrap().losses().is_empty());
}

#[test]
fn untrusted_bytes_are_refused_or_read_and_never_panic() {
    let directory = tempfile::tempdir().unwrap();
    let (_, stream) = growing(directory.path());
    let whole = std::fs::read(&stream).unwrap();
    for (place, flip) in (0..whole.len()).step_by(5).zip([0xff, 0x01, 0x80].into_iter().cycle()) {
        let mut bytes = whole.clone();
        bytes[place] ^= flip;
        std::fs::write(&stream, &bytes).unwrap();
        let _ = times(&stream);
    }
}

/// What a recording lacks, as text; nothing when it cannot be opened at all.
fn losses(path: &Path) -> Option<String> {
    let recording = Recording::open(path).ok()?;
    Some(recording.losses().sentences().collect::<Vec<_>>().join("; "))
}

#[test]
fn finished_recording_lacks_nothing_until_a_byte_of_it_is_changed_or_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path(), 3);
    assert_eq!(losses(&path).unwrap(), "");
    let files = ["run.json", "events.jsonl", "integrity.json", "node-a/process.arrows"];
    for file in files.map(|file| path.join(file)) {
        let whole = std::fs::read(&file).unwrap();
        let used = whole.iter().rposition(|byte| *byte != b' ').unwrap() + 1;
        for place in (0..used).step_by(1 + used / 40) {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            std::fs::write(&file, &bytes).unwrap();
            let found = losses(&path);
            assert!(found.as_deref() != Some(""), "{}, byte {place}", file.display());
            std::fs::write(&file, &whole[..place]).unwrap();
            let found = losses(&path);
            assert!(found.as_deref() != Some(""), "{}, cut at {place}", file.display());
        }
        std::fs::remove_file(&file).unwrap();
        assert!(losses(&path).as_deref() != Some(""), "without {}", file.display());
        std::fs::write(&file, &whole).unwrap();
    }
    assert_eq!(losses(&path).unwrap(), "");
}

#[test]
fn shorter_file_is_changed_unless_its_end_alone_is_torn() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path(), 3);
    let found = |file: &Path, bytes: &[u8]| {
        let whole = std::fs::read(file).unwrap();
        std::fs::write(file, bytes).unwrap();
        let recording = Recording::open(&path).unwrap();
        let losses = recording.losses();
        let first = losses.sentences().next().unwrap().to_owned();
        assert!(first.contains("shorter than it was"), "{first}");
        std::fs::write(file, whole).unwrap();
        losses.are_changes()
    };
    let stream = path.join("node-a/process.arrows");
    let whole = std::fs::read(&stream).unwrap();
    assert!(!found(&stream, &whole[..whole.len() - 20]));
    let mut inside = whole.clone();
    inside.drain(whole.len() / 2..whole.len() / 2 + 8);
    assert!(found(&stream, &inside));
    let events = path.join("events.jsonl");
    let whole = std::fs::read_to_string(&events).unwrap();
    assert!(!found(&events, &whole.as_bytes()[..whole.len() - 4]));
    let (_, without_a_line) = whole.split_once('\n').unwrap();
    assert!(found(&events, without_a_line.as_bytes()));
}

#[test]
fn damaged_batch_costs_that_batch_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (path, stream) = growing(directory.path());
    let whole = std::fs::read(&stream).unwrap();
    let starts: Vec<usize> =
        (0..whole.len() - 8).step_by(8).filter(|at| whole[*at..*at + 4] == [0xff; 4]).collect();
    // The schema, the dictionary of a symbol column, and a frame for each batch.
    let second = starts[starts.len() - 2];
    let all = times(&stream).unwrap();
    let mut without_the_second = all.clone();
    without_the_second.drain(2..4);
    // The marker, the length, and the offset of the batch's metadata.
    for place in [second, second + 4, second + 8] {
        let mut bytes = whole.clone();
        bytes[place] ^= 0xff;
        std::fs::write(&stream, &bytes).unwrap();
        let mut table = crate::model::Table::new(Scope::Process, &groups());
        for batch in Batches::open(&stream).unwrap().flatten() {
            stream::decode(&batch, Duration::ZERO, &mut table);
        }
        assert_eq!(table.times(), without_the_second, "byte {place}");
        assert_eq!(replayed(&path).unwrap().len(), 4, "byte {place}");
        let losses = losses(&path).unwrap();
        let reasons = ["bytes are not valid Arrow data", "batches cannot be decoded"];
        let is_named = reasons.iter().any(|reason| losses.contains(reason));
        assert!(losses.contains("process.arrows") && is_named, "{losses}");
    }
}

#[test]
fn recording_of_an_earlier_weigh_has_no_loss_without_its_seal() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path(), 1);
    std::fs::remove_file(path.join("integrity.json")).unwrap();
    assert_eq!(losses(&path).unwrap(), "integrity.json does not exist");
    let run = path.join("run.json");
    let text = std::fs::read_to_string(&run).unwrap().replace("\"sealed\": true", "\"later\": 1");
    std::fs::write(&run, text).unwrap();
    assert_eq!(losses(&path).unwrap(), "");
}

#[test]
fn torn_events_and_events_of_a_later_weigh_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path(), 1);
    let events = path.join("events.jsonl");
    let mut text = std::fs::read_to_string(&events).unwrap();
    text.push_str("{\"seconds\":2.0,\"event\":\"invented_later\",\"x\":1}\n");
    text.push_str("{\"seconds\":3.0,\"event\":\"mark\",\"te");
    std::fs::write(&events, text).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.entries().len(), 1);
    assert!(!recording.losses().is_empty());
}

#[test]
fn a_newer_format_is_refused_with_a_message() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path(), 1);
    let run = path.join("run.json");
    let text = std::fs::read_to_string(&run).unwrap().replace("\"format\": 1", "\"format\": 99");
    std::fs::write(&run, text).unwrap();
    let error = Recording::open(&path).unwrap_err().to_string();
    assert!(error.contains("format 99"), "{error}");
}

#[test]
fn a_recording_without_a_user_still_opens() {
    let directory = tempfile::tempdir().unwrap();
    let path = record(directory.path(), 1);
    let run = path.join("run.json");
    let text = std::fs::read_to_string(&run).unwrap();
    let old: Vec<&str> = text.lines().filter(|line| !line.contains("\"user\"")).collect();
    assert_ne!(old.len(), text.lines().count());
    std::fs::write(&run, old.join("\n")).unwrap();
    assert_eq!(Recording::open(&path).unwrap().manifest().user, None);
}

#[test]
fn the_stream_explains_itself() {
    let directory = tempfile::tempdir().unwrap();
    let stream = record(directory.path(), 1).join("node-a/process.arrows");
    let batch = Batches::open(&stream).unwrap().next().unwrap().unwrap();
    let schema = batch.schema();
    let field = schema.field_with_name("memory_rss_bytes").unwrap();
    assert_eq!(field.metadata()["unit"], "bytes");
    assert_eq!(field.metadata()["kind"], "gauge");
    assert!(field.metadata()["help"].contains("shared pages"));
    assert!(ProcessMemory::METRICS.iter().all(|m| schema.field_with_name(&m.column()).is_ok()));
}

#[test]
fn a_recording_names_the_gpus_of_its_machine() {
    use crate::model::hardware::{Hardware, HardwareGpu};
    let named = HardwareGpu { name: Some("Tesla V100".to_owned()), ..HardwareGpu::default() };
    let numbered = HardwareGpu {
        vendor: Some("AMD".to_owned()),
        pci_id: Some("1002:740F".to_owned()),
        ..HardwareGpu::default()
    };
    let hardware = Hardware { gpus: vec![named, numbered], ..Hardware::default() };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    let mut writer = Writer::create(&path, &manifest(), &Tick::new(&groups())).unwrap();
    writer.describe(move || manifest().with_hardware(hardware));
    assert_eq!(writer.finish(SECOND, || false), [""; 0]);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.manifest().host.gpus, ["Tesla V100", "AMD 1002:740F"]);
}
