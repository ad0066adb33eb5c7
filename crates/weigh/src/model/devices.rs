//! Which devices of a tick are summed, so that no byte is counted twice.

use crate::catalog::Scope;
use crate::catalog::metrics::{MadeOf, NetworkTraffic};
use crate::model::{Entity, Table};

/// Which rows of a table of devices are summed.
pub struct SummedDevices<'t> {
    table: &'t Table,
    /// Whether every device is a part of another, or made of others: then all of them are summed.
    has_no_hardware: bool,
}

impl<'t> SummedDevices<'t> {
    /// Those of this table.
    pub fn of(table: &'t Table) -> SummedDevices<'t> {
        let has_no_hardware = match table.scope() {
            Scope::Nic => {
                !(0..table.len()).any(|row| made_of(table, row) == Some(MadeOf::Hardware))
            }
            Scope::Disk => table.entities().iter().all(is_on_other_disks),
            _ => false,
        };
        SummedDevices { table, has_no_hardware }
    }

    /// Whether the device of a row is summed.
    ///
    /// Of network devices the hardware is; where there is none, as in a container, all but the
    /// loopback. A bond or a bridge carries the packets of its members again. A byte in a volume
    /// (`dm-0`) or an array (`md0`) is counted again for the disk below it; where there is nothing
    /// else, as in a container, those are all there is.
    pub fn includes(&self, row: usize) -> bool {
        match self.table.scope() {
            Scope::Nic => match made_of(self.table, row) {
                Some(MadeOf::Hardware) => true,
                Some(MadeOf::Loopback) => false,
                Some(MadeOf::Software) | None => self.has_no_hardware,
            },
            Scope::Disk => self.has_no_hardware || !is_on_other_disks(&self.table.entities()[row]),
            _ => true,
        }
    }
}

fn made_of(table: &Table, row: usize) -> Option<MadeOf> {
    table.get::<NetworkTraffic>(row).made_of
}

fn is_on_other_disks(disk: &Entity) -> bool {
    match disk {
        Entity::Named(name) => ["dm-", "md"].iter().any(|kind| name.as_str().starts_with(kind)),
        _ => false,
    }
}

/// Network devices that are summed.
pub fn summed_nics(table: &Table) -> impl Iterator<Item = (Entity, NetworkTraffic)> {
    let summed = SummedDevices::of(table);
    table.rows().enumerate().filter(move |(row, _)| summed.includes(*row)).map(|(_, device)| device)
}
