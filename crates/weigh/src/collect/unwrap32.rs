//! Counters of 32 bits that begin again from zero, made to go on.
//!
//! Some drivers of network devices count in 32 bits, which a fast link fills in seconds. A
//! counter that went back may also belong to another device of the same name. The two are
//! told apart by what else happened: a counter that is full begins again alone and from its
//! top, a new device has all of its counters anew.

/// Counters of one device, as they would be if they were wide enough.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unwrap32<const N: usize> {
    last: [u64; N],
    wraps: [u64; N],
}

const HALF: u64 = 1 << 31;
const FULL: u64 = 1 << 32;

impl<const N: usize> Unwrap32<N> {
    /// Counters that were first seen at these values.
    pub(super) fn new(first: [u64; N]) -> Unwrap32<N> {
        Unwrap32 { last: first, wraps: [0; N] }
    }

    /// The counters now, with every turn they have made.
    pub(super) fn update(&mut self, now: [u64; N]) -> [u64; N] {
        let went_back = |place: &usize| now[*place] < self.last[*place];
        let mut back = (0..N).filter(went_back);
        match (back.next(), back.next()) {
            (None, _) => {}
            (Some(place), None) if self.is_full(place, now[place]) => self.wraps[place] += 1,
            // Somebody else, who begins from the beginning.
            _ => self.wraps = [0; N],
        }
        self.last = now;
        std::array::from_fn(|place| now[place].saturating_add(self.wraps[place] * FULL))
    }

    fn is_full(&self, place: usize, now: u64) -> bool {
        (HALF..FULL).contains(&self.last[place]) && now < HALF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_counter_goes_on_and_stays_ahead() {
        let mut wraps = Unwrap32::new([4_294_967_000, 7]);
        assert_eq!(wraps.update([4_294_967_200, 8]), [4_294_967_200, 8]);
        assert_eq!(wraps.update([100, 9]), [FULL + 100, 9]);
        assert_eq!(wraps.update([200, 9]), [FULL + 200, 9]);
        assert_eq!(wraps.update([4_000_000_000, 10]), [FULL + 4_000_000_000, 10]);
        assert_eq!(wraps.update([1, 11]), [2 * FULL + 1, 11]);
    }

    #[test]
    fn another_device_of_the_same_name_begins_from_its_own_beginning() {
        let mut wraps = Unwrap32::new([4_294_967_000, 700]);
        wraps.update([10, 701]);
        assert_eq!(wraps.update([20, 2]), [20, 2], "both went back");
        let mut wide = Unwrap32::new([1 << 40, 5]);
        assert_eq!(wide.update([3, 6]), [3, 6], "it was no counter of 32 bits");
    }
}
