//! What can be measured: every metric is declared once, with `metrics!`, and
//! everything else (columns, units, names for other tools, the reference page)
//! is derived from that declaration.

mod declare;
mod figures;
pub mod metrics;
mod names;
mod relation;
mod source;

pub(crate) use declare::metrics;
pub use figures::{Combine, FigureId, FigureScope, FigureUnit};
pub use metrics::run_totals::DERIVED;
pub use relation::{MetricRelation, RateDenominator};
pub use source::{SOURCES, Source, SourceId, all_groups, catalogue, groups};

/// One metric: its scope, what it counts and its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// What kind of thing a row is about.
    pub scope: Scope,
    /// The family of metrics inside the scope; one collector owns it.
    pub group: &'static str,
    /// The title of the family for people: that of its chart.
    pub family: &'static str,
    /// The name inside the group.
    pub field: &'static str,
    /// Whether the value is a gauge or a counter.
    pub kind: Kind,
    /// The base unit of the stored value.
    pub unit: Unit,
    /// How the value is stored.
    pub stored: Type,
    /// Whether a process's value includes its reaped children.
    pub children: ChildAccounting,
    /// Its relation to the other metrics of its group.
    pub relation: MetricRelation,
    /// A few words for a chart or a table header.
    pub label: &'static str,
    /// A sentence for people.
    pub help: &'static str,
    /// The file and field the kernel gives it in.
    pub source: &'static str,
}

/// Whether a value is a gauge or a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value at the time of the sample.
    Gauge,
    /// A value that only grows; rates are derived when it is read.
    Counter,
}

impl Kind {
    /// The kind in one lower-case word.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        }
    }
}

/// Whether the value of a process includes its reaped children: it determines how values add up
/// over processes, and where the counts of a process move when it is reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildAccounting {
    /// The process alone.
    SelfOnly,
    /// The process and its reaped children, whose counts move here.
    SelfAndReaped,
    /// Its reaped children alone: these fields of each, and this one.
    ReapedOnly(&'static [&'static str]),
}

/// The base unit of a stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; people see KiB, MiB, GiB.
    Bytes,
    /// Bytes in a second: how fast a link is.
    BytesPerSecond,
    /// Seconds.
    Seconds,
    /// Seconds spent in a state; as a rate, the share of time in that state.
    SecondsInState,
    /// Joules.
    Joules,
    /// Watts: joules in a second.
    Watts,
    /// Hertz: times in a second.
    Hertz,
    /// Degrees Celsius.
    Celsius,
    /// A share: 1 is all of it.
    Ratio,
    /// A plain number of things.
    One,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Unit; 10] = [
        Unit::Bytes,
        Unit::BytesPerSecond,
        Unit::Seconds,
        Unit::SecondsInState,
        Unit::Joules,
        Unit::Watts,
        Unit::Hertz,
        Unit::Celsius,
        Unit::Ratio,
        Unit::One,
    ];

    /// The word that ends a column's name; empty for plain numbers.
    pub const fn suffix(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes_per_second",
            Unit::Seconds | Unit::SecondsInState => "seconds",
            Unit::Joules => "joules",
            Unit::Watts => "watts",
            Unit::Hertz => "hertz",
            Unit::Celsius => "celsius",
            Unit::Ratio => "ratio",
            Unit::One => "",
        }
    }

    /// The unit as people say it.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::One => "1",
            Unit::BytesPerSecond => "bytes/s",
            other => other.suffix(),
        }
    }
}

/// What kind of thing a row of measurements is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The whole machine.
    Node,
    /// One CPU of the machine.
    Cpu,
    /// One network device.
    Nic,
    /// One port of an InfiniBand, RoCE or Omni-Path adapter.
    IbPort,
    /// One disk, whole.
    Disk,
    /// One part of the machine whose energy or power is measured.
    Energy,
    /// One GPU, or one MIG instance.
    Gpu,
    /// One process on one GPU.
    GpuProcess,
    /// One event that is counted in the run.
    PerfEvent,
    /// The run as a whole.
    Run,
    /// The monitored cgroup, or the one that the run is in.
    Cgroup,
    /// One process of the run.
    Process,
    /// weigh itself.
    Own,
}

