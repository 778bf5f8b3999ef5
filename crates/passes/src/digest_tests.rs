use std::collections::BTreeMap;

use epitome_model::{Block, Counter, ToolKind};
use samples::{Quarters, Sample};

use super::*;

/// A session in which a test fails, its file is read, and a long listing is made.
fn session() -> Sample {
    let code: Vec<String> = (1..=60).map(|n| format!("    let it be {n};")).collect();
    let listing: Vec<String> = (1..=99).map(|n| format!("an old word and {n}")).collect();
    Sample::new()
        .user("Why does the test of parse_len fail? Never touch lib.rs.")
        .call(ToolKind::Shell, "cargo test parse_len")
        .error("running 1 test\nerror: src/len.rs:12 expected maxLen\nend of it")
        .call(ToolKind::Read, "/p/src/len.rs")
        .output(&format!("{}\nfn parse_len() {{ maxLen }}\n}}", code.join("\n")))
        .call(ToolKind::List, "/p/old")
        .output(&listing.join("\n"))
        .call(ToolKind::List, "/p/older")
        .output(&listing.join("\n"))
        .reply("It is maxLen in src/len.rs:12.")
        .call(ToolKind::Shell, "git status")
        .output("clean")
}

fn digest(budget: u64) -> Digest {
    digest_with_others(budget, 0)
}

/// The digest of [`session`] with this budget, if the rest of the context has the tokens `others`.
fn digest_with_others(budget: u64, others: u64) -> Digest {
    let (budget, others) = (Tokens(budget), Tokens(others));
    let sample = session();
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let items: Vec<usize> = (0..sample.transcript().items.len()).collect();
    let (old_items, kept) = items.split_at(items.len() - 2);
    let old =
        ReplacedHistory { items: old_items, originals: old_items, all_originals: old_items, kept };
    let digest = DigestRule::default().digest(&view, &old, budget, others);
    digest.expect("no rules").expect("a digest")
}

/// The digest that replaces all items of a sample except the last.
fn digest_of(sample: &Sample, budget: u64) -> Digest {
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let items: Vec<usize> = (0..sample.transcript().items.len()).collect();
    let (old_items, kept) = items.split_at(items.len() - 1);
    let old =
        ReplacedHistory { items: old_items, originals: old_items, all_originals: old_items, kept };
    let digest = DigestRule::default().digest(&view, &old, Tokens(budget), Tokens(0));
    digest.expect("no rules").expect("a digest")
}

/// The lines of a digest after the first, which is the introduction.
fn lines_of(digest: &Digest) -> Vec<&str> {
    digest.text.lines().skip(1).collect()
}

#[test]
fn a_digest_has_the_lines_that_are_used_and_names_every_call() {
    let digest = digest(140);
    assert_eq!(
        digest.text,
        "[Digest of the conversation so far, with 4 tool calls: lines of it in their order. … = \
         lines left out, #N = the Nth call, @N = your Nth response.]\n\
         User:\n\
         Why does the test of parse_len fail? Never touch lib.rs.\n\
         #1 Shell\n\
         … error: src/len.rs:12 expected maxLen\n\
         #2 Read /p/src/len.rs\n\
         #3–4 List\n\
         Assistant:\n\
         It is maxLen in src/len.rs:12."
    );
    // The three lines are the question, the error and the reply. The other lines have no facts that
    // these three do not have.
    assert_eq!((digest.lines, digest.of), (3, 264));
}

#[test]
fn a_digest_is_no_longer_than_its_budget_unless_the_user_said_more() {
    for budget in [110, 140, 300, 1_000, 3_000] {
        let tokens = digest(budget).tokens;
        assert!(tokens <= Tokens(budget), "{tokens:?} of {budget}");
    }
    assert!(digest(10).text.contains("Never touch lib.rs."), "the user's words are there");
}

