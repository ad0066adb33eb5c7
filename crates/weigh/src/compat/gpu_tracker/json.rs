//! The result of a run as gpu-tracker's JSON: names and order are those of its data classes.

use super::text;
use super::usage::{Percentages, ResourceUsage, RssValues};
use crate::compat::python::{PythonValue, dumps};

const PARTS: [&str; 3] = ["main", "descendants", "combined"];

impl ResourceUsage {
    /// As gpu-tracker's `to_json` has it.
    pub fn to_value(&self) -> PythonValue {
        let ram = &self.max_ram;
        let mut max_ram = vec![
            ("unit".to_owned(), PythonValue::Text(ram.unit.to_owned())),
            ("system_capacity".to_owned(), PythonValue::real(ram.system_capacity)),
            ("system".to_owned(), PythonValue::real(ram.system)),
        ];
        max_ram.extend(named(PARTS, ram.parts.map(|part| part.to_value())));
        let gpu = &self.max_gpu_ram;
        let mut max_gpu_ram = vec![
            ("unit".to_owned(), PythonValue::Text(gpu.unit.to_owned())),
            ("system_capacity".to_owned(), PythonValue::real(gpu.system_capacity)),
            ("system".to_owned(), PythonValue::real(gpu.system)),
        ];
        max_gpu_ram.extend(named(PARTS, gpu.parts.map(PythonValue::real)));
        let cpu = &self.cpu_utilization;
        let mut cpu_utilization = vec![
            ("system_core_count".to_owned(), PythonValue::Whole(cpu.system_core_count.into())),
            ("n_expected_cores".to_owned(), PythonValue::count(cpu.n_expected_cores)),
        ];
        let parts = ["system", "main", "descendants", "combined"];
        cpu_utilization.extend(named(parts, cpu.parts.map(|part| part.to_value())));
        let threads = ["main_n_threads", "descendants_n_threads", "combined_n_threads"];
        cpu_utilization.extend(named(threads, cpu.threads.map(PythonValue::whole)));
        let gpus = &self.gpu_utilization;
        PythonValue::map([
            ("max_ram", PythonValue::Map(max_ram)),
            ("max_gpu_ram", PythonValue::Map(max_gpu_ram)),
            ("cpu_utilization", PythonValue::Map(cpu_utilization)),
            (
                "gpu_utilization",
                PythonValue::map([
                    ("system_gpu_count", PythonValue::whole(gpus.system_gpu_count)),
                    ("n_expected_gpus", PythonValue::whole(gpus.n_expected_gpus)),
                    ("gpu_percentages", gpus.gpu_percentages.to_value()),
                ]),
            ),
            (
                "compute_time",
                PythonValue::map([
                    ("unit", PythonValue::Text(self.compute_time.unit.to_owned())),
                    ("time", PythonValue::Real(self.compute_time.time)),
                ]),
            ),
        ])
    }

    /// As `gpu-tracker -f json` prints it.
    pub fn to_json(&self) -> String {
        dumps(&self.to_value(), 1)
    }

    /// As `gpu-tracker -f text` prints it.
    pub fn to_text(&self) -> String {
        text::of_usage(self.to_value())
    }
}

fn named<const N: usize>(names: [&str; N], values: [PythonValue; N]) -> Vec<(String, PythonValue)> {
    names.map(str::to_owned).into_iter().zip(values).collect()
}

impl RssValues {
    fn to_value(self) -> PythonValue {
        PythonValue::map([
            ("total_rss", PythonValue::real(self.total_rss)),
            ("private_rss", PythonValue::real(self.private_rss)),
            ("shared_rss", PythonValue::real(self.shared_rss)),
        ])
    }
}

impl Percentages {
    fn to_value(self) -> PythonValue {
        PythonValue::map([
            ("max_sum_percent", PythonValue::real(self.max_sum_percent)),
            ("max_hardware_percent", PythonValue::real(self.max_hardware_percent)),
            ("mean_sum_percent", PythonValue::real(self.mean_sum_percent)),
            ("mean_hardware_percent", PythonValue::real(self.mean_hardware_percent)),
        ])
    }
}
