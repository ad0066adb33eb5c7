//! Which devices of a tick are summed, so that no byte is counted twice.

use crate::catalog::metrics::{DiskIo, MadeOf, NetworkTraffic};
use crate::model::{Entity, Table};

/// Network devices that are summed: the hardware; where there is none, as in a container, all but
/// the loopback. A bond or a bridge carries the packets of its members again.
pub fn summed_nics(table: &Table) -> impl Iterator<Item = (Entity, NetworkTraffic)> {
    let rows = || table.rows::<NetworkTraffic>();
    let has_hardware = rows().any(|(_, row)| row.made_of == Some(MadeOf::Hardware));
    rows().filter(move |(_, row)| match row.made_of {
        Some(MadeOf::Hardware) => true,
        Some(MadeOf::Loopback) => false,
        Some(MadeOf::Software) | None => !has_hardware,
    })
}

/// Disks that are summed: a byte in a volume (`dm-0`) or an array (`md0`) is counted again for the
/// disk below it. Where there is nothing else, as in a container, those are all there is.
pub fn summed_disks(table: &Table) -> impl Iterator<Item = (Entity, DiskIo)> {
    let is_on_others = |entity: &Entity| match entity {
        Entity::Named(name) => ["dm-", "md"].iter().any(|kind| name.as_str().starts_with(kind)),
        _ => false,
    };
    let all_are = table.entities().iter().all(is_on_others);
    table.rows::<DiskIo>().filter(move |(disk, _)| all_are || !is_on_others(disk))
}
