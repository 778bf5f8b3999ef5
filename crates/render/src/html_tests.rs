use epitome_model::ToolKind::{Shell, Todo};
use samples::Sample;

use crate::testing::{every_block, told};
use crate::{Detail, Html, PageName};

/// The conversation on the first page of a session.
fn conversation(sample: &Sample, detail: Detail) -> String {
    told(sample, detail, |story| {
        let page = Html::paged(story, PageName::new("session"), None).page(0);
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
    told(&sample, Detail::Steps, |story| {
        let html = Html::paged(story, PageName::new("session"), None);
        let files: Vec<String> = (0..html.pages()).map(|page| html.file(page)).collect();
        assert_eq!(files, ["session.html", "session-2.html", "session-3.html"]);
        assert!(html.page(0).contains("rel=\"next\" href=\"session-2.html\""));
        assert!(html.page(1).contains("rel=\"prev\" href=\"session.html\""));
        let whole = Html::whole(story, Vec::new());
        assert_eq!(whole.pages(), 1);
    });
}
