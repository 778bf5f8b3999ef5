use epitome_model::ToolKind::Read;
use samples::Sample;

use super::*;
use crate::testing::check;

const PASS: Images = Images { min_bytes: 0 };

#[test]
fn pictures_become_stubs_with_their_type_and_size() {
    let sample = Sample::new()
        .image(4_000)
        .call(Read, "/p/a.png")
        .output_with_image("a picture", 4_000)
        .reply("I see.");
    let stub = "[epitome k#: image/png, 3.0 KB]";
    let expect = [format!("0 = {stub}"), format!("2.p1 = {stub}")];
    check(&PASS, &sample, &[], &expect.each_ref().map(String::as_str));
    check(&PASS, &sample, &[0], &[&expect[1]]);
    check(&Images { min_bytes: 4_002 }, &sample, &[], &[]);
}

#[test]
fn a_picture_that_is_shorter_than_its_stub_stays() {
    check(&PASS, &Sample::new().image(60), &[], &[]);
}
