//! Whether all reaped children are known.
//!
//! Reaping a child adds its page faults to the parent's counters, and every process has some. A
//! known child has exited meanwhile: at this tick, or at the last one when it was reaped between
//! the read of its parent and its own. If there is no such child, one started and exited between
//! two ticks, whatever `/proc/loadavg` says.

/// Parents whose children exited or were reaped, as found by the reads of a tick.
#[derive(Debug, Default)]
pub(super) struct ReapCheck {
    /// Processes that have reaped a child.
    reapers: Vec<u32>,
    /// Parents of known children that exited at this tick, one for each.
    exited: Vec<u32>,
    /// The same of the last tick, without those whose reaping was found.
    exited_before: Vec<u32>,
}

impl ReapCheck {
    /// This process has reaped one or more children since its last read.
    pub(super) fn note_reaping(&mut self, pid: u32) {
        self.reapers.push(pid);
    }

    /// A known child of this process has exited.
    pub(super) fn note_exit(&mut self, parent: u32) {
        self.exited.push(parent);
    }

    /// Ends the tick: whether an unknown child was reaped.
    pub(super) fn finish_tick(&mut self) -> bool {
        let mut some_unknown = false;
        for reaper in self.reapers.drain(..) {
            let lists = [&mut self.exited_before, &mut self.exited];
            let is_known = lists.iter().any(|list| list.contains(&reaper));
            // Several may have been reaped since the last read: an entry left over would hide an
            // unknown child at the next tick.
            lists.into_iter().for_each(|list| list.retain(|parent| *parent != reaper));
            some_unknown |= !is_known;
        }
        std::mem::swap(&mut self.exited_before, &mut self.exited);
        self.exited.clear();
        some_unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_exits_hide_no_unknown_child_at_the_next_tick() {
        let mut reaped = ReapCheck::default();
        for is_same_tick in [true, false] {
            reaped.note_exit(7);
            reaped.note_exit(7);
            if !is_same_tick {
                assert!(!reaped.finish_tick());
            }
            reaped.note_reaping(7);
            assert!(!reaped.finish_tick());
            reaped.note_reaping(7);
            assert!(reaped.finish_tick(), "no known child has exited since");
        }
    }

    #[test]
    fn known_child_explains_one_reaping_at_this_tick_or_the_next() {
        let mut reaped = ReapCheck::default();
        reaped.note_reaping(7);
        reaped.note_exit(7);
        assert!(!reaped.finish_tick(), "reaped and exited at one tick");
        reaped.note_exit(7);
        assert!(!reaped.finish_tick());
        reaped.note_reaping(7);
        assert!(!reaped.finish_tick(), "reaped after its parent was read");
        reaped.note_reaping(7);
        assert!(reaped.finish_tick(), "and once only");
        reaped.note_exit(8);
        reaped.note_reaping(7);
        assert!(reaped.finish_tick(), "a child of another process");
    }
}
