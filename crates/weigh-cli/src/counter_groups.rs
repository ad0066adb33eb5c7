//! `weigh metrics --perf`: the groups of hardware counters, with their events on this machine.

use std::path::Path;

use serde_json::{Value, json};
use weigh::counters::{CounterEvent, Derived, EventGroup, EventScope, GroupId, Trust};
use weigh::doctor::{self, CounterGroups};

use crate::args::Format;
use crate::failure::Failure;
use crate::print;

/// How far what belongs to a group is indented.
const INDENT: usize = 4;

/// Lists every group.
pub(crate) fn list(format: Format) -> Result<u8, Failure> {
    let found = doctor::counter_groups(Path::new(doctor::HERE)).map_err(|error| {
        Failure::new("cannot read about the machine", error, "weigh doctor says what is readable")
    })?;
    print::out(&match format {
        Format::Json => serde_json::to_string_pretty(&json(&found)).unwrap_or_default() + "\n",
        Format::Text => text(&found, print::out_columns()),
    });
    Ok(0)
}

fn text(found: &CounterGroups, columns: usize) -> String {
    let mut text = match &found.table {
        Some(table) => format!("{}: {}\n", table.about, table.sources.join("; ")),
        None => {
            "No events are known for this microarchitecture; those of the kernel are.\n".to_owned()
        }
    };
    text = print::indented(&text, INDENT, columns) + "\n";
    for group in &found.groups {
        let id = group.as_ref().map_or_else(|missing| missing.id, |group| group.id);
        text.push_str(&format!("\n{}  {}\n", id.name(), id.help()));
        match group {
            Ok(group) => group_text(group, columns, &mut text),
            Err(missing) => line(&format!("not here: {}", missing.why), columns, &mut text),
        }
    }
    text
}

fn group_text(group: &EventGroup, columns: usize, text: &mut String) {
    if group.events.iter().any(|event| matches!(event.scope, EventScope::Machine { .. })) {
        line("of the whole machine: needs root, or kernel.perf_event_paranoid 0", columns, text);
    }
    let mut names: Vec<&str> = group.events.iter().map(|event| event.name.as_str()).collect();
    names.dedup();
    line(&format!("events: {}", names.join(", ")), columns, text);
    for derived in &group.derived {
        let (sign, why) = trust(derived);
        line(&format!("{} {sign} {}", derived.id.name(), derived.formula), columns, text);
        let why = why.map(|why| format!(" {why}.")).unwrap_or_default();
        let help = print::indented(&format!("{}{why}", derived.id.help()), 2 * INDENT, columns);
        text.push_str(&format!("{:1$}{help}\n", "", 2 * INDENT));
    }
}

/// A line of a group; what does not fit into it stands below, deeper.
fn line(content: &str, columns: usize, text: &mut String) {
    let content = print::indented(content, 2 * INDENT, columns);
    text.push_str(&format!("{:INDENT$}{content}\n", ""));
}

/// How the formula relates to the value, and why it is not the same.
fn trust(derived: &Derived) -> (&'static str, Option<String>) {
    match &derived.trust {
        Trust::Counted => ("=", None),
        Trust::LowerBound(why) => (">=", Some(format!("A lower bound: {why}"))),
        Trust::Estimate(why) => ("~", Some(format!("An estimate: {why}"))),
    }
}

fn json(found: &CounterGroups) -> Value {
    let table = found.table.as_ref();
    let groups = found.groups.iter().map(|group| match group {
        Ok(group) => group_json(group.id, Some(group), None),
        Err(missing) => group_json(missing.id, None, Some(&missing.why)),
    });
    json!({
        "microarchitecture": table.map(|table| &table.about),
        "sources": table.map(|table| &table.sources),
        "groups": groups.collect::<Vec<_>>(),
    })
}

fn group_json(id: GroupId, group: Option<&EventGroup>, missing: Option<&str>) -> Value {
    let events = group.map_or_else(Vec::new, |group| group.events.iter().map(event_json).collect());
    let derived =
        group.map_or_else(Vec::new, |group| group.derived.iter().map(derived_json).collect());
    json!({
        "name": id.name(),
        "help": id.help(),
        "events": events,
        "derived": derived,
        "missing": missing,
    })
}

fn event_json(event: &CounterEvent) -> Value {
    let cpus = match &event.scope {
        EventScope::Task => None,
        EventScope::Machine { cpus } => Some(cpus),
    };
    json!({
        "name": event.name,
        "type": event.kind,
        "config": format!("{:#x}", event.config),
        "config1": format!("{:#x}", event.config1),
        "scope": if cpus.is_some() { "machine" } else { "task" },
        "cpus": cpus,
    })
}

fn derived_json(derived: &Derived) -> Value {
    let (lower_bound, estimate) = match &derived.trust {
        Trust::Counted => (None, None),
        Trust::LowerBound(why) => (Some(why), None),
        Trust::Estimate(why) => (None, Some(why)),
    };
    json!({
        "name": derived.id.name(),
        "label": derived.id.label(),
        "unit": derived.id.unit().name(),
        "formula": derived.formula.to_string(),
        "help": derived.id.help(),
        "lower_bound": lower_bound,
        "estimate": estimate,
    })
}
