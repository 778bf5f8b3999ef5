use epitome_model::FieldRole::{New, Old};
use epitome_model::ToolKind::{Edit, Patch, Shell, Todo};
use epitome_model::{Block, FieldRole};
use samples::Sample;

use crate::testing::{every_block, with_story};
use crate::{Detail, Facts, Html, Index, Listing, PageName, facts_of_page, is_index_page};

/// The conversation on the first page of a session.
fn conversation(sample: &Sample, detail: Detail) -> String {
    with_story(sample, detail, |story| {
        let page = Html::with_pages(story, PageName::new("session"), None).page(0);
        let (_, content) = page.split_once("<main id=\"content\">").expect("a page has content");
        let (content, _) = content.split_once("</main>").expect("the content ends");
        content.replace("<section", "\n<section").replace("<div", "\n<div")
    })
}

#[test]
fn a_session_is_a_page_with_all_its_steps() {
    insta::assert_snapshot!(conversation(&every_block(), Detail::Steps));
}

#[test]
fn no_tag_and_no_control_character_of_a_session_is_on_its_page() {
    let text = "<img src=x onerror=alert(1)>\u{1b}[31m\u{202e}<svg/onload=a>";
    let sample = Sample::new()
        .user(text)
        .thinking(text)
        .call(Shell, text)
        .output(text)
        .call(Todo, text)
        .error(text)
        .summary(text)
        .reply(text);
    let page = conversation(&sample, Detail::Full);
    for bad in ["<img", "<svg", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(bad), "{bad:?} in {page}");
    }
}

#[test]
fn a_long_session_has_several_pages_that_name_each_other() {
    let text = "word ".repeat(60_000);
    let sample = (0..6).fold(Sample::new(), |sample, _| sample.user("Go.").reply(&text));
    with_story(&sample, Detail::Steps, |story| {
        let html = Html::with_pages(story, PageName::new("session"), None);
        let files: Vec<String> = (0..html.pages()).map(|page| html.file(page)).collect();
        assert_eq!(files, ["session.html", "session-2.html", "session-3.html"]);
        assert!(html.page(0).contains("rel=\"next\" href=\"session-2.html\""));
        assert!(html.page(1).contains("rel=\"prev\" href=\"session.html\""));
        let second = html.page(1);
        assert_eq!((facts_of_page(&second), is_index_page(&second)), (None, false));
        let whole = Html::single_page(story, Vec::new());
        assert_eq!(whole.pages(), 1);
    });
}

/// The cards of the only turn of a session, without the last end tag.
fn cards(sample: &Sample) -> String {
    let page = conversation(sample, Detail::Steps);
    let from = page.find("<details class=\"card").expect("a card");
    let to = page.rfind("</details>").expect("it ends");
    page[from..to].to_owned()
}

#[test]
fn a_change_is_a_difference_in_which_every_line_is_escaped() {
    let (old, new) = ("<a>\nsame\n", "<b>\u{202e}\nsame\n");
    let sample = Sample::new().call_with(Edit, "/p/x", &[(Old, old), (New, new)]).output("");
    let card = cards(&sample);
    let expect = "<pre class=\"diff\"><code><del>− &lt;a&gt;\n</del>\
        <ins>+ &lt;b&gt;<span class=\"ctl\">\\u{202e}</span>\n</ins>\
        <span>  same\n</span></code></pre>";
    assert!(card.contains(expect), "{card}");
    assert!(card.starts_with("<details class=\"card\" data-kind=\"change\" open>"), "{card}");
}

#[test]
fn a_patch_has_its_lines_in_their_colours() {
    let patch = "*** Update File: x\n@@\n-a\n+<b>\n same";
    let sample = Sample::new().call_with(Patch, "/p/x", &[(FieldRole::Patch, patch)]);
    let expect = "<pre class=\"diff\"><code><span class=\"hunk\">*** Update File: x\n</span>\
        <span class=\"hunk\">@@\n</span><del>-a\n</del><ins>+&lt;b&gt;\n</ins>\
        <span> same\n</span></code></pre>";
    let card = cards(&sample);
    assert!(card.contains(expect), "{card}");
    assert!(card.contains("<span class=\"open\">no result</span>"), "{card}");
}

