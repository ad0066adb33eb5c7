//! Parsers of the files of nvidia-smi and pytyche, on any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh::compat::pytyche::import::{cpu_metrics, dmon, nvidia_smi};

fuzz_target!(|bytes: &[u8]| {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let header = lines.next().unwrap_or_default();
    let monitored = dmon::DmonColumns::of_header(header);
    let queried = nvidia_smi::SmiColumns::of_header(header);
    for line in lines {
        let _ = dmon::is_header(line);
        let _ = cpu_metrics::row(line);
        let _ = monitored.as_ref().map(|columns| columns.row(line));
        for columns in queried.iter().chain(&[nvidia_smi::SmiColumns::of_pytyche()]) {
            let _ = columns.row(line);
            let _ = columns.place(line);
        }
    }
});
