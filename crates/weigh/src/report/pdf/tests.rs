//! The PDF as read by other programs.

use std::io::Write;
use std::process::{Command, Output};

use resvg::usvg;

use super::page::{Area, Composer, HEADING, LEFT, PageItem};
use super::specimen::{bare, hostile, rich, rich_and_hostile, table};
use super::text::Faces;
use super::{PdfExtent, paint, pdf};
use crate::host::skip::skipped;
use crate::report::Document;

/// The output of one of poppler's programs; the test is skipped when it is not installed.
fn poppler(program: &str, pdf: &[u8], options: &[&str]) -> Option<String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pdf).unwrap();
    let mut command = Command::new(program);
    command.args(options).arg(file.path());
    if program == "pdftotext" {
        command.arg("-");
    }
    let Ok(Output { status, stdout, stderr }) = command.output() else {
        skipped(format!("{program} is not installed"));
        return None;
    };
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(String::from_utf8_lossy(&stderr), "", "no warnings");
    Some(String::from_utf8(stdout).unwrap())
}

fn text_of(document: &Document) -> Option<String> {
    poppler("pdftotext", &pdf(document, PdfExtent::Full).unwrap(), &["-layout"])
}

/// Text with line breaks and columns normalised.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_report_can_be_read_in_order() {
    let Some(text) = text_of(&rich()) else { return };
    let mut rest = &*flowing(&text);
    for words in [
        "Job ID User # Nodes Date 4711823 ada 2 2025-11-14",
        "align-sample-17",
        "bwa mem -t 16",
        "Lasted 1 h 12 min",
        "Warning Succeeded (exit 0)",
        "7.7 of 16 cores",
        "no GPU was found",
        "Findings",
        "Problem The kernel killed samtools",
        "sbatch --cpus-per-task=8",
        "Figures",
        "53.1 GiB sampled 53.1 GiB 54.0 GiB",
        "The run",
        "The run (continued)",
        "Node n1",
        "Programs",
        "Processes",
        "Processes (continued)",
        "and 10 more",
        "Phases",
        "Hardware",
        "What the monitor cost",
        "What could not be measured",
        "readable by root only",
    ] {
        let at = rest.find(words).unwrap_or_else(|| panic!("no {words:?} in {rest}"));
        rest = &rest[at + words.len()..];
    }
}

#[test]
fn every_page_has_header_and_footer() {
    let Some(text) = text_of(&rich()) else { return };
    let pages: Vec<&str> = text.trim_end_matches('\x0c').split('\x0c').collect();
    assert!(pages.len() > 5);
    for (place, page) in pages.iter().enumerate() {
        let words = flowing(page);
        assert!(words.starts_with("Job ID User # Nodes Date 4711823 ada 2 2025-11-14"), "{words}");
        let footer = format!("align-sample-17 page {} of {} weigh 0.1.0", place + 1, pages.len());
        assert!(words.ends_with(&footer), "{words}");
    }
}

#[test]
fn the_pages_are_a4_and_the_file_says_what_it_is() {
    let Some(facts) = poppler("pdfinfo", &pdf(&rich(), PdfExtent::Full).unwrap(), &["-isodates"])
    else {
        return;
    };
    let facts = flowing(&facts);
    for fact in ["Title: align-sample-17", "Creator: weigh 0.1.0", "(A4)", "2025-11-14T"] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }
}

