use epitome_model::ToolKind::{Edit, Read, Shell};
use epitome_model::{CacheUse, MicroDollars, RecordedUsage};
use samples::Sample;

use super::*;
use crate::testing::{every_block, with_story};

fn pages(sample: &Sample) -> Vec<String> {
    with_story(sample, Detail::Steps, |story| {
        let html = Html::with_pages(story, PageName::new("session"), None);
        (0..html.pages()).map(|page| html.page(page)).collect()
    })
}

/// The content of each element that begins with `begin` and ends with `end`.
fn parts<'p>(page: &'p str, begin: &str, end: &str) -> Vec<&'p str> {
    let parts = page.split(begin).skip(1);
    parts.map(|part| part.split_once(end).map_or("no end", |(inside, _)| inside)).collect()
}

fn took(page: &str) -> Vec<&str> {
    parts(page, "<p class=\"took\">", "</p>")
}

/// Sets the time of the last entry to a second of one day.
fn at(sample: Sample, second: u32) -> Sample {
    let (h, m, s) = (second / 3_600, second / 60 % 60, second % 60);
    sample.with(|entry| entry.time = Some(format!("2026-11-22T{h:02}:{m:02}:{s:02}Z").into()))
}

#[test]
fn a_turn_says_what_it_took() {
    let page = &pages(&every_block())[0];
    let first = "4 steps · <a class=\"bad\" href=\"#m7\">1 failed</a> · 3m 0s · \
        <span title=\"tokens that 1 request read and wrote\">1.0k in, 50 out</span>";
    assert_eq!(took(page), [first, "1 step · 1m 0s"]);
}

#[test]
fn what_a_turn_took_is_left_out_where_it_is_not_known() {
    let usage = |cost| RecordedUsage {
        input: 1_000,
        output: 0,
        cache: Some(CacheUse { read: 939, written: 0 }),
        cost: Some(MicroDollars(cost)),
    };
    let sample = Sample::new()
        .user("One.")
        .reply("Yes.")
        .with(|entry| entry.usage = Some(usage(250_000)))
        .user("Two.")
        .reply("No.");
    let first = "<span title=\"tokens that 1 request read and wrote\">1.0k in (93% cached)</span> \
        · <span title=\"$0.25\">$0.25</span>";
    assert_eq!(took(&pages(&sample)[0]), [first]);
}

#[test]
fn requests_of_one_turn_are_not_counted_in_another() {
    let usage = |input| Some(RecordedUsage { input, output: 1, ..RecordedUsage::default() });
    let sample = Sample::new()
        .user("One.")
        .thinking("Hm.")
        .with(|entry| (entry.group, entry.usage) = (Some("a".into()), usage(5)))
        .reply("Yes.")
        .with(|entry| (entry.group, entry.usage) = (Some("a".into()), usage(7)))
        .user("Two.")
        .reply("No.")
        .with(|entry| entry.usage = usage(11));
    let of =
        |input: u64| format!("title=\"tokens that 1 request read and wrote\">{input} in, 1 out");
    let page = &pages(&sample)[0];
    let turns = took(page);
    assert!(turns[0].contains(&of(7)) && turns[1].contains(&of(11)), "{turns:?}");
}

#[test]
fn the_time_above_a_session_is_that_without_pauses() {
    let sample = at(Sample::new().user("One."), 0);
    let sample = at(at(at(sample.reply("Yes."), 4).user("Two."), 3_600).reply("No."), 3_610);
    let page = &pages(&sample)[0];
    let expect = "<span title=\"1h 0m from the first record to the last; active is the time \
        without pauses of more than 5 minutes\">14s active</span>";
    assert!(page.contains(expect), "{page}");
    assert_eq!(took(page), ["4s", "10s"]);
}

/// Three pages of two turns, with a failed call on the second page and one on the third.
fn long() -> Sample {
    let text = "word ".repeat(60_000);
    (0..6).fold(Sample::new(), |sample, turn| {
        let sample = sample.user("Go.");
        let sample =
            if turn == 3 || turn == 5 { sample.call(Shell, "false").error("no") } else { sample };
        sample.reply(&text)
    })
}

