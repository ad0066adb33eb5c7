//! Energy counters of powercap: `/sys/class/powercap/ZONE/energy_uj`.
//!
//! A zone `intel-rapl:0` is a package and `intel-rapl:0:1` a part of it; `name` says which (AMD's
//! are called intel-rapl, too). Counters wrap around at `max_energy_range_uj`: after some twenty
//! minutes of a busy processor.

use std::ffi::CString;

use crate::host::{self, CachedPath, Descriptors, Host};
use crate::model::Name;
use crate::parse::attribute;

/// Cached files: eight sockets with four domains each, twice.
pub(super) const CACHED_FILES: usize = 64;

/// One zone.
pub(super) struct Zone {
    /// Its name: `package-0`, `package-0/dram`.
    pub name: Name,
    energy: CachedPath,
    /// The range of the counter, in microjoules.
    range: Option<u64>,
    last: u64,
    /// The sum of all wraparounds.
    wrapped: u64,
}

impl Zone {
    /// Every zone of the machine, readable or not.
    pub(super) fn all(host: &Host) -> Vec<Zone> {
        let allowance = Descriptors::at_most(CACHED_FILES);
        let mut listed = host.sys.names(c"class/powercap").unwrap_or_default();
        // The second interface to the same counters, where a machine has both.
        listed.sort_by_key(|name| name.to_bytes().starts_with(b"intel-rapl-mmio"));
        let mut zones: Vec<Zone> = Vec::new();
        for zone in listed {
            let Some(name) = name(host, zone.to_bytes()) else { continue };
            let energy = at(zone.to_bytes(), "energy_uj");
            if host.sys.has(&energy) && !zones.iter().any(|zone| zone.name == name) {
                let range = number(host, &at(zone.to_bytes(), "max_energy_range_uj"));
                let energy = CachedPath::new(energy, &allowance);
                zones.push(Zone { name, energy, range, last: 0, wrapped: 0 });
            }
        }
        zones
    }

    /// Joules since the counter was first at zero.
    pub(super) fn read(&mut self, host: &Host, buffer: &mut Vec<u8>) -> Result<f64, host::Error> {
        let bytes = self.energy.read(&host.sys, buffer)?;
        let now = attribute::number(bytes).map_err(|source| host::Error::Parse {
            path: host.sys.path(self.energy.path()),
            source,
        })?;
        if now < self.last {
            // Without a range the wraparound is unknown: the counter restarts.
            self.wrapped = self.range.map_or(0, |range| self.wrapped.saturating_add(range));
        }
        self.last = now;
        Ok(self.wrapped.saturating_add(now) as f64 / 1e6)
    }
}

fn at(zone: &[u8], file: &str) -> CString {
    CString::new([b"class/powercap/", zone, b"/", file.as_bytes()].concat()).unwrap_or_default()
}

fn number(host: &Host, file: &CString) -> Option<u64> {
    let mut buffer = Vec::new();
    let bytes = host.sys.read(file, &mut buffer).ok()?;
    attribute::number(bytes).ok().filter(|number| *number > 0)
}

/// The name of a zone, after those of its parents.
fn name(host: &Host, zone: &[u8]) -> Option<Name> {
    let (mut buffer, colon) = (Vec::new(), zone.iter().rposition(|byte| *byte == b':')?);
    let own = host.sys.read(&at(zone, "name"), &mut buffer).ok()?;
    let own = attribute::text(own).ok()?;
    Some(match name(host, &zone[..colon]) {
        Some(whole) => Name::joined(&[whole.as_str().as_bytes(), b"/", own]),
        None => Name::new(own),
    })
}
