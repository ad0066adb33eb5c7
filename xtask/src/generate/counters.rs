//! `counters.md`: groups of hardware counters, what is derived from them, and the events of each
//! microarchitecture.

use weigh::counters::tables::{self, Microarchitecture, TableContent};
use weigh::counters::{CounterEvent, Derived, DerivedId, GroupId, Trust, generic};

use super::table;

/// The page.
pub(super) fn page() -> String {
    let mut text = "# Hardware counters\n\n\
        The groups that `--perf` takes, the events in them, and what is derived from their counts. \
        `weigh metrics --perf` prints what of this a machine has. [The guide](../guides/counter-events.md) \
        says what they tell, and how a microarchitecture is added.\n\n\
        ## Groups\n\nNames are read in any case.\n\n"
        .to_owned();
    let groups = GroupId::ALL.iter().map(|id| {
        let is_default = if GroupId::DEFAULT.contains(id) { "yes" } else { "" };
        let everywhere = generic::group(*id).map(|group| names(&group.events));
        let events = everywhere.unwrap_or_else(|| "by microarchitecture".to_owned());
        vec![code(id.name()), id.help().to_owned(), events, is_default.to_owned()]
    });
    text.push_str(&table(&["group", "what it counts", "events", "by default"], groups));
    text.push_str(
        "\n## Derived values\n\nAmounts (bytes, FLOP) have a rate, too. What cannot be computed is \
         missing: an event that was not counted, or a division by zero.\n\n",
    );
    let values = DerivedId::ALL.iter().map(|id| {
        let help = format!("**{}.** {}", id.label(), id.help());
        vec![code(id.name()), id.unit().name().to_owned(), help]
    });
    text.push_str(&table(&["value", "unit", "what it is"], values));
    text.push_str(
        "\n## Every processor\n\nEvents that the kernel knows itself. Which of them a processor has, \
         differs.\n\n",
    );
    let formulas = GroupId::ALL.iter().filter_map(|id| generic::group(*id));
    let formulas = formulas.flat_map(|group| {
        let name = group.id.name();
        group.derived.into_iter().map(move |derived| formula(name, &derived))
    });
    text.push_str(&table(&FORMULA, formulas));
    text.push_str(
        "\nTop-down level 1 (`TMA`) of Intel since Ice Lake, and the memory controllers of Intel \
         (`MEM`, of the whole machine), are named by the kernel's drivers and need no table.\n",
    );
    tables::all().for_each(|table| text.push_str(&section(&table)));
    text
}

const FORMULA: [&str; 3] = ["group", "value", "remarks"];

fn section(microarchitecture: &Microarchitecture) -> String {
    let names: Vec<String> = microarchitecture.names.iter().map(|name| code(name)).collect();
    let mut text = format!(
        "\n## {}\n\n{}: at least {} programmable counters in a core.\n\nSources: {}.\n\n",
        microarchitecture.about,
        names.join(", "),
        microarchitecture.counters,
        microarchitecture.sources.join("; "),
    );
    let rows = microarchitecture.groups.iter().flat_map(|group| {
        let name = group.id.name();
        let derived = match &group.content {
            TableContent::Task(group) => &group.derived,
            TableContent::Machine { derived, .. } => derived,
            TableContent::Missing(why) => {
                return vec![vec![code(name), String::new(), format!("Missing: {why}.")]];
            }
        };
        let of_machine = matches!(group.content, TableContent::Machine { .. });
        let name = if of_machine { format!("{name} machine") } else { name.to_owned() };
        derived.iter().map(|derived| formula(&name, derived)).collect()
    });
    text.push_str(&table(&FORMULA, rows.collect::<Vec<_>>()));
    text
}

fn formula(group: &str, derived: &Derived) -> Vec<String> {
    let (sign, remark) = match &derived.trust {
        Trust::Counted => ("=", String::new()),
        Trust::LowerBound(why) => ("≥", format!("A lower bound: {why}.")),
        Trust::Estimate(why) => ("≈", format!("An estimate: {why}.")),
    };
    let value = format!("`{}` {sign} `{}`", derived.id.name(), derived.formula);
    vec![code(group), value, remark]
}

fn names(events: &[CounterEvent]) -> String {
    events.iter().map(|event| code(&event.name)).collect::<Vec<_>>().join(", ")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
