//! The names a metric has in other places, all derived from its declaration.

use super::{Kind, Metric, Unit};

impl Metric {
    /// The dotted name: `process.cpu.user`.
    pub fn name(&self) -> String {
        format!("{}.{}.{}", self.scope.name(), self.group, self.field)
    }

    /// How the names of all metrics of its group begin: `process.cpu.`.
    pub fn name_of_group(&self) -> String {
        format!("{}.{}.", self.scope.name(), self.group)
    }

    /// The column in its scope's table: `cpu_user_seconds`.
    pub fn column(&self) -> String {
        match self.unit {
            Unit::One => format!("{}_{}", self.group, self.field),
            unit => format!("{}_{}_{}", self.group, self.field, unit.suffix()),
        }
    }

    /// Its help as plain text: what is written as code is not set as code everywhere.
    pub fn caption(&self) -> String {
        self.help.replace('`', "")
    }

    /// The Prometheus name: `weigh_process_cpu_user_seconds_total`.
    pub fn prometheus(&self) -> String {
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("weigh_{}_{}{total}", self.scope.name(), self.column())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChildAccounting, MetricRelation, Scope, Stored};
    use super::*;

    #[test]
    fn every_other_name_follows_from_the_declaration() {
        let metric = Metric {
            scope: Scope::Process,
            group: "cpu",
            family: "CPU",
            field: "user",
            kind: Kind::Counter,
            unit: Unit::Seconds,
            stored: f64::TYPE,
            children: ChildAccounting::SelfOnly,
            relation: MetricRelation::Independent,
            label: "User time",
            help: "Time in user mode.",
            source: "stat",
        };
        assert_eq!(metric.name(), "process.cpu.user");
        assert_eq!(metric.name_of_group(), "process.cpu.");
        assert_eq!(metric.column(), "cpu_user_seconds");
        assert_eq!(metric.prometheus(), "weigh_process_cpu_user_seconds_total");
    }
}
