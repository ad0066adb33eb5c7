//! Mount points: `/proc/self/mounts`, readable by every user.
//!
//! A line for each mount (proc_pid_mounts(5), fstab(5)): device, mount point, type, options. The
//! kernel escapes space, tab, newline and backslash as a backslash and three octal digits.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::MalformedFile;
use super::fields::FieldCursor;

/// The mount points of file systems of this type, in mount order.
pub fn of_type(bytes: &[u8], wanted: &[u8]) -> Result<Vec<PathBuf>, MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    let mut places = Vec::new();
    while let Some(line) = lines.line()? {
        let mut fields = line.split(|byte| *byte == b' ').skip(1);
        let place = fields.next().ok_or(MalformedFile("place of a mount"))?;
        if fields.next().ok_or(MalformedFile("type of a mount"))? == wanted {
            places.push(PathBuf::from(OsString::from_vec(unescaped(place))));
        }
    }
    Ok(places)
}

fn unescaped(place: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(place.len());
    let mut rest = place;
    while let Some((first, others)) = rest.split_first() {
        let escaped = others.get(..3).filter(|_| *first == b'\\').and_then(octal);
        plain.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &others[3..] } else { others };
    }
    plain
}

fn octal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 8).ok().filter(|_| !text.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_at_every_byte, parser_tests};
    use super::*;

    const MOUNTS: &[u8] = b"overlay / overlay rw,relatime 0 0\n\
        proc /proc proc rw,nosuid 0 0\n\
        sysfs /sys sysfs ro 0 0\n\
        proc /host\\040files/proc\\134x proc ro 0 0\n";

    #[test]
    fn mount_points_are_found_by_type_and_unescaped() {
        let found = of_type(MOUNTS, b"proc").unwrap();
        assert_eq!(found, [PathBuf::from("/proc"), PathBuf::from("/host files/proc\\x")]);
        assert!(of_type(MOUNTS, b"cgroup2").unwrap().is_empty());
        assert_eq!(unescaped(b"/a\\9b\\04"), b"/a\\9b\\04", "no three octal digits");
    }

    #[test]
    fn truncated_line_is_ignored() {
        let begins = |part: &Vec<PathBuf>, whole: &Vec<PathBuf>| whole.starts_with(part);
        cut_at_every_byte(MOUNTS, |bytes| of_type(bytes, b"proc"), begins);
    }

    parser_tests! {
        mangled: fn arbitrary_bytes_never_panic() {
            |bytes| of_type(bytes, b"proc"); MOUNTS
        }
    }
}