#[test]
fn failures_lead_to_each_other_from_page_to_page() {
    let pages = pages(&long());
    let links = |page: &str| {
        let links = parts(page, "<a ", "</a>").into_iter();
        let links = links.filter(|link| link.contains("ailed")).map(str::to_owned);
        links.collect::<Vec<_>>()
    };
    let second = "href=\"session-2.html#m7\"";
    let third = "href=\"session-3.html#m13\"";
    assert_eq!(
        links(&pages[0]),
        [
            format!("class=\"bad\" {second} aria-label=\"2 failed: go to the first\">2"),
            format!("id=\"later\" {second}>↓ Next failed call"),
        ]
    );
    assert_eq!(
        links(&pages[1]),
        [
            "class=\"bad\" href=\"#m7\">1 failed".to_owned(),
            format!("id=\"later\" {third}>↓ Next failed call"),
        ]
    );
    assert_eq!(
        links(&pages[2]),
        [
            "class=\"bad\" href=\"#m13\">1 failed".to_owned(),
            format!("id=\"earlier\" {second}>↑ Failed call before"),
        ]
    );
}

#[test]
fn failures_of_a_nested_session_have_its_anchors() {
    let page = with_story(&every_block(), Detail::Steps, |story| {
        Html::single_page(story, vec![("a1".to_owned(), story)]).page(0)
    });
    assert_eq!(parts(&page, "<a class=\"bad\" href=\"", "\""), ["#m7", "#m7", "#a1-m7"]);
}

#[test]
fn every_block_has_the_kinds_that_the_filter_knows() {
    let sample = every_block().call(Edit, "/p/x").error("no").system("Mind.").summary("Short.");
    let page = &pages(&sample)[0];
    let expect = [
        "user",
        "thinking",
        "tool",
        "tool file",
        "tool error",
        "answer",
        "user",
        "user",
        "tool file",
        "answer",
        "tool file error",
        "other",
        "other",
    ];
    assert_eq!(parts(page, "data-is=\"", "\""), expect);
    // Without the script the controls would do nothing: they are hidden.
    let group = "<div id=\"kinds\" role=\"group\" aria-label=\"Show only\" hidden>";
    let kinds = ["user", "answer", "tool", "thinking", "error", "file"];
    assert_eq!(parts(parts(page, group, "</div>")[0], "data-show=\"", "\""), kinds);
    assert!(page.contains("<dialog id=\"keys\" aria-labelledby=\"keys-name\">"), "{page}");
}

/// A file that is read from line 8 on, with a reminder after it.
fn with_reminder() -> Sample {
    let text = "8→<a>\n9→b\n\n<system-reminder>\nMind <it>.\n</system-reminder>\n";
    Sample::new().user("Go.").call(Read, "/p/a.rs").output(text).with(|entry| {
        let Some(epitome_model::Block::Output(output)) = entry.blocks.first_mut() else {
            panic!("it is a result")
        };
        output.numbered = true;
    })
}

#[test]
fn a_reminder_is_folded_and_no_code() {
    let page = &pages(&with_reminder())[0];
    let body = "<div class=\"body\"><p class=\"arg\">lines 8–9</p><div class=\"out\">\
        <pre class=\"code\"><code>&lt;a&gt;\nb\n</code></pre></div>\
        <details class=\"note\"><summary>System reminder</summary>\
        <pre class=\"term\">Mind &lt;it&gt;.</pre></details></div>";
    assert!(page.contains("<span class=\"meta\"><span>2 lines</span></span>"), "{page}");
    let plain = page.replace("<span class=\"hk\">", "").replace("<span class=\"ht\">", "");
    assert!(plain.replace("</span>", "").contains(body), "{page}");
}

#[test]
fn a_reminder_in_a_message_is_folded_and_in_no_title() {
    let text = "<system-reminder>Mind it.</system-reminder>\nFix the test.";
    let page = &pages(&Sample::new().user(text).reply("<system-reminder> is a tag."))[0];
    let expect = "<p>Fix the test.</p></div><details class=\"note\"><summary>System reminder\
        </summary><pre class=\"term\">Mind it.</pre></details></article>";
    assert!(page.contains(expect), "{page}");
    assert!(page.contains("<h1><bdi>Fix the test.</bdi></h1>"), "{page}");
    assert!(page.contains("<p>&lt;system-reminder&gt; is a tag.</p>"), "{page}");
}

#[test]
fn a_search_of_all_pages_is_offered_where_there_are_several() {
    let link = |sample: &Sample| {
        with_story(sample, Detail::Steps, |story| {
            let html = Html::with_pages(story, PageName::new("session"), None);
            let page = html.searched_at("../search?q=session:x%20".to_owned()).page(0);
            parts(&page, "<a id=\"all\"", "</a>").first().map(|link| (*link).to_owned())
        })
    };
    let expect = " href=\"../search?q=session:x%20\" data-search=\"../search?q=session:x%20\" \
        hidden>all pages";
    assert_eq!(link(&long()).as_deref(), Some(expect));
    assert_eq!(link(&every_block()), None);
}
