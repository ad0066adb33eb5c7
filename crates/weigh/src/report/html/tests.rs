//! Pages of a run with hostile names.

mod sample;

use std::collections::BTreeSet;

use serde_json::Value;

use self::sample::{EVIL, document};
use super::html;

fn page() -> String {
    html(&document()).unwrap()
}

/// The page's data for its script.
fn drawn(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"drawn\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The page without its scripts.
fn unscripted(page: &str) -> String {
    let mut parts = page.split("<script");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("</script>").unwrap().1)
}

#[test]
fn page_loads_no_other_resource() {
    let page = page();
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    for reaching in ["http:", "https:", "src=", "@import", "url(h", "<link", "fetch("] {
        assert!(!addresses.contains(reaching), "{reaching}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn hostile_name_is_escaped() {
    let page = page();
    assert!(!page.contains(EVIL) && !page.contains("<script>alert"));
    assert_eq!(page.matches("</script").count(), 3, "the charts' and two of the page's own");
    assert!(page.contains("&#60;/script&#62;&#60;script&#62;alert(1)"));
    assert!(page.contains("solver &#60;beta&#62; · weigh</title>"));
    assert_eq!(drawn(&page)["charts"][1]["series"][2]["name"], EVIL);
}

#[test]
fn all_numbers_and_charts_work_without_script() {
    let (page, document) = (unscripted(&page()), document());
    let tables = std::iter::once(&document.figures).chain(&document.tables);
    for cell in tables.flat_map(|table| &table.rows).flatten() {
        let text = cell.text.replace('<', "&#60;").replace('>', "&#62;");
        assert!(page.contains(&format!(">{text}</t")), "{text}");
    }
    assert_eq!(page.matches("<svg xmlns").count(), 5);
    assert!(page.contains("72 %") && page.contains("width=\"72\""), "a bar");
    assert!(page.contains("no GPU is measured yet"), "why a bar is empty");
    let buttons = page.matches("<button").count();
    assert_eq!(buttons, 0, "buttons are added by the script");
}

#[test]
fn script_and_style_are_small() {
    let size = super::SCRIPT.len() + super::STYLE.len() + super::THEME.len();
    assert!(size < 100_000, "{size} bytes");
}

#[test]
fn caption_says_how_high_the_peak_was_and_who_had_most_of_it() {
    let page = page();
    assert!(page.contains("<p class=\"peak\">Peak 3.77 GiB at 4 min 46 s (all processes)</p>"));
    assert!(page.contains(", most of it solver (3.00 cores)</p>"));
}

#[test]
fn charts_in_which_little_happened_are_folded() {
    let mut document = document();
    let mut flat = document.chapters[1].charts[1].clone();
    (flat.name, flat.title) = ("flat".to_owned(), "Open files".to_owned());
    flat.series.iter_mut().for_each(|series| series.values.fill(7.0));
    document.chapters[1].charts.insert(0, flat);
    let page = unscripted(&html(&document).unwrap());
    let (before, folded) = page.split_once("1 chart in which little happened").unwrap();
    assert!(before.contains("id=\"chart-io\"") && !before.contains("id=\"chart-flat\""));
    let (folded, _) = folded.split_once("</details>").unwrap();
    assert!(folded.contains("Open files</span>") && folded.contains("id=\"chart-flat\""));
}

#[test]
fn page_without_leading_charts_has_the_others_in_their_chapters() {
    let mut document = document();
    document.chapters.remove(0);
    let page = unscripted(&html(&document).unwrap());
    assert!(!page.contains("class=\"leading\"") && page.contains("id=\"the-run\">The run</h2>"));
}

#[test]
fn timeline_has_a_row_for_a_phase_and_one_for_a_program() {
    let page = unscripted(&page());
    let (_, timeline) = page.split_once("data-end=\"300\"").unwrap();
    assert!(timeline.contains("solver <small>× 2</small>"));
    assert!(timeline.contains("--a:50;--b:300;--l:1\" title=\"4002: 50 s to 300 s\""));
    assert!(timeline.contains("class=\"row phase\""));
}

#[test]
fn charts_of_one_run_share_times_and_phases() {
    let drawn = drawn(&page());
    assert_eq!(drawn["times"].as_array().unwrap().len(), 1);
    assert_eq!(drawn["timelines"].as_array().unwrap().len(), 1);
    assert_eq!(drawn["times"][0]["unit"], 0.001);
    let steps = drawn["times"][0]["steps"].as_array().unwrap();
    assert_eq!((&steps[0], &steps[1], steps.len()), (&0.into(), &1000.into(), 301));
}

#[test]
fn phase_times_of_a_long_run_are_exact() {
    let mut document = document();
    document.chapters[0].charts[0].timeline.bands[1].from = 345_678.912_345;
    let drawn = drawn(&html(&document).unwrap());
    assert_eq!(drawn["timelines"][0]["bands"][1][0], 345_678.912_345);
}

#[test]
fn values_have_five_digits_and_gaps_stay_gaps() {
    let drawn = drawn(&page());
    let values = &drawn["charts"][0]["series"][0]["values"];
    assert!(values[100].is_null() && values[109].is_null());
    assert_eq!(values[0], 429_500_000, "0.4 GiB are 429,496,730 bytes");
    let cores = &drawn["charts"][1]["series"][3]["values"];
    assert_eq!(cores[7].to_string(), "0.05");
    let highest = document().chapters[0].charts[0].highest().unwrap().value;
    assert_eq!(drawn["charts"][0]["highest"], highest, "the end of an axis needs every digit");
}

#[test]
fn anchors_are_unique() {
    let mut document = document();
    let twice = document.chapters[0].charts.clone();
    document.chapters[1].charts.extend(twice);
    document.tables[0].name = "machine".to_owned();
    document.chapters[1].title = "42 <nodes>".to_owned();
    let page = unscripted(&html(&document).unwrap());
    let names: Vec<&str> =
        page.split(" id=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), different.len(), "{names:?}");
    for linked in page.split("href=\"#").skip(1) {
        let name = linked.split_once('"').unwrap().0;
        assert!(different.contains(name), "{name} leads nowhere");
    }
}

#[test]
fn empty_report_is_still_a_page() {
    let mut document = document();
    document.chapters.clear();
    document.tables.clear();
    document.findings.clear();
    document.figures.rows.clear();
    document.command = None;
    let page = html(&document).unwrap();
    assert!(!page.contains("id=\"drawn\"") && page.ends_with("</html>"));
}

#[test]
fn long_command_line_is_folded() {
    let mut document = document();
    document.tables[0].rows[0][1].text = format!("cc {} <end>", "-I/some/where ".repeat(30));
    let page = html(&document).unwrap();
    assert!(page.contains("<summary>cc -I/some/where -I/some/where -I/some/where…</summary>cc -I"));
    assert!(page.contains("&#60;end&#62;</details></td>"));
}
