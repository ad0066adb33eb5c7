//! TCP counters: the `Tcp:` lines of `/proc/net/snmp`.
//!
//! A line of names and a line of numbers for each protocol (proc_pid_net(5), RFC 1213),
//! of the reader's network namespace, readable by every user.
//!
//! What surprises: the order may change, so numbers are found by their names, and one of them
//! (`MaxConn`) is -1.

use super::MalformedFile;
use super::fields::FieldCursor;

/// TCP counters of a network namespace since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Segments received, damaged ones included (`InSegs`).
    pub received: Option<u64>,
    /// Segments sent, without retransmissions (`OutSegs`).
    pub sent: Option<u64>,
    /// Segments retransmitted (`RetransSegs`).
    pub retransmitted: Option<u64>,
}

/// Reads the bytes of `/proc/net/snmp`.
pub fn parse(bytes: &[u8]) -> Result<Tcp, MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    let mut names = None;
    while let Some(line) = lines.line()? {
        let Some(columns) = line.strip_prefix(b"Tcp:") else { continue };
        match names {
            None => names = Some(columns),
            Some(names) => return values(names, columns),
        }
    }
    Err(MalformedFile("Tcp"))
}

fn values(names: &[u8], numbers: &[u8]) -> Result<Tcp, MalformedFile> {
    let words = |line: &'_ [u8]| line.trim_ascii().split(|byte| *byte == b' ').count();
    if words(names) != words(numbers) {
        return Err(MalformedFile("Tcp columns"));
    }
    let mut tcp = Tcp::default();
    let names = names.trim_ascii().split(|byte| *byte == b' ');
    let numbers = numbers.trim_ascii().split(|byte| *byte == b' ');
    for (name, number) in names.zip(numbers) {
        let (slot, field) = match name {
            b"InSegs" => (&mut tcp.received, "InSegs"),
            b"OutSegs" => (&mut tcp.sent, "OutSegs"),
            b"RetransSegs" => (&mut tcp.retransmitted, "RetransSegs"),
            _ => continue,
        };
        let mut digits = FieldCursor::new(number);
        *slot = Some(digits.digits(field)?);
        if !digits.is_empty() {
            return Err(MalformedFile(field));
        }
    }
    Ok(tcp)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_this_kernel, parser_tests};
    use super::*;

    const SNMP: &[u8] = b"Icmp: InMsgs InErrors\nIcmp: 1 2\n\
        Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets \
        CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n\
        Tcp: 1 200 120000 -1 311 205 4 16 23 81613 55627 41 0 33 0\n\
        Udp: InDatagrams\nUdp: 5\n";

    #[test]
    fn numbers_are_found_by_their_names() {
        let (received, sent) = (Some(81_613), Some(55_627));
        let expected = Tcp { received, sent, retransmitted: Some(41) };
        assert_eq!(parse(SNMP), Ok(expected));
        assert_eq!(parse(b"Tcp: RetransSegs\nTcp: 7\n").unwrap().retransmitted, Some(7));
    }

    #[test]
    fn names_and_numbers_that_do_not_match_are_refused() {
        assert_eq!(parse(b"Tcp: A B\nTcp: 1\n"), Err(MalformedFile("Tcp columns")));
        assert_eq!(parse(b"Tcp: OutSegs\nTcp: -7\n"), Err(MalformedFile("OutSegs")));
        assert_eq!(parse(b"Tcp: OutSegs\nTcp: 7x\n"), Err(MalformedFile("OutSegs")));
        assert_eq!(parse(b"Udp: A\n"), Err(MalformedFile("Tcp")));
    }

    parser_tests! {
        cut: fn truncated_file_changes_nothing() {
            parse, SNMP => same;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; SNMP
        }
    }

    #[test]
    fn this_kernel_has_the_tcp_lines() {
        assert!(parse(&of_this_kernel("/proc/self/net/snmp")).unwrap().retransmitted.is_some());
    }
}
