//! Sizes: the size of a context ([`ContextSize`]), the size at which a compaction starts
//! ([`Level`]), and the size at which it stops ([`Target`]).

use std::fmt;
use std::str::FromStr;

use epitome_model::Tokens;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ContextKind;

/// The size of a context: the size of the next request, or of what a resume would send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ContextSize {
    /// Tokens, including the prompt and the tools if their tokens are known.
    pub tokens: Tokens,
    /// Bytes of text; for a stored session, bytes of the file.
    pub bytes: u64,
    /// Characters of the texts as JSON strings (with quotes and escapes), plus an estimate of the
    /// JSON around each.
    pub chars: u64,
    /// Number of tool results.
    pub results: u64,
    /// Number of turns of the user.
    pub turns: u64,
    /// Number of messages. Consecutive entries of the model are one message, and so are consecutive
    /// entries that are not of the model.
    pub messages: u64,
    /// Tokens as epitome counts them, without a provider's reports.
    pub counted: Tokens,
}

/// A size limit with any of these members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table of limits, such as `tokens` and `percent`"
)]
pub struct Level {
    /// Tokens. In a running agent, those of the system prompt and the tools are included if they
    /// are known; of a stored session, only the messages count.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000_000)))]
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    pub percent: Option<u64>,
    /// Bytes of text; of a stored session, bytes on disk.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub bytes: Option<u64>,
    /// Characters of the texts as JSON strings (with quotes and escapes), plus an estimate of the
    /// JSON around each.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub chars: Option<u64>,
    /// The number of tool results.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub results: Option<u64>,
    /// The number of turns. A turn is a user message and everything until the next.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub turns: Option<u64>,
    /// The number of messages.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub messages: Option<u64>,
}

impl Level {
    /// This level, with each member that is not set taken from `other`.
    #[must_use]
    pub fn or(self, other: Level) -> Level {
        Level {
            tokens: self.tokens.or(other.tokens),
            percent: self.percent.or(other.percent),
            bytes: self.bytes.or(other.bytes),
            chars: self.chars.or(other.chars),
            results: self.results.or(other.results),
            turns: self.turns.or(other.turns),
            messages: self.messages.or(other.messages),
        }
    }

    /// Whether a context of this size reaches the level. A live context must exceed *one* member,
    /// and never reaches a level without members. A stored session must reach *all* members, and
    /// always reaches a level without members. `usable` is the window without the reserve, the
    /// tokens that the recipe keeps free for the reply; if it is unknown, the member `percent` is
    /// ignored.
    pub fn is_reached(
        &self,
        kind: ContextKind,
        size: &ContextSize,
        usable: Option<Tokens>,
    ) -> bool {
        let Level { tokens, percent, bytes, chars, results, turns, messages } = *self;
        let percent = percent.and_then(|it| Some(share(usable?, it).0));
        let members = [
            (tokens, size.tokens.0),
            (percent, size.tokens.0),
            (bytes, size.bytes),
            (chars, size.chars),
            (results, size.results),
            (turns, size.turns),
            (messages, size.messages),
        ];
        let mut set = members.into_iter().filter_map(|(limit, is)| Some((limit?, is)));
        match kind {
            ContextKind::Live => set.any(|(limit, is)| is > limit),
            ContextKind::Stored => set.all(|(limit, is)| is >= limit),
        }
    }
}

/// The size that a compaction should reach: all of these. A bare number in a recipe means tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Target {
    /// Tokens. In a running agent, those of the system prompt and the tools are included if they
    /// are known; of a stored session, only the messages count.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000_000)))]
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
    pub percent: Option<u64>,
    /// Characters of the texts as JSON strings (with quotes and escapes), plus an estimate of the
    /// JSON around each.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub chars: Option<u64>,
}

impl Target {
    /// A target in tokens.
    pub fn from_tokens(tokens: Tokens) -> Target {
        Target { tokens: Some(tokens.0), ..Target::default() }
    }

    /// Whether a context of this size is within the target. `usable` is the window without the
    /// reserve (see [`Level::is_reached`]); if it is unknown, the member `percent` is ignored, and
    /// a target with no other member is never reached.
    pub fn is_reached(&self, size: &ContextSize, usable: Option<Tokens>) -> bool {
        let tokens = self.tokens(usable).map(|limit| size.tokens <= limit);
        let chars = self.chars.map(|limit| size.chars <= limit);
        (tokens.is_some() || chars.is_some()) && tokens.unwrap_or(true) && chars.unwrap_or(true)
    }

    /// The limit in tokens: the smaller one of `tokens` and `percent` of `usable`. `None` if
    /// `tokens` is not set, and `percent` is not set or `usable` is unknown.
    pub fn tokens(&self, usable: Option<Tokens>) -> Option<Tokens> {
        let percent = self.percent.and_then(|it| Some(share(usable?, it)));
        self.tokens.map(Tokens).into_iter().chain(percent).min()
    }
}

/// The error of parsing a text that is not a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTarget;

impl FromStr for Target {
    type Err = NoTarget;

