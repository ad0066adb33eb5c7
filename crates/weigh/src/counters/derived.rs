//! What is derived from counts: declared once, with unit, label and help. The formulas are with the
//! events, because they differ between microarchitectures.

use super::formula::Formula;

/// The unit of a derived value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedUnit {
    /// An amount of bytes; its rate is bytes per second.
    Bytes,
    /// An amount of floating-point operations; its rate is FLOP/s.
    Flops,
    /// A share: 1 is all of it.
    Share,
    /// One count for each of another.
    Ratio,
    /// Floating-point operations for each byte.
    FlopsPerByte,
    /// Times in a second.
    Hertz,
}

impl DerivedUnit {
    /// Whether it adds up over time, so that it has a rate.
    pub const fn is_amount(self) -> bool {
        matches!(self, DerivedUnit::Bytes | DerivedUnit::Flops)
    }

    /// The unit as people say it.
    pub const fn name(self) -> &'static str {
        match self {
            DerivedUnit::Bytes => "bytes",
            DerivedUnit::Flops => "FLOP",
            DerivedUnit::Share => "share",
            DerivedUnit::Ratio => "ratio",
            DerivedUnit::FlopsPerByte => "FLOP/byte",
            DerivedUnit::Hertz => "hertz",
        }
    }
}

/// Declares [`DerivedId`] with all that is known of each value.
macro_rules! derived_values {
    ($($(#[doc = $help:literal])+ $id:ident: $name:literal, $unit:ident, $label:literal;)+) => {
        /// A value that is derived from counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DerivedId {
            $($(#[doc = $help])+ $id,)+
        }

        impl DerivedId {
            /// Every derived value.
            pub const ALL: &[DerivedId] = &[$(DerivedId::$id),+];

            /// Its name in files.
            pub const fn name(self) -> &'static str {
                match self { $(DerivedId::$id => $name,)+ }
            }

            /// Its unit.
            pub const fn unit(self) -> DerivedUnit {
                match self { $(DerivedId::$id => DerivedUnit::$unit,)+ }
            }

            /// A few words for a table or a chart.
            pub const fn label(self) -> &'static str {
                match self { $(DerivedId::$id => $label,)+ }
            }

            /// A sentence for people.
            pub fn help(self) -> &'static str {
                match self { $(DerivedId::$id => concat!($($help),+).trim_ascii(),)+ }
            }
        }
    };
}

