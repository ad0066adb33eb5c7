//! Aligned columns for a terminal: text to the left, numbers to the right, lines below 80 columns.

use super::text::{BOLD, DIM, Style};
use crate::text::ellipsize;

/// Lines end before column 80.
const WIDTH: usize = 79;
/// The least width of the elastic column.
const SHORTEST: usize = 8;

/// The columns of a text table.
pub(super) struct TextColumns<const N: usize> {
    /// Spaces before each line.
    pub(super) indent: usize,
    /// The header of each.
    pub(super) header: [&'static str; N],
    /// Left-aligned columns (text); the others are numbers.
    pub(super) left_aligned: &'static [usize],
    /// The column that shrinks where a line would be too long.
    pub(super) elastic: usize,
}

impl<const N: usize> TextColumns<N> {
    /// The table as lines; the first cell of a row is bold where `is_bold`.
    pub(super) fn lines(
        &self,
        rows: &[[String; N]],
        style: Style,
        is_bold: impl Fn(&str) -> bool,
    ) -> String {
        let widths = self.widths(rows);
        let indent = " ".repeat(self.indent);
        let cells = self.padded(&self.header.map(str::to_owned), &widths);
        let mut out = format!("{indent}{}\n", style.paint(DIM, cells.join("  ").trim_end()));
        for row in rows {
            let mut cells = self.padded(row, &widths);
            if is_bold(&row[0]) {
                cells[0] = style.paint(BOLD, &cells[0]);
            }
            out.push_str(format!("{indent}{}", cells.join("  ")).trim_end());
            out.push('\n');
        }
        out
    }

    fn widths(&self, rows: &[[String; N]]) -> [usize; N] {
        let mut widths: [usize; N] = std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.header[column].chars().count()]).max().unwrap_or(0)
        });
        let all: usize = self.indent + widths.iter().sum::<usize>() + 2 * (N - 1);
        let elastic = &mut widths[self.elastic];
        let rest = all - *elastic;
        *elastic = (*elastic).min(WIDTH.saturating_sub(rest).max(SHORTEST));
        widths
    }

    fn padded(&self, cells: &[String; N], widths: &[usize; N]) -> [String; N] {
        std::array::from_fn(|column| {
            let (cell, width) = (ellipsize(&cells[column], widths[column]), widths[column]);
            let is_left = self.left_aligned.contains(&column);
            if is_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: TextColumns<3> = TextColumns {
        indent: 2,
        header: ["name", "size", "model"],
        left_aligned: &[0, 2],
        elastic: 2,
    };

    fn shown(rows: &[[&str; 3]]) -> String {
        let rows: Vec<[String; 3]> = rows.iter().map(|row| row.map(str::to_owned)).collect();
        COLUMNS.lines(&rows, Style::default(), |_| true)
    }

    #[test]
    fn text_is_left_aligned_and_numbers_right_aligned() {
        let shown = shown(&[["a", "1", "x"], ["long", "12345", ""]]);
        assert_eq!(shown, "  name   size  model\n  a         1  x\n  long  12345\n");
    }

    #[test]
    fn elastic_column_shrinks_to_its_minimum() {
        let long = "m".repeat(100);
        let one_line = |name: &str| shown(&[[name, "1", &long]]).lines().nth(1).unwrap().to_owned();
        assert_eq!(one_line("a").chars().count(), WIDTH);
        let name = "n".repeat(90);
        assert_eq!(one_line(&name).chars().count(), 2 + 90 + 2 + 4 + 2 + SHORTEST);
    }
}
