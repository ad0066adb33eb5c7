//! `weigh report` and `weigh plot`: every run gives a sensible report.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::weighed::{
    PublicPrograms, Weighed, burner, can_mount, end_of, is_installed, output, plain, skipped,
    weigh, weighed_command, weighed_shell,
};

/// Measures a load of the burner and records it into `run`.
fn weighed(options: &[&str], load: &[&str]) -> Weighed {
    let mut arguments = vec![burner().into_os_string()];
    arguments.extend(load.iter().map(OsString::from));
    weighed_command(&[&["-o", "run"], options].concat(), &arguments)
}

/// Writes reports of a recording into a directory `out` beside it.
fn report(run: &Path, kinds: &str) -> Output {
    let directory = run.parent().unwrap();
    output(weigh(directory, &["report"]).arg(run).args(["-f", kinds, "-o", "out"]))
}

/// The page, the Markdown and the text of the PDF.
fn reports(run: &Weighed) -> [String; 3] {
    let recording = run.directory.path().join("run");
    let written = report(&recording, "html,md,pdf");
    let stderr = String::from_utf8_lossy(&written.stderr);
    assert!(written.status.success(), "{stderr}");
    let out = run.directory.path().join("out");
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    [read("report.html"), read("report.md"), text_of(&out.join("report.pdf"))]
}

/// The text of a PDF, as poppler extracts it.
fn text_of(pdf: &Path) -> String {
    assert!(fs::read(pdf).unwrap().starts_with(b"%PDF-"));
    if !is_installed("pdftotext") {
        skipped("no pdftotext to read a PDF with; run cargo xtask setup");
        return String::new();
    }
    let text = output(plain("pdftotext", pdf.parent().unwrap()).arg("-layout").arg(pdf).arg("-"));
    assert!(text.status.success());
    String::from_utf8(text.stdout).unwrap()
}

/// All of these strings are in all of these texts; a PDF that could not be read has no text.
fn all_contain(texts: &[String; 3], expected: &[&str]) {
    for text in texts.iter().filter(|text| !text.is_empty()) {
        for expected in expected {
            assert!(
                text.contains(expected),
                "no {expected:?} in {}…",
                &text[..text.len().min(3000)]
            );
        }
    }
}

#[test]
fn report_has_programs_phases_marks_and_figures() {
    let script = "$WEIGH phase load -- $BURNER touch 50MiB 300ms; $WEIGH mark loaded
        $BURNER threads 2 100ms";
    let run = weighed_shell(&["-i", "20ms", "-o", "run", "--label", "commit=abc123"], script);
    let texts = reports(&run.ended_with(0));
    all_contain(&texts, &["burner", "load", "abc123", "Memory, peak", "exact", "MiB"]);
    let [page, markdown, paper] = &texts;
    assert!(page.contains("<svg") && page.contains(">loaded<"), "charts with their marks");
    assert!(markdown.contains("](pictures/memory.png)"));
    if !paper.is_empty() {
        for expected in ["Job ID", "User", "# Nodes", "Date", "page 1 of", "Memory by p"] {
            assert!(paper.contains(expected), "no {expected:?} in {paper}");
        }
    }
}

#[test]
fn run_without_samples_gives_a_report_that_says_so() {
    let run = weighed(&[], &["exit", "0"]).ended_with(0);
    let recording = run.directory.path().join("run");
    let hosts = fs::read_dir(&recording).unwrap().map(|entry| entry.unwrap().path());
    hosts.filter(|path| path.is_dir()).for_each(|host| fs::remove_dir_all(host).unwrap());
    let texts = reports(&run);
    all_contain(&texts, &["exit 0", "unknown"]);
    assert!(!texts[0].contains("<svg class=\"chart\""), "there is nothing to draw");
}

#[test]
fn run_that_ends_at_once_gives_a_report() {
    let run = weighed(&["-i", "60s"], &["exit", "3"]).ended_with(3);
    all_contain(&reports(&run), &["exit 3", "CPU time"]);
}

#[test]
fn run_of_one_process_is_shown_by_process() {
    let run = weighed(&["-i", "50ms"], &["touch", "20MiB", "300ms"]).ended_with(0);
    all_contain(&reports(&run), &["Memory by process", "burner"]);
}

#[test]
fn three_thousand_processes_are_shown_together() {
    let load = ["spawn-sleepers", "3000", "4s"];
    let run = weighed(&["-i", "500ms"], &load).ended_with(0);
    let texts = reports(&run);
    all_contain(&texts, &["Memory by program", "3,001"]);
    assert!(texts[0].len() < 3 << 20, "{} bytes", texts[0].len());
}

