//! Sets of CPUs as the kernel lists them: `0-3,5,7-8`.
//!
//! From `/sys/devices/system/cpu/online`, `cpuset.cpus.effective`, the
//! `Cpus_allowed_list` line of `/proc/<pid>/status` and other files, nearly all
//! readable by every user. The format is that of cpuset(7), "List format".
//!
//! What surprises: an empty set is an empty line, which is no error: an unset `cpuset.cpus` reads
//! so. Numbers are strictly ascending; otherwise the bytes are not from the kernel.

use std::ops::RangeInclusive;

use super::MalformedFile;
use super::fields::FieldCursor;

/// How many CPUs are in the list.
pub fn count(bytes: &[u8]) -> Result<u32, MalformedFile> {
    let mut total: u32 = 0;
    for range in ranges(bytes) {
        let range = range?;
        total = (range.end() - range.start())
            .checked_add(1)
            .and_then(|length| total.checked_add(length))
            .ok_or(MalformedFile("cpu list"))?;
    }
    Ok(total)
}

/// The CPUs in the list, in ascending order.
pub fn iter(bytes: &[u8]) -> Result<impl Iterator<Item = u32>, MalformedFile> {
    // Validated once here, so that the iterator cannot fail.
    count(bytes)?;
    Ok(ranges(bytes).flatten().flatten())
}

/// Ends after the first error.
fn ranges(bytes: &[u8]) -> impl Iterator<Item = Result<RangeInclusive<u32>, MalformedFile>> {
    let mut rest = FieldCursor::new(bytes);
    let mut at_end = matches!(bytes, b"" | b"\n");
    let mut lowest = Some(0);
    std::iter::from_fn(move || {
        if at_end {
            return None;
        }
        let range = range(&mut rest, lowest);
        lowest = range.as_ref().ok().and_then(|range| range.end().checked_add(1));
        at_end = range.is_err() || rest.passes(b'\n');
        if at_end || rest.passes(b',') {
            return Some(range);
        }
        at_end = true;
        Some(Err(MalformedFile("cpu list")))
    })
}

fn range(
    rest: &mut FieldCursor<'_>,
    lowest: Option<u32>,
) -> Result<RangeInclusive<u32>, MalformedFile> {
    let first = cpu(rest)?;
    let last = if rest.passes(b'-') { cpu(rest)? } else { first };
    let rises = lowest.is_some_and(|lowest| lowest <= first) && first <= last;
    if rises { Ok(first..=last) } else { Err(MalformedFile("cpu list not rising")) }
}

fn cpu(rest: &mut FieldCursor<'_>) -> Result<u32, MalformedFile> {
    u32::try_from(rest.digits("cpu number")?).map_err(|_| MalformedFile("cpu number"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{cut_at_every_byte, mangled};
    use super::*;

    const LIST: &[u8] = b"0-3,5,7-8\n";

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(count(LIST), Ok(7));
        assert_eq!(iter(LIST).unwrap().collect::<Vec<_>>(), [0, 1, 2, 3, 5, 7, 8]);
        assert_eq!(count(b"0\n"), Ok(1));
        assert_eq!(count(b"4294967295\n"), Ok(1));
    }

    #[test]
    fn empty_list_has_no_cpu() {
        assert_eq!((count(b""), count(b"\n")), (Ok(0), Ok(0)));
        assert_eq!(iter(b"\n").unwrap().count(), 0);
    }

    #[test]
    fn lists_the_kernel_never_writes_are_refused() {
        for text in ["3-1\n", "1,1\n", "5,2\n", "1,,2\n", "1,\n", "-1\n", "1-\n", "a\n", "1 \n"] {
            assert!(count(text.as_bytes()).is_err(), "{text}");
        }
        assert!(count(b"0-4294967295\n").is_err(), "more than a u32 counts");
        assert!(count(b"4294967296\n").is_err());
        assert!(iter(b"0-3,x\n").is_err());
    }

    #[test]
    fn truncated_list_is_refused_unless_empty() {
        cut_at_every_byte(LIST, count, |&part, _| part == 0);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in mangled(LIST)) {
            if let Ok(total) = count(&bytes) && total < 10_000 {
                prop_assert_eq!(iter(&bytes).unwrap().count(), total as usize);
            }
        }

        #[test]
        fn count_agrees_with_the_list(set in prop::collection::btree_set(0u32..300, 0..60)) {
            let text = set.iter().map(u32::to_string).collect::<Vec<_>>().join(",") + "\n";
            prop_assert_eq!(count(text.as_bytes()), Ok(set.len() as u32));
            prop_assert!(iter(text.as_bytes()).unwrap().eq(set));
        }
    }
}
