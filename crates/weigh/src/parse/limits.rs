//! Resource limits of a process: `/proc/<pid>/limits`, readable by its owner.
//!
//! A header and sixteen lines in columns of a fixed width (proc_pid_limits(5)): the name is 25
//! characters wide and may contain spaces, then the soft limit, the hard limit and the unit, which
//! `Max nice priority` and `Max realtime priority` lack.

use super::MalformedFile;
use super::fields::FieldCursor;

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimit<'a> {
    /// Its name in the kernel: `Max open files`.
    pub name: &'a str,
    /// The soft limit; `None` is no limit.
    pub soft: Option<u64>,
    /// The hard limit; `None` is no limit.
    pub hard: Option<u64>,
    /// Its unit; `None` for a plain number.
    pub unit: Option<&'a str>,
}

/// The width of the column of names.
const NAME: usize = 25;

/// Reads the bytes of `/proc/<pid>/limits`.
pub fn parse(bytes: &[u8]) -> Result<Vec<ResourceLimit<'_>>, MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    let head = lines.line()?.ok_or(MalformedFile("head"))?;
    if !head.starts_with(b"Limit ") {
        return Err(MalformedFile("head"));
    }
    let mut limits = Vec::new();
    while let Some(line) = lines.line()? {
        limits.push(limit(line).ok_or(MalformedFile("limit"))?);
    }
    Ok(limits)
}

fn limit(line: &[u8]) -> Option<ResourceLimit<'_>> {
    let (name, rest) = std::str::from_utf8(line).ok()?.split_at_checked(NAME)?;
    let mut columns = rest.split_ascii_whitespace();
    let mut bound = || match columns.next()? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    };
    let (soft, hard) = (bound()?, bound()?);
    Some(ResourceLimit { name: name.trim_end(), soft, hard, unit: columns.next() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_this_kernel, parser_tests};
    use super::*;

    const SHELL: &[u8] =
        b"Limit                     Soft Limit           Hard Limit           Units     \n\
          Max stack size            8388608              unlimited            bytes     \n\
          Max open files            1024                 1048576              files     \n\
          Max nice priority         0                    0                    \n";

    #[test]
    fn names_may_have_spaces_and_limits_be_unlimited() {
        let limits = parse(SHELL).unwrap();
        let stack = ResourceLimit {
            name: "Max stack size",
            soft: Some(8_388_608),
            hard: None,
            unit: Some("bytes"),
        };
        assert_eq!(limits[0], stack);
        assert_eq!((limits[1].soft, limits[1].hard), (Some(1024), Some(1_048_576)));
        assert_eq!((limits[2].name, limits[2].unit), ("Max nice priority", None));
        assert!(parse(b"").is_err() && parse(b"Max stack size 1 2\n").is_err());
    }

    #[test]
    fn this_kernel_writes_sixteen_limits() {
        let bytes = of_this_kernel("/proc/self/limits");
        let limits = parse(&bytes).unwrap();
        assert!(limits.len() >= 16 && limits.iter().any(|limit| limit.name == "Max open files"));
    }

    parser_tests! {
        cut: fn truncated_file_loses_limits_but_changes_none() {
            parse, SHELL => begins;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; SHELL
        }
    }
}