#[test]
fn recording_of_a_killed_monitor_gives_a_report() {
    let run = weighed(&["-i", "20ms"], &["cpu", "200ms"]).ended_with(0);
    let events = run.directory.path().join("run/events.jsonl");
    let events_text = fs::read_to_string(&events).unwrap();
    let kept: Vec<&str> = events_text.lines().filter(|line| !line.contains("run_end")).collect();
    fs::write(&events, kept.join("\n") + "\n").unwrap();
    all_contain(&reports(&run), &["not recorded"]);
}

#[test]
fn missing_parts_of_a_damaged_recording_are_reported() {
    let run = weighed(&["-i", "20ms"], &["cpu", "200ms"]).ended_with(0);
    let recording = run.directory.path().join("run");
    let host = fs::read_dir(&recording).unwrap().map(|entry| entry.unwrap().path());
    let stream = host.filter(|path| path.is_dir()).map(|host| host.join("process.arrows"));
    let stream = stream.last().unwrap();
    let whole = fs::read(&stream).unwrap();
    fs::write(&stream, &whole[..whole.len() - 100]).unwrap();
    let events = recording.join("events.jsonl");
    let events_text = fs::read_to_string(&events).unwrap();
    fs::write(&events, format!("garbage\n{events_text}")).unwrap();
    let written = report(&recording, "md");
    let stderr = String::from_utf8_lossy(&written.stderr);
    assert!(written.status.success(), "{stderr}");
    assert!(
        stderr.contains("process.arrows: ") && stderr.contains("events.jsonl: 1 lines"),
        "{stderr}"
    );
    let markdown = fs::read_to_string(run.directory.path().join("out/report.md")).unwrap();
    assert!(markdown.contains("process.arrows"), "{markdown}");
}

#[test]
fn output_that_cannot_be_printed_is_a_failure() {
    let run = weighed(&[], &["exit", "0"]).ended_with(0);
    let mut command = weigh(run.directory.path(), &["show", "run", "--format", "github"]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = end_of(command.stdout(full).stderr(std::process::Stdio::piped()).spawn().unwrap());
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write to stdout"), "{stderr}");
}

#[test]
fn two_reports_in_one_directory_have_separate_pictures() {
    let run = weighed(&["-i", "20ms"], &["cpu", "100ms"]).ended_with(0);
    for name in ["one.md", "two.md"] {
        let arguments = ["report", "run", "-f", "md,md", "-o", name];
        let written = output(&mut weigh(run.directory.path(), &arguments));
        let stderr = String::from_utf8_lossy(&written.stderr).into_owned();
        assert_eq!(written.status.code(), Some(2), "two formats, one name: {stderr}");
        let arguments = ["report", "run", "-f", "md", "-o", name];
        let written = output(&mut weigh(run.directory.path(), &arguments));
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    }
    let markdown = fs::read_to_string(run.directory.path().join("two.md")).unwrap();
    assert!(markdown.contains("](two-pictures/cpu.png)"), "{markdown}");
    assert!(run.directory.path().join("one-pictures/cpu.png").exists());
}

#[test]
fn charts_have_the_requested_units() {
    let run = weighed(&["-i", "20ms"], &["touch", "30MiB", "200ms"]).ended_with(0);
    for (units, expected) in [("decimal", " MB<"), ("binary", " MiB<"), ("bytes", "000 B<")] {
        let file = format!("{units}.svg");
        let options = ["--metric", "memory,memory", "-o", &file, "--units", units];
        assert!(plot(&run, &options).status.success());
        let svg = fs::read_to_string(run.directory.path().join(file)).unwrap();
        assert!(svg.contains(expected), "{units}: {svg}");
    }
}

const NASTY: &str = "<script>alert(1)</script>";

#[test]
fn any_process_name_is_shown_as_text() {
    // The kernel truncates its name; the arguments, the phase, the mark and the label have all of it.
    let script = format!(
        "$WEIGH phase '{NASTY}' -- $BURNER named '<script>x' 100ms; $WEIGH mark '{NASTY}'
         exec -a '{NASTY}' $BURNER sleep 100ms"
    );
    let label = format!("nasty={NASTY}");
    let options = ["-o", "run", "-i", "20ms", "--name", NASTY, "--label", &label];
    let arguments = ["bash".into(), "-c".into(), script.into()];
    let run = weighed_command(&options, &arguments).ended_with(0);
    let [page, markdown, paper] = reports(&run);
    assert!(!page.contains(NASTY) && page.contains("&#60;script&#62;alert(1)"), "in the page");
    let outside = markdown.split("```").step_by(2).collect::<String>();
    assert!(!outside.contains("<script") && outside.contains("alert(1)"), "in Markdown");
    assert!(paper.is_empty() || paper.contains(NASTY), "on paper it is text");
    let drawn = output(&mut weigh(run.directory.path(), &["plot", "run", "-o", "drawn"]));
    assert!(drawn.status.success());
    for file in fs::read_dir(run.directory.path().join("drawn")).unwrap() {
        let svg = fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!svg.contains("<script"), "in a picture");
    }
}

