use epitome_model::{FieldRole, ToolKind};
use samples::Sample;

use super::*;
use crate::testing::{history, text};

#[test]
fn a_call_is_billed_and_lacks_what_its_request_does_not_hold() {
    let sample = Sample::new()
        .user("Fix it.")
        .call(ToolKind::Read, "src/first.rs")
        .output("let first_line = 1;")
        .call_with(ToolKind::Edit, "src/first.rs", &[(FieldRole::Old, "let first_line = 1;")]);
    let history = history(&sample);
    let needs = Needs::from_history(&history);
    let first_pieces = |to: usize| history.pieces[..to].to_vec();
    let [user, call, result] = [0, 1, 2].map(|n| history.pieces[n].tokens);
    let output = |call: usize| history.response(call)[0].tokens;

    let whole = |is_cold: bool| {
        let mut replay = Replay::new(&history, &needs, Tokens(100));
        (replay.call(0, first_pieces(1), false), replay.call(1, first_pieces(3), is_cold))
    };
    let bill = |cached, written, output| Bill { cached, written, output };
    let (first, second) = whole(false);
    assert_eq!(first.prefix, bill(Tokens(100), user, output(0)));
    assert_eq!(second.prefix, bill(user + Tokens(100), call + result, output(1)));
    assert_eq!(second.context, user + call + result + Tokens(100));
    assert_eq!((first.recall, second.recall, second.far), (None, Some(1.0), None));
    assert_eq!((second.edits, second.reread, second.rereads), (1, 0, Bill::default()));
    let cold = whole(true).1.prefix;
    assert_eq!(cold, bill(Tokens(0), user + call + result + Tokens(100), output(1)));

    let mut replay = Replay::new(&history, &needs, Tokens(100));
    replay.call(0, first_pieces(1), false);
    let short = Arc::new(text("src/first.rs was read"));
    let lacking = replay.call(1, vec![short], false);
    assert!(lacking.recall.is_some_and(|recall| recall > 0.0 && recall < 1.0), "{lacking:?}");
    let again = bill(lacking.context + Tokens(result.0 * 8), result, Tokens(80));
    assert_eq!((lacking.edits, lacking.reread, lacking.rereads), (1, 1, again));
}
