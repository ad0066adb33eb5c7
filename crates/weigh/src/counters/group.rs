//! Groups of events: what is counted together, and the names by which users ask for it.

use super::{CounterEvent, Derived};

/// Events that are counted together or not at all, so that what is derived from them is of one time.
#[derive(Debug, Clone, PartialEq)]
pub struct EventGroup {
    /// Which group it is.
    pub id: GroupId,
    /// Its events; the first one leads.
    pub events: Vec<CounterEvent>,
    /// What is derived from them.
    pub derived: Vec<Derived>,
}

/// Declares [`GroupId`].
macro_rules! groups {
    ($($(#[doc = $help:literal])+ $id:ident: $name:literal;)+) => {
        /// A group by its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum GroupId {
            $($(#[doc = $help])+ $id,)+
        }

        impl GroupId {
            /// Every group.
            pub const ALL: &[GroupId] = &[$(GroupId::$id),+];

            /// Its name, as users write it.
            pub const fn name(self) -> &'static str {
                match self { $(GroupId::$id => $name,)+ }
            }

            /// A sentence about what it counts.
            pub fn help(self) -> &'static str {
                match self { $(GroupId::$id => concat!($($help),+).trim_ascii(),)+ }
            }
        }
    };
}

groups! {
    /// Instructions and cycles.
    Ipc: "IPC";
    /// Cycles and CPU time.
    Clock: "CLOCK";
    /// What the kernel counts without a processor's help: CPU time, switches, page faults.
    Software: "SOFTWARE";
    /// Branches, and those predicted wrongly.
    Branch: "BRANCH";
    /// Accesses to the last cache level, and those that missed it.
    Cache: "CACHE";
    /// Cycles in which the core did not go on.
    Stall: "STALL";
    /// Loads, and those that missed the L1 data cache.
    L1d: "L1D";
    /// Loads at the last cache level, and those that missed it.
    Llc: "LLC";
    /// Loads, and those whose address was not in the data TLB.
    Tlb: "TLB";
    /// Traffic between the L1 caches and the L2 cache.
    L2: "L2";
    /// Requests to the L2 cache, and those that missed it.
    L2Cache: "L2CACHE";
    /// Traffic between the L2 cache and the L3 cache.
    L3: "L3";
    /// Requests to the L3 cache, and those that missed it.
    L3Cache: "L3CACHE";
    /// Floating-point operations in single precision.
    FlopsSp: "FLOPS_SP";
    /// Floating-point operations in double precision.
    FlopsDp: "FLOPS_DP";
    /// Traffic to memory.
    Mem: "MEM";
    /// Top-down level 1: what became of each issue slot.
    Tma: "TMA";
}

impl GroupId {
    /// What is counted whenever it is permitted: on most processors it fits the counters at once.
    ///
    /// The software events are not among it: a run has CPU time, page faults and context switches
    /// from elsewhere, and each inherited event makes every fork slower.
    pub const DEFAULT: &[GroupId] = &[GroupId::Ipc, GroupId::Branch, GroupId::Cache];

    /// Reads a list of names: `FLOPS_DP,mem`. `default` is the default set.
    pub fn list(text: &str) -> Result<Vec<GroupId>, UnknownGroup> {
        let mut found = Vec::new();
        for name in text.split(',').map(str::trim) {
            let named = if name.eq_ignore_ascii_case("default") {
                GroupId::DEFAULT
            } else {
                let named = |id: &&GroupId| id.name().eq_ignore_ascii_case(name);
                let id = GroupId::ALL.iter().find(named);
                std::slice::from_ref(id.ok_or_else(|| UnknownGroup::new(name))?)
            };
            found.extend(
                named.iter().filter(|id| !found.contains(*id)).copied().collect::<Vec<_>>(),
            );
        }
        Ok(found)
    }
}

/// A name that no group has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no group of counters is named `{name}`")]
pub struct UnknownGroup {
    /// What was written.
    pub name: String,
    /// The most similar names, best first.
    pub nearest: Vec<String>,
}

impl UnknownGroup {
    fn new(name: &str) -> UnknownGroup {
        let names = GroupId::ALL.iter().map(|id| id.name().to_owned());
        UnknownGroup { name: name.to_owned(), nearest: super::named::nearest(name, names) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_in_any_case_and_counted_once() {
        assert_eq!(
            GroupId::list("flops_dp,MEM,L2cache,Mem"),
            Ok(vec![GroupId::FlopsDp, GroupId::Mem, GroupId::L2Cache])
        );
        assert_eq!(GroupId::list("default").as_deref(), Ok(GroupId::DEFAULT));
        assert_eq!(GroupId::list("branch,default").map(|all| all.len()), Ok(3));
    }

    #[test]
    fn unknown_group_is_told_with_the_nearest() {
        let error = GroupId::list("MEM,FLOPS_D").unwrap_err();
        assert_eq!(error.name, "FLOPS_D");
        assert_eq!(error.nearest.first().map(String::as_str), Some("FLOPS_DP"));
        assert!(GroupId::list("").is_err() && GroupId::list("MEM,").is_err());
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = GroupId::ALL.iter().map(|id| id.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), GroupId::ALL.len());
    }
}
