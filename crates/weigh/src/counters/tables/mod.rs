//! Events of microarchitectures: one file each (`<name>.events`), for people to read and extend.
//!
//! A line is a word and what belongs to it; `#` starts a comment.
//!
//! ```text
//! microarchitecture skylake_avx512 cascadelake   names as archspec has them
//! about Skylake server                           what people call it
//! source intel/perfmon SKX/… (BSD-3-Clause)      where the codes are from, and its licence
//! encoding x86                                   how event and umask become a number: x86 or arm
//! counters 4                                     programmable counters of a core, at least
//! fixed instructions cycles                      events with a counter of their own
//! paired 0x03                                    events that take two counters
//!
//! [L2]                                           a group, or `[L3CACHE machine]` of the machine
//! event instructions                             one that the kernel names
//! event L1D.REPLACEMENT event=0x51,umask=0x01    one by its code
//! value l2_read_bytes = L1D.REPLACEMENT * 64     what is derived from them
//! value memory_read_bytes >= A * 64              a lower bound; `~` is an estimate
//! because writes are not counted                 why
//!
//! [FLOPS_SP]
//! missing there is no such event                 why the group cannot be counted
//! ```

mod read;

use super::named::{EventFiles, core_device, parse};
use super::{CounterEvent, Derived, DerivedId, EventGroup, FixedCounter, Formula, GroupId, Slots};
use super::{Trust, generic};

pub use read::TableError;

/// What is known of the counters of a microarchitecture.
#[derive(Debug, Clone, PartialEq)]
pub struct Microarchitecture {
    /// Its names as archspec has them.
    pub names: Vec<String>,
    /// What people call it.
    pub about: String,
    /// Where the codes are from, and under which licence.
    pub sources: Vec<String>,
    /// How many programmable counters a core has at least (with both threads of it in use).
    pub counters: u32,
    /// Which counters it has that count one event only.
    pub fixed: Vec<FixedCounter>,
    /// Its groups.
    pub groups: Vec<TableGroup>,
    /// Codes of events that take two counters.
    paired: Vec<u64>,
    encoding: EventEncoding,
}

/// A group as a table declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct TableGroup {
    /// Which group it is.
    pub id: GroupId,
    /// What it counts, or why it cannot be counted.
    pub content: TableContent,
}

/// What a table says about a group.
#[derive(Debug, Clone, PartialEq)]
pub enum TableContent {
    /// Events of a task.
    Task(EventGroup),
    /// Events of the machine, by names that its devices turn into numbers.
    Machine {
        /// Name, and the event as [`super::named`] reads it.
        events: Vec<(String, String)>,
        /// What is derived from them.
        derived: Vec<Derived>,
    },
    /// Why it cannot be counted.
    Missing(String),
}

/// How the fields of an event become `perf_event_attr.config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventEncoding {
    X86,
    Arm,
}

impl Microarchitecture {
    /// Reads a table.
    pub fn parse(text: &str) -> Result<Microarchitecture, TableError> {
        read::table(text)
    }

    /// The event of a task with this name.
    pub fn event(&self, name: &str) -> Option<&CounterEvent> {
        self.task_groups().flat_map(|group| &group.events).find(|event| event.name == name)
    }

    /// The names of its events of a task.
    pub fn event_names(&self) -> impl Iterator<Item = String> {
        self.task_groups().flat_map(|group| &group.events).map(|event| event.name.clone())
    }

    fn task_groups(&self) -> impl Iterator<Item = &EventGroup> {
        self.groups.iter().filter_map(|group| match &group.content {
            TableContent::Task(group) => Some(group),
            _ => None,
        })
    }

    /// The counters that a core event with this `config` takes.
    pub fn slots_of(&self, config: u64) -> Slots {
        let code = match self.encoding {
            EventEncoding::X86 => config & 0xff | config >> 24 & 0xf00,
            EventEncoding::Arm => config & 0xffff,
        };
        if self.paired.contains(&code) { Slots::Paired } else { Slots::Programmable }
    }

    /// How many programmable counters an event takes.
    pub fn programmable(&self, event: &CounterEvent) -> u32 {
        match event.slots {
            Slots::Fixed(counter) => u32::from(!self.fixed.contains(&counter)),
            Slots::Programmable => 1,
            Slots::Paired => 2,
            Slots::Software | Slots::TopDown | Slots::Uncore => 0,
        }
    }

    /// What it says about a group.
    fn about_group(&self, id: GroupId) -> impl Iterator<Item = &TableContent> {
        self.groups.iter().filter(move |group| group.id == id).map(|group| &group.content)
    }
}

/// Declares the files.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!($name, ".events")))),+];
    };
}

files![
    "broadwell",
    "haswell",
    "icelake",
    "ivybridge",
    "neoverse_n1",
    "neoverse_n2",
    "neoverse_v1",
    "sandybridge",
    "sapphirerapids",
    "skylake",
    "skylake_avx512",
    "westmere",
    "zen",
    "zen2",
    "zen3",
    "zen4",
    "zen5",
];

/// Every table, in the order of their names.
pub fn all() -> impl Iterator<Item = Microarchitecture> {
    FILES.iter().filter_map(|(_, text)| read::table(text).ok())
}

/// The table of the microarchitecture with this name, as archspec has it.
pub fn of(name: &str) -> Option<Microarchitecture> {
    let names = |text: &str| read::names(text).any(|one| one == name);
    let (_, text) = FILES.iter().find(|(_, text)| names(text))?;
    read::table(text).ok()
}

