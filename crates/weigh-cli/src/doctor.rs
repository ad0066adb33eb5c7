//! `weigh doctor`: what can be measured here, what cannot, and what to type to change it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use weigh::doctor::{self, Examination, SourceStatus};
use weigh::model::Gpu;
use weigh::quantity::{self, Units};
use weigh::report::hardware;
use weigh::text::printable;

use crate::args::{DoctorArgs, Format};
use crate::config;
use crate::failure::Failure;
use crate::print::{self, indented, out_columns};

/// Prints what can be measured, or the hardware.
pub(crate) fn doctor(args: DoctorArgs) -> Result<u8, Failure> {
    let root = args.host_root.clone().unwrap_or_else(|| PathBuf::from(doctor::HERE));
    match args.hardware {
        true => describe(&root, &args),
        false => examine_all(&root, args.format),
    }
}

/// Prints the hardware of the machine.
fn describe(root: &Path, args: &DoctorArgs) -> Result<u8, Failure> {
    let machine = doctor::describe_machine(root, args.limits).map_err(weigh::run::Error::from)?;
    let style = print::style(config::units(args.sizes.units)?);
    print::out(&match args.format {
        Format::Text => hardware::text(&machine.hardware, machine.surroundings.as_ref(), style),
        Format::Json => json(&machine),
    });
    Ok(0)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Probes every collector.
fn examine_all(root: &Path, format: Format) -> Result<u8, Failure> {
    let examined = doctor::examine_machine(root).map_err(weigh::run::Error::from)?;
    print::out(&match format {
        Format::Text => text(&examined),
        Format::Json => json(&examined),
    });
    Ok(0)
}

fn text(examined: &Examination) -> String {
    let host = &examined.host;
    let memory = host.memory_bytes.map_or_else(
        || "unknown memory".to_owned(),
        |bytes| format!("{} of memory", quantity::bytes(bytes as f64, Units::Binary)),
    );
    let machine = format!(
        "{}: {} cores, {} of them for a run here, {memory}, Linux {} on {}",
        host.name, host.cores, host.cores_allowed, host.kernel, host.architecture
    );
    let mut text = indented(&machine, 0, out_columns()) + "\n\n";
    text += &rows(&examined.collectors);
    text += &gpus(&examined.gpus);
    text += "\nTo monitor processes that weigh did not start:\n\n";
    text += &rows(&examined.watching);
    let always =
        "CPU time and I/O of a run are counted by wait4 and /proc/self/io, which need nothing.";
    text + "\n" + &indented(always, 0, out_columns()) + "\n"
}

/// The GPUs that were found.
fn gpus(gpus: &[Gpu]) -> String {
    let line = |gpu: &Gpu| {
        let model = gpu.model.as_deref().unwrap_or("unknown model");
        let memory = gpu.memory_bytes.map(|bytes| quantity::bytes(bytes as f64, Units::Binary));
        let parts = [Some(model.to_owned()), memory, gpu.uuid.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!(
            "  {:<11} {}\n",
            gpu.name,
            indented(&printable(&parts.join(", ")), 14, out_columns())
        )
    };
    match gpus {
        [] => String::new(),
        gpus => format!("\nGPUs:\n\n{}", gpus.iter().map(line).collect::<String>()),
    }
}

fn rows(statuses: &[SourceStatus]) -> String {
    let mut text = String::new();
    for status in statuses {
        let sign = match status.state {
            "ready" => "\x1b[32m✓\x1b[0m",
            "denied" => "\x1b[33m!\x1b[0m",
            _ => "\x1b[31m✗\x1b[0m",
        };
        let request = if status.on_request { " (only with --collect)" } else { "" };
        let about = format!("{}{request}", status.about);
        text += &format!("{sign} {:<11} {}\n", status.name, indented(&about, 14, out_columns()));
        if let Some(why) = &status.why {
            text += &format!("  {:<11} cause: {}\n", "", indented(why, 21, out_columns()));
        }
        // A command line is not wrapped.
        if let Some(hint) = &status.hint {
            text += &format!("  {:<11} hint:  {hint}\n", "");
        }
    }
    text
}
