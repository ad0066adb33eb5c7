//! Tests of the tables and of their reader.

mod known;

use super::super::named::tests::{FakeFiles, server};
use super::super::{EventScope, PERF_TYPE_RAW};
use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// What is made of `about Test` and so on, with groups below it.
fn table_with(groups: &str) -> String {
    format!(
        "microarchitecture test\nabout Test\nsource us (MIT)\nencoding x86\ncounters 4\n\
         fixed instructions\npaired 0x03\n{groups}"
    )
}

/// A machine with the L3 counters of AMD.
fn with_amd_l3() -> FakeFiles {
    FakeFiles(BTreeMap::from([
        ("bus/event_source/devices/cpu/type", "4\n"),
        ("bus/event_source/devices/amd_l3/type", "11\n"),
        ("bus/event_source/devices/amd_l3/cpumask", "0,8\n"),
        ("bus/event_source/devices/amd_l3/format/event", "config:0-7\n"),
        ("bus/event_source/devices/amd_l3/format/umask", "config:8-15\n"),
    ]))
}

/// The made-up count of an event: a function of its code that two events rarely have in common.
fn made_up(event: &CounterEvent, encoding: EventEncoding) -> f64 {
    let (code, umask) = match (event.name.as_str(), encoding) {
        ("instructions", _) => return 500_000.0,
        ("cycles", _) => return 400_000.0,
        (_, EventEncoding::X86) => {
            (event.config & 0xff | event.config >> 24 & 0xf00, event.config >> 8 & 0xff)
        }
        (_, EventEncoding::Arm) => (event.config, 0),
    };
    1000.0 + ((code * 7 + umask * 13) % 9973) as f64
}

/// Every value of every group of a table for made-up counts.
fn values(table: &Microarchitecture) -> BTreeMap<(&'static str, &'static str), f64> {
    let files = with_amd_l3();
    let mut found = BTreeMap::new();
    for &id in GroupId::ALL {
        if generic::group(id).is_some() {
            continue;
        }
        for group in groups(id, Some(table), &files).into_iter().flatten() {
            let count = |name: &str| {
                let event = group.events.iter().find(|event| event.name == name)?;
                Some(made_up(event, table.encoding))
            };
            for derived in &group.derived {
                let value = derived.evaluate(&count).unwrap();
                found.insert((id.name(), derived.id.name()), value);
            }
        }
    }
    found
}

#[test]
fn every_file_is_read() {
    for (name, text) in FILES {
        let table = read::table(text).unwrap_or_else(|error| panic!("{name}.events: {error}"));
        assert_eq!(table.names.first().map(String::as_str), Some(*name), "the file of its name");
        assert_eq!(of(name).as_ref(), Some(&table));
    }
    assert_eq!(all().count(), FILES.len());
    assert_eq!(of("sandybridge_ep").map(|table| table.about), Some("Sandy Bridge".to_owned()));
    assert_eq!(of("cascadelake"), of("skylake_avx512"));
    assert_eq!(of("m1"), None);
}

#[test]
fn every_name_is_in_one_table() {
    let mut names = BTreeSet::new();
    for name in all().flat_map(|table| table.names) {
        assert!(names.insert(name.clone()), "{name} is in two tables");
    }
}

#[test]
fn codes_are_from_permissively_licensed_sources() {
    const ALLOWED: [&str; 4] = ["(BSD-3-Clause)", "(Apache-2.0)", "(MIT)", "AMD PPR"];
    for table in all() {
        for source in &table.sources {
            assert!(ALLOWED.iter().any(|allowed| source.contains(allowed)), "{source}");
        }
    }
}

/// Each microarchitecture says of each group how it is counted, or why it is not. What the driver
/// of the cores or of the memory controllers names is not in a table.
#[test]
fn every_table_is_complete() {
    for table in all() {
        for &id in GroupId::ALL.iter().filter(|id| generic::group(**id).is_none()) {
            let told = table.about_group(id).count() > 0;
            let by_driver = id == GroupId::Tma && table.fixed.contains(&FixedCounter::Slots);
            let before_top_down =
                id == GroupId::Tma && table.fixed.contains(&FixedCounter::Instructions);
            assert!(told || by_driver || before_top_down, "{} {}", table.about, id.name());
        }
    }
}

#[test]
fn haswell_says_why_it_has_no_flops() {
    let haswell = of("haswell").unwrap();
    for id in [GroupId::FlopsSp, GroupId::FlopsDp] {
        let missing = groups(id, Some(&haswell), &server()).remove(0).unwrap_err();
        assert!(missing.to_string().contains("Haswell counts no floating-point operations"));
    }
}

#[test]
fn every_group_fits_the_counters_of_its_core() {
    for table in all() {
        for group in table.task_groups() {
            let needed: u32 = group.events.iter().map(|event| table.programmable(event)).sum();
            assert!(needed <= table.counters, "{} {}", table.about, group.id.name());
        }
    }
}

