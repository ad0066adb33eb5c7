//! Events as users write them, and as the kernel names them in `/sys/bus/event_source/devices`:
//!
//! | text | event |
//! |---|---|
//! | `branch-misses` | one that the kernel names for every processor |
//! | `L1D.REPLACEMENT` | one of the table of this microarchitecture |
//! | `r01c2` | a number of the core, in hexadecimal digits |
//! | `cpu/event=0x51,umask=0x1/` | by the fields that the driver describes in `format/` |
//! | `uncore_imc/cas_count_read/` | one that the driver names in `events/`, on all such devices |
//! | `sched:sched_switch` | a tracepoint; its number is readable by root |
//!
//! The files are those of sysfs.rst and of `Documentation/ABI/testing/sysfs-bus-event_source-devices-*`.
//! They are read through [`EventFiles`], so that any machine can be tested on any other.

use super::tables::Microarchitecture;
use super::{CounterEvent, EventScope, PERF_TYPE_RAW, PERF_TYPE_TRACEPOINT, Slots, generic};

/// The files below `/sys` that describe events.
pub trait EventFiles {
    /// The text of a file.
    fn text(&self, path: &str) -> std::io::Result<String>;
    /// The names in a directory; none when it does not exist.
    fn names(&self, directory: &str) -> Vec<String>;
    /// The CPUs that a file lists (`0,18-19`).
    fn cpus(&self, path: &str) -> Option<Vec<u32>>;
}

/// The directory of the devices that count.
pub const DEVICES: &str = "bus/event_source/devices";

/// The directory of the tracepoints.
const TRACEPOINTS: &str = "kernel/tracing/events";

/// Text that is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}`: {what}")]
pub struct EventError {
    /// What was written.
    pub event: String,
    /// What is wrong with it.
    pub what: String,
    /// What may have been meant, best first.
    pub nearest: Vec<String>,
}

/// The events of a list. A comma between slashes belongs to the event.
pub fn parse_list(
    list: &str,
    files: &dyn EventFiles,
    table: Option<&Microarchitecture>,
) -> Result<Vec<CounterEvent>, EventError> {
    let mut inside = false;
    let parts = list.split(|c: char| {
        inside ^= c == '/';
        c == ',' && !inside
    });
    let mut events = Vec::new();
    for part in parts {
        events.extend(parse(part.trim(), files, table)?);
    }
    Ok(events)
}

/// The event that a text means: several of one name where several devices count it.
pub fn parse(
    text: &str,
    files: &dyn EventFiles,
    table: Option<&Microarchitecture>,
) -> Result<Vec<CounterEvent>, EventError> {
    let found = parse_described(text, files, table);
    found.map_err(|Wrong { what, nearest }| EventError { event: text.to_owned(), what, nearest })
}

/// What is wrong with a part of an event.
struct Wrong {
    what: String,
    nearest: Vec<String>,
}

impl Wrong {
    fn new(what: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), nearest: Vec::new() }
    }

    fn name(what: String, name: &str, known: impl IntoIterator<Item = String>) -> Wrong {
        Wrong { what, nearest: nearest(name, known) }
    }
}

fn parse_described(
    text: &str,
    files: &dyn EventFiles,
    table: Option<&Microarchitecture>,
) -> Result<Vec<CounterEvent>, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("the name of an event is expected"));
    }
    if let Some((device, rest)) = text.split_once('/') {
        let terms = rest.strip_suffix('/').filter(|terms| !terms.contains('/'));
        let terms = terms.ok_or_else(|| {
            Wrong::new("an event of a device ends with `/`; modifiers after it are not known")
        })?;
        return of_devices(text, device, terms, files, table);
    }
    if let Some(event) = generic::event(text) {
        return Ok(vec![event]);
    }
    if let Some(event) = table.and_then(|table| table.event(text)) {
        return Ok(vec![event.clone()]);
    }
    if let Some(config) = raw(text) {
        return Ok(vec![core_event(text, config, table)]);
    }
    if let Some((system, name)) = text.split_once(':') {
        return tracepoint(text, system, name, files).map(|event| vec![event]);
    }
    let device = core_device(files);
    let named = format!("{DEVICES}/{device}/events");
    if event_names(&named, files).iter().any(|name| name == text) {
        return of_devices(text, &device, text, files, table);
    }
    let known = generic::names().map(str::to_owned).chain(event_names(&named, files));
    let known = known.chain(table.into_iter().flat_map(Microarchitecture::event_names));
    Err(Wrong::name("no event has this name here".to_owned(), text, known))
}