derived_values! {
    /// Instructions retired for each cycle in which a core ran the program.
    InstructionsPerCycle: "instructions_per_cycle", Ratio, "Instructions per cycle";
    /// Mean clock of the cores while they ran the program.
    ClockFrequency: "clock_frequency", Hertz, "Clock frequency";
    /// Micro-operations retired for each instruction.
    UopsPerInstruction: "uops_per_instruction", Ratio, "Micro-operations per instruction";
    /// Share of branches that were predicted wrongly.
    BranchMissRatio: "branch_miss_ratio", Share, "Branch misses";
    /// Share of instructions that are branches.
    BranchShare: "branch_share", Share, "Branches";
    /// Share of accesses to the last cache level, as the kernel chose the events, that missed it.
    CacheMissRatio: "cache_miss_ratio", Share, "Cache misses";
    /// Share of cycles without new operations because the front end gave none.
    StalledFrontendShare: "stalled_frontend_share", Share, "Stalled in the front end";
    /// Share of cycles without new operations because the back end took none.
    StalledBackendShare: "stalled_backend_share", Share, "Stalled in the back end";
    /// Share of loads that missed the L1 data cache.
    L1DataMissRatio: "l1d_miss_ratio", Share, "L1 data cache misses";
    /// Share of loads at the last cache level that missed it.
    LastLevelMissRatio: "llc_miss_ratio", Share, "Last level cache misses";
    /// Share of loads whose address was not in the data TLB.
    DataTlbMissRatio: "dtlb_miss_ratio", Share, "Data TLB misses";
    /// Bytes that moved from the L2 cache into the L1 data cache.
    L2ReadBytes: "l2_read_bytes", Bytes, "Read from L2";
    /// Bytes that moved from the L1 data cache into the L2 cache.
    L2WrittenBytes: "l2_written_bytes", Bytes, "Written to L2";
    /// Bytes between the L1 caches and the L2 cache, of instructions too.
    L2Bytes: "l2_bytes", Bytes, "L2 traffic";
    /// Requests to the L2 cache for each instruction.
    L2RequestsPerInstruction: "l2_requests_per_instruction", Ratio, "L2 requests per instruction";
    /// Requests that missed the L2 cache for each instruction.
    L2MissesPerInstruction: "l2_misses_per_instruction", Ratio, "L2 misses per instruction";
    /// Share of requests to the L2 cache that missed it.
    L2MissRatio: "l2_miss_ratio", Share, "L2 misses";
    /// Bytes that moved into the L2 cache.
    L3ReadBytes: "l3_read_bytes", Bytes, "Read from L3";
    /// Bytes that moved from the L2 cache into the L3 cache.
    L3WrittenBytes: "l3_written_bytes", Bytes, "Written to L3";
    /// Bytes between the L2 cache and the L3 cache.
    L3Bytes: "l3_bytes", Bytes, "L3 traffic";
    /// Loads that reached the L3 cache for each instruction.
    L3RequestsPerInstruction: "l3_requests_per_instruction", Ratio, "L3 requests per instruction";
    /// Loads that missed the L3 cache for each instruction.
    L3MissesPerInstruction: "l3_misses_per_instruction", Ratio, "L3 misses per instruction";
    /// Share of loads at the L3 cache that missed it.
    L3MissRatio: "l3_miss_ratio", Share, "L3 misses";
    /// Share of requests at the L3 caches of the machine that missed them.
    MachineL3MissRatio: "machine_l3_miss_ratio", Share, "L3 misses of the machine";
    /// Bytes that were requested of the L3 caches of the machine.
    MachineL3Bytes: "machine_l3_bytes", Bytes, "L3 traffic of the machine";
    /// Floating-point operations in single precision.
    SingleFlops: "flops_single", Flops, "Single precision";
    /// Floating-point operations in double precision.
    DoubleFlops: "flops_double", Flops, "Double precision";
    /// Floating-point operations, whatever their precision.
    Flops: "flops", Flops, "Floating-point operations";
    /// Share of single-precision instructions that compute several numbers at once.
    SingleVectorisation: "vectorisation_single", Share, "Vectorised, single precision";
    /// Share of double-precision instructions that compute several numbers at once.
    DoubleVectorisation: "vectorisation_double", Share, "Vectorised, double precision";
    /// Bytes that the program's cores read from memory.
    MemoryReadBytes: "memory_read_bytes", Bytes, "Read from memory";
    /// Share of what the program's cores read from memory that another socket's memory had.
    MemoryRemoteShare: "memory_remote_share", Share, "Read from another socket's memory";
    /// Bytes read from the memory of the machine by everything on it.
    MachineMemoryReadBytes: "machine_memory_read_bytes", Bytes, "Read from the machine's memory";
    /// Bytes written to the memory of the machine by everything on it.
    MachineMemoryWrittenBytes: "machine_memory_written_bytes", Bytes, "Written to the machine's memory";
    /// Floating-point operations for each byte that was read from memory.
    ArithmeticIntensity: "arithmetic_intensity", FlopsPerByte, "Arithmetic intensity";
    /// Share of issue slots whose operation was needed by the program.
    Retiring: "topdown_retiring", Share, "Retiring";
    /// Share of issue slots lost to operations on a wrong path.
    BadSpeculation: "topdown_bad_speculation", Share, "Bad speculation";
    /// Share of issue slots that the front end left empty.
    FrontendBound: "topdown_frontend_bound", Share, "Front-end bound";
    /// Share of issue slots that waited for data or for an execution unit.
    BackendBound: "topdown_backend_bound", Share, "Back-end bound";
    /// Share of issue slots that the other thread of the core used.
    SmtContention: "topdown_smt_contention", Share, "Used by the other thread";
}

impl DerivedId {
    /// The value with this name.
    pub fn named(name: &str) -> Option<DerivedId> {
        DerivedId::ALL.iter().copied().find(|id| id.name() == name)
    }
}

