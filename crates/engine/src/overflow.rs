//! A provider that refuses a request as too long: how that is known.
//!
//! What counts is what the provider says itself: the kind of its error, and the beginning of its
//! message. Services quote what they were sent, and a session may hold any words.

mod families;
mod refusal;

use epitome_model::Tokens;
use serde::Serialize;

use families::{CODES, FAMILIES, Numbers, PASSING};
use refusal::Refusal;

/// A request that was too long for its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overflow {
    /// Whose words said so, or who else speaks like that.
    pub provider: &'static str,
    /// Tokens that the model takes, if it was told.
    pub limit: Option<Tokens>,
    /// Tokens that the request had, if it was told.
    pub asked: Option<Tokens>,
    /// How it is known.
    pub known: KnownBy,
}

/// How it is known that a request was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KnownBy {
    /// The service says so.
    Words,
    /// A status that says nothing else.
    Status,
    /// A refusal without a word. Some mean this; who has sent little may know better.
    Silence,
}

/// Bytes of a message in which it says what is wrong: behind them it quotes and advises.
const BEGINNING: usize = 120;

/// Statuses of refusals for other reasons, whatever their words.
const OTHER_REASONS: [u16; 7] = [401, 402, 403, 404, 408, 409, 429];

/// Whether a refusal says that the request was too long: its status if there is one, and its body,
/// also if that is a stream of events in which one says so behind a status of 200.
///
/// ```
/// use epitome_engine::overflow;
/// use epitome_model::Tokens;
///
/// let body = r#"{"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#;
/// let told = overflow(Some(400), body).expect("it is one");
/// assert_eq!((told.provider, told.limit), ("anthropic", Some(Tokens(200_000))));
/// assert_eq!(overflow(Some(429), body), None);
/// let quoted = r#"{"error":{"message":"role: not one of user, model: 'prompt is too long'"}}"#;
/// assert_eq!(overflow(Some(400), quoted), None);
/// ```
pub fn overflow(status: Option<u16>, body: &str) -> Option<Overflow> {
    let is_refused = status.is_none_or(|status| status >= 400);
    if status.is_some_and(|status| (300..400).contains(&status) || OTHER_REASONS.contains(&status))
    {
        return None;
    }
    let refusal = if is_refused {
        Refusal::read(body)
    } else {
        // The text of an answer may contain anything: only an error in it counts.
        Refusal::from_body(body)?
    };
    if PASSING.iter().any(|words| refusal.says(words)) {
        return None;
    }
    let (limit, asked) = (refusal.limit, refusal.asked);
    let by = |provider, known| Some(Overflow { provider, limit, asked, known });
    let family = FAMILIES.iter().find(|family| refusal.begins_with(family.words, BEGINNING));
    if let Some(family) = family {
        let (told, had) = numbers(&refusal.message, family.words[0], family.numbers);
        let (limit, asked) = (limit.or(told), asked.or(had));
        return Some(Overflow { provider: family.provider, limit, asked, known: KnownBy::Words });
    }
    let code = CODES.iter().find(|(code, _)| refusal.kinds.iter().any(|kind| kind == code));
    match code {
        Some((_, provider)) => by(provider, KnownBy::Words),
        None if status == Some(413) => by("any", KnownBy::Status),
        None if status == Some(400) && body.trim().is_empty() => by("cerebras", KnownBy::Silence),
        None => None,
    }
}

/// Limit and size of the request, where a message tells them.
fn numbers(message: &str, from: &str, order: Numbers) -> (Option<Tokens>, Option<Tokens>) {
    let at = message.find(from).unwrap_or(0);
    // Commas between digits are none, and numbers of one or two digits count no tokens.
    let plain = message[at..].replace(',', "");
    let found = plain.split(|c: char| !c.is_ascii_digit()).filter(|digits| digits.len() >= 3);
    let mut found = found.filter_map(|digits| digits.parse().ok().map(Tokens));
    let (limit, asked) = match order {
        Numbers::Unsaid => return (None, None),
        Numbers::LimitFirst => (found.next(), found.max()),
        Numbers::AskedFirst => {
            let asked = found.next();
            (found.next(), asked)
        }
    };
    // What is less than the limit is a part of the request, or what it asked for as an answer.
    (limit, asked.filter(|asked| limit.is_none_or(|limit| *asked > limit)))
}

#[cfg(test)]
mod tests;
