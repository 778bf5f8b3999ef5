use epitome_model::ToolKind::Read;
use samples::Sample;

use super::*;
use crate::testing::check;

const PASS: Thinking = Thinking {};

#[test]
fn reasoning_that_is_not_kept_is_removed_whole() {
    let sample =
        Sample::new().user("Why?").thinking("Hm.").reply("So.").user("And?").thinking("Ah.");
    check(&PASS, &sample, &[], &["1 gone", "4 gone"]);
    check(&PASS, &sample, &[3, 4], &["1 gone"]);
}

#[test]
fn reasoning_that_the_api_asks_for_stays() {
    let sample = Sample::new().user("Why?").thinking("Hm.").with(|entry| {
        let Some(Block::Thinking(thinking)) = entry.blocks.first_mut() else { panic!("it is") };
        thinking.removable = false;
    });
    check(&PASS, &sample.reply("So."), &[], &[]);
}

#[test]
fn an_open_turn_begins_with_the_reasoning_that_it_began_with() {
    let open = || {
        Sample::new()
            .user("Why?")
            .thinking("First.")
            .call(Read, "/p/a")
            .output("x")
            .thinking("Then.")
            .call(Read, "/p/b")
            .output("y")
    };
    check(&PASS, &open(), &[], &["4 gone"]);
    check(&PASS, &open().reply("So."), &[], &["1 gone", "4 gone"]);
}
