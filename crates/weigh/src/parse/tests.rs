//! Shared parts of parser tests.

use std::fmt::Debug;

use proptest::prelude::*;

use super::MalformedFile;

/// Parses `whole` truncated at every byte; what still parses must agree with the whole.
pub(crate) fn cut_at_every_byte<T: Debug>(
    whole: &'static [u8],
    parse: impl Fn(&'static [u8]) -> Result<T, MalformedFile>,
    agrees: impl Fn(&T, &T) -> bool,
) {
    let complete = parse(whole).expect("the fixture itself parses");
    for end in 0..whole.len() {
        if let Ok(part) = parse(&whole[..end]) {
            assert!(agrees(&part, &complete), "cut at {end}: {part:?} against {complete:?}");
        }
    }
}

/// For fields that a cut may lose but must not change.
pub(crate) fn lost_or_same<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
    part.is_none() || part == whole
}

/// Random bytes, and `whole` with some bytes replaced: random bytes alone never get past the first
/// field.
pub(crate) fn mangled(whole: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"0179 \n\t:-/(),kB".to_vec())];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), byte), 1..12);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..400),
        edits.prop_map(move |edits| {
            let mut bytes = whole.to_vec();
            for (place, byte) in edits {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            bytes
        }),
    ]
}

/// The bytes of a file of the running kernel, for comparison with the procfs crate.
#[allow(clippy::disallowed_methods, reason = "the comparison needs this very kernel's files")]
pub(crate) fn of_this_kernel(path: &str) -> Vec<u8> {
    std::fs::read(path).expect("every kernel we test on has this file")
}

/// The tests that nearly every parser has.
///
/// ```ignore
/// parser_tests! {
///     cut: fn truncated_file_loses_values_but_changes_none() {
///         parse, NODE => keeps(total, free) may_lose(available, cached);
///     }
///
///     mangled: fn arbitrary_bytes_never_panic() {
///         parse; NODE
///     }
///
///     procfs: fn procfs_crate_agrees() {
///         parse, "/proc/meminfo" => agrees;
///     }
/// }
/// ```
///
/// `cut` parses each fixture cut at every byte. What is left is `refused`, reads the `same` as
/// the whole, `begins` like the list of the whole, or has fields that it keeps and others that it
/// may lose. `mangled` gives each parser noise and the fixtures with some bytes replaced.
/// `procfs` parses a file of this very kernel and hands the result and that of the procfs crate
/// to a function that compares them.
macro_rules! parser_tests {
    () => {};
    (
        cut: fn $name:ident() {
            $(
                $parse:expr, $whole:expr =>
                    $how:ident $(($($kept:ident),+))? $($also:ident ($($lost:ident),+))?;
            )+
        }
        $($rest:tt)*
    ) => {
        #[test]
        fn $name() {
            $( $crate::parse::tests::cut_at_every_byte(
                $whole,
                $parse,
                $crate::parse::tests::parser_tests!(@ $how $(($($kept),+))? $($also ($($lost),+))?),
            ); )+
        }
        $crate::parse::tests::parser_tests! { $($rest)* }
    };
    (
        mangled: fn $name:ident() { $($parse:expr),+; $($whole:expr),+ }
        $($rest:tt)*
    ) => {
        proptest::proptest! {
            #[test]
            fn $name(
                bytes in proptest::prop_oneof![$($crate::parse::tests::mangled($whole)),+]
            ) {
                $( $crate::parse::tests::parses(&bytes, $parse); )+
            }
        }
        $crate::parse::tests::parser_tests! { $($rest)* }
    };
    (
        procfs: fn $name:ident() { $parse:expr, $path:literal => $agrees:expr; }
        $($rest:tt)*
    ) => {
        #[test]
        fn $name() {
            let bytes = $crate::parse::tests::of_this_kernel($path);
            let theirs = procfs::FromRead::from_read(&bytes[..]).unwrap();
            $agrees($parse(&bytes).unwrap(), theirs);
        }
        $crate::parse::tests::parser_tests! { $($rest)* }
    };
    (@ refused) => { |_, _| false };
    (@ same) => { |part, whole| part == whole };
    (@ begins) => { |part, whole| whole.starts_with(part) };
    (@ may_lose($($lost:ident),+)) => {
        |part, whole| [$( $crate::parse::tests::lost_or_same(&part.$lost, &whole.$lost) ),+]
            .into_iter()
            .all(|is_fine| is_fine)
    };
    (@ keeps($($kept:ident),+) may_lose($($lost:ident),+)) => {
        |part, whole| [
            $( part.$kept == whole.$kept, )+
            $( $crate::parse::tests::lost_or_same(&part.$lost, &whole.$lost), )+
        ]
        .into_iter()
        .all(|is_fine| is_fine)
    };
}
pub(crate) use parser_tests;

/// Parses the bytes and drops the result: it is enough that nothing panics.
pub(crate) fn parses<'a, T>(bytes: &'a [u8], parse: impl FnOnce(&'a [u8]) -> T) {
    drop(parse(bytes));
}

#[test]
fn error_message_names_the_field() {
    let message = MalformedFile("utime").to_string();
    assert_eq!(message, "not in the expected form: utime");
}
