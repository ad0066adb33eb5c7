//! Tables: columns sized by content, headers on every page.
//!
//! Text columns shrink before number columns, since a cut number is a wrong one. Long cells are
//! cut, names in the middle; only a last column of text wraps.

use super::page::{BOTTOM, Composer, LEFT, TOP, WIDTH};
use super::style::{FontStyle, Ink};
use super::text::{Faces, shown};
use crate::report::document::{ReportCell, ReportTable};

/// Font sizes, the best first: a table that is too wide for one tries the next.
const SIZES: [f32; 3] = [8.5, 7.5, 6.5];
/// Between two columns, in parts of the font size.
const BETWEEN: f32 = 1.35;
/// The greatest part of the width that number columns may take from text columns.
const MAX_FOR_NUMBERS: f32 = 0.7;
/// The width of text columns before the font is made smaller: the last one wraps.
const ENOUGH_FOR_WORDS: f32 = 95.0;
const ENOUGH_FOR_LAST: f32 = 140.0;
const HEADER_LINES: usize = 3;
/// Above and below the text of a row.
const PADDING: f32 = 2.8;

/// How much of a table is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableExtent {
    /// The most rows.
    pub rows: usize,
    /// The most lines of a cell in the last column.
    pub lines: usize,
}

/// Adds a table.
pub(super) fn add(composer: &mut Composer, table: &ReportTable, most: TableExtent) {
    let rows = &table.rows[..table.rows.len().min(most.rows)];
    let layout = TableLayout::new(table, rows, most.lines, composer.faces);
    let note = composer.note_height(&table.note);
    composer.heading(&table.title, note + layout.together(rows));
    composer.note(&table.note);
    if rows.is_empty() {
        composer.note("None.");
        return;
    }
    layout.draw_header(composer);
    let more = table.rows.len() - rows.len();
    for (place, row) in rows.iter().enumerate() {
        let (lines, height) = layout.row(row);
        // The number of omitted rows is not alone on a page.
        let is_attached = more > 0 && place + 1 == rows.len();
        let below = if is_attached { PADDING + layout.style.leading() } else { 0.0 };
        if composer.ensure_space(height + below) {
            composer.continued_heading(&table.title);
            layout.draw_header(composer);
        }
        layout.draw_row(composer, lines, height);
    }
    if more > 0 {
        composer.y += PADDING;
        composer.lines(LEFT, layout.style.inked(Ink::GREY), vec![format!("and {more} more")]);
    }
}

/// The layout of a table.
struct TableLayout<'a> {
    faces: &'a Faces,
    style: FontStyle,
    widths: Vec<f32>,
    numbers: Vec<bool>,
    names: Vec<bool>,
    headers: Vec<Vec<String>>,
    header_height: f32,
    cell_lines: usize,
}