#[test]
fn fonts_are_embedded_as_subsets() {
    let file = pdf(&rich(), PdfExtent::Full).unwrap();
    assert!(file.len() < 300_000, "{} bytes", file.len());
    let Some(fonts) = poppler("pdffonts", &file, &[]) else { return };
    let fonts: Vec<&str> = fonts.lines().skip(2).collect();
    assert_eq!(fonts.len(), 2, "{fonts:?}");
    for (name, line) in ["DejaVuSans", "DejaVuSans-Bold"].iter().zip(&fonts) {
        assert!(line.contains("yes yes yes") && line.contains('+'), "{name}: {line}");
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert!(pdf(&rich(), PdfExtent::Full).unwrap() == pdf(&rich(), PdfExtent::Full).unwrap());
    assert!(
        pdf(&rich_and_hostile(), PdfExtent::Full).unwrap()
            == pdf(&rich_and_hostile(), PdfExtent::Full).unwrap()
    );
}

#[test]
fn empty_report_is_one_page() {
    let Some(text) = text_of(&bare()) else { return };
    let words = flowing(&text);
    assert!(words.starts_with("Job ID User # Nodes Date – – – –"), "{words}");
    assert!(words.contains("The command line is not recorded."), "{words}");
    assert!(words.contains("Figures None."), "{words}");
    assert!(words.contains("page 1 of 1"), "{words}");
    assert!(!words.contains("Findings") && !words.contains("Hardware"), "{words}");
}

#[test]
fn hostile_text_is_shown_escaped() {
    let Some(text) = text_of(&rich_and_hostile()) else { return };
    assert!(text.contains("a\\u{0}b\\u{1b}[31m\\n\\u{202e}"), "{text}");
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
    assert!(text.contains('…'));
    // Without a glyph, but copied as itself.
    assert!(text.contains("日本語"), "{text}");
}

#[test]
fn a_title_in_hebrew_is_read_as_it_was_written() {
    let Some(text) = text_of(&Document { title: "שלום עולם".to_owned(), ..bare() }) else {
        return;
    };
    assert!(text.contains("שלום עולם"), "{text}");
}

#[test]
fn nothing_crosses_the_margins() {
    for document in [rich(), rich_and_hostile()] {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        super::compose(&mut composer, &document);
        for item in composer.sheets.iter().flat_map(|sheet| &sheet.items) {
            let (left, right, bottom) = match item {
                PageItem::Text { x, y, style, line } => (*x, x + faces.width(line, *style), *y),
                PageItem::Block { area, .. } | PageItem::Frame { area, .. } => {
                    (area.x, area.x + area.width, area.y)
                }
                PageItem::Picture { area, .. } => {
                    (area.x, area.x + area.width, area.y + area.height)
                }
            };
            assert!(left >= LEFT && right <= LEFT + super::WIDTH + 0.1, "{left} to {right}");
            assert!(bottom <= super::page::BOTTOM + 1.0, "{bottom}");
        }
    }
}

#[test]
fn no_page_ends_with_a_heading_or_begins_with_a_remainder() {
    let faces = Faces::new().unwrap();
    for (document, step) in [(rich(), 1), (rich_and_hostile(), 6)] {
        let document = Document { chapters: Vec::new(), ..document };
        for shift in (0..25_u8).step_by(step) {
            let mut composer = Composer::new(&faces);
            composer.y += f32::from(shift) * 24.0;
            super::compose(&mut composer, &document);
            for sheet in &composer.sheets {
                let is_heading = |item: &PageItem| matches!(item, PageItem::Text { style, .. } if *style == HEADING);
                assert!(!sheet.items.last().is_some_and(is_heading), "shifted by {shift}");
                let is_left_over = |item: &PageItem| matches!(item, PageItem::Text { line, .. } if line == "and 10 more");
                assert!(!sheet.items.first().is_some_and(is_left_over), "shifted by {shift}");
            }
        }
    }
}

#[test]
fn table_with_very_many_columns_is_set() {
    let columns = vec!["Bytes written#"; 40];
    let rows = vec![vec!["12,345,678".to_owned(); 40]; 3];
    let tables = vec![table("wide", "Wide", &columns, rows)];
    assert!(pdf(&Document { tables, ..bare() }, PdfExtent::Full).is_ok());
}

/// The SVG features that charts use.
const DRAWING: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="400" height="200" viewBox="0 0 400 200">
<style>.line { fill: none; stroke: #b3261e; stroke-width: 2 } .dashed { stroke-dasharray: 6 4 }
text { font-family: system-ui, sans-serif; font-size: 12px; fill: #1c2228 } .strong { font-weight: 600 }
@media (prefers-color-scheme: dark) { .line { stroke: #00ff00 } text { fill: #00ff00 } }</style>
<defs><clipPath id="plot"><rect x="40" y="20" width="200" height="150"/></clipPath></defs>
<rect x="40" y="20" width="350" height="150" fill="#e9ecef"/>
<g clip-path="url(#plot)"><path class="line" d="M40 150L200 40L390 120"/>
<path class="line dashed" d="M40 60H390"/></g>
<text x="40" y="14" class="strong">Cores in use</text><text x="36" y="174" text-anchor="end">0</text>
<text x="300" y="190">日本 &amp; more</text></svg>"##;

#[test]
fn charts_stay_vectors_and_their_labels_text() {
    let faces = Faces::new().unwrap();
    let fontdb = crate::plot::fonts::fonts();
    let options = usvg::Options { fontdb, ..usvg::Options::default() };
    let drawing = Box::new(usvg::Tree::from_str(DRAWING, &options).unwrap());
    let mut composer = Composer::new(&faces);
    let area = Area { x: LEFT, y: 100.0, width: 400.0, height: 200.0 };
    composer.sheet().items.push(PageItem::Picture { area, drawing });
    let mut file = krilla::Document::new_with(krilla::SerializeSettings {
        compress_content_streams: false,
        ..krilla::SerializeSettings::default()
    });
    paint::sheet(&mut file, &composer.sheets[0], &faces);
    let file = file.finish().unwrap();

    let operators = String::from_utf8_lossy(&file).into_owned();
    assert!(operators.contains("[6 4]0 d"), "dashes");
    assert!(!operators.contains("0 1 0 rg") && !operators.contains("0 1 0 RG"), "paper is white");
    assert!(operators.contains("\nW\nn") || operators.contains(" W n"), "a clip path");
    assert!(!operators.contains("/Subtype/Image") && !operators.contains("/Subtype /Image"));
    let Some(text) = poppler("pdftotext", &file, &[]) else { return };
    let words = flowing(&text);
    assert!(words.contains("Cores in use"), "{words}");
    assert!(words.contains("& more"), "{words}");
    let Some(fonts) = poppler("pdffonts", &file, &[]) else { return };
    assert!(fonts.contains("DejaVuSans-Bold"), "{fonts}");
}

#[test]
fn hostile_text_can_be_measured_and_wrapped() {
    let faces = Faces::new().unwrap();
    let style = super::FontStyle::of(9.0);
    let words = hostile();
    assert!(faces.width(&faces.cut(&words, style, 100.0), style) <= 100.1);
    let lines = faces.wrap(&words, style, 100.0, 5);
    assert!(lines.iter().all(|line| faces.width(line, style) <= 100.1), "{lines:?}");
}
