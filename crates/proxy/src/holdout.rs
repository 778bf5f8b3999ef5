//! Conversations that pass unchanged, so that others can be compared with them.

use epitome::wire::Chain;

/// The share of conversations that are held out: they pass unchanged, so that others can be
/// compared with them.
///
/// Whether a conversation is held out follows from the hash of the messages before its first
/// response, so it is the same after a restart. A larger share contains all conversations of a
/// smaller one. A conversation that was changed before is not held out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdout {
    percent: u8,
}

impl Holdout {
    /// A share in per cent, 0 to 100; `None` if `percent` is more.
    ///
    /// ```
    /// use epitome_proxy::Holdout;
    ///
    /// assert!(Holdout::from_percent(10).is_some());
    /// assert_eq!(Holdout::from_percent(101), None);
    /// ```
    pub fn from_percent(percent: u8) -> Option<Holdout> {
        (percent <= 100).then_some(Holdout { percent })
    }

    /// Whether this share contains a conversation.
    pub(crate) fn has(self, conversation: Chain) -> bool {
        let mut first = [0; 8];
        first.copy_from_slice(&conversation.bytes()[..8]);
        u64::from_be_bytes(first) % 100 < u64::from(self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_share_contains_a_smaller_one() {
        let conversations: Vec<Chain> =
            (0..1_000_u32).map(|n| Chain::compute(&n.to_le_bytes())).collect();
        let held_out = |percent| {
            let share = Holdout::from_percent(percent).expect("a share");
            let held_out = conversations.iter().filter(|chain| share.has(**chain));
            held_out.copied().collect::<Vec<_>>()
        };
        let (tenth, half) = (held_out(10), held_out(50));
        assert!((70..130).contains(&tenth.len()), "{}", tenth.len());
        assert!(tenth.iter().all(|chain| half.contains(chain)));
        assert_eq!((held_out(0).len(), held_out(100).len()), (0, 1_000));
    }
}