impl<'a> TableLayout<'a> {
    fn new(
        table: &ReportTable,
        rows: &[Vec<ReportCell>],
        cell_lines: usize,
        faces: &'a Faces,
    ) -> TableLayout<'a> {
        let numbers: Vec<bool> = table.columns.iter().map(|column| column.is_number).collect();
        let names = table.columns.iter().map(|column| column.is_name).collect();
        let last = numbers.len().saturating_sub(1);
        let available = |size: f32| WIDTH - BETWEEN * size * last as f32;
        // Measured once, in size 1: widths are proportional to the size.
        let ones = natural_widths(table, rows, faces);
        let natural = |size: f32| -> Vec<f32> { ones.iter().map(|one| one * size).collect() };
        // Numbers are never cut, text only up to a limit.
        let wanted = |(place, width): (usize, f32)| match numbers[place] {
            true => width,
            false if place == last => width.min(ENOUGH_FOR_LAST),
            false => width.min(ENOUGH_FOR_WORDS),
        };
        let fits = |size: &f32| {
            let widths = natural(*size).into_iter().enumerate();
            widths.map(wanted).sum::<f32>() <= available(*size)
        };
        let size = SIZES.into_iter().find(fits).unwrap_or(SIZES[SIZES.len() - 1]);
        let style = FontStyle::of(size);
        let widths = shared(&natural(size), &numbers, available(size));
        let header = header_style(style);
        let headers: Vec<Vec<String>> = (table.columns.iter().zip(&widths))
            .map(|(column, width)| faces.wrap(&column.label, header, *width, HEADER_LINES))
            .collect();
        let lines = headers.iter().map(Vec::len).max().unwrap_or_default();
        let header_height = lines as f32 * header.leading() + 2.0 * PADDING;
        TableLayout { faces, style, widths, numbers, names, headers, header_height, cell_lines }
    }

    /// The height to keep together below the heading: a small table as a whole, of a large one the
    /// first rows.
    fn together(&self, rows: &[Vec<ReportCell>]) -> f32 {
        let mut heights = rows.iter().map(|row| self.row(row).1);
        let start = self.header_height + heights.by_ref().take(3).sum::<f32>();
        let mut whole = start;
        for height in heights {
            whole += height;
            if whole > (BOTTOM - TOP) / 2.0 {
                return start;
            }
        }
        whole
    }

    /// The lines of a row's cells, and the row's height.
    fn row(&self, row: &[ReportCell]) -> (Vec<Vec<String>>, f32) {
        let last = self.widths.len().saturating_sub(1);
        let cells: Vec<Vec<String>> = (row.iter().zip(&self.widths).enumerate())
            .map(|(place, (cell, width))| {
                if self.names[place] {
                    vec![self.faces.cut_inside(&cell.text, self.style, *width)]
                } else if place == last && !self.numbers[place] {
                    self.faces.wrap(&cell.text, self.style, *width, self.cell_lines)
                } else {
                    vec![self.faces.cut(&cell.text, self.style, *width)]
                }
            })
            .collect();
        let lines = cells.iter().map(Vec::len).max().unwrap_or_default().max(1);
        (cells, lines as f32 * self.style.leading() + 2.0 * PADDING)
    }

    fn draw_header(&self, composer: &mut Composer) {
        let style = header_style(self.style);
        let bottom = composer.y + self.header_height - PADDING;
        let headers = self.headers.iter().map(|lines| {
            // Headers are aligned at the bottom.
            (bottom - lines.len() as f32 * style.leading(), lines.clone())
        });
        let headers: Vec<_> = headers.collect();
        self.draw_cells(composer, headers, style);
        composer.y += self.header_height;
        let y = composer.y;
        composer.sheet().rule(y, Ink::SILVER);
    }

    fn draw_row(&self, composer: &mut Composer, cells: Vec<Vec<String>>, height: f32) {
        let top = composer.y + PADDING;
        let cells = cells.into_iter().map(|lines| (top, lines)).collect();
        self.draw_cells(composer, cells, self.style);
        composer.y += height;
        let y = composer.y;
        composer.sheet().rule(y, Ink::PALE);
    }

    /// Cells of a row: the top of each and its lines.
    fn draw_cells(
        &self,
        composer: &mut Composer,
        cells: Vec<(f32, Vec<String>)>,
        style: FontStyle,
    ) {
        let mut x = LEFT;
        for ((top, lines), (width, is_number)) in
            cells.into_iter().zip(self.widths.iter().zip(&self.numbers))
        {
            for (row, line) in lines.into_iter().enumerate() {
                let spare = if *is_number { width - self.faces.width(&line, style) } else { 0.0 };
                composer.sheet().text(x + spare, top + row as f32 * style.leading(), style, line);
            }
            x += width + BETWEEN * self.style.size;
        }
    }
}

fn header_style(style: FontStyle) -> FontStyle {
    FontStyle::of(style.size * 0.94).bold().inked(Ink::GREY)
}

/// The natural width of each column in size 1: its widest cell, and the longest word of its header.
fn natural_widths(table: &ReportTable, rows: &[Vec<ReportCell>], faces: &Faces) -> Vec<f32> {
    let style = FontStyle::of(1.0);
    let columns = table.columns.iter().enumerate().map(|(place, column)| {
        let words = column.label.split_whitespace();
        let header = words.map(|word| faces.width_up_to(&shown(word), header_style(style), WIDTH));
        let cells = rows.iter().filter_map(|row| row.get(place));
        let cells = cells.map(|cell| faces.width_up_to(&shown(&cell.text), style, WIDTH));
        header.chain(cells).fold(0.0, f32::max)
    });
    columns.collect()
}

/// The width of each column. Spare width is shared equally; missing width is taken from the widest
/// text columns, and from numbers only when they are most of it.
fn shared(natural: &[f32], numbers: &[bool], available: f32) -> Vec<f32> {
    let spare = available - natural.iter().sum::<f32>();
    if spare >= 0.0 {
        return natural.iter().map(|width| width + spare / natural.len() as f32).collect();
    }
    let of = |wanted: bool| -> Vec<f32> {
        let columns = natural.iter().zip(numbers);
        columns.filter_map(|(width, is)| (*is == wanted).then_some(*width)).collect()
    };
    let (words, counts) = (of(false), of(true));
    let least_for_words = if words.is_empty() { 0.0 } else { 1.0 - MAX_FOR_NUMBERS };
    let count_level = level(&counts, available * (1.0 - least_for_words));
    let taken: f32 = counts.iter().map(|width| width.min(count_level)).sum();
    let word_level = level(&words, available - taken);
    let columns = natural.iter().zip(numbers);
    columns
        .map(|(width, is_number)| width.min(if *is_number { count_level } else { word_level }))
        .collect()
}