/// The number after `r`.
fn raw(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('r')?;
    let are_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u64::from_str_radix(digits, 16).ok())?
}

fn core_event(name: &str, config: u64, table: Option<&Microarchitecture>) -> CounterEvent {
    CounterEvent {
        name: name.to_owned(),
        kind: PERF_TYPE_RAW,
        config,
        config1: 0,
        config2: 0,
        scope: EventScope::Task,
        slots: table.map_or(Slots::Programmable, |table| table.slots_of(config)),
    }
}

fn tracepoint(
    text: &str,
    system: &str,
    name: &str,
    files: &dyn EventFiles,
) -> Result<CounterEvent, Wrong> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !is_name(system) || !is_name(name) {
        return Err(Wrong::new("a tracepoint is written as `system:name`"));
    }
    let id = match files.text(&format!("{TRACEPOINTS}/{system}/{name}/id")) {
        Ok(id) => id,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let systems = files.names(TRACEPOINTS);
            if systems.is_empty() {
                let what = "tracepoints are not available: /sys/kernel/tracing is not mounted, or \
                            readable by root alone";
                return Err(Wrong::new(what));
            }
            let events = files.names(&format!("{TRACEPOINTS}/{system}"));
            let known = match events.is_empty() {
                true => systems.iter().map(|system| format!("{system}:{name}")).collect(),
                false => events.iter().map(|event| format!("{system}:{event}")).collect::<Vec<_>>(),
            };
            return Err(Wrong::name("there is no such tracepoint".to_owned(), text, known));
        }
        Err(error) => {
            let what =
                format!("/sys/{TRACEPOINTS}/{system}/{name}/id: {error}; tracepoints need root");
            return Err(Wrong::new(what));
        }
    };
    let config = id.trim().parse().map_err(|_| Wrong::new("its id is not a number"))?;
    let kind = PERF_TYPE_TRACEPOINT;
    Ok(CounterEvent { kind, slots: Slots::Software, ..core_event(text, config, None) })
}

/// The device of the cores: `cpu`, on hybrid processors `cpu_core`, on ARM `armv8_…`.
pub fn core_device(files: &dyn EventFiles) -> String {
    let mut names = files.names(DEVICES);
    names.sort();
    let is_core =
        |name: &&String| *name == "cpu" || *name == "cpu_core" || name.starts_with("armv");
    names.iter().find(is_core).map_or("cpu", String::as_str).to_owned()
}

/// The names in a directory `events`, without the files that describe scale and unit.
fn event_names(directory: &str, files: &dyn EventFiles) -> Vec<String> {
    let mut names = files.names(directory);
    names.retain(|name| !name.contains('.'));
    names
}

/// An event on the device of this name, or on each `name_0`, `name_1`….
fn of_devices(
    text: &str,
    device: &str,
    terms: &str,
    files: &dyn EventFiles,
    table: Option<&Microarchitecture>,
) -> Result<Vec<CounterEvent>, Wrong> {
    let all = files.names(DEVICES);
    let mut meant: Vec<&String> = all.iter().filter(|name| is_instance(name, device)).collect();
    meant.sort();
    if meant.is_empty() {
        return Err(Wrong::name(format!("there is no device `{device}`"), device, all));
    }
    meant.into_iter().map(|device| Device { device, files, table }.event(text, terms)).collect()
}