#[test]
fn a_digest_has_a_tenth_of_the_budget_whatever_stays_beside_it() {
    assert_eq!(digest_with_others(2_000, 9_000), digest(200));
    assert!(digest(200).lines > 1, "there is more in it than the words of the user");
}

#[test]
fn a_digest_is_the_same_each_time() {
    assert_eq!(digest(200), digest(200));
}

#[test]
fn the_calls_that_a_digest_names_are_known_by_their_numbers() {
    let named = |digest: &str| {
        let named = named_calls(digest).into_iter();
        named.map(|(number, name)| format!("{number} {name}")).collect::<Vec<_>>().join(", ")
    };
    for (digest, expect) in [
        ("#4 Bash ls\n…a line", "4 #4"),
        ("#4–6 Bash, #9 Read\n#12 Read /a.rs", "4 #4–6, 5 #4–6, 6 #4–6, 9 #9, 12 #12"),
        ("# a heading\n#include <a>\n…#7 is no header\n#1–99999999999 x", ""),
    ] {
        assert_eq!(named(digest), expect, "{digest}");
    }
    let expect: BTreeMap<u64, String> =
        [(1, "#1"), (2, "#2"), (3, "#3–4"), (4, "#3–4")].map(|(n, it)| (n, it.to_owned())).into();
    assert_eq!(named_calls(&digest(140).text), expect);
}

#[test]
fn the_last_calls_stay_while_there_is_room_for_them() {
    let sample = session();
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let rule =
        |keep_calls, keep_share| DigestRule { keep_calls, keep_share, ..DigestRule::default() };
    // The items are a question, four calls with their results, a reply, and a call with its result.
    for (rule, budget, expect) in [
        (rule(1, 30), 1_000, 10),
        (rule(2, 30), 1_000, 9),
        (rule(4, 30), 1_000, 9),
        (rule(4, 100), 3_000, 5),
        (rule(9, 100), 100_000, 0),
        // The last response does not stay if it has more than half of the budget.
        (rule(0, 0), 20, 10),
        (rule(0, 0), 0, 12),
    ] {
        assert_eq!(rule.tail(&view, Tokens(budget)), expect, "{rule:?} {budget}");
    }
}

#[test]
fn a_digest_is_told_from_another_summary() {
    let texts = ["a model's words", &digest(140).text, "Words before it.\n\n[Digest of"];
    let found = texts.map(|text| {
        let sample = Sample::new().summary(text);
        let entry = sample.transcript().items[0].entry().expect("an entry");
        is_digest(&entry.blocks[0], sample.source())
    });
    assert_eq!(found, [false, true, false]);
}

#[test]
fn rules_are_in_a_digest_word_for_word_or_it_is_refused() {
    let rules = "# Rules\n- never push\n- say please";
    let sample = session().call(ToolKind::Read, "/p/AGENTS.md").output(rules).reply("Yes.");
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let items: Vec<usize> = (0..sample.transcript().items.len()).collect();
    let (old_items, kept) = items.split_at(items.len() - 1);
    let old =
        ReplacedHistory { items: old_items, originals: old_items, all_originals: old_items, kept };
    let digest = |budget| DigestRule::default().digest(&view, &old, Tokens(budget), Tokens(0));
    let text = digest(200).expect("they fit").expect("a digest").text;
    assert!(text.contains(rules), "{text}");
    let refused = "what has to stay (/p/AGENTS.md) needs 9 tokens: a budget of 5 is too small";
    assert_eq!(digest(5), Err(refused.to_owned()));
}

#[test]
fn of_more_facts_than_fit_some_are_chosen_and_lines_have_no_numbers_of_their_tool() {
    let lines: Vec<String> = (1..=400).map(|n| format!("{n:>6}→let name_{n} = old;")).collect();
    let sample = Sample::new().user("Go on.").call(ToolKind::Read, "/p/a.rs");
    let sample = sample.output(&lines.join("\n")).reply("Yes.").reply("Done.");
    let Digest { text, tokens, lines, of, .. } = digest_of(&sample, 400);
    assert!((Tokens(360)..=Tokens(400)).contains(&tokens), "{tokens:?}");
    assert!((30..100).contains(&lines), "{lines} of {of}");
    assert!(text.contains("\nlet name_1 = old;\nlet name_2 = old;"), "{text}");
}