/// How far a derived value may be from what its name says, when every count is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The events count exactly this.
    Counted,
    /// The truth is this or more, for this reason.
    LowerBound(String),
    /// The truth may be less or more, for this reason.
    Estimate(String),
}

/// A value derived from the counts of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// What it is.
    pub id: DerivedId,
    /// How it is computed from counts.
    pub formula: Formula,
    /// Whether it is what its name says, or less.
    pub trust: Trust,
}

impl Derived {
    /// Its value for these counts; `None` when an event was not counted, or a divisor is 0.
    pub fn evaluate(&self, count: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        self.formula.evaluate(count)
    }

    /// The value for each second, of an amount.
    pub fn rate(&self, count: &dyn Fn(&str) -> Option<f64>, seconds: f64) -> Option<f64> {
        let amount = self.evaluate(count).filter(|_| self.id.unit().is_amount())?;
        (seconds > 0.0).then(|| amount / seconds)
    }
}

/// Floating-point operations of either precision, from the values of the groups that were counted.
///
/// Where one event counts both precisions, that is it; else both groups are needed.
pub fn flops(value: &dyn Fn(DerivedId) -> Option<f64>) -> Option<f64> {
    let both = || Some(value(DerivedId::SingleFlops)? + value(DerivedId::DoubleFlops)?);
    value(DerivedId::Flops).or_else(both)
}

/// Floating-point operations for each byte read from memory: an upper bound where the bytes are a
/// lower one.
pub fn arithmetic_intensity(value: &dyn Fn(DerivedId) -> Option<f64>) -> Option<f64> {
    let intensity = flops(value)? / value(DerivedId::MemoryReadBytes)?;
    intensity.is_finite().then_some(intensity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_value_has_a_name_of_its_own_and_a_sentence() {
        let mut names = HashSet::new();
        for &id in DerivedId::ALL {
            assert!(names.insert(id.name()), "{} is there twice", id.name());
            assert_eq!(DerivedId::named(id.name()), Some(id));
            assert!(id.help().ends_with('.') && !id.help().starts_with(' '), "{}", id.help());
            assert!(!id.label().is_empty());
        }
        assert_eq!(DerivedId::named("speed"), None);
    }

    fn derived(id: DerivedId, formula: &str) -> Derived {
        Derived { id, formula: Formula::parse(formula).unwrap(), trust: Trust::Counted }
    }

    #[test]
    fn amounts_have_rates_and_ratios_have_none() {
        let bytes = derived(DerivedId::L2Bytes, "lines * 64");
        let lines = |_: &str| Some(10.0);
        assert_eq!(bytes.evaluate(&lines), Some(640.0));
        assert_eq!(bytes.rate(&lines, 2.0), Some(320.0));
        assert_eq!(bytes.rate(&lines, 0.0), None);
        assert_eq!(derived(DerivedId::L2MissRatio, "lines / 20").rate(&lines, 2.0), None);
    }

    #[test]
    fn arithmetic_intensity_needs_both_axes() {
        let known = |values: &'static [(DerivedId, f64)]| {
            move |id: DerivedId| values.iter().find(|(one, _)| *one == id).map(|(_, value)| *value)
        };
        use DerivedId::{DoubleFlops, Flops, MemoryReadBytes, SingleFlops};
        let separate = known(&[(SingleFlops, 10.0), (DoubleFlops, 30.0), (MemoryReadBytes, 80.0)]);
        assert_eq!(arithmetic_intensity(&separate), Some(0.5));
        let together = known(&[(Flops, 20.0), (MemoryReadBytes, 80.0)]);
        assert_eq!(arithmetic_intensity(&together), Some(0.25));
        assert_eq!(arithmetic_intensity(&known(&[(Flops, 20.0)])), None);
        assert_eq!(flops(&known(&[(DoubleFlops, 30.0)])), None, "single precision is not known");
        let nothing_read = known(&[(Flops, 20.0), (MemoryReadBytes, 0.0)]);
        assert_eq!(arithmetic_intensity(&nothing_read), None);
    }
}
