//! Unwraps 32-bit counters.
//!
//! Some drivers of network devices count in 32 bits, which wrap around within seconds on a fast
//! link. A counter that went back may also belong to a new device of the same name. After a
//! wraparound one counter alone went back from near its maximum; a new device has all counters
//! reset.

/// Counters of one device, as 64-bit values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unwrap32<const N: usize> {
    last: [u64; N],
    wraps: [u64; N],
}

const HALF: u64 = 1 << 31;
const FULL: u64 = 1 << 32;

impl<const N: usize> Unwrap32<N> {
    /// Counters that start at these values.
    pub(super) fn new(first: [u64; N]) -> Unwrap32<N> {
        Unwrap32 { last: first, wraps: [0; N] }
    }

    /// The current counters with their wraparounds.
    pub(super) fn update(&mut self, now: [u64; N]) -> [u64; N] {
        let went_back = |place: &usize| now[*place] < self.last[*place];
        let mut back = (0..N).filter(went_back);
        match (back.next(), back.next()) {
            (None, _) => {}
            (Some(place), None) if self.is_wraparound(place, now[place]) => self.wraps[place] += 1,
            // A new device: counters start again.
            _ => self.wraps = [0; N],
        }
        self.last = now;
        std::array::from_fn(|place| now[place].saturating_add(self.wraps[place] * FULL))
    }

    fn is_wraparound(&self, place: usize, now: u64) -> bool {
        (HALF..FULL).contains(&self.last[place]) && now < HALF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_counter_goes_on() {
        let mut wraps = Unwrap32::new([4_294_967_000, 7]);
        assert_eq!(wraps.update([4_294_967_200, 8]), [4_294_967_200, 8]);
        assert_eq!(wraps.update([100, 9]), [FULL + 100, 9]);
        assert_eq!(wraps.update([200, 9]), [FULL + 200, 9]);
        assert_eq!(wraps.update([4_000_000_000, 10]), [FULL + 4_000_000_000, 10]);
        assert_eq!(wraps.update([1, 11]), [2 * FULL + 1, 11]);
    }

    #[test]
    fn new_device_of_the_same_name_resets_the_counters() {
        let mut wraps = Unwrap32::new([4_294_967_000, 700]);
        wraps.update([10, 701]);
        assert_eq!(wraps.update([20, 2]), [20, 2], "both went back");
        let mut wide = Unwrap32::new([1 << 40, 5]);
        assert_eq!(wide.update([3, 6]), [3, 6], "it was no 32-bit counter");
    }
}