/// Of the equal lines of a file that was read twice, the later ones are chosen.
#[test]
fn of_equal_lines_the_newest_is_chosen() {
    let code = "let maxLen = parseLen(text);";
    let read = |sample: Sample| sample.call(ToolKind::Read, "/p/a.rs").output(code);
    let sample = read(read(Sample::new().user("Go on."))).reply("Yes.").reply("Done.");
    let digest = digest_of(&sample, 70);
    let reply = ["Assistant:", "Yes."];
    let expect = [&["User:", "Go on.", "#1 Read", "#2 Read /p/a.rs", code][..], &reply].concat();
    assert_eq!(lines_of(&digest), expect);
}

#[test]
fn lines_that_follow_each_other_keep_their_shape() {
    let code = "fn main() {\n    if is_done(parseLen) {\n        return maxLen;\n    }\n}";
    let sample = Sample::new().user("Go on.").call(ToolKind::Read, "/p/a.rs").output(code);
    let sample = sample.reply("Yes.").reply("Done.");
    let text = digest_of(&sample, 400).text;
    let expect = "\n… if is_done(parseLen) {\n    return maxLen;";
    assert!(text.contains(expect), "{text}");
}

/// A digest contains the commands in a long text of the user, whatever else of the text it leaves
/// out.
#[test]
fn a_long_text_of_the_user_keeps_what_it_commands_and_its_ends() {
    let words = "we talked of this and that\n".repeat(400);
    let rule_text = format!("{words}Never touch the lock file.\n{words}");
    let sample = Sample::new().user(&rule_text).reply("Yes.").reply("Done.");
    let digest = digest_of(&sample, 200);
    let ends = "we talked of this and that";
    let expect = ["User:", ends, "… Never touch the lock file.", "Assistant:", "Yes."];
    assert_eq!(lines_of(&digest), expect);
}

/// A line of a long text of the user is left out if another text of the user contains it, which the
/// digest includes whole or which stays in the context.
#[test]
fn what_the_user_said_twice_is_in_a_context_once() {
    let words = "we talked of this and that\n".repeat(400);
    let long = format!("{words}Never touch the lock file.\nNever push.\n{words}");
    let short = "Yes.\nNever touch the lock file.";
    let ends = "we talked of this and that";
    let sample = Sample::new().user(&long).reply("Yes.").user("Go on.\nNever push.");
    let expect = ["User:", ends, "… Never touch the lock file.", "Assistant:", "Yes."];
    assert_eq!(lines_of(&digest_of(&sample, 200)), expect);
    let sample = Sample::new().user(short).user(&long).reply("Done.");
    let expect = ["User:", "Yes.", "Never touch the lock file.", "User:", ends, "… Never push."];
    assert_eq!(lines_of(&digest_of(&sample, 200)), expect);
    // The error of a call is included even if a message of the user contains the same text.
    let error = "error: it broke";
    let sample = Sample::new().user(&format!("Why?\n{error}")).call(ToolKind::Shell, "make");
    let sample = sample.error(&format!("on the way\n{error}\nthe end of it")).reply("Done.");
    let expect = ["User:", "Why?", error, "#1 Shell", "… error: it broke"];
    assert_eq!(lines_of(&digest_of(&sample, 10)), expect);
}

/// The last responses that stay unchanged have at most 15 per cent of the budget.
#[test]
fn the_default_share_of_the_last_responses_is_fifteen_per_cent() {
    let sample = session();
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let tokens: Tokens = (9..12).map(|item| view.item_tokens(item)).sum();
    let rule = DigestRule::default();
    let enough = Tokens((tokens.0 * 100).div_ceil(15));
    assert_eq!((rule.tail(&view, enough), rule.tail(&view, enough - Tokens(1))), (9, 10));
}