/// Where we count something else than perfmon did.
fn differs_from_perfmon(name: &str, group: &str) -> bool {
    // The list of Intel has another umask for L2_LINES_IN.ALL than perfmon.
    (name, group) == ("skylake", "L3")
}

#[test]
fn values_are_those_of_perfmon() {
    let mut checked = BTreeSet::new();
    for (name, group, value, answer) in known::OF_PERFMON {
        if !differs_from_perfmon(name, group) {
            let found = values(&of(name).unwrap());
            let found = found.get(&(*group, *value)).copied().unwrap_or(f64::NAN);
            let close = (found - answer).abs() <= answer.abs() * 1e-6;
            assert!(close, "{name} {group} {value}: {found}, not {answer}");
        }
        checked.insert(*name);
    }
    assert_eq!(checked.len(), 15, "its microarchitectures");
}

#[test]
fn values_are_those_of_the_vendors() {
    for (name, group, value, answer) in known::OF_VENDORS {
        let found = values(&of(name).unwrap());
        let found = found.get(&(*group, *value)).copied().unwrap_or(f64::NAN);
        let close = (found - answer).abs() <= answer.abs() * 1e-6;
        assert!(close, "{name} {group} {value}: {found}, not {answer}");
    }
}

#[test]
fn no_value_is_without_a_known_answer() {
    for table in all() {
        let same = |(name, group, ..): &&known::Answer| !differs_from_perfmon(name, group);
        let of_perfmon = known::OF_PERFMON.iter().filter(same);
        let known: BTreeSet<_> = of_perfmon
            .chain(known::OF_VENDORS)
            .filter(|(name, ..)| table.names.iter().any(|one| one == name))
            .map(|(_, group, value, _)| (*group, *value))
            .collect();
        for value in values(&table).into_keys() {
            assert!(known.contains(&value), "{}: {value:?}", table.about);
        }
    }
}

#[test]
fn top_down_is_named_by_the_driver_and_led_by_slots() {
    let group = groups(GroupId::Tma, of("icelake").as_ref(), &server()).remove(0).unwrap();
    let slots: Vec<_> = group.events.iter().map(|event| (event.config, event.slots)).collect();
    assert_eq!(slots[0], (0x0400, Slots::Fixed(FixedCounter::Slots)));
    assert_eq!(slots[1..], [0x8000, 0x8100, 0x8200, 0x8300].map(|code| (code, Slots::TopDown)));
    let counts = [("slots", 1000.0), ("topdown-retiring", 400.0), ("topdown-bad-spec", 50.0)];
    let counts =
        [&counts[..], &[("topdown-fe-bound", 170.0), ("topdown-be-bound", 380.0)]].concat();
    let count = |name: &str| counts.iter().find(|(one, _)| *one == name).map(|(_, count)| *count);
    let shares: Vec<_> =
        group.derived.iter().map(|derived| derived.evaluate(&count).unwrap()).collect();
    assert_eq!(shares, [0.4, 0.05, 0.17, 0.38]);
    let none = FakeFiles(BTreeMap::new());
    assert!(groups(GroupId::Tma, of("broadwell").as_ref(), &none)[0].is_err());
}

#[test]
fn memory_is_counted_for_the_run_and_for_the_machine() {
    let found = groups(GroupId::Mem, of("skylake_avx512").as_ref(), &server());
    let [task, machine] = found.as_slice() else { panic!("{found:?}") };
    let (task, machine) = (task.as_ref().unwrap(), machine.as_ref().unwrap());
    assert!(task.events.iter().all(|event| event.scope == EventScope::Task));
    let Trust::LowerBound(why) = &task.derived[0].trust else { panic!("{:?}", task.derived) };
    assert!(why.contains("writes are not counted") || why.contains("all writes"), "{why}");
    assert_eq!(machine.events.len(), 4, "reads and writes of two controllers");
    let read = machine.derived.iter().find(|one| one.id == DerivedId::MachineMemoryReadBytes);
    assert_eq!(read.unwrap().evaluate(&|_| Some(10.0)), Some(640.0));
}

#[test]
fn memory_controllers_that_count_something_else_are_not_used() {
    let mut files = server();
    files.0.insert("bus/event_source/devices/uncore_imc_1/events/cas_count_read.scale", "1e-3\n");
    assert_eq!(groups(GroupId::Mem, None, &files).remove(0).unwrap_err().id, GroupId::Mem);
}