/// A group that cannot be counted on a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", id.name())]
pub struct MissingGroup {
    /// Which one.
    pub id: GroupId,
    /// Why, as far as is known without opening its events.
    pub why: String,
}

/// The groups that this name means on a machine: events of a task, and events of the machine where
/// there are some. Whether they can be opened is not known here.
pub fn groups(
    id: GroupId,
    table: Option<&Microarchitecture>,
    files: &dyn EventFiles,
) -> Vec<Result<EventGroup, MissingGroup>> {
    if let Some(group) = generic::group(id) {
        return vec![Ok(group)];
    }
    let missing = |why: String| Err(MissingGroup { id, why });
    let declared = table.into_iter().flat_map(|table| table.about_group(id));
    let mut found: Vec<_> = declared
        .map(|content| match content {
            TableContent::Task(group) => Ok(group.clone()),
            TableContent::Missing(why) => missing(why.clone()),
            TableContent::Machine { events, derived } => {
                let events = events.iter().map(|(name, text)| {
                    let found = parse(text, files, table).map_err(|error| error.to_string())?;
                    Ok(found.into_iter().map(|event| CounterEvent { name: name.clone(), ..event }))
                });
                match events.collect::<Result<Vec<_>, String>>() {
                    Ok(events) => {
                        let events = events.into_iter().flatten().collect();
                        Ok(EventGroup { id, events, derived: derived.clone() })
                    }
                    Err(why) => missing(why),
                }
            }
        })
        .collect();
    let of_driver = match id {
        GroupId::Tma => top_down(files),
        GroupId::Mem => memory_controllers(files),
        _ => None,
    };
    found.extend(of_driver.map(Ok));
    if found.is_empty() {
        found.push(missing(match table {
            Some(table) => format!("no such events are known for {}", table.about),
            None => "no events are known for this microarchitecture".to_owned(),
        }));
    }
    found
}

fn derived(id: DerivedId, formula: &str) -> Option<Derived> {
    Some(Derived { id, formula: Formula::parse(formula).ok()?, trust: Trust::Counted })
}

/// Top-down level 1 by the events that the driver of the cores names (Intel since Ice Lake).
///
/// `slots` has to lead the group: the others are parts of it.
fn top_down(files: &dyn EventFiles) -> Option<EventGroup> {
    const PARTS: [(DerivedId, &str); 4] = [
        (DerivedId::Retiring, "topdown-retiring"),
        (DerivedId::BadSpeculation, "topdown-bad-spec"),
        (DerivedId::FrontendBound, "topdown-fe-bound"),
        (DerivedId::BackendBound, "topdown-be-bound"),
    ];
    let device = core_device(files);
    let event = |name: &str, slots| {
        let mut events = parse(&format!("{device}/{name}/"), files, None).ok()?;
        let event = events.pop().filter(|_| events.is_empty())?;
        Some(CounterEvent { name: name.to_owned(), slots, ..event })
    };
    let leader = event("slots", Slots::Fixed(FixedCounter::Slots));
    let parts = PARTS.map(|(_, name)| event(name, Slots::TopDown));
    let values = PARTS.map(|(id, name)| derived(id, &format!("{name} / slots")));
    Some(EventGroup {
        id: GroupId::Tma,
        events: [leader].into_iter().chain(parts).collect::<Option<_>>()?,
        derived: values.into_iter().collect::<Option<_>>()?,
    })
}

/// Reads and writes of the memory controllers, by the events that their driver names (Intel).
fn memory_controllers(files: &dyn EventFiles) -> Option<EventGroup> {
    // Servers, clients, and clients whose counters run freely.
    const DRIVERS: [(&str, &str, &str); 3] = [
        ("uncore_imc", "cas_count_read", "cas_count_write"),
        ("uncore_imc", "data_reads", "data_writes"),
        ("uncore_imc_free_running", "data_read", "data_write"),
    ];
    DRIVERS.iter().find_map(|(device, read, write)| {
        let events = [read, write].map(|name| {
            let events = parse(&format!("{device}/{name}/"), files, None).ok()?;
            let named = events.into_iter();
            let named = named.map(|event| CounterEvent { name: (*name).to_owned(), ..event });
            counts_lines(device, name, files).then(|| named.collect::<Vec<_>>())
        });
        let values = [
            derived(DerivedId::MachineMemoryReadBytes, &format!("{read} * 64")),
            derived(DerivedId::MachineMemoryWrittenBytes, &format!("{write} * 64")),
        ];
        let events: Vec<Vec<_>> = events.into_iter().collect::<Option<_>>()?;
        Some(EventGroup {
            id: GroupId::Mem,
            events: events.into_iter().flatten().collect(),
            derived: values.into_iter().collect::<Option<_>>()?,
        })
    })
}

/// Whether every such device says that a count is 64 bytes.
fn counts_lines(device: &str, event: &str, files: &dyn EventFiles) -> bool {
    /// 64 bytes in MiB.
    const LINE: f64 = 64.0 / 1_048_576.0;
    let devices = files.names(super::named::DEVICES);
    let mut meant =
        devices.iter().filter(|name| super::named::is_instance(name, device)).peekable();
    meant.peek().is_some()
        && meant.all(|device| {
            let path = format!("{}/{device}/events/{event}", super::named::DEVICES);
            let text = |suffix: &str| files.text(&format!("{path}.{suffix}")).unwrap_or_default();
            let scale = text("scale").trim().parse().unwrap_or(0.0_f64);
            text("unit").trim() == "MiB" && (scale / LINE - 1.0).abs() < 1e-6
        })
}

#[cfg(test)]
mod tests;