/// If a line is too long for the rest of the budget, shorter lines are chosen instead.
#[test]
fn lines_are_chosen_within_the_budget() {
    let long: String = (0..43).map(|n| format!("maxLen{n} ")).collect();
    let short: String =
        (0..9).map(|n| format!("it is of minLen{n}, or so it was said\n")).collect();
    let sample = Sample::new().user("Go on.").call(ToolKind::Read, "/p/a.rs");
    let sample = sample.output(&format!("{long}\n{short}"));
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let mut index = FactIndex::default();
    let pieces = index.pieces(&view, &[0, 1, 2], &[], &DigestRule::default());
    let values = Values::from_occurrences(&mut index.occurrences, &index.facts, &pieces);
    let limits = DigestLimits { rules: None, briefs: Tokens(0), effects: Tokens(0), focus: None };
    let choice = Choice::weigh(&index, &pieces, &values, &limits, &Quarters);
    for (budget, lines) in [(40, 3), (60, 5), (80, 7)] {
        let mut choosing = choice.begin(&Quarters);
        choosing.spend(Tokens(budget));
        let chosen: usize = choosing.chosen.values().map(|chosen| chosen.lines.len()).sum();
        assert!(choosing.spent <= budget, "{} of {budget}", choosing.spent);
        assert_eq!(chosen, lines, "{} of {budget}", choosing.spent);
    }
}

/// Calls of different tools are named one by one, even if they follow each other.
#[test]
fn only_calls_of_one_tool_are_named_together() {
    let listing = |sample: Sample| sample.call(ToolKind::List, "/old").output("so it is");
    let sample = listing(listing(Sample::new().user("Go on.")));
    let sample = sample.call(ToolKind::Search, "old").output("so it is").reply("Done.");
    let digest = digest_of(&sample, 70);
    assert_eq!(lines_of(&digest), ["User:", "Go on.", "#1–2 List, #3 Search"]);
}

/// A decision is in a digest even without facts; other lines without facts are not.
#[test]
fn what_the_model_decided_is_in_a_digest() {
    let reply_text = "We go on.\nEach of them waits, because the other never ends.\nNow to it.";
    let sample = Sample::new().user("Go on.").call(ToolKind::List, "/old");
    let sample = sample.output("so it is\n").reply(reply_text).reply("Done.");
    let digest = digest_of(&sample, 70);
    let decision = "… Each of them waits, because the other never ends.";
    assert_eq!(lines_of(&digest), ["User:", "Go on.", "#1 List", "Assistant @2:", decision]);
}

/// A digest contains each error once, at its last occurrence.
#[test]
fn what_failed_is_in_a_digest_whatever_its_budget() {
    let make = |sample: Sample, says: &str| {
        sample.call(ToolKind::Shell, "make").error(&format!("on the way\n{says}\nthe end of it"))
    };
    let sample = make(Sample::new().user("Go on."), "error: number 1\nerror: it broke");
    let sample = make(sample, "error: number 2");
    let sample = make(sample, "error: it broke\nerror: number 3").reply("Done.");
    let digest = digest_of(&sample, 10);
    assert_eq!(
        lines_of(&digest),
        [
            "User:",
            "Go on.",
            "#1 Shell",
            "… error: number 1",
            "#2 Shell",
            "… error: number 2",
            "#3 Shell",
            "… error: it broke",
            "error: number 3",
        ]
    );
}

