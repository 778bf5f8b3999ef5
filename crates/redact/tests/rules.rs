//! The rules that come with epitome.

use std::collections::BTreeSet;

use epitome_redact::{Finder, Kind, RuleFault, Rules};

#[test]
fn there_are_many_and_each_can_be_used() {
    let rules = Rules::built_in();
    let ids: Vec<&str> = rules.ids().collect();
    let different: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(different.len(), ids.len(), "two rules of one name");
    let secrets = rules.iter().filter(|rule| rule.kind() == Kind::Secrets).count();
    assert!(secrets >= 200, "{secrets}");
    for rule in rules.iter() {
        assert!(!rule.description.is_empty(), "{}", rule.id);
        let expression = rule.regex.as_deref().expect("a rule for texts");
        assert!(
            regex::bytes::RegexBuilder::new(expression)
                .unicode(false)
                .size_limit(64 << 20)
                .build()
                .is_ok(),
            "{}",
            rule.id
        );
    }
    Finder::new(rules).expect("they are rules");
}

/// Each rule finds what its expression describes: alone, and among other words.
#[test]
fn each_rule_finds_what_its_expression_says() {
    let finder = Finder::new(Rules::built_in()).expect("rules");
    let mut blind = Vec::new();
    for (idx, rule) in finder.rules().enumerate() {
        let expression = rule.regex.as_deref().expect("a rule for texts");
        let found = (0..300).any(|seed| {
            let text = format!("see {} there", fixtures::planted::like(expression, seed));
            finder.find(&text).iter().any(|hit| hit.rule == idx)
        });
        if !found {
            blind.push(rule.id.clone());
        }
    }
    // Values that a random generator does not produce: base64 of a password, the name of a service
    // near it, check digits.
    let unlikely = [
        "mailgun-new-key",
        "twilio-account-sid",
        "basic-auth",
        "docker-config-auth",
        "iban",
        "german-tax-id",
        "italian-tax-code",
    ];
    assert_eq!(blind, unlikely);
}

#[test]
fn an_expression_that_is_too_large_is_refused() {
    let text = r#"
        [[rules]]
        id = "huge"
        regex = '(?:[a-z]{1000}){1000}'
        keywords = ["a"]
    "#;
    let refused = Rules::parse(text).expect("it can be parsed").into_checked().map(|_| ());
    let what = "Compiled regex exceeds size limit of 67108864 bytes.".to_owned();
    assert_eq!(refused, Err(RuleFault::Expression { rule: "huge".into(), what }));
}

#[test]
fn an_expression_of_an_allowlist_that_is_too_large_is_refused() {
    let text = r#"
        [[rules]]
        id = "badge"
        regex = 'B-\d{6}'
        keywords = ["b-"]

        [[rules.allowlists]]
        regexes = ['(?:[a-z]{1000}){1000}']
    "#;
    let refused = Rules::parse(text).expect("it can be parsed").into_checked().map(|_| ());
    let what = "Compiled regex exceeds size limit of 67108864 bytes.".to_owned();
    assert_eq!(refused, Err(RuleFault::Expression { rule: "badge".into(), what }));
}

#[test]
fn an_allowlist_with_targets_applies_to_these_rules_only() {
    let text = r#"
        [[rules]]
        id = "badge.old"
        regex = 'B-\d{6}'
        keywords = ["b-"]

        [[rules]]
        id = "pass"
        regex = 'P-\d{6}'
        keywords = ["p-"]

        [[allowlists]]
        targetRules = ["badge.old"]
        stopwords = ["000000"]
    "#;
    let rules = Rules::parse(text).expect("it can be parsed");
    let finder = Finder::new(rules).expect("rules");
    let found = |text: &str| {
        let hits = finder.find(text);
        hits.iter().map(|hit| finder.rule(hit.rule).id.clone()).collect::<Vec<_>>()
    };
    let expect = ["badge-old", "pass"].map(str::to_owned).to_vec();
    assert_eq!(found("B-123456 and P-123456"), expect);
    assert_eq!(found("B-000000 and P-000000"), expect[1..]);
}
