//! Which rows hold a minimum or maximum of a drawn column.

/// The columns of a chart's rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The number of columns.
    pub columns: usize,
    /// The value of a column in rows from before it was added.
    pub absent: f64,
    /// Whether the sum of all columns is drawn, too.
    pub summed: bool,
}

/// Marks the rows with the minimum or maximum of any column, or of the sum.
pub(super) fn mark(rows: &[&[f64]], shape: Shape, keep: &mut [bool]) {
    let mut of = |value: &dyn Fn(&[f64]) -> f64| {
        let values = || rows.iter().map(|row| value(row)).enumerate();
        let known = || values().filter(|(_, value)| !value.is_nan());
        // The first of equals is kept.
        let low = known().reduce(|best, next| if next.1 < best.1 { next } else { best });
        let high = known().reduce(|best, next| if next.1 > best.1 { next } else { best });
        for (place, _) in low.into_iter().chain(high) {
            keep[place] = true;
        }
    };
    (0..shape.columns).for_each(|column| of(&|row| cell(row, column, shape.absent)));
    if shape.summed {
        of(&sum);
    }
}

/// The value of a column in a row that may be from before it was added.
pub(super) fn cell(values: &[f64], column: usize, absent: f64) -> f64 {
    values.get(column).copied().unwrap_or(absent)
}

/// The sum of the known values.
pub(super) fn sum(values: &[f64]) -> f64 {
    values.iter().filter(|value| !value.is_nan()).sum()
}