#[test]
fn a_failed_call_is_folded_and_marked() {
    let sample = Sample::new().call_with(Edit, "/p/x", &[(Old, "a")]).error("\u{1b}[31mbad");
    let card = cards(&sample);
    assert!(card.starts_with("<details class=\"card failed\" data-kind=\"change\"><summary>"));
    let result = "<div class=\"out error\"><pre class=\"term\"><span class=\"f1\">bad</span></pre>";
    assert!(card.contains(result), "{card}");
}

#[test]
fn a_failed_change_says_first_why() {
    let sample = Sample::new().call_with(Edit, "/p/x", &[(Old, "a"), (New, "b")]).error("bad");
    let expect = "<div class=\"body\"><div class=\"out error\"><pre class=\"term\">bad</pre></div>\
        <pre class=\"diff\">";
    let card = cards(&sample).replace('\n', "");
    assert!(card.contains(expect), "{card}");
}

#[test]
fn a_picture_is_shown_only_if_it_runs_nothing() {
    let page = |media: &'static str| {
        let sample = Sample::new().image(8).with(|entry| {
            let Some(Block::Image(image)) = entry.blocks.first_mut() else { panic!("it is") };
            image.media = media.into();
        });
        conversation(&sample, Detail::Steps)
    };
    let png = page("image/PNG");
    assert!(png.contains("src=\"data:image/png;base64,AAAAAAAA\""), "{png}");
    for media in ["image/svg+xml", "text/html", "image/png\"onload=x"] {
        let page = page(media);
        assert!(!page.contains("<img"), "{page}");
        let gap = format!("a picture ({}, 7 B) that is not shown", media.replace('"', "&quot;"));
        assert!(page.contains(&gap), "{page}");
    }
}

#[test]
fn an_index_lists_sessions_from_the_newest_and_leads_nowhere_else() {
    let listing = |name: &str, started: Option<&str>, file: &str| Listing {
        name: name.into(),
        files: vec![file.into(), format!("{name}.md")],
        facts: Facts {
            title: format!("<{name}>"),
            started: started.map(str::to_owned),
            turns: 1,
            ..Facts::default()
        },
        ..Listing::default()
    };
    let index = Index::new(vec![
        listing("a", Some("2026-11-20T10:00:00Z"), "a.html"),
        listing("b", None, "javascript:alert(1)"),
        listing("a", Some("2026-11-21T10:00:00Z"), "a/a.html"),
        listing("c", Some("2026-11-22T10:00:00Z"), "/etc/passwd"),
    ]);
    let names: Vec<&str> = index.sessions.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["c", "a", "b"]);
    let page = index.page();
    assert!(is_index_page(&page) && page.contains("<h1>3 sessions</h1>"), "{page}");
    let links: Vec<&str> = page
        .split("<a class=\"title\" href=\"")
        .skip(1)
        .map(|rest| rest.split_once("</a>").map_or("", |(link, _)| link))
        .collect();
    let expect =
        ["#\"><bdi>&lt;c&gt;</bdi>", "a/a.html\"><bdi>&lt;a&gt;</bdi>", "#\"><bdi>&lt;b&gt;</bdi>"];
    assert_eq!(links, expect);
}

#[test]
fn the_facts_of_a_session_are_read_back_from_its_page() {
    let sample = Sample::new().user("\"<Go>\" & on.").call(Shell, "ls").error("bad");
    let (page, facts) = with_story(&sample, Detail::Steps, |story| {
        (Html::with_pages(story, PageName::new("session"), None).page(0), Facts::from_story(story))
    });
    assert_eq!(facts_of_page(&page), Some(facts));
    assert_eq!(facts_of_page("<html></html>"), None);
    assert!(!is_index_page(&page));
}
