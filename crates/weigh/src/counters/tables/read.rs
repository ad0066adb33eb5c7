//! The reader of tables. Strict: an unknown word, event or value is an error with its line.

use super::super::{EventScope, PERF_TYPE_RAW, named};
use super::*;

/// What is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TableError {
    /// Which line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

/// The names in the first line of a table, without reading the rest.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix("microarchitecture "))
        .into_iter()
        .flat_map(str::split_whitespace)
}

/// Reads a table.
pub(super) fn table(text: &str) -> Result<Microarchitecture, TableError> {
    let mut reader = TableReader::default();
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        last = index + 1;
        let line = line.split(" #").next().unwrap_or_default().trim();
        if !line.is_empty() && !line.starts_with('#') {
            reader.line(line).map_err(|what| TableError { line: last, what })?;
        }
    }
    reader.finish().map_err(|what| TableError { line: last, what })
}

/// What was read so far.
#[derive(Default)]
struct TableReader {
    names: Vec<String>,
    about: Option<String>,
    sources: Vec<String>,
    counters: Option<u32>,
    fixed: Vec<FixedCounter>,
    paired: Vec<u64>,
    encoding: Option<EventEncoding>,
    groups: Vec<TableGroup>,
    open: Option<OpenGroup>,
}

/// The group that is being read.
struct OpenGroup {
    id: GroupId,
    of_machine: bool,
    events: Vec<CounterEvent>,
    machine_events: Vec<(String, String)>,
    derived: Vec<Derived>,
    missing: Option<String>,
}

