//! Lists, names and removals of recordings that are made here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::*;
use crate::model::End;
use crate::record::files::Claim;
use crate::testing::FakeRun;

/// A second after 1970 at which every recording here has long been at rest.
const LATER: Duration = Duration::from_secs(10_000_000_000);

/// Records a run of this name that ended, or not, into a directory of that name.
fn record(parent: &Path, directory: &str, name: &str, code: Option<i32>) -> PathBuf {
    let mut run = FakeRun::new();
    run.manifest.name = name.to_owned();
    run.manifest.id = format!("20231114T221320-{:08x}", crc32fast::hash(directory.as_bytes()));
    if let Some(code) = code {
        run.ends(1.0, |end| end.end = Some(End::Code(code)));
    }
    let path = parent.join(directory);
    run.record(&path);
    path
}

fn summarize(recording: &Path) {
    let summary = summary::of(&Recording::open(recording).unwrap()).unwrap();
    fs::write(recording.join("summary.json"), serde_json::to_vec(&summary).unwrap()).unwrap();
}

fn change_summary(recording: &Path, from: &str, to: &str) {
    let path = recording.join("summary.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

fn age(path: &Path, since_1970: Duration) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + since_1970).unwrap();
}

#[test]
fn list_has_what_the_summary_file_says_while_it_is_current() {
    let parent = tempfile::tempdir().unwrap();
    let run = record(parent.path(), "a", "train", Some(0));
    summarize(&run);
    change_summary(&run, r#""name":"train""#, r#""name":"from the file""#);
    let name = || ListedRun::read(&run).unwrap().run.name;
    assert_eq!(name(), "from the file");
    age(&run.join("summary.json"), Duration::from_secs(1));
    assert_eq!(name(), "train", "it is older than the events");
    summarize(&run);
    change_summary(&run, r#""name":"train""#, r#""name":"from the file""#);
    change_summary(&run, env!("CARGO_PKG_VERSION"), "0.0.0");
    assert_eq!(name(), "train", "another version made it");
    fs::write(run.join("summary.json"), "{").unwrap();
    assert_eq!(name(), "train", "it is torn");
}

#[test]
fn list_is_newest_first_and_names_what_cannot_be_read() {
    let parent = tempfile::tempdir().unwrap();
    // By the time in its name, or by its start, which is in 2023.
    for directory in ["2022-01-01T00-00-00.000Z-x", "by-start", "2026-01-01T00-00-00.000Z-x"] {
        record(parent.path(), directory, "x", Some(0));
    }
    let torn = record(parent.path(), "2025-01-01T00-00-00.000Z-x", "x", Some(0));
    fs::write(torn.join("run.json"), "{").unwrap();
    let listed = list(parent.path()).unwrap();
    let names: Vec<String> = listed
        .iter()
        .map(|one| match one {
            Ok(run) => run.directory.file_name().unwrap().to_string_lossy()[..4].to_owned(),
            Err(unreadable) => unreadable.error.rsplit('/').next().unwrap()[..8].to_owned(),
        })
        .collect();
    assert_eq!(names, ["2026", "run.json", "by-s", "2022"]);
}

#[test]
fn run_that_failed_or_was_cut_off_has_failed_and_one_that_is_recorded_now_has_not() {
    let parent = tempfile::tempdir().unwrap();
    let read = |directory: &str, code: Option<i32>| {
        ListedRun::read(&record(parent.path(), directory, "x", code)).unwrap()
    };
    assert!(!read("well", Some(0)).has_failed());
    assert!(read("failed", Some(3)).has_failed());
    let cut = read("cut", None);
    assert!(cut.has_failed() && !cut.is_running);
    let writer = File::open(parent.path().join("cut/events.jsonl")).unwrap();
    writer.try_lock().unwrap();
    let running = ListedRun::read(&parent.path().join("cut")).unwrap();
    assert!(running.is_running && !running.has_failed());
}

#[test]
fn filters_are_combined() {
    let parent = tempfile::tempdir().unwrap();
    let mut run = ListedRun::read(&record(parent.path(), "a", "train", Some(1))).unwrap();
    run.run.labels.insert("commit".to_owned(), "abc".to_owned());
    let all = RunFilter::default();
    assert!(all.is_empty() && all.takes(&run));
    let label = |text| vec![LabelFilter::parse(text).unwrap()];
    let matching = RunFilter {
        names: vec!["test".to_owned(), "tr*".to_owned()],
        labels: label("commit=abc"),
        since: Some(run.run.started),
        failed: true,
    };
    assert!(matching.takes(&run));
    let after = run.run.started + jiff::SignedDuration::from_millis(1);
    for other in [
        RunFilter { names: vec!["tr".to_owned()], ..matching.clone() },
        RunFilter { labels: label("commit=x"), ..matching.clone() },
        RunFilter { since: Some(after), ..matching.clone() },
    ] {
        assert!(!other.takes(&run), "{other:?}");
    }
    run.run.exit_code = Some(0);
    assert!(!matching.takes(&run));
}

/// Three recordings, the newest of which is c.
fn three() -> tempfile::TempDir {
    let parent = tempfile::tempdir().unwrap();
    for (directory, name) in [
        ("2026-01-01T00-00-00.000Z-a", "train"),
        ("2026-01-02T00-00-00.000Z-b", "train"),
        ("2026-01-03T00-00-00.000Z-c", "solve"),
    ] {
        record(parent.path(), directory, name, Some(0));
    }
    parent
}

/// The last letter of the directory that is found.
fn found(word: &str, parent: &Path) -> Result<char, NotFound> {
    let named = (!word.is_empty()).then(|| Path::new(word));
    find(named, parent).map(|path| path.to_string_lossy().chars().last().unwrap())
}

#[test]
fn recording_is_found_by_directory_id_name_and_age() {
    let parent = three();
    let path = parent.path();
    let id = identified_id(path, 'b');
    let directory = path.join("2026-01-01T00-00-00.000Z-a");
    for (word, which) in [
        ("", 'c'),
        ("last", 'c'),
        ("last~0", 'c'),
        ("last~2", 'a'),
        ("solve", 'c'),
        ("train~0", 'b'),
        ("train~1", 'a'),
        (id.as_str(), 'b'),
        (&id[.."20231114T221320-".len() + 4], 'b'),
        (&id["20231114T221320-".len()..], 'b'),
        ("2026-01-02T00-00-00.000Z-b", 'b'),
        ("2026-01-02", 'b'),
        (directory.to_str().unwrap(), 'a'),
        (path.join("solve").to_str().unwrap(), 'c'),
    ] {
        assert_eq!(found(word, path).unwrap(), which, "{word}");
    }
}

fn identified_id(parent: &Path, which: char) -> String {
    let directory = find(Some(Path::new(&format!("2026-01-0{}", which as u8 - b'a' + 1))), parent);
    ListedRun::read(&directory.unwrap()).unwrap().run.id
}

#[test]
fn ambiguous_name_gives_what_it_could_be_and_an_unknown_one_the_nearest() {
    let parent = three();
    let path = parent.path();
    let names = |runs: &[RecordingId]| {
        runs.iter().map(|one| one.directory_name()[25..].to_owned()).collect::<Vec<_>>().join(" ")
    };
    match found("train", path).unwrap_err() {
        NotFound::Ambiguous { matches, .. } => assert_eq!(names(&matches), "b a"),
        other => panic!("{other:?}"),
    }
    match found("2026-01", path).unwrap_err() {
        NotFound::Ambiguous { matches, .. } => assert_eq!(names(&matches), "c b a"),
        other => panic!("{other:?}"),
    }
    match found("trian", path).unwrap_err() {
        NotFound::Unknown { nearest, of: 3, .. } => assert_eq!(names(&nearest), "b"),
        other => panic!("{other:?}"),
    }
    match found("xyz", path).unwrap_err() {
        NotFound::Unknown { nearest, .. } => assert_eq!(names(&nearest), "c b", "the newest"),
        other => panic!("{other:?}"),
    }
    match found("train~2", path).unwrap_err() {
        NotFound::TooFar { count: 2, .. } => {}
        other => panic!("{other:?}"),
    }
    match found(path.to_str().unwrap(), path).unwrap_err() {
        NotFound::Several { runs, .. } => assert_eq!(names(&runs), "c b a"),
        other => panic!("{other:?}"),
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(found("", empty.path()), Err(NotFound::Empty { .. })));
    assert!(matches!(found("x", empty.path()), Err(NotFound::Empty { .. })));
    let directory = empty.path().to_str().unwrap();
    assert!(matches!(found(directory, path), Err(NotFound::NotARecording { .. })));
    let missing = empty.path().join("missing");
    assert!(matches!(found("x", &missing), Err(NotFound::Directory(_))));
}

#[test]
fn recording_is_removed_with_what_weigh_wrote_into_it() {
    let parent = tempfile::tempdir().unwrap();
    let run = record(parent.path(), "a", "x", Some(0));
    summarize(&run);
    fs::create_dir_all(run.join("report/pictures")).unwrap();
    fs::write(run.join("report/pictures/cpu.png"), "123").unwrap();
    let bytes = removable_bytes(&run, LATER).unwrap();
    assert!(bytes > fs::metadata(run.join("run.json")).unwrap().len() + 3, "{bytes}");
    remove(&run).unwrap();
    assert!(!run.exists() && parent.path().exists());
}

#[test]
fn recording_that_is_being_written_is_kept() {
    let parent = tempfile::tempdir().unwrap();
    let run = record(parent.path(), "a", "x", None);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(removable_bytes(&run, now), Err(KeptReason::BeingWritten), "a moment ago");
    assert!(removable_bytes(&run, now + Duration::from_secs(120)).is_ok());
    let writer = File::open(run.join("events.jsonl")).unwrap();
    writer.try_lock().unwrap();
    assert_eq!(removable_bytes(&run, LATER), Err(KeptReason::BeingWritten));
    let claim = Claim::of(&parent.path().join("b")).unwrap();
    assert_eq!(removable_bytes(&claim.directory, LATER), Err(KeptReason::NotARecording));
}

#[test]
fn what_is_not_only_a_recording_is_kept() {
    let parent = tempfile::tempdir().unwrap();
    let run = record(parent.path(), "a", "x", Some(0));
    let link = parent.path().join("link");
    std::os::unix::fs::symlink(&run, &link).unwrap();
    assert_eq!(removable_bytes(&link, LATER), Err(KeptReason::NotARecording));
    assert_eq!(removable_bytes(parent.path(), LATER), Err(KeptReason::NotARecording));
    for other in ["results.txt", "node-a/notes.txt"] {
        fs::write(run.join(other), "mine").unwrap();
        let kept = removable_bytes(&run, LATER).unwrap_err();
        assert_eq!(kept, KeptReason::OtherFile(other.to_owned()));
        fs::remove_file(run.join(other)).unwrap();
    }
    assert!(removable_bytes(&run, LATER).is_ok());
}