/// Whether this is the device, or one of several that are numbered.
pub(super) fn is_instance(name: &str, device: &str) -> bool {
    let number = name.strip_prefix(device).and_then(|rest| rest.strip_prefix('_'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name == device || number.is_some_and(is_number)
}

/// One directory of [`DEVICES`].
struct Device<'a> {
    device: &'a str,
    files: &'a dyn EventFiles,
    table: Option<&'a Microarchitecture>,
}

impl Device<'_> {
    fn path(&self, file: &str) -> String {
        format!("{DEVICES}/{}/{file}", self.device)
    }

    fn read(&self, file: &str) -> Result<String, Wrong> {
        let path = self.path(file);
        self.files.text(&path).map_err(|error| Wrong::new(format!("/sys/{path}: {error}")))
    }

    fn event(&self, text: &str, terms: &str) -> Result<CounterEvent, Wrong> {
        let number = self.read("type")?;
        let kind = number.trim().parse().map_err(|_| Wrong::new("its type is not a number"))?;
        let mut event = CounterEvent { kind, ..core_event(text, 0, None) };
        for term in terms.split(',') {
            self.apply(term.trim(), &mut event, true)?;
        }
        let is_core = self.device == core_device(self.files) || self.device.starts_with("cpu");
        match self.files.cpus(&self.path("cpumask")) {
            Some(cpus) => {
                (event.scope, event.slots) = (EventScope::Machine { cpus }, Slots::Uncore);
            }
            None if !is_core => event.slots = Slots::Software,
            None => {
                let slots = self.table.map(|table| table.slots_of(event.config));
                event.slots = slots.unwrap_or(Slots::Programmable);
            }
        }
        Ok(event)
    }

    /// Applies `field=value`, `field` (a flag), or the name of an event.
    fn apply(&self, term: &str, event: &mut CounterEvent, may_name: bool) -> Result<(), Wrong> {
        let (field, value) = match term.split_once('=') {
            Some((field, value)) => (field.trim(), Some(value.trim())),
            None => (term, None),
        };
        if field.is_empty()
            || !field.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        {
            return Err(Wrong::new(format!("`{term}` is no term of an event")));
        }
        if field == "name" {
            event.name = value.filter(|name| !name.is_empty()).unwrap_or(field).to_owned();
            return Ok(());
        }
        let whole = ["config", "config1", "config2"];
        let layout = match whole.contains(&field) {
            true => Some(format!("{field}:0-63")),
            false => self.files.text(&self.path(&format!("format/{field}"))).ok(),
        };
        if let Some(layout) = layout {
            let number = match value {
                Some(value) => number(value)
                    .ok_or_else(|| Wrong::new(format!("`{value}` is not a number in `{term}`")))?,
                None => 1,
            };
            return place(&layout, number, event)
                .map_err(|what| Wrong::new(format!("`{term}`: {what}")));
        }
        let described = self.files.text(&self.path(&format!("events/{field}"))).ok();
        match described.filter(|_| may_name && value.is_none()) {
            Some(described) => {
                described.trim().split(',').try_for_each(|term| self.apply(term, event, false))
            }
            None => {
                let fields = self.files.names(&self.path("format"));
                let events = event_names(&self.path("events"), self.files);
                let what = format!("the device `{}` has no field or event `{field}`", self.device);
                Err(Wrong::name(what, field, fields.into_iter().chain(events)))
            }
        }
    }
}

/// A number in decimal, or in hexadecimal after `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let are_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    are_digits.then(|| u64::from_str_radix(digits, radix).ok())?
}

/// Puts a number into the bits that a file of `format/` names: `config:0-7,32-35`, `config1:0`.
fn place(layout: &str, number: u64, event: &mut CounterEvent) -> Result<(), String> {
    let unknown = || format!("the layout `{}` is not known", layout.trim());
    let (word, ranges) = layout.trim().split_once(':').ok_or_else(unknown)?;
    let word = match word {
        "config" => &mut event.config,
        "config1" => &mut event.config1,
        "config2" => &mut event.config2,
        _ => return Err(unknown()),
    };
    let mut rest = number;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bit = |text: &str| text.parse::<u32>().ok().filter(|bit| *bit < 64);
        let (first, last) =
            bit(first).zip(bit(last)).filter(|(f, l)| f <= l).ok_or_else(unknown)?;
        let width = last - first + 1;
        let mask = u64::MAX >> (64 - width);
        *word = *word & !(mask << first) | (rest & mask) << first;
        rest = rest.checked_shr(width).unwrap_or(0);
    }
    if rest == 0 { Ok(()) } else { Err(format!("{number:#x} is too large for {}", layout.trim())) }
}

