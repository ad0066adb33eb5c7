//! The `metrics!` macro: one line makes a field, its column and its page in the reference.

/// Declares a group of metrics: a struct whose fields are all `Option`, and its
/// catalogue entries.
///
/// ```ignore
/// metrics! {
///     /// Traffic through one InfiniBand port.
///     pub struct Traffic in IbPort / "infiniband", "InfiniBand" {
///         /// Data received, headers included.
///         received: Counter u64 Bytes, "Received", from "counters/port_rcv_data × 4";
///     }
/// }
/// ```
///
/// A word behind the unit says whether a process's value includes its reaped children
/// (`WithReaped`; `Reaped(user)` counts them alone, here what was `user` and this of each), or what
/// it is to the other metrics of its group: `CapacityOf(used)`, `ObservedTimeOf(busy)`, `SupersededBy(busy)`,
/// `HighWaterMarkOf(rss)`, `BitField`, `Age`. A field that such a word names must exist: the macro refers to
/// it.
macro_rules! metrics {
    (@children WithReaped) => { $crate::catalog::ChildAccounting::SelfAndReaped };
    (@children Reaped $($of:ident)+) => {
        $crate::catalog::ChildAccounting::ReapedOnly(&[$(stringify!($of)),+])
    };
    (@children) => { $crate::catalog::ChildAccounting::SelfOnly };
    // What a metric is to others of its group: see `@relation`, which refuses any other word.
    (@children $relation:ident $($of:ident)*) => { $crate::catalog::ChildAccounting::SelfOnly };
    (@relation CapacityOf $($of:ident)*) => { $crate::catalog::MetricRelation::CapacityOf(&[$(stringify!($of)),*]) };
    (@relation ObservedTimeOf $($of:ident)*) => { $crate::catalog::MetricRelation::ObservedTimeOf(&[$(stringify!($of)),*]) };
    (@relation SupersededBy $($of:ident)*) => { $crate::catalog::MetricRelation::SupersededBy(&[$(stringify!($of)),*]) };
    (@relation HighWaterMarkOf $($of:ident)*) => {
        $crate::catalog::MetricRelation::HighWaterMarkOf(&[$(stringify!($of)),*])
    };
    (@relation BitField) => { $crate::catalog::MetricRelation::BitField };
    (@relation Age) => { $crate::catalog::MetricRelation::Age };
    (@relation) => { $crate::catalog::MetricRelation::Independent };
    (@relation WithReaped) => { $crate::catalog::MetricRelation::Independent };
    (@relation Reaped $($of:ident)+) => { $crate::catalog::MetricRelation::Independent };
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident in $scope:ident / $group:literal, $family:literal {
            $(
                $(#[doc = $help:literal])+
                $field:ident : $kind:ident $type:ident $unit:ident $($mark:ident $(($($of:ident),+))?)?, $label:literal, from $source:literal;
            )+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $help])+ pub $field: Option<$type>, )+
        }

        /// Every field that another one names is there.
        const _: fn(&$name) = |_row| { $( $( $( $( let _ = &_row.$of; )+ )? )? )+ };

        impl $crate::catalog::Row for $name {
            const SCOPE: $crate::catalog::Scope = $crate::catalog::Scope::$scope;
            const GROUP: &'static str = $group;
            const METRICS: &'static [$crate::catalog::Metric] = &[ $(
                $crate::catalog::Metric {
                    scope: $crate::catalog::Scope::$scope,
                    group: $group,
                    family: $family,
                    field: stringify!($field),
                    kind: $crate::catalog::Kind::$kind,
                    unit: $crate::catalog::Unit::$unit,
                    stored: <$type as $crate::catalog::Stored>::TYPE,
                    children: $crate::catalog::metrics!(@children $($mark $($($of)+)?)?),
                    relation: $crate::catalog::metrics!(@relation $($mark $($($of)+)?)?),
                    label: $label,
                    help: concat!($($help),+).trim_ascii(),
                    source: $source,
                },
            )+ ];

            fn put_each(&self, mut put: impl FnMut(usize, Option<$crate::catalog::Value>)) {
                let mut place = 0;
                $(
                    put(place, self.$field.map($crate::catalog::Stored::value));
                    place += 1;
                )+
                debug_assert_eq!(place, Self::METRICS.len());
            }

            fn from_each(mut get: impl FnMut(usize) -> Option<$crate::catalog::Value>) -> Self {
                let mut next = 0..;
                $(
                    let $field = next.next().and_then(&mut get)
                        .and_then(<$type as $crate::catalog::Stored>::from_value);
                )+
                Self { $($field),+ }
            }

            fn carry_forward(&mut self, earlier: &Self) {
                $( self.$field = self.$field.or(earlier.$field); )+
            }
        }
    };
}

pub(crate) use metrics;
