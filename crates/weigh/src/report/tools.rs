//! What each tool used, as a table for a terminal.
//!
//! A terminal holds what matters most; the JSON and the report have the rest.

use super::columns::TextColumns;
use super::style::Style;
use crate::quantity;
use crate::summary::{Method, Tool};
use crate::text::printable;

const COLUMNS: TextColumns<8> = TextColumns {
    indent: 2,
    header: ["tool", "runs", "CPU", "cores", "peak", "USS of 1", "memory", "time"],
    left_aligned: &[0],
    elastic: 0,
    optional: &[5, 4, 7, 3],
};

/// A line for each tool.
pub(super) fn table(tools: &[Tool], style: Style) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 8]> = tools.iter().map(|tool| row(tool, style)).collect();
    format!("\n{}", COLUMNS.lines(&rows, style, |_| true))
}

fn row(tool: &Tool, style: Style) -> [String; 8] {
    let unknown = || "-".to_owned();
    let seconds = |value: Option<f64>| value.map_or_else(unknown, quantity::seconds);
    let cores = |value: Option<f64>| value.map_or_else(unknown, |cores| format!("{cores:.2}"));
    let bytes = |value: Option<u64>| value.map_or_else(unknown, |size| style.bytes(size as f64));
    // From samples, not from the exit of each process.
    let is_exact = tool.cpu_time_method == Some(Method::Exact);
    let cpu = |tool: &Tool| match tool.cpu_time_seconds {
        Some(value) if !is_exact => format!("~{}", quantity::seconds(value)),
        value => seconds(value),
    };
    [
        printable(&tool.name),
        quantity::count(tool.instances as f64),
        cpu(tool),
        cores(tool.cpu_cores_mean),
        cores(tool.cpu_cores_peak),
        bytes(tool.instance_uss_peak_bytes),
        bytes(tool.memory_peak_bytes),
        seconds(tool.duration_seconds),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Units;

    #[test]
    fn every_tool_has_one_line_below_80_columns() {
        let tool = Tool {
            name: "a-program-with-a-name-much-longer-than-usual--".to_owned(),
            instances: 12_345,
            cpu_time_seconds: Some(123_456.0),
            cpu_cores_mean: Some(123.456),
            memory_peak_bytes: Some(123 << 30),
            instance_uss_peak_bytes: Some(999 << 20),
            duration_seconds: Some(86_399.0),
            ..Tool::default()
        };
        let style = Style { units: Units::Binary, ..Style::default() };
        let text = table(&[tool, Tool { name: "b".to_owned(), ..Tool::default() }], style);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() < 80), "{text}");
        assert!(lines[3].trim_start().starts_with('b') && lines[3].contains('-'), "{text}");
    }
}