/// Digests of a growing log are equal whether or not they are made with an index.
#[test]
fn with_an_index_each_digest_of_a_log_that_grows_is_the_same() {
    let rule = DigestRule { whole_user: 20, ..DigestRule::default() };
    let mut learned = FactIndex::default();
    let mut lazy = FactIndex::default();
    let mut sample = Sample::new().user("Why does the test of parse_len fail? Never touch lib.rs.");
    for n in 0..30_u64 {
        let code: Vec<String> = (n..n + 40)
            .map(|k| format!("let value_{k} = compute_{}(src/a{k}.rs);", k % 7))
            .collect();
        sample = sample.call(ToolKind::Read, &format!("/p/src/a{n}.rs"));
        if n % 4 == 3 {
            sample = sample.error(&format!("error: value_{n} broke\n{}", code.join("\n")));
        } else {
            sample = sample.output(&code.join("\n"));
        }
        if n % 5 == 4 {
            sample = sample.reply(&format!("value_{n} is wrong because of compute_{n}."));
            let long = "Do not rename value_1. ".repeat(30);
            sample = sample.user(&format!("{long}\nLook at value_{} as well.", n / 2));
        }
        let transcript = sample.transcript();
        let view = View::new(transcript, sample.source(), &Quarters);
        learn_new(&mut learned, &rule, &view);
        if n % 3 < 2 {
            continue;
        }
        let items: Vec<usize> = (0..transcript.items.len()).collect();
        // In one round, fewer items are digested than in the round before.
        let tail = if n == 20 { items.len() - 4 } else { 3 };
        let (items_given, kept) = items.split_at(items.len() - tail);
        // In another round, items are left out that were digested before.
        let items_given: Vec<usize> =
            items_given.iter().copied().filter(|item| n != 26 || !(1..9).contains(item)).collect();
        let items_given = &items_given[..];
        let old = ReplacedHistory {
            items: items_given,
            originals: items_given,
            all_originals: items_given,
            kept,
        };
        let (budget, others) = (Tokens(150 + 20 * n), Tokens(10));
        let fresh = rule.digest(&view, &old, budget, others).expect("no rules");
        for index in [&mut learned, &mut lazy] {
            let again = rule.digest_with(index, &view, &old, budget, others);
            assert_eq!(again.expect("no rules"), fresh, "after call {n}");
        }
        assert!(fresh.is_some_and(|digest| digest.lines > 2 || n == 20), "after call {n}");
    }
}

/// Indexes the blocks of the last four entries.
fn learn_new(index: &mut FactIndex, rule: &DigestRule, view: &View<'_>) {
    let numbers = crate::call_numbers(view.transcript);
    let last = view.transcript.items.len().saturating_sub(4);
    let entries: Vec<_> = view.transcript.entries().collect();
    for (item, entry) in &entries[last..] {
        for (block, said) in entry.blocks.iter().enumerate() {
            let tokens = view.tokens(*item, block);
            let (number, result) = match said {
                Block::Call(call) => {
                    let output = view.outputs().find(|(_, output, _)| output.call == call.id);
                    (numbers[&*call.id], output.map(|(_, output, _)| output))
                }
                _ => (0, None),
            };
            let complete = Complete { at: (*item, block), entry, number, result, tokens };
            index.learn(rule, view.source, view.counter, complete);
        }
    }
}

#[test]
fn what_an_index_saw_of_other_pieces_does_not_count() {
    let sample = Sample::new().user("See maxLen.").reply("It is in parse_len.");
    let sample = sample.reply("And maxLen is 401.").reply("So parse_len it is.");
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let rule = DigestRule::default();
    let features = |index: &mut FactIndex, said: &[usize]| {
        let pieces = index.pieces(&view, said, &[], &rule);
        value::features(&mut index.occurrences, &index.facts, &pieces)
    };
    let mut index = FactIndex::default();
    for said in [&[0, 1][..], &[0, 1, 2], &[0, 2, 3], &[0], &[0, 1, 2, 3]] {
        let fresh = features(&mut FactIndex::default(), said);
        assert_eq!(features(&mut index, said), fresh, "{said:?}");
    }
}

