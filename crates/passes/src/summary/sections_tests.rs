use super::*;

fn titles(json: &str) -> Vec<String> {
    let sections: Sections = serde_json::from_str(json).expect("sections");
    sections.all().into_iter().map(|section| section.title).collect()
}

#[test]
fn every_set_has_its_name_and_its_headings() {
    let cases = [
        ("s06", 3, "What was accomplished", "Key decisions"),
        ("jcli", 4, "What was accomplished", "Active skill or workflow"),
        ("s08", 5, "Goal", "User constraints"),
        ("pi", 6, "Goal", "Critical Context"),
        ("ion", 7, "Task state", "Next steps"),
        ("jcli-9", 9, "Primary request", "Next step"),
        ("claude-code", 9, "Primary request and intent", "Next step"),
    ];
    for (name, n, first, last) in cases {
        let found = titles(&format!("\"{name}\""));
        let ends = (found.len(), &*found[0], &*found[found.len() - 1]);
        assert_eq!(ends, (n, first, last), "{name}");
    }
    assert_eq!(Sections::default().all(), SectionSet::Ion.all());
}

#[test]
fn headings_of_a_users_own_are_on_one_line_and_named_once() {
    assert_eq!(titles(r#"["Goal", " Next\n steps ", "", "Goal"]"#), ["Goal", "Next steps"]);
    assert_eq!(titles(r#"[" "]"#), titles("\"ion\""));
}

#[test]
fn an_unknown_set_is_refused_with_the_names_of_all() {
    let err = serde_json::from_str::<Sections>("\"s07\"").expect_err("there is no such set");
    let names = "a list of headings, or one of s06, jcli, s08, pi, ion, jcli-9, claude-code";
    assert_eq!(err.to_string(), names);
}
