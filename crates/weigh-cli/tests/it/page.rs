//! `weigh report -f html`: the page in a browser: valid, accessible and interactive.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;
use weigh::catalog::Unit;
use weigh::plot::Scale;
use weigh::quantity::Units;

use crate::node;
use crate::python::{self, succeeds};
use crate::weighed::{output, plain, weigh, weighed_shell};

/// A malicious process name; the kernel keeps fifteen letters of it.
const EVIL: &str = "</script><b>";

/// The page of a run with phases, a mark, many processes and malicious names; made once,
/// because every test reads it and none changes it.
fn page() -> &'static Path {
    static PAGE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, page) = PAGE.get_or_init(|| {
        let script = format!(
            r#"$WEIGH phase '<script>alert(1)</script>' -- sh -c '$WEIGH phase inner -- $BURNER children 20 20ms'
            $BURNER named '{EVIL}' 600ms & $BURNER cpu 500ms
            $WEIGH mark 'half < done'
            $BURNER cpu 500ms
            wait"#
        );
        let run = weighed_shell(&["-i", "10ms", "--per-cpu", "-o", "run"], &script).ended_with(0);
        let page = page_of(run.directory.path());
        (run.directory, page)
    });
    page
}

/// Makes the page of the recording `run` in a directory.
fn page_of(directory: &Path) -> PathBuf {
    let made = output(&mut weigh(directory, &["report", "run", "-f", "html", "-o", "out"]));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    directory.join("out/report.html")
}

/// Where the parts of the page's script are.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../weigh/src/report/html")
}

/// Runs a script that checks the page.
fn check_page(name: &str, more: &[&OsStr], says: &str) {
    check_page_at(page(), name, more, says);
}

fn check_page_at(page: &Path, name: &str, more: &[&OsStr], says: &str) {
    let Some(mut script) = node::script(name, page.parent().unwrap()) else { return };
    assert_eq!(succeeds(script.arg(page).args(more)), format!("{says}\n"));
}

#[test]
fn charts_respond_to_mouse_keyboard_and_touch() {
    check_page("charts.mjs", &[], "charts answer");
}

#[test]
fn page_of_a_million_samples_stays_small_and_responsive() {
    let load = "for i in 1 2 3 4 5 6 7 8 9 10; do $BURNER cpu 1s & done; wait";
    let run = weighed_shell(&["-i", "1ms", "-o", "run"], load).ended_with(0);
    let directory = run.directory.path();
    let Some(mut longer) = python::script("longer.py", directory) else { return };
    let rows: u64 = succeeds(longer.args(["run", "1000000"])).trim().parse().unwrap();
    assert!(rows >= 1_000_000);
    let page = page_of(directory);
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 2 << 20, "{size} bytes");
    check_page_at(&page, "charts.mjs", &[], "charts answer");
}

#[test]
fn script_draws_the_same_as_the_static_page() {
    check_page("same_picture.mjs", &[sources().as_os_str()], "the same pictures");
}

#[test]
fn tables_sort_and_filter() {
    check_page("tables.mjs", &[], "tables answer");
}

#[test]
fn headline_and_first_charts_are_on_the_first_screen() {
    check_page("first_screen.mjs", &[], "all on the first screen");
}

#[test]
fn chart_can_be_enlarged_and_downloaded() {
    check_page("enlarged.mjs", &[], "charts can be enlarged");
}

#[test]
fn colours_zoom_and_open_groups_are_the_readers_choice() {
    check_page("choices.mjs", &[], "choices are kept");
}

#[test]
fn timeline_of_three_hundred_processes_can_be_read() {
    let load = "$BURNER spawn-sleepers 300 3s";
    let run = weighed_shell(&["-i", "50ms", "-o", "run"], load).ended_with(0);
    let page = page_of(run.directory.path());
    check_page_at(&page, "timeline.mjs", &[], "the timeline can be read");
}

#[test]
fn page_is_valid() {
    check_page("valid.mjs", &[], "valid");
}

#[test]
fn page_is_accessible() {
    check_page("accessible.mjs", &[], "nothing to complain of");
}

#[test]
fn page_is_complete_without_scripts_on_a_phone_in_dark_mode_and_on_paper() {
    let directory = tempfile::tempdir().unwrap();
    let paper = directory.path().join("paper.pdf");
    check_page("everywhere.mjs", &[paper.as_os_str()], "whole everywhere");
    if paper.exists() {
        let mut reader = plain("pdftotext", directory.path());
        let text = succeeds(reader.args(["paper.pdf", "-"]));
        assert!(text.contains("Figures") && text.contains(EVIL), "{text}");
    }
}

#[test]
fn malicious_names_are_only_text() {
    let text = fs::read_to_string(page()).unwrap();
    assert!(!text.contains(EVIL) && !text.contains("<script>alert"));
    assert!(text.contains("&#60;/script&#62;&#60;b&#62;"), "the process is listed");
}

#[test]
fn script_formats_quantities_as_the_report_does() {
    let sizes =
        [Units::Decimal, Units::Bytes].map(|units| Scale { units, ..Scale::level(Unit::Bytes) });
    let scales =
        Unit::ALL.into_iter().flat_map(|unit| [Scale::level(unit), Scale::rate(unit)]).chain(sizes);
    let mut quantities = Vec::new();
    for scale in scales {
        // No machine has a billion cores; hundredths of such numbers are rounded differently.
        let highest = if ["cores", "share"].contains(&scale.name()) { 9 } else { 18 };
        for power in -10..=highest {
            for digits in [0.0, 1.0, 1.0236, 9.996, 3.3333, 59.996] {
                let value = digits * 10f64.powi(power);
                quantities.push((scale.name(), value, scale.shown(value)));
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let expected = directory.path().join("expected.json");
    fs::write(&expected, serde_json::to_vec(&quantities).unwrap()).unwrap();
    let Some(mut script) = node::script("quantities.mjs", directory.path()) else { return };
    let script: &mut Command = script.arg(expected).arg(sources());
    assert_eq!(succeeds(script), format!("{} quantities\n", quantities.len()));
}
