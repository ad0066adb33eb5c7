//! One value in one file, as sysfs has them: `262143328850\n`, `4: ACTIVE\n`.
//!
//! Documentation/filesystems/sysfs.rst: a file holds one attribute, as text, with a newline.
//!
//! What surprises: an energy or a frequency may be `<unknown>` or empty, and a power meter
//! may be below zero for a moment; neither is a number here.

use super::Malformed;
use super::fields::{Cursor, only_number};

/// A whole number.
pub fn number(bytes: &[u8]) -> Result<u64, Malformed> {
    only_number(bytes, "a whole number")
}

/// A word or a few, without the newline.
pub fn text(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let text = bytes.strip_suffix(b"\n").ok_or(Malformed("text with its end"))?.trim_ascii();
    if text.is_empty() { Err(Malformed("text")) } else { Ok(text) }
}

/// A number with or without decimals, also in powers of ten: the factor of a counter.
pub fn factor(bytes: &[u8]) -> Result<f64, Malformed> {
    let text = std::str::from_utf8(text(bytes)?).map_err(|_| Malformed("a factor"))?;
    let factor: f64 = text.parse().map_err(|_| Malformed("a factor"))?;
    if factor.is_finite() && factor > 0.0 { Ok(factor) } else { Err(Malformed("a factor")) }
}

/// The state of an InfiniBand port: the word behind the number of `4: ACTIVE`.
pub fn port_state(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let mut rest = Cursor::new(bytes);
    rest.digits("state")?;
    rest.must_pass(b':', "state")?;
    text(rest.rest())
}

/// The speed of an InfiniBand port in bits a second: `100 Gb/sec (4X EDR)`, `2.5 Gb/sec (1X SDR)`.
pub fn port_rate(bytes: &[u8]) -> Result<u64, Malformed> {
    const FIELD: &str = "rate";
    let text = text(bytes)?;
    let mut rest = Cursor::new(text);
    let whole = rest.digits(FIELD)?;
    let tenths = if rest.passes(b'.') { rest.digits(FIELD)? } else { 0 };
    let bits = whole.checked_mul(1_000_000_000).filter(|_| tenths < 10).ok_or(Malformed(FIELD))?;
    if !rest.rest().starts_with(b" Gb/sec") {
        return Err(Malformed(FIELD));
    }
    bits.checked_add(tenths * 100_000_000).ok_or(Malformed(FIELD))
}

/// The number of a perf event: `event=0x02`.
pub fn event(bytes: &[u8]) -> Result<u64, Malformed> {
    let digits = text(bytes)?.strip_prefix(b"event=0x").ok_or(Malformed("event"))?;
    let digits = std::str::from_utf8(digits).map_err(|_| Malformed("event"))?;
    u64::from_str_radix(digits, 16).map_err(|_| Malformed("event"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{cut_at_every_byte, mangled};
    use super::*;

    #[test]
    fn a_number_is_alone_and_ended() {
        assert_eq!(number(b"262143328850\n"), Ok(262_143_328_850));
        for wrong in [&b""[..], b"\n", b"12", b"-3\n", b"<unknown>\n", b"1 2\n"] {
            assert!(number(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ports_say_how_they_are_and_how_fast() {
        assert_eq!(port_state(b"4: ACTIVE\n"), Ok(&b"ACTIVE"[..]));
        assert_eq!(port_state(b"1: DOWN\n"), Ok(&b"DOWN"[..]));
        assert!(port_state(b"ACTIVE\n").is_err() && port_state(b"4:\n").is_err());
        assert_eq!(port_rate(b"200 Gb/sec (4X HDR)\n"), Ok(200_000_000_000));
        assert_eq!(port_rate(b"2.5 Gb/sec (1X SDR)\n"), Ok(2_500_000_000));
        assert_eq!(port_rate(b"40 Gb/sec (4X QDR)\n"), Ok(40_000_000_000));
        let wrong = [&b"fast\n"[..], b"10 Mb/sec\n", b"2.55 Gb/sec\n", b"99999999999999 Gb/sec\n"];
        assert!(wrong.iter().all(|wrong| port_rate(wrong).is_err()));
    }

    #[test]
    fn events_and_factors_are_those_of_perf() {
        assert_eq!(event(b"event=0x02\n"), Ok(2));
        assert_eq!(factor(b"2.3283064365386962890625e-10\n"), Ok(2.0_f64.powi(-32)));
        assert!(event(b"config=1\n").is_err() && factor(b"nan\n").is_err());
        assert!(factor(b"-1\n").is_err() && text(b"\n").is_err());
    }

    #[test]
    fn a_cut_value_is_no_value() {
        cut_at_every_byte(b"262143328850\n", number, |_, _| false);
        cut_at_every_byte(b"4: ACTIVE\n", port_state, |_, _| false);
        cut_at_every_byte(b"100 Gb/sec (4X EDR)\n", port_rate, |_, _| false);
        cut_at_every_byte(b"event=0x02\n", event, |_, _| false);
        cut_at_every_byte(b"2.3e-10\n", factor, |_, _| false);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in mangled(b"2.5 Gb/sec (1X SDR)\n")) {
            let _ = (number(&bytes), text(&bytes), factor(&bytes), event(&bytes));
            let _ = (port_state(&bytes), port_rate(&bytes));
        }
    }
}
