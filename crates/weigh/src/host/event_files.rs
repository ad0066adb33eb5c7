//! The files of `/sys` that describe events of the kernel's counters.

use std::ffi::CString;
use std::io::{Error, ErrorKind, Result};

use super::Dir;
use crate::counters::named::EventFiles;
use crate::parse::cpulist;

fn path(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| ErrorKind::InvalidInput.into())
}

impl EventFiles for Dir {
    fn text(&self, file: &str) -> Result<String> {
        let mut buffer = Vec::new();
        let bytes = self.read(&path(file)?, &mut buffer).map_err(|error| match error {
            super::Error::Read { source, .. } => source,
            other => Error::other(other),
        })?;
        String::from_utf8(bytes.to_vec()).map_err(Error::other)
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let mut names = Vec::new();
        if let Ok(directory) = path(directory) {
            // One that does not exist has none.
            let _ = self.each_name(&directory, |name| {
                names.extend(name.to_str().ok().map(str::to_owned));
            });
        }
        names.sort_unstable();
        names
    }

    fn cpus(&self, file: &str) -> Option<Vec<u32>> {
        Some(cpulist::iter(self.text(file).ok()?.as_bytes()).ok()?.collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::counters::named;
    use crate::counters::{EventScope, Slots};
    use crate::host::fake::FakeHost;

    #[test]
    fn event_of_a_device_is_read_from_sysfs() {
        let at = |file: &str| format!("bus/event_source/devices/uncore_imc_3/{file}");
        let fake = FakeHost::new()
            .sys(&at("type"), "17\n")
            .sys(&at("cpumask"), "0-1,18\n")
            .sys(&at("format/event"), "config:0-7\n")
            .sys(&at("events/cas_count_read"), "event=0x04\n");
        let host = fake.host();
        let events = named::parse("uncore_imc/cas_count_read/", &host.sys, None).unwrap();
        assert_eq!((events[0].kind, events[0].config, events[0].slots), (17, 4, Slots::Uncore));
        assert_eq!(events[0].scope, EventScope::Machine { cpus: vec![0, 1, 18] });
        let error = named::parse("uncore_imc/cas_count/", &host.sys, None).unwrap_err();
        assert_eq!(error.nearest, ["cas_count_read"]);
    }
}
