//! Recognises that a provider refused a request because it was too long.
//!
//! Only the provider's own statement counts: the status, the kind of the error, and the beginning
//! of its message. Services quote the request in errors, and a session may contain any text.

mod families;
mod refusal;

use epitome_model::Tokens;
use serde::Serialize;

use families::{CODES, FAMILIES, Numbers, PASSING};
use refusal::Refusal;

/// A request that was too long for its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overflow {
    /// The provider to which the form of the error points; another provider may use the same form.
    /// `any` if the error points to none.
    pub provider: &'static str,
    /// The model's limit in tokens, if the error names it.
    pub limit: Option<Tokens>,
    /// Tokens of the request as the provider counted them, if the error names them.
    pub asked: Option<Tokens>,
    /// How the overflow was recognised.
    pub known: OverflowSign,
}

/// How an overflow was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverflowSign {
    /// By the message or the kind of the error.
    Words,
    /// By an HTTP status that has no other meaning.
    Status,
    /// By a refusal with the status 400 and without any text. Some services refuse a request that
    /// is too long in this way, but there can be other reasons: the caller should check that the
    /// request was large.
    Silence,
}

/// The first phrase of a [`Family`](families::Family) must begin within this many bytes of the
/// error's message: what follows may be quotations and advice.
const BEGINNING: usize = 120;

/// HTTP statuses that mean another refusal, whatever the text says.
const OTHER_REASONS: [u16; 7] = [401, 402, 403, 404, 408, 409, 429];

/// Recognises a refusal of a request that is too long. `status` is the HTTP status, if it is known,
/// and `body` the body of the refusal, which may be an event stream that reports the error after a
/// status of 200. `None` for any other response.
///
/// ```
/// use epitome_engine::overflow;
/// use epitome_model::Tokens;
///
/// let body = r#"{"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#;
/// let found = overflow(Some(400), body).expect("an overflow");
/// assert_eq!((found.provider, found.limit), ("anthropic", Some(Tokens(200_000))));
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
        // The text of a response may contain anything, so only an error in it counts.
        Refusal::from_body(body)?
    };
    if PASSING.iter().any(|words| refusal.says(words)) {
        return None;
    }
    let limit = refusal.limit;
    let asked = refusal.asked;
    let family = FAMILIES.iter().find(|family| refusal.begins_with(family.words, BEGINNING));
    if let Some(family) = family {
        let (stated, had) = numbers(&refusal.message, family.words[0], family.numbers);
        let limit = limit.or(stated);
        let asked = asked.or(had);
        return Some(Overflow {
            provider: family.provider,
            limit,
            asked,
            known: OverflowSign::Words,
        });
    }
    let code = CODES.iter().find(|(code, _)| refusal.kinds.iter().any(|kind| kind == code));
    let (provider, known) = match code {
        Some((_, provider)) => (*provider, OverflowSign::Words),
        None if status == Some(413) => ("any", OverflowSign::Status),
        None if status == Some(400) && body.trim().is_empty() => {
            ("cerebras", OverflowSign::Silence)
        }
        None => return None,
    };
    Some(Overflow { provider, limit, asked, known })
}

/// The model's limit and the size of the request, if the message states them after the text `from`.
fn numbers(message: &str, from: &str, order: Numbers) -> (Option<Tokens>, Option<Tokens>) {
    let at = message.find(from).unwrap_or(0);
    // Separators of thousands are removed. Numbers with fewer than three digits are no token
    // counts.
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
    // A number that does not exceed the limit is the size of a part of the request, or of the
    // response.
    (limit, asked.filter(|asked| limit.is_none_or(|limit| *asked > limit)))
}

#[cfg(test)]
mod tests;