#[test]
fn paper_is_a4_and_its_pages_are_numbered() {
    let run = weighed(&["-i", "20ms"], &["cpu", "100ms"]).ended_with(0);
    reports(&run);
    if !is_installed("pdfinfo") {
        return skipped("no pdfinfo to check a PDF with; run cargo xtask setup");
    }
    let pdf = run.directory.path().join("out/report.pdf");
    let pages = pages_of(&pdf);
    assert!(text_of(&pdf).contains(&format!("page {pages} of {pages}")));
}

/// The number of pages of a PDF; they are A4.
fn pages_of(pdf: &Path) -> usize {
    let about = output(plain("pdfinfo", pdf.parent().unwrap()).arg(pdf));
    let about = String::from_utf8(about.stdout).unwrap();
    assert!(about.contains("(A4)"), "{about}");
    about.lines().find_map(|line| line.strip_prefix("Pages:")).unwrap().trim().parse().unwrap()
}

#[test]
fn paper_is_short_and_has_everything_on_request() {
    let run = weighed(&["-i", "20ms"], &["children", "3", "50ms"]).ended_with(0);
    if !is_installed("pdfinfo") {
        return skipped("no pdfinfo to check a PDF with; run cargo xtask setup");
    }
    let pages = |options: &[&str], name: &str| {
        let command = ["report", "run", "-f", "pdf", "-o", name];
        let written = output(weigh(run.directory.path(), &command).args(options));
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        let pdf = run.directory.path().join(name);
        (pages_of(&pdf), text_of(&pdf))
    };
    let (short, text) = pages(&[], "short.pdf");
    assert!(short <= 4, "{short} pages");
    assert!(text.is_empty() || text.contains("weigh report -f pdf --full"), "{text}");
    let (full, text) = pages(&["--full"], "full.pdf");
    assert!(full > short, "{full} pages");
    assert!(text.is_empty() || text.contains("What the monitor cost"), "{text}");
}

