//! The invariants over generated sessions.

use epitome_formats::find_format;
use epitome_passes::{Keep, Recipe, built_in};
use epitome_tokens::{Estimate, O200k};
use proptest::prelude::*;

use super::*;

/// The seeds of failures are not stored, because each violation is made a test case of its own.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(160) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn invariants_hold_for_pi(
        bytes in fixtures::generate::session("pi"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check("pi", &bytes, &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_claude(
        bytes in fixtures::generate::session("claude"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check("claude", &bytes, &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_codex(
        bytes in fixtures::generate::session("codex"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check("codex", &bytes, &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_gemini(
        bytes in fixtures::generate::session("gemini"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check("gemini", &bytes, &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_opencode(
        bytes in fixtures::generate::session("opencode"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check("opencode", &bytes, &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_logs_of_live_contexts(
        bytes in fixtures::generate::session("epitome"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check("epitome", &bytes, &recipe, &Estimate, &appended);
        check_native("epitome", (&bytes, Is::Sound), &recipe, &Estimate, &appended);
        check_summary("epitome", &bytes, &recipe, &appended);
    }

    #[test]
    fn invariants_hold_for_summaries(
        pi in fixtures::generate::session("pi"), claude in fixtures::generate::session("claude"),
        codex in fixtures::generate::session("codex"),
        gemini in fixtures::generate::session("gemini"),
        opencode in fixtures::generate::session("opencode"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        let all = [
            ("pi", &pi),
            ("claude", &claude),
            ("codex", &codex),
            ("gemini", &gemini),
            ("opencode", &opencode),
        ];
        for (agent, bytes) in all {
            check_summary(agent, bytes, &recipe, &appended);
        }
    }

    #[test]
    fn invariants_hold_for_records_of_pi(
        bytes in fixtures::generate::session("pi"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check_native("pi", (&bytes, Is::Sound), &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_records_of_codex(
        bytes in fixtures::generate::session("codex"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check_native("codex", (&bytes, Is::Sound), &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_messages_that_gemini_reads_again(
        bytes in fixtures::generate::new_session("gemini"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check_native("gemini", (&bytes, Is::Sound), &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_marks_of_opencode(
        bytes in fixtures::generate::session("opencode"), recipe in recipe(),
        appended in fixtures::generate::appended(),
    ) {
        check_native("opencode", (&bytes, Is::Sound), &recipe, &Estimate, &appended);
    }

    #[test]
    fn invariants_hold_for_requests(
        anthropic in fixtures::generate::body("anthropic"),
        chat in fixtures::generate::body("openai-chat"),
        responses in fixtures::generate::body("openai-responses"),
        gemini in fixtures::generate::body("gemini-request"),
        recipe in recipe(),
    ) {
        check("anthropic", &anthropic, &recipe, &Estimate, b"");
        check("openai-chat", &chat, &recipe, &Estimate, b"");
        check("openai-responses", &responses, &recipe, &Estimate, b"\n");
        check("gemini-request", &gemini, &recipe, &Estimate, b"");
    }

    #[test]
    fn exact_counts_never_grow_either(
        bytes in fixtures::generate::session("claude"), recipe in recipe(),
    ) {
        check("claude", &bytes, &recipe, &O200k, b"");
    }

    #[test]
    fn exact_counts_never_grow_in_nested_texts(
        bytes in fixtures::generate::session("codex"), recipe in recipe(),
    ) {
        check("codex", &bytes, &recipe, &O200k, b"");
    }

    #[test]
    fn errors_keep_their_evidence(
        pi in fixtures::generate::session("pi"), claude in fixtures::generate::session("claude"),
        codex in fixtures::generate::session("codex"),
        opencode in fixtures::generate::session("opencode"),
        gemini in fixtures::generate::session("gemini"),
    ) {
        let recipe = Recipe { keep: Keep::default(), ..built_in("epitome").expect("the default") };
        let all = [
            ("pi", &pi),
            ("claude", &claude),
            ("codex", &codex),
            ("opencode", &opencode),
            ("gemini", &gemini),
        ];
        for (agent, bytes) in all {
            let after = check(agent, bytes, &recipe, &Estimate, b"");
            check_errors(agent, bytes, &after);
        }
    }

    /// Any bytes can be read, nothing unedited changes, and compacting is safe.
    #[test]
    fn any_bytes_are_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..400), recipe in recipe(),
    ) {
        for agent in fixtures::generate::AGENTS {
            check(agent, &bytes, &recipe, &Estimate, b"");
        }
    }

    /// A damaged session can be read, and compacting it is as safe as for any other.
    #[test]
    fn damaged_sessions_are_read(
        pi in fixtures::generate::session("pi"), claude in fixtures::generate::session("claude"),
        gemini in fixtures::generate::session("gemini"),
        codex in fixtures::generate::session("codex"),
        opencode in fixtures::generate::session("opencode"),
        epitome in fixtures::generate::session("epitome"),
        at in any::<prop::sample::Index>(), byte: u8, recipe in recipe(),
    ) {
        let all = [
            ("pi", pi),
            ("claude", claude),
            ("codex", codex),
            ("gemini", gemini),
            ("opencode", opencode),
            ("epitome", epitome),
        ];
        for (agent, mut bytes) in all {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            check(agent, &bytes, &recipe, &Estimate, b"");
            if find_format(agent).is_some_and(|format| format.native.is_some()) {
                check_native(agent, (&bytes, Is::Damaged), &recipe, &Estimate, b"");
            }
        }
    }
}