/// The width above which columns are cut so that all of them fit.
fn level(natural: &[f32], available: f32) -> f32 {
    let mut sorted = natural.to_vec();
    sorted.sort_by(f32::total_cmp);
    let mut left = available;
    for (place, width) in sorted.iter().enumerate() {
        let alike = left / (sorted.len() - place) as f32;
        if *width > alike {
            return alike;
        }
        left -= width;
    }
    f32::INFINITY
}

#[cfg(test)]
mod tests {
    use super::super::page::{PageItem, Sheet};
    use super::*;
    use crate::report::document::ReportColumn;

    const MOST: TableExtent = TableExtent { rows: 60, lines: 3 };

    #[test]
    fn spare_width_is_shared_equally() {
        assert_eq!(shared(&[10.0, 20.0], &[false, true], 50.0), [20.0, 30.0]);
    }

    #[test]
    fn text_columns_shrink_before_number_columns() {
        let widths = shared(&[300.0, 30.0, 20.0], &[false, true, true], 150.0);
        assert_eq!(widths, [100.0, 30.0, 20.0]);
        let widths = shared(&[30.0, 300.0, 300.0], &[false, false, true], 200.0);
        assert!((widths[2] - 140.0).abs() < 1e-3, "{widths:?}");
        assert_eq!(widths[0], 30.0);
        assert!((widths.iter().sum::<f32>() - 200.0).abs() < 1e-3);
    }

    #[test]
    fn only_columns_above_the_level_are_cut() {
        assert_eq!(level(&[10.0, 100.0, 200.0], 110.0), 50.0);
        assert_eq!(level(&[10.0, 20.0], 110.0), f32::INFINITY);
        assert_eq!(level(&[], 110.0), f32::INFINITY);
    }

    fn long_table(rows: usize) -> ReportTable {
        let column = |label: &str, is_number| ReportColumn {
            label: label.to_owned(),
            is_number,
            is_name: false,
        };
        let cell = |text: String| ReportCell { text, number: None };
        ReportTable {
            name: "processes".to_owned(),
            title: "Processes".to_owned(),
            note: String::new(),
            columns: vec![column("Name", false), column("CPU time", true), column("Why", false)],
            rows: (0..rows)
                .map(|row| {
                    vec![cell(format!("p{row}")), cell("1.00 s".into()), cell("w ".repeat(200))]
                })
                .collect(),
        }
    }

    fn lines(sheet: &Sheet) -> Vec<&str> {
        let items = sheet.items.iter();
        items
            .filter_map(
                |item| if let PageItem::Text { line, .. } = item { Some(&**line) } else { None },
            )
            .collect()
    }

    #[test]
    fn long_table_repeats_its_header_on_the_next_page() {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        add(&mut composer, &long_table(70), MOST);
        assert!(composer.sheets.len() > 1);
        for sheet in &composer.sheets {
            assert!(lines(sheet).contains(&"Name"));
            let feet = sheet.items.iter().map(|item| match item {
                PageItem::Text { y, .. } => *y,
                PageItem::Block { area, .. } => area.y,
                _ => 0.0,
            });
            assert!(feet.fold(0.0, f32::max) <= BOTTOM + 1.0);
        }
        let all: Vec<&str> = composer.sheets.iter().flat_map(lines).collect();
        assert_eq!(all.iter().filter(|line| line.starts_with('p')).count(), 60);
        assert_eq!(all.last(), Some(&"and 10 more"));
    }

    #[test]
    fn empty_table_says_none() {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        add(&mut composer, &ReportTable { columns: Vec::new(), ..long_table(0) }, MOST);
        assert_eq!(lines(&composer.sheets[0]), ["Processes", "None."]);
        let rows = vec![Vec::new(), vec![ReportCell { text: "x".into(), number: None }]];
        add(&mut composer, &ReportTable { rows, ..long_table(0) }, MOST);
        assert!(lines(&composer.sheets[0]).contains(&"x"), "short rows are no harm");
    }
}
