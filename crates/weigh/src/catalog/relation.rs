//! The relation of a metric to the others of its group: a bound of them, the time they observed_time, their
//! age.

use super::{Kind, Metric, Unit};

/// The role of a value for readers, beside being a gauge or a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricRelation {
    /// A value of its own.
    Independent,
    /// The upper bound of these of its group, or of what has no metric.
    CapacityOf(&'static [&'static str]),
    /// The time that these counters of its group observed_time.
    ObservedTimeOf(&'static [&'static str]),
    /// These of its group have the same with more precision, where they are known.
    SupersededBy(&'static [&'static str]),
    /// The largest value that this one of its group ever had: since the process started, not since
    /// weigh attached.
    HighWaterMarkOf(&'static [&'static str]),
    /// A bit field.
    BitField,
    /// The age of all values of its row.
    Age,
}

impl Metric {
    /// Whether it is useful as a curve: auxiliary values and bit fields are not.
    pub const fn is_a_quantity(&self) -> bool {
        matches!(
            self.relation,
            MetricRelation::Independent
                | MetricRelation::CapacityOf(_)
                | MetricRelation::SupersededBy(_)
                | MetricRelation::HighWaterMarkOf(_)
        )
    }

    /// Whether it is the upper bound of another metric of its group.
    pub fn is_capacity_of(&self, other: &Metric) -> bool {
        matches!(self.relation, MetricRelation::CapacityOf(fields) if self.is_named_in(fields, other))
    }

    /// Whether it is the time that another metric of its group covers.
    pub fn is_observed_time_of(&self, other: &Metric) -> bool {
        matches!(self.relation, MetricRelation::ObservedTimeOf(fields) if self.is_named_in(fields, other))
    }

    /// Whether another metric of its group has the same, with more precision.
    pub fn is_superseded_by(&self, other: &Metric) -> bool {
        matches!(self.relation, MetricRelation::SupersededBy(fields) if self.is_named_in(fields, other))
    }

    fn is_named_in(&self, fields: &[&str], other: &Metric) -> bool {
        (self.scope, self.group) == (other.scope, other.group) && fields.contains(&other.field)
    }
}

/// What the delta of a counter is divided by, as columns of its table.
///
/// That is the time between two ticks, unless rows hold values that were read earlier, each by
/// another amount: then it is the time between the two readings, or the time that the counter
/// itself covers where that is counted, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateDenominator {
    /// The column with the age of a row's values.
    pub age: Option<usize>,
    /// The column with the time the counter covers.
    pub observed_time: Option<usize>,
    /// Whether it is a share of that time: never more than all of it.
    pub is_share: bool,
}

impl RateDenominator {
    /// Of a counter in a table with these columns; of some the metric is not known.
    pub fn for_counter(metric: &Metric, columns: &[Option<&'static Metric>]) -> RateDenominator {
        let place =
            |is: &dyn Fn(&Metric) -> bool| columns.iter().position(|column| column.is_some_and(is));
        let age = place(&|column| column.relation == MetricRelation::Age);
        let observed_time = place(&|column| column.is_observed_time_of(metric));
        let was_read_earlier = age.is_some() || observed_time.is_some();
        let is_share = was_read_earlier && metric.unit == Unit::SecondsInState;
        debug_assert_eq!(metric.kind, Kind::Counter, "{}", metric.name());
        RateDenominator { age, observed_time, is_share }
    }

    /// Whether rows may hold values that were read earlier.
    pub fn is_of_readings(&self) -> bool {
        self.age.is_some() || self.observed_time.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, metrics};

    metrics! {
        /// Somebody else's sums.
        struct Sums in Gpu / "sums", "Sums" {
            /// Busy.
            busy: Counter f64 SecondsInState, "Busy", from "here";
            /// Busy at the moment.
            glimpse: Gauge f64 Ratio SupersededBy(busy), "Glimpse", from "here";
            /// Seen.
            seen: Counter f64 SecondsInState ObservedTimeOf(busy), "Seen", from "here";
            /// Used.
            used: Gauge u64 Bytes, "Used", from "here";
            /// There is.
            total: Gauge u64 Bytes CapacityOf(used), "Total", from "here";
            /// Lanes.
            lanes: Gauge u64 One CapacityOf, "Lanes", from "here";
            /// Why.
            reasons: Gauge u64 One BitField, "Reasons", from "here";
            /// Old.
            age: Gauge f64 Seconds Age, "Age", from "here";
        }
    }

    #[test]
    fn relations_of_a_metric_follow_from_its_declaration() {
        let [busy, glimpse, seen, used, total, lanes, reasons, age] = Sums::METRICS else {
            panic!()
        };
        assert!(
            seen.is_observed_time_of(busy)
                && !seen.is_observed_time_of(seen)
                && !busy.is_observed_time_of(seen)
        );
        assert!(glimpse.is_superseded_by(busy) && !busy.is_superseded_by(glimpse));
        assert!(
            total.is_capacity_of(used)
                && !lanes.is_capacity_of(used)
                && !used.is_capacity_of(total)
        );
        let quantities = [busy, glimpse, used, total, lanes].map(Metric::is_a_quantity);
        assert_eq!(
            (quantities, [seen, reasons, age].map(Metric::is_a_quantity)),
            ([true; 5], [false; 3])
        );
        let columns: Vec<_> = Sums::METRICS.iter().map(Some).collect();
        assert_eq!(
            RateDenominator::for_counter(busy, &columns),
            RateDenominator { age: Some(7), observed_time: Some(2), is_share: true }
        );
        assert_eq!(RateDenominator::for_counter(busy, &columns[..1]), RateDenominator::default());
    }
}