#[test]
fn l3_of_amd_is_counted_for_the_machine_where_its_driver_is() {
    let zen3 = of("zen3").unwrap();
    let group = groups(GroupId::L3Cache, Some(&zen3), &with_amd_l3()).remove(0).unwrap();
    assert_eq!(group.events[1].name, "UNC_L3_REQUESTS.L3_MISS");
    assert_eq!((group.events[1].kind, group.events[1].config), (11, 0x0104));
    assert_eq!(group.events[0].scope, EventScope::Machine { cpus: vec![0, 8] });
    let missing = groups(GroupId::L3Cache, Some(&zen3), &server()).remove(0).unwrap_err();
    assert!(missing.why.contains("no device `amd_l3`"), "{missing}");
}

#[test]
fn machine_without_a_table_says_so() {
    let missing = groups(GroupId::L2, None, &server()).remove(0).unwrap_err();
    assert_eq!(missing.to_string(), "L2: no events are known for this microarchitecture");
    assert!(groups(GroupId::Ipc, None, &server()).remove(0).is_ok());
}

#[test]
fn paired_events_take_two_counters() {
    let zen3 = of("zen3").unwrap();
    let flops = zen3.event("RETIRED_SSE_AVX_FLOPS.ANY").unwrap();
    assert_eq!((flops.slots, flops.config, flops.kind), (Slots::Paired, 0x0f03, PERF_TYPE_RAW));
    assert_eq!(zen3.slots_of(0xff03), Slots::Paired);
    assert_eq!(zen3.slots_of(0x0f04), Slots::Programmable);
    assert_eq!(zen3.programmable(flops), 2);
    let instructions = generic::event("instructions").unwrap();
    assert_eq!(zen3.programmable(&instructions), 1, "it has no fixed counters");
    assert_eq!(of("haswell").unwrap().programmable(&instructions), 0);
}

#[test]
fn event_code_of_twelve_bits_is_split() {
    let zen4 = of("zen4").unwrap();
    assert_eq!(zen4.event("DISPATCH_STALLS_1.BE_STALLS").unwrap().config, 0x1_0000_1ea0);
}

#[test]
fn wrong_table_is_refused_with_its_line() {
    for (groups, line, what) in [
        ("[L9]\n", 8, "there is no group `L9`"),
        ("[L2]\nevnt A event=1\n", 9, "`evnt` is not known here"),
        ("event A event=1\n", 8, "`event` is not known here"),
        ("[L2]\nevent\n", 9, "`event` needs something after it"),
        ("[L2]\nevent A event=0x1000\n", 9, "`event=0x1000` is too large"),
        ("[L2]\nevent A umask=1\n", 9, "A has no field `event`"),
        ("[L2]\nevent A event=1,event=2\n", 9, "event is there twice"),
        ("[L2]\nevent A event=1,mask=2\n", 9, "`mask` is not known"),
        ("[L2]\nevent A\n", 9, "the kernel has no event A"),
        ("[L2]\nevent A event=1\nevent A event=2\n", 10, "the event A is there twice"),
        ("[L2]\nevent A event=1\nvalue l2_bytes = B * 64\n", 10, "needs B, which is no event"),
        ("[L2]\nevent A event=1\nvalue l2_bytes = A *\n", 10, "column 4"),
        ("[L2]\nevent A event=1\nvalue l2_bytez = A\n", 10, "there is no value `l2_bytez`"),
        ("[L2]\nevent A event=1\nvalue l2_bytes A\n", 10, "`=`, `>=` or `~` is expected"),
        ("[L2]\nevent A event=1\nvalue l2_bytes >= A\n", 10, "needs a line `because`"),
        ("[L2]\nevent A event=1\nvalue l2_bytes = A\nbecause no\n", 11, "`because` follows"),
        ("[L2]\nevent A event=1\nvalue l2_bytes = A\nvalue l2_bytes = A\n", 11, "is there twice"),
        (
            "[L2]\nevent A event=1\nevent B event=2\nvalue l2_bytes = A\n",
            11,
            "no value of L2 needs B",
        ),
        ("[L2]\nevent A event=1\n", 9, "needs events and values"),
        ("[L2]\nmissing why\nevent A event=1\nvalue l2_bytes = A\n", 11, "or a line `missing`"),
        ("[L2]\nmissing a\n[L2]\nmissing b\n", 11, "the group L2 is there twice"),
        ("[L2 machine]\nevent A\n", 9, "the device of A is missing"),
        (
            "[L2]\nevent A event=1\nvalue l2_bytes = A\n[L3]\nevent A event=2\nvalue l3_bytes = A\n",
            13,
            "two codes",
        ),
        ("counters 5\n", 8, "`counters` is there twice"),
        ("fixed branches\n", 8, "no fixed counter `branches`"),
    ] {
        let error = read::table(&table_with(groups)).unwrap_err();
        assert!(error.what.contains(what), "{groups}: {error}");
        assert_eq!(error.line, line, "{groups}: {error}");
    }
    assert!(read::table("").unwrap_err().what.contains("its names"));
    assert!(read::table(&table_with("[L2]\nmissing why # a comment\n")).is_ok());
}