    /// Parses a number of tokens (`20000`), per cent of the window without the reserve (`60%`), or
    /// a number of characters (`80000 chars`).
    fn from_str(text: &str) -> Result<Target, NoTarget> {
        if let Some(digits) = text.strip_suffix('%') {
            let percent = number(digits).ok().filter(|percent| (1..=100).contains(percent));
            return Ok(Target { percent: Some(percent.ok_or(NoTarget)?), ..Target::default() });
        }
        if let Some(digits) = text.strip_suffix("chars") {
            return Ok(Target { chars: Some(number(digits)?), ..Target::default() });
        }
        Ok(Target::from_tokens(Tokens(number(text)?)))
    }
}

fn number(digits: &str) -> Result<u64, NoTarget> {
    digits.trim_end().parse().map_err(|_| NoTarget)
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Target::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Target, D::Error> {
        from.deserialize_any(NumberOrTable)
    }
}

struct NumberOrTable;

impl<'de> Visitor<'de> for NumberOrTable {
    type Value = Target;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a number of tokens, a percentage from \"1%\" to \"100%\", a number of characters \
             (\"80000 chars\"), or a table with `tokens`, `percent` or `chars`",
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Target, E> {
        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_u64<E>(self, tokens: u64) -> Result<Target, E> {
        Ok(Target::from_tokens(Tokens(tokens)))
    }

    fn visit_i64<E: serde::de::Error>(self, tokens: i64) -> Result<Target, E> {
        let unexpected = serde::de::Unexpected::Signed(tokens);
        let tokens = u64::try_from(tokens).map_err(|_| E::invalid_value(unexpected, &self))?;
        Ok(Target::from_tokens(Tokens(tokens)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Target, A::Error> {
        Target::deserialize(MapAccessDeserializer::new(map))
    }
}

fn share(tokens: Tokens, percent: u64) -> Tokens {
    Tokens(tokens.0 * percent / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_member_starts_a_context_in_use_and_all_members_a_stored_session() {
        let (tokens, counted) = (Tokens(11), Tokens(11));
        let size = ContextSize {
            tokens,
            bytes: 12,
            chars: 16,
            results: 13,
            turns: 14,
            messages: 15,
            counted,
        };
        let level = Level::default;
        let usable = Some(Tokens(1_000));
        for (level, live, stored) in [
            (level(), false, true),
            (Level { tokens: Some(10), ..level() }, true, true),
            (Level { tokens: Some(11), ..level() }, false, true),
            (Level { tokens: Some(12), ..level() }, false, false),
            (Level { percent: Some(1), ..level() }, true, true),
            (Level { percent: Some(2), ..level() }, false, false),
            (Level { bytes: Some(11), ..level() }, true, true),
            (Level { bytes: Some(12), ..level() }, false, true),
            (Level { chars: Some(15), ..level() }, true, true),
            (Level { chars: Some(17), ..level() }, false, false),
            (Level { results: Some(12), ..level() }, true, true),
            (Level { turns: Some(13), ..level() }, true, true),
            (Level { messages: Some(14), ..level() }, true, true),
            (Level { messages: Some(15), results: Some(13), ..level() }, false, true),
            (Level { messages: Some(14), results: Some(14), ..level() }, true, false),
        ] {
            let is_reached = |kind| level.is_reached(kind, &size, usable);
            assert_eq!(
                (is_reached(ContextKind::Live), is_reached(ContextKind::Stored)),
                (live, stored),
                "{level:?}"
            );
        }
        let percent = Level { percent: Some(1), ..level() };
        assert!(!percent.is_reached(ContextKind::Live, &size, None));
        assert!(percent.is_reached(ContextKind::Stored, &size, None));
    }

    #[test]
    fn a_target_is_reached_when_all_that_counts_of_it_is() {
        let size = ContextSize { tokens: Tokens(500), chars: 2_000, ..ContextSize::default() };
        let target = |tokens, percent, chars| Target { tokens, percent, chars };
        let usable = Some(Tokens(1_000));
        for (target, usable, expect) in [
            (target(None, None, None), usable, false),
            (target(Some(500), None, None), usable, true),
            (target(Some(499), None, None), usable, false),
            (target(None, Some(50), None), usable, true),
            (target(None, Some(49), None), usable, false),
            (target(None, Some(50), None), None, false),
            (target(None, None, Some(2_000)), usable, true),
            (target(None, None, Some(1_999)), usable, false),
            (target(Some(500), None, Some(1_999)), usable, false),
            (target(Some(499), None, Some(2_000)), usable, false),
            (target(Some(600), Some(40), None), usable, false),
            (target(None, Some(40), Some(2_000)), None, true),
        ] {
            assert_eq!(target.is_reached(&size, usable), expect, "{target:?} of {usable:?}");
        }
    }

    #[test]
    fn a_target_is_tokens_per_cent_or_characters() {
        let target = |tokens, percent, chars| Ok(Target { tokens, percent, chars });
        for (text, expect) in [
            ("20000", target(Some(20_000), None, None)),
            ("60%", target(None, Some(60), None)),
            ("100 %", target(None, Some(100), None)),
            ("80000 chars", target(None, None, Some(80_000))),
            ("0%", Err(NoTarget)),
            ("101%", Err(NoTarget)),
            ("a few chars", Err(NoTarget)),
            ("-1", Err(NoTarget)),
            ("", Err(NoTarget)),
        ] {
            assert_eq!(text.parse::<Target>(), expect, "{text}");
        }
    }
}