/// Short texts of the model in six languages.
const CONCLUSIONS: [&str; 6] = [
    "Die Sperre geht verloren, sobald beide Seiten warten.",
    "问题在于两个线程互相等待。",
    "El archivo está vacío porque nadie lo cierra.",
    "Сначала исправлю чтение, потом запись.",
    "原因は古い設定でした。\n\n- 次はテストです。\n}",
    "Both sides wait.",
];

fn concluding() -> Sample {
    let mut sample = Sample::new().user("Go on.");
    for (n, conclusion) in CONCLUSIONS.iter().enumerate() {
        let facts: Vec<String> =
            (0..40).map(|k| format!("src/mod_{n}/file_{k}.rs: parseLen_{k} failed")).collect();
        sample = sample.call(ToolKind::List, &format!("/p/src/mod_{n}"));
        sample = sample.output(&facts.join("\n")).reply(conclusion);
    }
    sample.reply("Done.")
}

#[test]
fn short_texts_of_the_model_are_in_a_digest_whole_in_any_language() {
    let sample = concluding();
    let tokens: u64 = CONCLUSIONS.iter().map(|text| Quarters.count(text).0).sum();
    let text = digest_of(&sample, 10 * tokens).text;
    let lost: Vec<&str> = CONCLUSIONS.into_iter().filter(|said| !text.contains(said)).collect();
    assert_eq!(lost, Vec::<&str>::new(), "{text}");
    assert!(text.contains("/p/src/mod_"), "results are in it as well: {text}");
}

#[test]
fn of_more_short_texts_than_a_tenth_of_the_budget_the_newest_are_in_a_digest() {
    let sample = concluding();
    let last: u64 = CONCLUSIONS[4..].iter().map(|text| Quarters.count(text).0).sum();
    let text = digest_of(&sample, 10 * last).text;
    let is_there = CONCLUSIONS.map(|said| text.contains(said));
    assert_eq!(is_there, [false, false, false, false, true, true], "{text}");
}

#[test]
fn a_text_that_the_model_says_again_is_in_a_digest_once() {
    let listing = |sample: Sample| sample.call(ToolKind::List, "/old").output("so it is");
    let sample = listing(Sample::new().user("Go on.")).reply("Weiter.");
    let sample = listing(sample).reply("Weiter.").reply("Done.");
    let digest = digest_of(&sample, 300);
    assert_eq!(digest.text.matches("Weiter.").count(), 1, "{}", digest.text);
}

/// Calls between short texts of the model are named below the last of these texts.
#[test]
fn short_texts_that_follow_each_other_have_one_heading() {
    let listing = |sample: Sample| sample.call(ToolKind::List, "/old").output("so it is");
    let sample = listing(Sample::new().user("Go on.")).reply("第一。");
    let sample = listing(sample).reply("Dann das.").reply("Done.");
    let digest = digest_of(&sample, 300);
    assert_eq!(
        lines_of(&digest),
        ["User:", "Go on.", "#1 List", "Assistant:", "第一。", "Dann das.", "#2 List"]
    );
}

#[test]
fn a_long_answer_keeps_its_headings_and_its_ends_before_anything_else_of_it() {
    let middle: Vec<String> =
        (0..30).map(|n| format!("- `src/len_{n}.rs:{n}` calls parseLen_{n}")).collect();
    let long_reply = format!(
        "Ich habe alles gelesen.\n\n## Befund\n\n{}\n\n**次のステップ**\n\nmore of it\n\nEs bleibt so.",
        middle.join("\n")
    );
    let sample = Sample::new().user("Go on.").reply(&long_reply).reply("Done.");
    let frame = ["Ich habe alles gelesen.", "## Befund", "**次のステップ**", "Es bleibt so."];
    for budget in [40, 45, 50, 55, 80, 300] {
        let digest = digest_of(&sample, budget);
        let has_all = frame.iter().all(|line| digest.text.contains(line));
        let has_more = digest.text.contains("parseLen_");
        assert!(has_all || !has_more, "{budget}: {}", digest.text);
        assert!(has_more == (budget >= 80), "{budget}: {}", digest.text);
    }
}

