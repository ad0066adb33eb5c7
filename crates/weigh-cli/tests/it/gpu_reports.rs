//! Reports and rates of runs on GPUs with known values: readings are older than their ticks.

use std::fs;

use serde_json::{Value, json};

use crate::cards::{GpuRun, card, machine, measured_on};
use crate::weighed::{output, weigh};

/// A card that is always busy.
fn busy(index: usize) -> Value {
    let mut busy = card(index);
    busy["waves"] = json!({"1": {"low": 100, "high": 100, "half_ms": 50, "period_ms": 20}});
    busy
}

fn measured(cards: usize) -> GpuRun {
    let cards: Vec<Value> = (0..cards).map(busy).collect();
    let readings = format!("readings {}", 12 * cards.len());
    measured_on(&machine(cards), &["-i", "150ms"], &readings)
}

impl GpuRun {
    fn weigh(&self, arguments: &[&str]) -> String {
        let done = output(&mut weigh(self.directory.path(), arguments));
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(done.stdout).unwrap()
    }
}

#[test]
fn busy_gpu_has_a_rate_of_one_however_old_its_readings_are() {
    let run = measured(2);
    for more in [&[][..], &["--resample", "200ms"]] {
        let arguments = ["export", "run", "-f", "csv", "--rates", "-o", "out", "--force"];
        run.weigh(&[&arguments[..], more].concat());
        let table = fs::read_to_string(run.directory.path().join("out/gpu.csv")).unwrap();
        let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let header = lines.next().unwrap();
        let wanted = "activity_busy_seconds_per_second";
        let column = header.iter().position(|name| *name == wanted).unwrap();
        let rates: Vec<f64> = lines.filter_map(|line| line[column].parse().ok()).collect();
        assert!(rates.len() > 4, "{table}");
        assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 1e-6), "{more:?}: {rates:?}");
    }
}

#[test]
fn report_draws_usage_of_gpus_and_not_their_constants() {
    for cards in [2, 8] {
        let run = measured(cards);
        run.weigh(&["report", "run", "-f", "html", "-o", "report.html"]);
        let page = fs::read_to_string(run.directory.path().join("report.html")).unwrap();
        let place = |title: &str| page.find(title);
        let drawn = ["GPU activity: busy", "GPU memory: used", "GPU power: power"];
        let places = drawn.map(|title| place(title).unwrap_or_else(|| panic!("no {title}")));
        assert!(places.is_sorted(), "{places:?}");
        assert!(places[2] < place("CPU of the machine").unwrap(), "GPUs are before the node");
        for title in [
            "GPU activity: observed",
            "GPU activity: age",
            "GPU memory: total",
            "GPU power: power limit",
            "GPU throttling: reasons",
            "GPU links: PCIe generation",
        ] {
            assert_eq!(place(title), None, "{title}");
        }
        assert!(!page.contains("`busy`"), "captions are plain text");
        assert!(page.contains("Time in which it was busy"));
        let block = run.weigh(&["show", "run", "--format", "github"]);
        assert!(block.contains("| **GPU busy** | 100 %"), "{block}");
        // By name they can be drawn.
        run.weigh(&["plot", "run", "--metric", "gpu.throttle.reasons", "-o", "reasons.svg"]);
    }
}
