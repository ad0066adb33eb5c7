//! What a fault of a run concerns.

use std::fmt;

use crate::catalog::{Scope, SourceId};

/// What could not be measured or written: `source` of a fault in `events.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultSource {
    /// A source.
    Source(SourceId),
    /// One group of metrics of a source, while the others are read.
    Group(Scope, &'static str),
    /// Orphaned descendants, where the kernel refuses to make weigh a child subreaper.
    ChildSubreaper,
    /// Process events of the kernel.
    Connector,
    /// I/O of reaped processes.
    Io,
    /// Control messages from inside the run.
    Inbox,
    /// Phases of which there are too many.
    Phases,
    /// The recording itself.
    Recording,
}

impl From<SourceId> for FaultSource {
    fn from(source: SourceId) -> FaultSource {
        FaultSource::Source(source)
    }
}

impl fmt::Display for FaultSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultSource::Source(source) => f.write_str(source.name()),
            FaultSource::Group(scope, group) => write!(f, "{}.{group}", scope.name()),
            FaultSource::ChildSubreaper => f.write_str("child-subreaper"),
            FaultSource::Connector => f.write_str("connector"),
            FaultSource::Io => f.write_str("io"),
            FaultSource::Inbox => f.write_str("inbox"),
            FaultSource::Phases => f.write_str("phases"),
            FaultSource::Recording => f.write_str("recording"),
        }
    }
}
