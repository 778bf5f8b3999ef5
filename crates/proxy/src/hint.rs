//! A hint in the stub of a shortened text: it tells the model how to display the whole text.

use epitome_model::Ref;

/// The hint. `epitome show` is a command for the agent's shell, and `show` is also the tool of
/// epitome's MCP server that does the same.
pub(crate) const HINT: &str = "`epitome show` prints all";
const BEGIN: &str = "\"[epitome k";
const SHORTENED: &str = ": shortened";

/// The JSON of a text that replaces another, with the hint in its stub. The JSON stays as it is if
/// it has no stub, if it has the hint already, or if it would have more than `most` bytes with the
/// hint.
pub(crate) fn with_hint(with: String, most: usize) -> String {
    let after = BEGIN.len() + Ref::DIGITS;
    let is_stub = with.starts_with(BEGIN) && !with.contains(HINT);
    let Some(rest) = with.get(after..).filter(|_| is_stub) else { return with };
    let (at, hint) = if rest.starts_with(SHORTENED) {
        (after + SHORTENED.len(), format!(" ({HINT})"))
    } else if rest.starts_with(": ") {
        (after + ": ".len(), format!("{HINT}, "))
    } else {
        (after, format!(": {HINT}"))
    };
    if with.len() + hint.len() > most {
        return with;
    }
    let mut with = with;
    with.insert_str(at, &hint);
    with
}

#[cfg(test)]
mod tests {
    use epitome_model::{Counter as _, Stub, decode};
    use epitome_tokens::O200k;

    use super::*;

    #[test]
    fn a_stub_with_the_hint_is_a_stub() {
        for (with, expect) in [
            (
                r#""[epitome k7f3a9c2: shortened, 152 lines]\nfirst""#,
                r#""[epitome k7f3a9c2: shortened (`epitome show` prints all), 152 lines]\nfirst""#,
            ),
            (
                r#""[epitome k7f3a9c2: 152 lines]""#,
                r#""[epitome k7f3a9c2: `epitome show` prints all, 152 lines]""#,
            ),
            (r#""[epitome k7f3a9c2]""#, r#""[epitome k7f3a9c2: `epitome show` prints all]""#),
            (r#""first""#, r#""first""#),
        ] {
            let made = with_hint(with.to_owned(), 1_000);
            assert_eq!(made, expect);
            let is_stub = Stub::parse(&decode(with.as_bytes())).is_some();
            assert_eq!(Stub::parse(&decode(made.as_bytes())).is_some(), is_stub, "{made}");
            let tokens = |text: &str| O200k::new().count(text).0;
            assert!(tokens(&made) - tokens(with) < 10, "{made}");
        }
    }

    #[test]
    fn a_hint_is_given_once() {
        let once = with_hint(r#""[epitome k7f3a9c2: 152 lines]""#.to_owned(), 1_000);
        assert_eq!(with_hint(once.clone(), 1_000), once);
    }

    #[test]
    fn no_result_grows_by_the_hint() {
        let with = r#""[epitome k7f3a9c2: 152 lines]""#;
        assert_eq!(with_hint(with.to_owned(), with.len() + 20), with);
    }
}
