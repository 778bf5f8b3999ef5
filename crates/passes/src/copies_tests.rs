use epitome_model::Item;
use epitome_model::ToolKind::Read;
use samples::Sample;

use super::*;
use crate::testing::check;

const JSON: &str = r#"{"copy":"of a result"}"#;

#[test]
fn hidden_fields_go_from_what_is_not_kept_or_from_all() {
    let sample = Sample::new().user("Look.").hidden("toolUseResult", JSON);
    let pass = |scope| Copies { min_bytes: 0, scope };
    check(&pass(Scope::Old), &sample, &[], &["1.c0 gone"]);
    check(&pass(Scope::Old), &sample, &[1], &[]);
    check(&pass(Scope::All), &sample, &[1], &["1.c0 gone"]);
}

#[test]
fn short_fields_stay_and_so_do_those_that_leave_as_much() {
    let sample = |json: &str| Sample::new().hidden("toolUseResult", json);
    let pass = |min_bytes| Copies { min_bytes, scope: Scope::Old };
    check(&pass(JSON.len() as u64), &sample(JSON), &[], &[]);
    check(&pass(JSON.len() as u64 - 1), &sample(JSON), &[], &["0.c0 gone"]);
    for (left, expect) in [
        (FieldRemainder::Nothing, 1),
        (FieldRemainder::EmptyObject, 0),
        (FieldRemainder::EmptyArray, 0),
    ] {
        let empty = Vec::new();
        let mut transcript = sample("{}").transcript().clone();
        let Some(Item::Hidden(kept)) = transcript.items.first_mut() else { panic!("it is hidden") };
        kept.hidden_fields[0].left = left;
        let view = View::new(&transcript, &empty, &samples::Quarters);
        assert_eq!(pass(0).plan(&view).len(), expect, "{left:?}");
    }
}

#[test]
fn a_result_that_is_sent_again_goes() {
    let sample = Sample::new().call(Read, "/p/a").output("x").output("x").with(|entry| {
        let Some(Block::Output(output)) = entry.blocks.pop() else { panic!("it is a result") };
        let whole = output.whole;
        entry.blocks.push(Block::Repeated(epitome_model::RepeatedOutput { output, whole }));
    });
    check(&Copies::default(), &sample, &[], &["2 gone"]);
}
