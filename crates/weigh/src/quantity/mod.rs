//! Durations, sizes and ratios, parsed and formatted.
//!
//! Read from command lines, configuration files and keyword arguments; written
//! into reports. Stored values never pass through here: recordings hold base
//! units.
//!
//! Note: `K`, `M`, `G` and `T` alone are powers of 1024, as for du(1), systemd and SLURM, while
//! `KB` and `MB` are powers of 1000. Durations are parsed by hand, since jiff has no days without a
//! calendar and no bare seconds.

mod read;
mod write;

pub use read::{BadQuantity, parse_duration, parse_ratio, parse_size};
pub use write::{Units, bytes, count, ratio, scaled, seconds};

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_written() {
        for (text, nanoseconds) in [
            ("250ms", 250_000_000),
            ("2m", 120_000_000_000),
            ("1h 30m", 5_400_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            (" 90 ", 90_000_000_000),
            (".5", 500_000_000),
            ("10us", 10_000),
            ("10 \u{3bc}s", 10_000),
            ("1d", 86_400_000_000_000),
            ("1 d 04 h", 100_800_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_refused() {
        let refused = [
            "", " ", "-1s", "+1s", "1e3", "s", ".", "1..5s", "1h 30", "30m 1h", "1m 1m", "5M",
            "1 2s", "1s,", "\u{661}s", "nan", "inf",
        ];
        for text in refused {
            let error = BadQuantity::Duration(text.to_owned());
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
        let longest = format!("{}s", u64::MAX);
        assert_eq!(parse_duration(&longest), Ok(Duration::from_secs(u64::MAX)));
        for text in ["18446744073709551616", "99999999999999999999999999999999999999999999d"] {
            assert_eq!(parse_duration(text), Err(BadQuantity::TooLarge(text.to_owned())));
        }
    }

    #[test]
    fn error_message_shows_input_and_examples() {
        let message = parse_duration("2 parsecs").unwrap_err().to_string();
        let expected = "\"2 parsecs\" is not a duration; write it like 250ms, 1.5s, 2m or 1h30m";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_letter_alone_is_binary_and_kb_is_decimal() {
        for (text, expected) in [
            ("1024", 1024),
            ("12 B", 12),
            ("2GiB", 2 << 30),
            ("500MB", 500_000_000),
            ("64k", 65536),
            ("64 kb", 64000),
            ("1Ki", 1024),
            ("1.5gib", 3 << 29),
            ("0.3 KB", 300),
            ("18446744073709551615", u64::MAX),
            ("9007199254740993", 9_007_199_254_740_993),
            ("15.999EiB", 18_445_591_152_204_944_769),
        ] {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in
            ["", "GiB", "-1", "1.5", "1.5B", "1 G B", "1XB", "1\u{b5}B", "1KiBs", "1e3", "1,000"]
        {
            assert_eq!(parse_size(text), Err(BadQuantity::Size(text.to_owned())), "{text}");
        }
        for text in ["18446744073709551616", "16EiB"] {
            assert_eq!(parse_size(text), Err(BadQuantity::TooLarge(text.to_owned())));
        }
    }

    #[test]
    fn percent_and_plain_ratios_are_bit_identical() {
        for (text, expected) in [
            ("0.5%", 0.005),
            ("0.005", 0.005),
            ("0.7%", 0.007),
            ("150 %", 1.5),
            ("0", 0.0),
            (".5", 0.5),
        ] {
            assert_eq!(parse_ratio(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "-1%", "nan", "inf", "1e-3", "5%%", "half", "+1"] {
            assert_eq!(parse_ratio(text), Err(BadQuantity::Ratio(text.to_owned())), "{text}");
        }
        let huge = "9".repeat(400);
        assert_eq!(parse_ratio(&huge), Err(BadQuantity::TooLarge(huge)));
    }

    #[test]
    fn sizes_have_three_digits_and_roll_over_after_rounding() {
        for (value, expected) in [
            (0.0, "0 B"),
            (512.0, "512 B"),
            (1023.4, "1023 B"),
            (1023.6, "1.00 KiB"),
            (1024.0 * 9.996, "10.0 KiB"),
            (1024.0 * 99.96, "100 KiB"),
            (1024.0 * 1023.6, "1.00 MiB"),
            (67_108_864.0, "64.0 MiB"),
            (1.02 * 1_073_741_824.0, "1.02 GiB"),
            (-2048.0, "-2.00 KiB"),
            (-0.2, "0 B"),
            (f64::NAN, "n/a"),
        ] {
            assert_eq!(bytes(value, Units::Binary), expected, "{value}");
        }
        assert_eq!(bytes(1_090_000_000.0, Units::Decimal), "1.09 GB");
        assert_eq!(bytes(999_600.0, Units::Decimal), "1.00 MB");
        assert_eq!(bytes(1_073_741_824.0, Units::Bytes), "1073741824 B");
        assert_eq!(bytes(2f64.powi(71), Units::Binary), "2048 EiB");
    }

    #[test]
    fn durations_are_written_for_people() {
        for (value, expected) in [
            (0.0, "0 s"),
            (4e-7, "400 ns"),
            (0.000_85, "850 \u{b5}s"),
            (0.003_1, "3.1 ms"),
            (0.009_96, "10 ms"),
            (0.999_7, "1.00 s"),
            (12.349, "12.35 s"),
            (59.994, "59.99 s"),
            (59.996, "1 min 00 s"),
            (245.0, "4 min 05 s"),
            (3599.6, "1 h 00 min"),
            (7380.0, "2 h 03 min"),
            (86_399.0, "1 d 00 h"),
            (100_800.0, "1 d 04 h"),
            (-1.5, "-1.50 s"),
            (f64::INFINITY, "n/a"),
        ] {
            assert_eq!(seconds(value), expected, "{value}");
        }
    }

    #[test]
    fn ratios_and_counts_have_few_digits() {
        for (value, expected) in [
            (0.0, "0 %"),
            (0.02, "2 %"),
            (0.004, "0.4 %"),
            (0.0009, "< 0.1 %"),
            (-0.0009, "> -0.1 %"),
            (0.0996, "10 %"),
            (0.125, "13 %"),
            (12.34, "1,234 %"),
            (f64::NAN, "n/a"),
        ] {
            assert_eq!(ratio(value), expected, "{value}");
        }
        let counts =
            [(0.0, "0"), (2.5, "2.5"), (999.0, "999"), (12_345.4, "12,345"), (-1e6, "-1,000,000")];
        for (value, expected) in counts {
            assert_eq!(count(value), expected);
        }
    }

    proptest! {
        #[test]
        fn written_quantities_parse_back(value in 0u64..(1 << 62), span in 1e-9f64..1e9) {
            let close = |read: f64, wrote: f64, share: f64| (read - wrote).abs() <= wrote * share;
            for units in [Units::Binary, Units::Decimal] {
                let read = parse_size(&bytes(value as f64, units)).unwrap();
                prop_assert!(close(read as f64, value as f64, 0.005_001));
            }
            prop_assert_eq!(parse_size(&value.to_string()), Ok(value));
            let read = parse_duration(&seconds(span)).unwrap().as_secs_f64();
            prop_assert!(close(read, span, 0.050_001), "{} {}", span, seconds(span));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,30}|[0-9.]{0,40} ?[dhmskKiB%]{0,3}") {
            let _ = (parse_duration(&text), parse_size(&text), parse_ratio(&text));
        }
    }
}
