//! Traffic of every network device: `/proc/net/dev`.
//!
//! Two header lines, then a line for each device of the reader's network namespace
//! (proc_pid_net(5)), readable by every user: `  eth0: 1 2 …`, eight columns received and eight
//! sent.
//!
//! What surprises: the kernel pads the name with leading blanks and puts no blank after the colon
//! when numbers are long. Some drivers count in 32 bits.

use super::MalformedFile;
use super::fields::FieldCursor;

/// What one device has received or sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets with errors.
    pub errors: u64,
    /// Packets dropped for lack of buffers.
    pub dropped: u64,
}

/// One device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetDevice<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// What it has received.
    pub received: Direction,
    /// What it has sent.
    pub sent: Direction,
}

/// The devices; each malformed line is an error of its own.
pub fn devices(bytes: &[u8]) -> impl Iterator<Item = Result<NetDevice<'_>, MalformedFile>> {
    let mut lines = FieldCursor::new(bytes);
    std::iter::from_fn(move || match lines.line() {
        Ok(Some(line)) => Some(Ok(line)),
        Ok(None) => None,
        Err(malformed) => {
            lines = FieldCursor::new(b"");
            Some(Err(malformed))
        }
    })
    // The header lines have bars where devices have a colon.
    .filter(|line| !line.as_ref().is_ok_and(|line| line.contains(&b'|')))
    .map(|line| device(line?))
}

fn device(line: &[u8]) -> Result<NetDevice<'_>, MalformedFile> {
    let colon = line.iter().rposition(|&byte| byte == b':').ok_or(MalformedFile("device"))?;
    let name = line[..colon].trim_ascii();
    if name.is_empty() {
        return Err(MalformedFile("device"));
    }
    let mut columns = FieldCursor::new(&line[colon + 1..]);
    let received = direction(&mut columns)?;
    for column in ["fifo", "frame", "compressed", "multicast"] {
        columns.number(column)?;
    }
    Ok(NetDevice { name, received, sent: direction(&mut columns)? })
}

fn direction(columns: &mut FieldCursor<'_>) -> Result<Direction, MalformedFile> {
    Ok(Direction {
        bytes: columns.number("bytes")?,
        packets: columns.number("packets")?,
        errors: columns.number("errs")?,
        dropped: columns.number("drop")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_this_kernel, parser_tests};
    use super::*;

    const TWO: &[u8] = b"Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo:  143345    1619    0    0    0     0          0         0   143345    1619    0    0    0     0       0          0\n  \
        eth0:3224858530   79994    1    2    3     4          5         6  4593178   54008    7    8    9    10      11         12\n";

    fn read(bytes: &[u8]) -> Result<Vec<NetDevice<'_>>, MalformedFile> {
        devices(bytes).collect()
    }

    #[test]
    fn every_device_has_received_and_sent_counters() {
        let devices = read(TWO).unwrap();
        assert_eq!(devices[0].name, b"lo");
        let received = Direction { bytes: 3_224_858_530, packets: 79_994, errors: 1, dropped: 2 };
        let sent = Direction { bytes: 4_593_178, packets: 54_008, errors: 7, dropped: 8 };
        assert_eq!(devices[1], NetDevice { name: b"eth0", received, sent });
        assert_eq!(devices.len(), 2);
    }

    #[test]
    fn malformed_line_loses_one_device() {
        let text = b"  eth0: 1 2 3 x 5\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\nnothing\n";
        let read: Vec<_> = devices(text).collect();
        assert_eq!(read[0], Err(MalformedFile("drop")));
        assert_eq!(read[1].unwrap().sent.dropped, 12);
        assert_eq!(read[2], Err(MalformedFile("device")));
    }

    parser_tests! {
        cut: fn truncated_file_loses_devices_but_changes_none() {
            read, TWO => begins;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            |bytes| devices(bytes).for_each(drop); TWO
        }
    }

    #[test]
    fn procfs_crate_agrees() {
        use procfs::FromRead;
        use procfs::net::InterfaceDeviceStatus;
        let bytes = of_this_kernel("/proc/self/net/dev");
        let theirs = InterfaceDeviceStatus::from_read(&bytes[..]).unwrap().0;
        let ours = read(&bytes).unwrap();
        assert_eq!(ours.len(), theirs.len());
        for device in ours {
            let same = &theirs[std::str::from_utf8(device.name).unwrap()];
            assert_eq!(device.received.bytes, same.recv_bytes);
            assert_eq!(device.sent.packets, same.sent_packets);
            assert_eq!(device.sent.dropped, same.sent_drop);
        }
    }
}