impl TableReader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return self.begin(header);
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        if rest.is_empty() {
            return Err(format!("`{word}` needs something after it"));
        }
        let encoding = self.encoding;
        match (&mut self.open, word) {
            (None, "microarchitecture") => self.names.extend(words(rest)),
            (None, "about") => once(&mut self.about, rest.to_owned(), word)?,
            (None, "source") => self.sources.push(rest.to_owned()),
            (None, "counters") => {
                let count = rest.parse().map_err(|_| format!("`{rest}` is not a number"))?;
                once(&mut self.counters, count, word)?;
            }
            (None, "encoding") => {
                let encoding = match rest {
                    "x86" => EventEncoding::X86,
                    "arm" => EventEncoding::Arm,
                    _ => return Err(format!("the encoding `{rest}` is not known")),
                };
                once(&mut self.encoding, encoding, word)?;
            }
            (None, "fixed") => {
                for name in rest.split_whitespace() {
                    self.fixed.push(match name {
                        "instructions" => FixedCounter::Instructions,
                        "cycles" => FixedCounter::Cycles,
                        "slots" => FixedCounter::Slots,
                        _ => return Err(format!("there is no fixed counter `{name}`")),
                    });
                }
            }
            (None, "paired") => {
                for code in rest.split_whitespace() {
                    let code = named::number(code).ok_or(format!("`{code}` is not a number"))?;
                    self.paired.push(code);
                }
            }
            (Some(group), "event") => {
                let (name, terms) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let encoding = encoding.ok_or("the encoding is not known yet")?;
                group.event(name, terms.trim(), encoding, &self.paired)?;
            }
            (Some(group), "value") => group.value(rest)?,
            (Some(group), "because") => group.because(rest)?,
            (Some(group), "missing") => once(&mut group.missing, rest.to_owned(), word)?,
            _ => return Err(format!("`{word}` is not known here")),
        }
        Ok(())
    }

    fn begin(&mut self, header: &str) -> Result<(), String> {
        self.end()?;
        let (name, of_machine) = match header.strip_suffix(" machine") {
            Some(name) => (name, true),
            None => (header, false),
        };
        let id = GroupId::ALL.iter().copied().find(|id| id.name() == name);
        let id = id.ok_or_else(|| format!("there is no group `{name}`"))?;
        self.open = Some(OpenGroup {
            id,
            of_machine,
            events: Vec::new(),
            machine_events: Vec::new(),
            derived: Vec::new(),
            missing: None,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        let Some(group) = self.open.take() else { return Ok(()) };
        let group = group.finish()?;
        let kind =
            |group: &TableGroup| (group.id, matches!(group.content, TableContent::Machine { .. }));
        if self.groups.iter().any(|other| kind(other) == kind(&group)) {
            return Err(format!("the group {} is there twice", group.id.name()));
        }
        self.groups.push(group);
        Ok(())
    }

    fn finish(mut self) -> Result<Microarchitecture, String> {
        self.end()?;
        if self.names.is_empty() || self.sources.is_empty() {
            return Err("its names, or the source of its codes, are missing".to_owned());
        }
        let groups = &self.groups;
        // One name is one event, in whichever groups it is.
        let all = groups.iter().filter_map(|group| match &group.content {
            TableContent::Task(group) => Some(&group.events),
            _ => None,
        });
        let all: Vec<&CounterEvent> = all.flatten().collect();
        for event in &all {
            if all.iter().any(|other| other.name == event.name && other != event) {
                return Err(format!("the event {} has two codes", event.name));
            }
        }
        Ok(Microarchitecture {
            names: self.names,
            about: self.about.ok_or("a line `about` is missing")?,
            sources: self.sources,
            counters: self.counters.ok_or("a line `counters` is missing")?,
            fixed: self.fixed,
            paired: self.paired,
            encoding: self.encoding.ok_or("a line `encoding` is missing")?,
            groups: self.groups,
        })
    }
}

impl OpenGroup {
    fn event(
        &mut self,
        name: &str,
        terms: &str,
        encoding: EventEncoding,
        paired: &[u64],
    ) -> Result<(), String> {
        if self.has(name) {
            return Err(format!("the event {name} is there twice"));
        }
        if self.of_machine {
            if terms.is_empty() {
                return Err(format!("the device of {name} is missing"));
            }
            self.machine_events.push((name.to_owned(), terms.to_owned()));
            return Ok(());
        }
        let event = match terms.is_empty() {
            true => generic::event(name).filter(|event| event.name == name),
            false => Some(core_event(name, terms, encoding, paired)?),
        };
        self.events.push(event.ok_or_else(|| format!("the kernel has no event {name}"))?);
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.events.iter().any(|event| event.name == name)
            || self.machine_events.iter().any(|(one, _)| one == name)
    }

    /// `l2_bytes = FORMULA`, with `>=` or `~` when a reason follows.
    fn value(&mut self, text: &str) -> Result<(), String> {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let id = DerivedId::named(name).ok_or_else(|| format!("there is no value `{name}`"))?;
        let (relation, formula) = rest.trim().split_once(' ').unwrap_or((rest, ""));
        let trust = match relation {
            "=" => Trust::Counted,
            ">=" => Trust::LowerBound(String::new()),
            "~" => Trust::Estimate(String::new()),
            _ => return Err(format!("`=`, `>=` or `~` is expected after {name}")),
        };
        let formula = Formula::parse(formula).map_err(|error| format!("formula, {error}"))?;
        if let Some(unknown) = formula.names().into_iter().find(|name| !self.has(name)) {
            return Err(format!("{name} needs {unknown}, which is no event of the group"));
        }
        if self.derived.iter().any(|other| other.id == id) {
            return Err(format!("{name} is there twice"));
        }
        self.derived.push(Derived { id, formula, trust });
        Ok(())
    }

    fn because(&mut self, why: &str) -> Result<(), String> {
        match self.derived.last_mut().map(|derived| &mut derived.trust) {
            Some(Trust::LowerBound(reason) | Trust::Estimate(reason)) if reason.is_empty() => {
                why.clone_into(reason);
                Ok(())
            }
            _ => Err("`because` follows a value with `>=` or `~`".to_owned()),
        }
    }

    fn finish(self) -> Result<TableGroup, String> {
        let OpenGroup { id, of_machine, events, machine_events, derived, missing } = self;
        let name = id.name();
        let unexplained = derived.iter().find(|derived| match &derived.trust {
            Trust::LowerBound(why) | Trust::Estimate(why) => why.is_empty(),
            Trust::Counted => false,
        });
        if let Some(derived) = unexplained {
            return Err(format!("{} in {name} needs a line `because`", derived.id.name()));
        }
        let is_empty = events.is_empty() && machine_events.is_empty();
        if missing.is_some() != (is_empty && derived.is_empty()) || is_empty != derived.is_empty() {
            return Err(format!("{name} needs events and values, or a line `missing`"));
        }
        let unused = |event: &&CounterEvent| {
            !derived.iter().any(|derived| derived.formula.names().contains(&event.name.as_str()))
        };
        if let Some(event) = events.iter().find(unused) {
            return Err(format!("no value of {name} needs {}", event.name));
        }
        let content = match missing {
            Some(why) => TableContent::Missing(why),
            None if of_machine => TableContent::Machine { events: machine_events, derived },
            None => TableContent::Task(EventGroup { id, events, derived }),
        };
        Ok(TableGroup { id, content })
    }
}

/// An event of a core by its fields.
fn core_event(
    name: &str,
    terms: &str,
    encoding: EventEncoding,
    paired: &[u64],
) -> Result<CounterEvent, String> {
    let (mut config, mut config1, mut code) = (0, 0, None);
    let mut seen = Vec::new();
    for term in terms.split(',') {
        let (field, value) =
            term.split_once('=').ok_or_else(|| format!("`{term}` has no value"))?;
        let value = named::number(value).ok_or_else(|| format!("`{term}` has no number"))?;
        if seen.contains(&field) {
            return Err(format!("{field} is there twice"));
        }
        seen.push(field);
        // The layout of `format/` of the drivers, which has not changed since there is one.
        let (largest, placed) = match (encoding, field) {
            (EventEncoding::X86, "event") => (0xfff, value & 0xff | (value & 0xf00) << 24),
            (EventEncoding::X86, "umask") => (0xff, value << 8),
            (EventEncoding::X86, "edge") => (1, value << 18),
            (EventEncoding::X86, "inv") => (1, value << 23),
            (EventEncoding::X86, "cmask") => (0xff, value << 24),
            (EventEncoding::X86, "offcore_rsp") => {
                config1 = value;
                (u64::MAX, 0)
            }
            (EventEncoding::Arm, "event") => (0xffff, value),
            _ => return Err(format!("the field `{field}` is not known")),
        };
        if value > largest {
            return Err(format!("`{term}` is too large"));
        }
        if field == "event" {
            code = Some(value);
        }
        config |= placed;
    }
    let code = code.ok_or_else(|| format!("{name} has no field `event`"))?;
    let slots = if paired.contains(&code) { Slots::Paired } else { Slots::Programmable };
    Ok(CounterEvent {
        name: name.to_owned(),
        kind: PERF_TYPE_RAW,
        config,
        config1,
        config2: 0,
        scope: EventScope::Task,
        slots,
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_owned)
}

fn once<T>(place: &mut Option<T>, value: T, word: &str) -> Result<(), String> {
    match place.replace(value) {
        Some(_) => Err(format!("`{word}` is there twice")),
        None => Ok(()),
    }
}
