use epitome_model::FieldRole::{Command, Content, New, Old};
use epitome_model::ToolKind::{Edit, Shell, Write};
use samples::Sample;

use super::*;
use crate::testing::{check, lines};

fn write(text: &str) -> Sample {
    Sample::new().call_with(Write, "/p/a", &[(Content, text)]).output("done")
}

fn styled(style: DigestStyle) -> Arguments {
    Arguments { style, head: 1, tail: 1, ..Arguments::default() }
}

#[test]
fn each_style_leaves_what_it_says() {
    let (first, last) = ("line 001 of a long text", "line 020 of a long text");
    let ends = format!("{first} / … / {last}");
    let cases = [
        (DigestStyle::Stub, format!("[epitome k#: 20 lines] / {ends}")),
        (DigestStyle::Named, format!("[epitome k#] / {ends}")),
        (DigestStyle::Counted, "[content: 20 lines]".to_owned()),
        (DigestStyle::Placeholder, CLEARED.to_owned()),
    ];
    for (style, expect) in cases {
        check(&styled(style), &write(&lines(20)), &[], &[&format!("0.f0 = {expect}")]);
    }
}

#[test]
fn an_outline_is_of_what_was_written_and_not_of_an_edit() {
    let code = format!("fn one() {{\n{}\n}}\nstruct Two;\n{}", lines(9), lines(9));
    let pass = Arguments { outline: 5, ..Arguments::default() };
    let outline = "0.f0 = [epitome k#: 21 lines] / fn one() { / … / struct Two;";
    check(&pass, &write(&code), &[], &[outline]);
    let edit = Sample::new().call_with(Edit, "/p/a", &[(Old, &code)]).output("done");
    check(&pass, &edit, &[], &["0.f0 = [epitome k#: 21 lines]"]);
}

#[test]
fn only_the_named_roles_and_tools_are_shortened() {
    let text = lines(20);
    let sample = Sample::new()
        .call_with(Edit, "/p/a", &[(Old, &text), (New, "short"), (Command, &text)])
        .output("done")
        .call_with(Shell, "run", &[(Command, &text)])
        .output("done");
    let of = |roles: &[FieldRole], tools: &[&str]| Arguments {
        roles: roles.to_vec(),
        tools: tools.iter().map(|it| (*it).to_owned()).collect(),
        style: DigestStyle::Counted,
        ..Arguments::default()
    };
    let (old, edit, shell) =
        ("0.f0 = [old: 20 lines]", "0.f2 = [command: 20 lines]", "2.f0 = [command: 20 lines]");
    check(&of(&[Old, New], &[]), &sample, &[], &[old]);
    check(&of(&[Old, Command], &[]), &sample, &[], &[old, edit, shell]);
    check(&of(&[Command], &["SHELL"]), &sample, &[], &[shell]);
}

#[test]
fn open_kept_short_and_already_shortened_calls_stay() {
    let pass = styled(DigestStyle::Counted);
    let text = lines(20);
    check(&pass, &Sample::new().call_with(Write, "/p/a", &[(Content, &text)]), &[], &[]);
    check(&pass, &write(&text), &[0], &[]);
    check(&pass, &write("x"), &[], &[]);
    check(&pass, &write(&format!("[epitome k1234567: 20 lines]\n{text}")), &[], &[]);
    check(&Arguments { min_bytes: 10_000, ..pass.clone() }, &write(&text), &[], &[]);
    check(&Arguments { min_call_bytes: 10_000, ..pass }, &write(&text), &[], &[]);
}
