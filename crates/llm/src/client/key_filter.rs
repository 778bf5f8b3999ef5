//! Removes the key from a streamed response while it arrives.

use epitome_api::{Delta, OnDelta};

use crate::key::{Key, SHOWN};

/// Passes on what a response streams, with `[key]` in place of the key. The key may be split over
/// several pieces of text, also if other deltas come between them. Of a key that is split, at most
/// its first seven characters are passed on: they are no secret, see [`Key::hide`].
pub(super) struct KeyFilter<'k> {
    /// `None` if there is no key, or if it is no secret.
    key: Option<&'k str>,
    text: End,
    thinking: End,
}

/// The end of the text so far, if it is the beginning of the key; otherwise empty.
#[derive(Default)]
struct End {
    text: String,
    /// How many bytes of it were passed on.
    passed: usize,
}

impl<'k> KeyFilter<'k> {
    pub(super) fn new(key: Option<&'k Key>) -> KeyFilter<'k> {
        let key = key.and_then(Key::secret);
        KeyFilter { key, text: End::default(), thinking: End::default() }
    }

    /// Passes on a delta. Holds back the end of a text if it may be a part of the key.
    pub(super) fn push(&mut self, delta: Delta<'_>, on: OnDelta<'_>) {
        let Some(key) = self.key else { return on(delta) };
        match delta {
            Delta::Text(piece) => pass(&self.text.push(piece, key), Delta::Text, on),
            Delta::Thinking(piece) => pass(&self.thinking.push(piece, key), Delta::Thinking, on),
            Delta::Call(name) => on(Delta::Call(&name.replace(key, "[key]"))),
            Delta::Restart | Delta::Retry(_) => {
                self.text = End::default();
                self.thinking = End::default();
                on(delta);
            }
        }
    }

    /// Passes on what was held back: at the end of the response, it is not the whole key.
    pub(super) fn finish(self, on: OnDelta<'_>) {
        pass(self.thinking.rest(), Delta::Thinking, on);
        pass(self.text.rest(), Delta::Text, on);
    }
}

/// Passes on a text, unless it is empty.
fn pass<'t>(text: &'t str, delta: fn(&'t str) -> Delta<'t>, on: OnDelta<'_>) {
    if !text.is_empty() {
        on(delta(text));
    }
}

impl End {
    /// Adds the next piece of text. Returns what can be passed on.
    fn push(&mut self, piece: &str, key: &str) -> String {
        let End { text, passed } = std::mem::take(self);
        let text = text + piece;
        let mut out = String::new();
        let mut at = passed;
        let mut from = 0;
        while let Some(found) = text[from..].find(key).map(|found| from + found) {
            out.push_str(&text[at.min(found)..found]);
            out.push_str("[key]");
            from = found + key.len();
            at = from;
        }
        // A key is ASCII, so a beginning of it ends at a character boundary.
        let length = (1..key.len()).rev().find(|&length| text[from..].ends_with(&key[..length]));
        let begin = text.len() - length.unwrap_or(0);
        let end = text.len().min(begin + SHOWN - 1).max(at);
        out.push_str(&text[at..end]);
        *self = End { text: text[begin..].to_owned(), passed: end - begin };
        out
    }

    fn rest(&self) -> &str {
        &self.text[self.passed..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-test-0123456789abcdefghij";

    /// What is passed on of these deltas: reasoning in parentheses, and the names of calls in angle
    /// brackets.
    fn passed(deltas: &[Delta<'_>]) -> String {
        let key = Key::new(KEY);
        let mut filter = KeyFilter::new(key.as_ref());
        let mut seen = String::new();
        let mut on = |delta: Delta<'_>| match delta {
            Delta::Text(text) => seen.push_str(text),
            Delta::Thinking(text) => seen.push_str(&format!("({text})")),
            Delta::Call(name) => seen.push_str(&format!("<{name}>")),
            Delta::Restart | Delta::Retry(_) => seen.push_str("<again>"),
        };
        deltas.iter().for_each(|delta| filter.push(*delta, &mut on));
        filter.finish(&mut on);
        seen
    }

    #[test]
    fn of_a_key_in_pieces_at_most_seven_characters_are_passed_on() {
        let text = format!("It is {KEY}{KEY}, or sk-sk-test-{KEY}. Äs");
        let chars: Vec<char> = text.chars().collect();
        for length in 1..=chars.len() {
            let pieces: Vec<String> = chars.chunks(length).map(String::from_iter).collect();
            let deltas: Vec<Delta<'_>> = pieces.iter().map(|it| Delta::Text(it)).collect();
            let seen = passed(&deltas);
            let parts: Vec<&str> = seen.split("[key]").collect();
            let expect = ["It is ", "", ", or sk-sk-test-", ". Äs"];
            assert_eq!(parts.len(), expect.len(), "{length}: {seen}");
            for (part, expect) in parts.iter().zip(expect) {
                let more = part.strip_prefix(expect).expect(&seen);
                assert!(KEY[..7].starts_with(more), "{length}: {seen}");
            }
        }
        let whole = passed(&[Delta::Text(&text)]);
        assert_eq!(whole, "It is [key][key], or sk-sk-test-[key]. Äs");
    }

    #[test]
    fn a_key_is_found_across_other_deltas() {
        let (first, second) = KEY.split_at(15);
        let deltas = [
            Delta::Thinking("so it is"),
            Delta::Text(first),
            Delta::Thinking(first),
            Delta::Call(KEY),
            Delta::Text(second),
            Delta::Thinking(second),
            Delta::Text("s"),
        ];
        let expect = "(so it is)sk-test(sk-test)<[key]>[key]([key])s";
        assert_eq!(passed(&deltas), expect);
        // A text that is void, because a `Restart` follows, is not searched together with the next
        // text.
        let deltas = [Delta::Text(first), Delta::Restart, Delta::Text(second)];
        assert_eq!(passed(&deltas), format!("sk-test<again>{second}"));
        // A beginning of the key at the end is passed on, as it is in the response.
        assert_eq!(passed(&[Delta::Text(first)]), first);
    }
}
