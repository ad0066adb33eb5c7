//! `weigh doctor`: what can be measured here, what cannot, and what to type to change it.

use serde::Serialize;
use weigh::collect::{self, Probe, SOURCES, Source, WATCHING};
use weigh::host::Host;
use weigh::host::facts::Facts;
use weigh::quantity::{self, Units};
use weigh::sample::Gpu;
use weigh::words::printable;

use crate::args::Format;
use crate::failure::Failure;
use crate::print;

#[derive(Serialize)]
struct Examined {
    host: Facts,
    gpus: Vec<Gpu>,
    collectors: Vec<Examinee>,
    watching: Vec<Examinee>,
}

#[derive(Serialize)]
struct Examinee {
    name: &'static str,
    about: &'static str,
    state: &'static str,
    on_request: bool,
    why: Option<String>,
    hint: Option<String>,
}

/// Asks every collector what it can do.
pub fn doctor(format: Format) -> Result<u8, Failure> {
    let host = Host::at(std::path::Path::new("/")).map_err(weigh::run::Error::from)?;
    let examined = Examined {
        host: Facts::of(&host),
        gpus: collect::gpu::there(&host),
        collectors: examine(SOURCES, &host),
        watching: examine(WATCHING, &host),
    };
    print::out(&match format {
        Format::Text => text(&examined),
        Format::Json => serde_json::to_string_pretty(&examined).unwrap_or_default() + "\n",
    });
    Ok(0)
}

fn examine(sources: &'static [Source], host: &Host) -> Vec<Examinee> {
    let examine = |source: &'static Source| {
        let (state, why, hint) = match collect::examine(source, host) {
            Probe::Ready => ("ready", None, None),
            Probe::Absent { why } => ("absent", Some(why), None),
            Probe::Denied { why, hint } => ("denied", Some(why), Some(hint)),
        };
        let (name, about, on_request) = (source.name, source.about, source.on_request);
        Examinee { name, about, state, on_request, why, hint }
    };
    sources.iter().map(examine).collect()
}

fn text(examined: &Examined) -> String {
    let host = &examined.host;
    let memory = host.memory_bytes.map_or_else(
        || "unknown memory".to_owned(),
        |bytes| format!("{} of memory", quantity::bytes(bytes as f64, Units::Binary)),
    );
    let mut text = format!(
        "{}: {} cores, {} of them for a run here, {memory}, Linux {} on {}\n\n",
        host.name, host.cores, host.cores_allowed, host.kernel, host.architecture
    );
    text += &rows(&examined.collectors);
    text += &gpus(&examined.gpus);
    text += "\nTo follow processes that weigh did not start:\n\n";
    text += &rows(&examined.watching);
    text +=
        "\nCPU time and I/O of a run are counted by wait4 and /proc/self/io, which need nothing.\n";
    text
}

/// The GPUs that were found, if there are any.
fn gpus(gpus: &[Gpu]) -> String {
    let line = |gpu: &Gpu| {
        let model = gpu.model.as_deref().unwrap_or("unknown model");
        let memory = gpu.memory_bytes.map(|bytes| quantity::bytes(bytes as f64, Units::Binary));
        let parts = [Some(model.to_owned()), memory, gpu.uuid.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("  {:<11} {}\n", gpu.name, printable(&parts.join(", ")))
    };
    match gpus {
        [] => String::new(),
        gpus => format!("\nGPUs:\n\n{}", gpus.iter().map(line).collect::<String>()),
    }
}

fn rows(examinees: &[Examinee]) -> String {
    let mut text = String::new();
    for examinee in examinees {
        let sign = match examinee.state {
            "ready" => "\x1b[32m✓\x1b[0m",
            "denied" => "\x1b[33m!\x1b[0m",
            _ => "\x1b[31m✗\x1b[0m",
        };
        let request = if examinee.on_request { " (only when asked for)" } else { "" };
        text += &format!("{sign} {:<11} {}{request}\n", examinee.name, examinee.about);
        if let Some(why) = &examinee.why {
            text += &format!("  {:<11} cause: {why}\n", "");
        }
        if let Some(hint) = &examinee.hint {
            text += &format!("  {:<11} hint:  {hint}\n", "");
        }
    }
    text
}