#[test]
fn lines_that_have_words_of_the_focus_are_worth_more() {
    let lines = |what: &str| -> String {
        let lines = (0..60).map(|n| format!("src/file_{n}.rs: {what} of value_{n}\n"));
        lines.collect()
    };
    let sample = Sample::new().user("Go on.").call(ToolKind::Shell, "a");
    let sample = sample.output(&lines("the old Größenprüfung, its length"));
    let sample = sample.call(ToolKind::Shell, "b").output(&lines("a new 缓存失效 as well"));
    let sample = sample.call(ToolKind::Shell, "c").output(&lines("проверка длины, or so"));
    let sample = sample.reply("Yes.").reply("Done.");
    let view = View::new(sample.transcript(), sample.source(), &Quarters);
    let items: Vec<usize> = (0..sample.transcript().items.len()).collect();
    let (old_items, kept) = items.split_at(items.len() - 1);
    let old =
        ReplacedHistory { items: old_items, originals: old_items, all_originals: old_items, kept };
    let counts = |focus: Option<&str>| {
        let rule =
            DigestRule { focus: focus.map(str::to_owned), whole_model: 0, ..DigestRule::default() };
        let digest = rule.digest(&view, &old, Tokens(400), Tokens(0));
        let text = digest.expect("no rules").expect("a digest").text;
        ["Größenprüfung", "缓存失效", "проверка"].map(|word| text.matches(word).count())
    };
    // Without a topic, shorter lines are chosen.
    let none = counts(None);
    assert_eq!((none[0], none[2]), (0, 0), "{none:?}");
    for (at, focus) in ["die GRÖSSENPRÜFUNG, GRÖßENPRÜFUNG", "关于缓存失效", "ПРОВЕРКА длины"]
        .into_iter()
        .enumerate()
    {
        let with = counts(Some(focus));
        let all: usize = with.iter().sum();
        assert!(with[at] * 10 >= all * 9, "{focus}: {with:?} instead of {none:?}");
    }
    // A word that no line contains changes nothing, and neither does a topic without words.
    assert_eq!(counts(Some("nothing")), none);
    assert_eq!(counts(Some(" ,.")), none);
}

/// A model that does not see that it has pushed may push again.
#[test]
fn a_command_with_an_effect_is_named_whatever_its_facts_are_worth() {
    let run =
        |sample: Sample, command: &str| sample.call(ToolKind::Shell, command).output("so it is\n");
    let mut sample = Sample::new().user("Go on.");
    for command in ["git push", "ls", "git push", "ls", "ls", "git commit -m x"] {
        sample = run(sample, command);
    }
    let sample = sample.call(ToolKind::Shell, "npm publish").error("error: no");
    let digest = digest_of(&sample.reply("Done."), 900);
    let expected = [
        "User:",
        "Go on.",
        "#1–2 Shell",
        "#3 Shell git push",
        "#4–5 Shell",
        "#6 Shell git commit -m x",
        "#7 Shell",
        "error: no",
    ];
    assert_eq!(lines_of(&digest), expected);
}

/// A digest names the newest commands with an effect, in at most a twentieth of the budget.
#[test]
fn commands_with_an_effect_are_limited_by_the_budget() {
    let mut sample = Sample::new().user("Go on.");
    for command in ["git tag", "git merge", "git rebase", "git commit", "git push"] {
        sample = sample.call(ToolKind::Shell, command).output("so it is\n");
    }
    let digest = digest_of(&sample.reply("Done."), 260);
    let expected = ["User:", "Go on.", "#1–3 Shell", "#4 Shell git commit", "#5 Shell git push"];
    assert_eq!(lines_of(&digest), expected);
}
