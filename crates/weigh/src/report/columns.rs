//! Aligned columns for a terminal: text to the left, numbers to the right, as wide as the terminal.

use super::style::{BOLD, DIM, Style};
use crate::text::ellipsize;

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
    /// Columns that are left out, in this order, where that is not enough.
    pub(super) optional: &'static [usize],
}

impl<const N: usize> TextColumns<N> {
    /// The table as lines; the first cell of a row is bold where `is_bold`.
    pub(super) fn lines(
        &self,
        rows: &[[String; N]],
        style: Style,
        is_bold: impl Fn(&str) -> bool,
    ) -> String {
        let (widths, left_out) = self.widths(rows, style.end());
        let indent = " ".repeat(self.indent);
        let kept = |cells: [String; N]| {
            let cells = cells.into_iter().enumerate();
            cells.filter(move |(column, _)| !left_out.contains(column)).map(|(_, cell)| cell)
        };
        let cells = self.padded(&self.header.map(str::to_owned), &widths);
        let cells: Vec<String> = kept(cells).collect();
        let mut out = format!("{indent}{}\n", style.paint(DIM, cells.join("  ").trim_end()));
        for row in rows {
            let mut cells = self.padded(row, &widths);
            if is_bold(&row[0]) {
                cells[0] = style.paint(BOLD, &cells[0]);
            }
            let cells: Vec<String> = kept(cells).collect();
            out.push_str(format!("{indent}{}", cells.join("  ")).trim_end());
            out.push('\n');
        }
        out
    }

    /// The widths of columns in lines of so many characters, and the columns that are left out.
    fn widths(&self, rows: &[[String; N]], line: usize) -> ([usize; N], &'static [usize]) {
        let mut widths: [usize; N] = std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.header[column].chars().count()]).max().unwrap_or(0)
        });
        let all: usize = self.indent + widths.iter().sum::<usize>() + 2 * (N - 1);
        let shortest = SHORTEST.min(widths[self.elastic]);
        let mut rest = all - widths[self.elastic];
        let mut count = 0;
        while rest + shortest > line && count < self.optional.len() {
            rest -= widths[self.optional[count]] + 2;
            count += 1;
        }
        let elastic = &mut widths[self.elastic];
        *elastic = (*elastic).min(line.saturating_sub(rest).max(SHORTEST));
        (widths, &self.optional[..count])
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
        optional: &[1],
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
        assert_eq!(one_line("a").chars().count(), 79);
        let name = "n".repeat(90);
        assert_eq!(one_line(&name).chars().count(), 2 + 90 + 2 + SHORTEST, "without its size");
    }

    #[test]
    fn narrow_terminal_leaves_optional_columns_out() {
        let row =
            ["a rather long name of tool".to_owned(), "12345".to_owned(), "some model".to_owned()];
        let lines = |columns: usize| {
            let style = Style { columns, ..Style::default() };
            COLUMNS.lines(std::slice::from_ref(&row), style, |_| false)
        };
        assert_eq!(
            lines(47).lines().nth(1),
            Some("  a rather long name of tool  12345  some mod…")
        );
        assert_eq!(lines(45).lines().nth(1), Some("  a rather long name of tool  some model"));
        assert!(!lines(45).contains("size"));
    }
}
