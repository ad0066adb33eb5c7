//! Whether all children that were reaped are known.
//!
//! A process that has reaped a child has its page faults in its own account, and every process
//! has some. A child that was known has gone meanwhile: at this tick, or at the last one when it
//! was reaped between the look at its parent and the look at itself. Where there is no such
//! child, one came and went between two ticks, whatever `/proc/loadavg` says of pids.

/// Parents whose children went, as the looks of a tick find it.
#[derive(Debug, Default)]
pub(super) struct ReapCheck {
    /// Those who have reaped somebody.
    reapers: Vec<u32>,
    /// Parents of known children that went at this tick, one for each.
    exited: Vec<u32>,
    /// The same of the last tick, as far as no reaping was seen for them.
    exited_before: Vec<u32>,
}

impl ReapCheck {
    /// This process has reaped a child, or several, since the last look at it.
    pub(super) fn note_reaping(&mut self, pid: u32) {
        self.reapers.push(pid);
    }

    /// A known child of this process is gone.
    pub(super) fn note_exit(&mut self, parent: u32) {
        self.exited.push(parent);
    }

    /// The tick is over: says whether somebody was reaped who was not known.
    pub(super) fn finish_tick(&mut self) -> bool {
        let mut some_unknown = false;
        for reaper in self.reapers.drain(..) {
            let lists = [&mut self.exited_before, &mut self.exited];
            let is_known = lists.iter().any(|list| list.contains(&reaper));
            // Several may have been reaped since the last look: one that is left over would
            // stand for a child at the next tick that nobody knew.
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
    fn several_known_children_that_went_at_one_tick_hide_nobody_at_the_next() {
        let mut reaped = ReapCheck::default();
        for is_seen_at_once in [true, false] {
            reaped.note_exit(7);
            reaped.note_exit(7);
            if !is_seen_at_once {
                assert!(!reaped.finish_tick());
            }
            reaped.note_reaping(7);
            assert!(!reaped.finish_tick());
            reaped.note_reaping(7);
            assert!(reaped.finish_tick(), "nobody known has gone since");
        }
    }

    #[test]
    fn a_known_child_accounts_for_one_reaping_at_this_tick_or_the_next() {
        let mut reaped = ReapCheck::default();
        reaped.note_reaping(7);
        reaped.note_exit(7);
        assert!(!reaped.finish_tick(), "reaped and gone at one tick");
        reaped.note_exit(7);
        assert!(!reaped.finish_tick());
        reaped.note_reaping(7);
        assert!(!reaped.finish_tick(), "reaped after the look at its parent");
        reaped.note_reaping(7);
        assert!(reaped.finish_tick(), "and once only");
        reaped.note_exit(8);
        reaped.note_reaping(7);
        assert!(reaped.finish_tick(), "a child of another process");
    }
}