#[test]
fn option_report_writes_reports_at_the_end_of_a_run() {
    let options = ["--report", "html,pdf"];
    let run = weighed(&options, &["cpu", "50ms"]).ended_with(0);
    let recording = run.directory.path().join("run/report");
    assert!(recording.join("report.html").exists() && recording.join("report.pdf").exists());
    assert!(!recording.join("report.md").exists());
    // weigh may replace its own files in the recording.
    let again = output(&mut weigh(run.directory.path(), &["report", "run"]));
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn existing_report_is_only_replaced_with_force() {
    let run = weighed(&[], &["exit", "0"]).ended_with(0);
    let recording = run.directory.path().join("run");
    assert!(report(&recording, "md").status.success());
    let refused = report(&recording, "md");
    assert_eq!(refused.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(stderr.contains("already exists") && stderr.contains("--force"), "{stderr}");
    let arguments = ["report", "run", "-f", "md", "-o", "out", "--force"];
    let forced = output(&mut weigh(run.directory.path(), &arguments));
    assert!(forced.status.success());
}

#[test]
fn one_report_may_have_a_name_and_several_may_not_share_it() {
    let run = weighed(&[], &["exit", "0"]).ended_with(0);
    let directory = run.directory.path();
    let named = output(&mut weigh(directory, &["report", "run", "-f", "pdf", "-o", "job.pdf"]));
    assert_eq!(String::from_utf8_lossy(&named.stdout), "job.pdf\n");
    let shared = output(&mut weigh(directory, &["report", "run", "-f", "pdf,md", "-o", "a.pdf"]));
    assert_eq!(shared.status.code(), Some(2));
    assert!(!directory.join("a.pdf").exists());
}

#[test]
fn markdown_for_a_ci_comment_is_short_and_has_the_key_figures() {
    let run = weighed(&[], &["cpu", "100ms"]).ended_with(0);
    let shown = output(&mut weigh(run.directory.path(), &["show", "run", "--format", "github"]));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.starts_with("### burner: exit 0\n"), "{text}");
    assert!(text.lines().count() < 40 && text.contains("| **CPU time** | "), "{text}");
    let nothing = output(&mut weigh(
        run.directory.path(),
        &["run", "--no-record", "--format", "github", "--", "touch", "ran"],
    ));
    assert_eq!(nothing.status.code(), Some(2));
    assert!(!run.directory.path().join("ran").exists());
}

fn plot(run: &Weighed, arguments: &[&str]) -> Output {
    output(weigh(run.directory.path(), &["plot", "run"]).args(arguments))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Width and height of a PNG.
fn size(file: &Path) -> (u32, u32) {
    let bytes = fs::read(file).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"));
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn six_plots_of_oasis_have_their_names_and_sizes() {
    let run = weighed(&["-i", "20ms"], &["children", "3", "50ms"]).ended_with(0);
    assert!(plot(&run, &["--as", "oasis", "-o", "out"]).status.success());
    let out = run.directory.path().join("out");
    let expected = [
        "aggregate_cpu.png",
        "aggregate_uss.png",
        "cpu_time.png",
        "instance_count.png",
        "rss_vs_uss.png",
        "total_footprint.png",
    ];
    assert_eq!(names(&out), expected);
    assert_eq!(size(&out.join("cpu_time.png")), (1800, 750));
    assert_eq!(size(&out.join("instance_count.png")), (1800, 600));
}

#[test]
fn plots_of_perfmon_have_their_names() {
    let run = weighed(&["-i", "20ms"], &["cpu", "100ms"]).ended_with(0);
    assert!(plot(&run, &["--as", "perfmon", "-o", "out"]).status.success());
    let names = names(&run.directory.path().join("out"));
    assert_eq!(names.len(), 30);
    for name in [
        "CPU_Load_per_node.png",
        "Average_CPU_Load_all_nodes.png",
        "Average_Memory_all_nodes.png",
        "Total_Interconnect_Packets_Input_all_nodes.png",
        "RAPL_DRAM_Power_per_node.png",
    ] {
        assert!(names.iter().any(|there| there == name), "no {name} in {names:?}");
    }
}

#[test]
fn chart_by_name_is_written_into_a_file() {
    let run = weighed(&["-i", "20ms"], &["touch", "30MiB", "200ms"]).ended_with(0);
    let directory = run.directory.path().to_owned();
    assert!(plot(&run, &["--metric", "memory", "-o", "memory.png"]).status.success());
    assert_eq!(size(&directory.join("memory.png")).0, 1800);
    assert!(plot(&run, &["--metric", "process.memory.rss", "-o", "rss.svg"]).status.success());
    let svg = fs::read_to_string(directory.join("rss.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Resident by process"), "{svg}");
    for (arguments, code, expected) in [
        (&["--metric", "nonsense"][..], 2, "weigh plot --list"),
        (&["--metric", "process.state.doing"], 2, "no chart and no metric"),
        (&["-o", "all.svg"], 2, "a file has one picture"),
        (&["--metric", "memory", "-o", "memory.png"], 1, "already exists"),
        (&["--metric", "cpu.time.user"], 1, "has no data for"),
    ] {
        let refused = plot(&run, arguments);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn every_listed_chart_of_a_run_can_be_drawn_by_its_name() {
    let run = weighed(&["-i", "20ms", "--per-cpu"], &["cpu", "200ms"]).ended_with(0);
    let all = plot(&run, &["-o", "all"]);
    let listed = output(&mut weigh(run.directory.path(), &["plot", "--list"]));
    let listed = String::from_utf8(listed.stdout).unwrap();
    for file in String::from_utf8(all.stdout).unwrap().lines() {
        let name = PathBuf::from(file).file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(listed.lines().any(|line| line == name), "{name} is not listed");
    }
}

#[test]
fn full_disk_leaves_no_partial_report() {
    if !can_mount() {
        return;
    }
    let run = weighed(&["-i", "20ms"], &["cpu", "100ms"]).ended_with(0);
    let script = "mkdir small && mount -t tmpfs -o size=16k tmpfs small
        \"$WEIGH\" report run -f html,pdf -o small; echo $? > code; ls -A small > left";
    let mut command = plain("unshare", run.directory.path());
    command.args(["-m", "sh", "-c", script]);
    let message = output(&mut command);
    let read = |name: &str| fs::read_to_string(run.directory.path().join(name)).unwrap();
    assert_eq!((read("code").trim(), read("left").trim()), ("1", ""));
    let stderr = String::from_utf8_lossy(&message.stderr);
    assert!(stderr.contains("cannot write the report") && stderr.contains("hint:"), "{stderr}");
}

#[test]
fn unprivileged_user_gets_a_report() {
    let (programs, place) = (PublicPrograms::new(), tempfile::tempdir().unwrap());
    fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
    let recording = place.path().join("run");
    let mut command = programs.command("weigh", programs.path());
    command.args(["run", "-q", "--report", "html,md,pdf", "-o"]).arg(&recording);
    let done = output(command.args(["--", "./burner", "cpu", "50ms"]));
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(recording.join("report/report.pdf").exists());
}