/// The names most similar to this one, best first; none when none is similar.
pub fn nearest(name: &str, known: impl IntoIterator<Item = String>) -> Vec<String> {
    const MOST: usize = 3;
    /// Two of three letters in place.
    const SIMILAR: f64 = 0.7;
    let name = name.to_ascii_lowercase();
    let likeness = |one: &String| strsim::jaro_winkler(&name, &one.to_ascii_lowercase());
    let mut found: Vec<(f64, String)> =
        known.into_iter().map(|one| (likeness(&one), one)).collect();
    found.retain(|(likeness, _)| *likeness >= SIMILAR);
    // A stable sort: equals stay in their order.
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.dedup_by(|(_, one), (_, other)| one == other);
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::counters::tables;
    use std::collections::BTreeMap;

    /// Files by their paths below `/sys`.
    pub(in crate::counters) struct FakeFiles(pub BTreeMap<&'static str, &'static str>);

    impl EventFiles for FakeFiles {
        fn text(&self, path: &str) -> std::io::Result<String> {
            let text = self.0.get(path).ok_or(std::io::ErrorKind::NotFound)?;
            match *text {
                "denied" => Err(std::io::ErrorKind::PermissionDenied.into()),
                text => Ok(text.to_owned()),
            }
        }

        fn names(&self, directory: &str) -> Vec<String> {
            let below = |path: &str| {
                let rest = path.strip_prefix(directory)?.strip_prefix('/')?;
                rest.split('/').next().map(str::to_owned)
            };
            let mut names: Vec<String> = self.0.keys().copied().filter_map(below).collect();
            names.dedup();
            names
        }

        fn cpus(&self, path: &str) -> Option<Vec<u32>> {
            self.text(path).ok()?.trim().split(',').map(|cpu| cpu.parse().ok()).collect()
        }
    }

    /// A server of Intel with two memory controllers.
    pub(in crate::counters) fn server() -> FakeFiles {
        FakeFiles(BTreeMap::from([
            ("bus/event_source/devices/cpu/type", "4\n"),
            ("bus/event_source/devices/cpu/format/event", "config:0-7\n"),
            ("bus/event_source/devices/cpu/format/umask", "config:8-15\n"),
            ("bus/event_source/devices/cpu/format/edge", "config:18\n"),
            ("bus/event_source/devices/cpu/format/cmask", "config:24-31\n"),
            ("bus/event_source/devices/cpu/format/offcore_rsp", "config1:0-63\n"),
            ("bus/event_source/devices/cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
            ("bus/event_source/devices/cpu/format/ldlat", "config1:0-15\n"),
            ("bus/event_source/devices/cpu/events/slots", "event=0x00,umask=0x4\n"),
            ("bus/event_source/devices/cpu/events/topdown-retiring", "event=0x00,umask=0x80\n"),
            ("bus/event_source/devices/cpu/events/topdown-bad-spec", "event=0x00,umask=0x81\n"),
            ("bus/event_source/devices/cpu/events/topdown-fe-bound", "event=0x00,umask=0x82\n"),
            ("bus/event_source/devices/cpu/events/topdown-be-bound", "event=0x00,umask=0x83\n"),
            ("bus/event_source/devices/software/type", "1\n"),
            ("bus/event_source/devices/msr/type", "10\n"),
            ("bus/event_source/devices/msr/format/event", "config:0-63\n"),
            ("bus/event_source/devices/msr/events/tsc", "event=0x00\n"),
            ("bus/event_source/devices/uncore_imc_0/type", "20\n"),
            ("bus/event_source/devices/uncore_imc_0/cpumask", "0,18\n"),
            ("bus/event_source/devices/uncore_imc_0/format/event", "config:0-7\n"),
            ("bus/event_source/devices/uncore_imc_0/format/umask", "config:8-15\n"),
            (
                "bus/event_source/devices/uncore_imc_0/events/cas_count_read",
                "event=0x04,umask=0x03\n",
            ),
            (
                "bus/event_source/devices/uncore_imc_0/events/cas_count_read.scale",
                "6.103515625e-5\n",
            ),
            ("bus/event_source/devices/uncore_imc_0/events/cas_count_read.unit", "MiB\n"),
            (
                "bus/event_source/devices/uncore_imc_0/events/cas_count_write",
                "event=0x04,umask=0x0c\n",
            ),
            (
                "bus/event_source/devices/uncore_imc_0/events/cas_count_write.scale",
                "6.103515625e-5\n",
            ),
            ("bus/event_source/devices/uncore_imc_0/events/cas_count_write.unit", "MiB\n"),
            ("bus/event_source/devices/uncore_imc_1/type", "21\n"),
            ("bus/event_source/devices/uncore_imc_1/cpumask", "0,18\n"),
            ("bus/event_source/devices/uncore_imc_1/format/event", "config:0-7\n"),
            ("bus/event_source/devices/uncore_imc_1/format/umask", "config:8-15\n"),
            (
                "bus/event_source/devices/uncore_imc_1/events/cas_count_read",
                "event=0x04,umask=0x03\n",
            ),
            (
                "bus/event_source/devices/uncore_imc_1/events/cas_count_read.scale",
                "6.103515625e-5\n",
            ),
            ("bus/event_source/devices/uncore_imc_1/events/cas_count_read.unit", "MiB\n"),
            (
                "bus/event_source/devices/uncore_imc_1/events/cas_count_write",
                "event=0x04,umask=0x0c\n",
            ),
            (
                "bus/event_source/devices/uncore_imc_1/events/cas_count_write.scale",
                "6.103515625e-5\n",
            ),
            ("bus/event_source/devices/uncore_imc_1/events/cas_count_write.unit", "MiB\n"),
            ("kernel/tracing/events/sched/sched_switch/id", "314\n"),
            ("kernel/tracing/events/sched/sched_stat_wait/id", "denied"),
        ]))
    }

    fn one(text: &str) -> CounterEvent {
        let mut events = parse(text, &server(), None).unwrap();
        assert_eq!(events.len(), 1, "{text}");
        events.remove(0)
    }

    fn error(text: &str) -> EventError {
        parse(text, &server(), tables::of("skylake_avx512").as_ref()).unwrap_err()
    }

    #[test]
    fn every_way_to_write_an_event_is_read() {
        for (text, kind, config, config1) in [
            ("instructions", 0, 1, 0),
            ("r01c2", 4, 0x01c2, 0),
            ("r53019c", 4, 0x53_019c, 0),
            ("cpu/event=0x51,umask=0x1/", 4, 0x0151, 0),
            ("cpu/event=81,umask=1/", 4, 0x0151, 0),
            ("cpu/event=0xc2,umask=0x1,edge,cmask=1/", 4, 0x0104_01c2, 0),
            ("cpu/event=0xb7,umask=0x1,offcore_rsp=0x3f84008fff/", 4, 0x01b7, 0x3f_8400_8fff),
            ("cpu/config=0x1b7,config1=7/", 4, 0x01b7, 7),
            ("cpu/mem-loads/", 4, 0x01cd, 3),
            ("cpu/mem-loads,ldlat=30/", 4, 0x01cd, 30),
            ("mem-loads", 4, 0x01cd, 3),
            ("msr/tsc/", 10, 0, 0),
            ("sched:sched_switch", 2, 314, 0),
        ] {
            let event = one(text);
            assert_eq!(
                (event.kind, event.config, event.config1),
                (kind, config, config1),
                "{text}"
            );
        }
        assert_eq!(one("cpu/event=0x51,name=mine/").name, "mine");
        assert_eq!(one("msr/tsc/").slots, Slots::Software);
        assert_eq!(one("r01c2").slots, Slots::Programmable);
    }

    #[test]
    fn event_of_numbered_devices_is_on_all_of_them_and_of_the_machine() {
        let events = parse("uncore_imc/cas_count_read/", &server(), None).unwrap();
        assert_eq!(events.iter().map(|event| event.kind).collect::<Vec<_>>(), [20, 21]);
        assert!(events.iter().all(|event| event.config == 0x0304
            && event.slots == Slots::Uncore
            && event.scope == EventScope::Machine { cpus: vec![0, 18] }));
        assert_eq!(parse("uncore_imc_1/cas_count_read/", &server(), None).unwrap().len(), 1);
    }

    #[test]
    fn wrong_name_is_told_with_the_nearest() {
        for (text, what, nearest) in [
            ("brunch-misses", "no event has this name", "branch-misses"),
            ("mem-load", "no event has this name", "mem-loads"),
            ("L1D.REPLACMENT", "no event has this name", "L1D.REPLACEMENT"),
            ("uncore_icm/cas_count_read/", "no device `uncore_icm`", "uncore_imc_0"),
            ("cpu/evnt=0x51/", "no field or event `evnt`", "event"),
            ("cpu/topdown-retired/", "no field or event", "topdown-retiring"),
            ("sched:sched_swich", "no such tracepoint", "sched:sched_switch"),
            ("shed:sched_switch", "no such tracepoint", "sched:sched_switch"),
        ] {
            let error = error(text);
            assert!(error.what.contains(what), "{error}");
            assert_eq!(error.nearest.first().map(String::as_str), Some(nearest), "{text}");
        }
    }

    #[test]
    fn wrong_event_is_refused() {
        for (text, what) in [
            ("", "the name of an event is expected"),
            ("rxyz", "no event has this name"),
            ("r11112222333344445", "no event has this name"),
            ("cpu/event=0x51", "ends with `/`"),
            ("cpu/event=0x51/u", "modifiers"),
            ("cpu/event=0x51/,", "modifiers"),
            ("cpu//", "is no term"),
            ("cpu/event=/", "is not a number"),
            ("cpu/event=0x/", "is not a number"),
            ("cpu/event=-1/", "is not a number"),
            ("cpu/event=0x151/", "0x151 is too large for config:0-7"),
            ("cpu/mem-loads=1/", "no field or event"),
            ("cpu/../../secret/", "ends with `/`"),
            ("sched:sched_stat_wait", "tracepoints need root"),
            ("sched:..", "`system:name`"),
            (":sched_switch", "`system:name`"),
        ] {
            assert!(error(text).what.contains(what), "{text}: {}", error(text));
        }
        let none = parse("sched:sched_switch", &FakeFiles(BTreeMap::new()), None).unwrap_err();
        assert!(none.what.contains("/sys/kernel/tracing"), "{none}");
    }

    #[test]
    fn field_may_be_in_several_ranges() {
        let mut event = core_event("x", 0, None);
        assert_eq!(place("config:0-7,32-35\n", 0x1a0, &mut event), Ok(()));
        assert_eq!(event.config, 0x1_0000_00a0);
        assert_eq!(place("config:0-63", u64::MAX, &mut event), Ok(()));
        assert_eq!(event.config, u64::MAX);
        for layout in ["config3:0-7", "config:7-0", "config:0-64", "config", "config:", "config:a"]
        {
            assert!(place(layout, 1, &mut event).is_err(), "{layout}");
        }
    }

    #[test]
    fn list_is_split_outside_of_slashes() {
        let list = "instructions,cpu/event=0x51,umask=0x1/, uncore_imc/cas_count_read/";
        let names: Vec<String> = parse_list(list, &server(), None)
            .unwrap()
            .into_iter()
            .map(|event| event.name)
            .collect();
        let imc = "uncore_imc/cas_count_read/";
        assert_eq!(names, ["instructions", "cpu/event=0x51,umask=0x1/", imc, imc]);
        assert!(parse_list("instructions,", &server(), None).is_err());
    }
}