impl Scope {
    /// Every scope, in the order tables are listed.
    pub const ALL: [Scope; 13] = [
        Scope::Node,
        Scope::Cpu,
        Scope::Nic,
        Scope::IbPort,
        Scope::Disk,
        Scope::Energy,
        Scope::Gpu,
        Scope::GpuProcess,
        Scope::PerfEvent,
        Scope::Run,
        Scope::Cgroup,
        Scope::Process,
        Scope::Own,
    ];

    /// The scope's name, which is also its file's name in a recording.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Node => "node",
            Scope::Cpu => "cpu",
            Scope::Nic => "network",
            Scope::IbPort => "infiniband",
            Scope::Disk => "disk",
            Scope::Energy => "energy",
            Scope::Gpu => "gpu",
            Scope::GpuProcess => "gpu_process",
            Scope::PerfEvent => "perf_event",
            Scope::Run => "run",
            Scope::Cgroup => "cgroup",
            Scope::Process => "process",
            Scope::Own => "own",
        }
    }

    /// Whether there is one of it: one machine, one run, one cgroup of it, one weigh.
    pub const fn is_single(self) -> bool {
        matches!(self, Scope::Node | Scope::Run | Scope::Cgroup | Scope::Own)
    }

    /// The column with the name of a row's entity, where entities have names.
    pub const fn name_column(self) -> Option<&'static str> {
        match self {
            Scope::Nic | Scope::Disk => Some("device"),
            Scope::IbPort => Some("port"),
            Scope::Energy => Some("domain"),
            Scope::PerfEvent => Some("event"),
            Scope::Gpu | Scope::GpuProcess => Some("gpu"),
            Scope::Node | Scope::Cpu | Scope::Run | Scope::Cgroup | Scope::Process | Scope::Own => {
                None
            }
        }
    }
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A whole number.
    U64,
    /// A real number.
    F64,
    /// One of a few symbols, stored as its index in the list.
    Symbol(&'static [&'static str]),
}

/// One stored value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A whole number.
    U64(u64),
    /// A real number.
    F64(f64),
    /// The index of a symbol in its type's list.
    Symbol(u8),
}

impl Value {
    /// The number; a symbol is none.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::U64(number) => Some(number as f64),
            Value::F64(number) => Some(number),
            Value::Symbol(_) => None,
        }
    }
}

/// A Rust type that a metric's field may have.
pub trait Stored: Copy {
    /// How it is stored.
    const TYPE: Type;
    /// The value to store.
    fn value(self) -> Value;
    /// The value read back; `None` when it is of another type.
    fn from_value(value: Value) -> Option<Self>;
}

impl Stored for u64 {
    const TYPE: Type = Type::U64;
    fn value(self) -> Value {
        Value::U64(self)
    }
    fn from_value(value: Value) -> Option<u64> {
        if let Value::U64(number) = value { Some(number) } else { None }
    }
}

impl Stored for f64 {
    const TYPE: Type = Type::F64;
    fn value(self) -> Value {
        Value::F64(self)
    }
    fn from_value(value: Value) -> Option<f64> {
        if let Value::F64(number) = value { Some(number) } else { None }
    }
}

/// A group of metrics that are measured together: what `metrics!` makes.
pub trait Row: Sized + Copy + Default {
    /// What its rows are about.
    const SCOPE: Scope;
    /// The family name its columns share.
    const GROUP: &'static str;
    /// The declared metrics, in the order of the fields.
    const METRICS: &'static [Metric];
    /// Hands each field to `put`, in the order of [`Row::METRICS`].
    fn put_each(&self, put: impl FnMut(usize, Option<Value>));
    /// Builds a row from its fields, asked for in the order of [`Row::METRICS`].
    fn from_each(get: impl FnMut(usize) -> Option<Value>) -> Self;
    /// Keeps the earlier value of every field that has none now.
    fn carry_forward(&mut self, earlier: &Self);

    /// The metric of a field: `ProcessMemory::metric(|row| &mut row.pss)`. A field that is renamed
    /// does not compile, where a name in a string would not be found.
    fn metric<T: Stored>(
        field: impl FnOnce(&mut Self) -> &mut Option<T>,
    ) -> Option<&'static Metric> {
        let any = [Value::U64(0), Value::F64(0.0), Value::Symbol(0)];
        let mut row = Self::default();
        *field(&mut row) = any.into_iter().find_map(T::from_value);
        let mut found = None;
        row.put_each(|place, value| found = found.or(value.and(Some(place))));
        Self::METRICS.get(found?)
    }
}
