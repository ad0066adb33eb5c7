//! Values that change periodically: the samples of a driver, and their integral.
//!
//! A wave is `{"low": 20, "high": 80, "half_ms": 200, "period_ms": 20}`: `high` for the first
//! half, `low` for the next, a sample at the end of each period, its timestamp in microseconds
//! since 1970 as NVML has it. The driver keeps the last 120 samples; with `"is_dry": 1` it takes
//! none in the half that is low.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::script::{Code, NOT_SUPPORTED, number};

const KEPT: u64 = 120;

pub(crate) struct Wave {
    low: u64,
    high: u64,
    half: u64,
    period: u64,
    is_dry: bool,
}

impl Wave {
    /// The wave of one kind of samples, if there is one.
    pub(crate) fn of(device: &Value, kind: u32) -> Result<Wave, Code> {
        let wave = device.pointer(&format!("/waves/{kind}")).ok_or(NOT_SUPPORTED)?;
        Ok(Wave {
            low: number(wave, "/low")?,
            high: number(wave, "/high")?,
            half: number(wave, "/half_ms")?.max(1) * 1000,
            period: number(wave, "/period_ms")?.max(1) * 1000,
            is_dry: number(wave, "/is_dry").is_ok_and(|dry| dry == 1),
        })
    }

    fn at(&self, micros: u64) -> u64 {
        if (micros / self.half).is_multiple_of(2) { self.high } else { self.low }
    }

    /// The samples after a moment, as (timestamp, value).
    pub(crate) fn samples(&self, after: u64) -> Vec<(u64, u64)> {
        let newest = now() / self.period;
        let oldest = (after / self.period + 1).max(newest.saturating_sub(KEPT - 1));
        let samples = (oldest..=newest).map(|n| (n * self.period, self.at(n * self.period - 1)));
        samples.filter(|(_, value)| !self.is_dry || *value != self.low).collect()
    }

    /// What it is now.
    pub(crate) fn now(&self) -> u64 {
        self.at(now())
    }

    /// Its integral since 1970, in value × seconds.
    pub(crate) fn integral(&self) -> u64 {
        let (now, both) = (now(), 2 * self.half);
        let rest = now % both;
        // In microseconds it would overflow 64 bits.
        let wide = |number: u64| u128::from(number);
        let whole = wide(now / both) * wide(self.half * (self.low + self.high));
        let begun = rest.min(self.half) * self.high + rest.saturating_sub(self.half) * self.low;
        ((whole + wide(begun)) / 1_000_000) as u64
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
