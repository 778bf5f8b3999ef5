//! `epitome inspect` on the command line.

use crate::world::sessions::{self, CLAUDE, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

#[test]
fn it_says_where_everything_goes() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    assert_snapshot!(world.run(&["inspect", "0f3c", "--count", "estimate"]));
    assert_snapshot!(world.run(&["inspect", "01a1"]), @r"
    $ epitome inspect 01a1
    ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    pi · 01a1fb3a-c450-731a-9250-9fa9d78b0d62 · version 3 · /p
    List the functions.

                    blocks  messages           disk
    user                 2         6   0.2%    28 B   0.4%
    assistant            2         8   0.3%    25 B   0.3%
    call arguments       1         8   0.3%    19 B   0.2%
    results              1      2.4k  99.1%  6.2 KB  81.0%
    overhead                       -         1.4 KB  18.1%
    total                6      2.4k         7.7 KB

    tool  calls  arguments  results           disk
    read      1          8     2.4k  99.4%  6.2 KB  81.2%

    line  messages           disk  largest blocks
       4      2.4k  99.1%  6.2 KB  results         read src/a.rs
       3         8   0.3%    19 B  call arguments  read src/a.rs
       5         5   0.2%    16 B  assistant       There are 200.
       2         4   0.2%    21 B  user            List the functions.
       3         3   0.1%     9 B  assistant       I look.
       6         2   0.1%     7 B  user            Good.

    session   6 lines · 5 of 5 entries are sent · 2 turns
    messages  2.4k tokens, counted with o200k
    disk      7.7 KB
    valid     yes: every record is understood, all invariants hold
    --- status 0
    ");
}

#[test]
fn kinds_come_to_the_whole_file_and_context() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    for count in ["estimate", "o200k"] {
        let object = &world.json(&["inspect", "0f3c", "--count", count, "--json"])[0];
        let sum = |what: &str| -> u64 {
            let kinds = object["kinds"].as_object().expect("an object");
            kinds.values().map(|kind| kind[what].as_u64().expect("a number")).sum()
        };
        assert_eq!(sum("disk_bytes"), object["disk_bytes"].as_u64().expect("a number"));
        assert_eq!(sum("context_tokens"), object["context_tokens"].as_u64().expect("a number"));
        let planned = &world.json(&["compact", "0f3c", "--dry-run", "--json", "--count", count])[0];
        assert_eq!(planned["context_tokens"]["before"], object["context_tokens"]);
    }
}

#[test]
fn a_session_may_come_from_standard_input() {
    let world = World::new();
    let session = sessions::pi(PI);
    let terminal = world.run_with(&["inspect", "-", "--count", "estimate"], session.as_bytes());
    assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
}

#[test]
fn violations_are_named_and_are_no_failure() {
    let world = World::new();
    let session = sessions::claude(CLAUDE);
    // The first result belongs to another call.
    let broken = session.replacen("\"tool_use_id\":\"t1\"", "\"tool_use_id\":\"t9\"", 1);
    world.write("broken.jsonl", broken);
    assert_snapshot!(world.run(&["inspect", "broken.jsonl", "--count", "estimate"]));
    assert_snapshot!(world.run(&["compact", "broken.jsonl", "--count=estimate"]), @r"
    $ epitome compact broken.jsonl --count=estimate
    compacted  broken.jsonl
    claude · recipe epitome · generation 1

               before       after
    messages     3.7k  →     2.2k  -38.6%  tokens (estimate)
    disk      22.5 KB  →  11.9 KB  -47.3%
    net       22.5 KB  →  (with the archive)

    edits     1 tool output shortened, 4 duplicates removed
    saves     1.4k of text
    price     next request: 14.7k tokens instead of 16.5k, none from the cache, which has expired
              −$0.0065 once, −$0.0005 for each later request: pays at once (claude-sonnet-4-5, tokens assumed)
    kept      2.2k tokens untouched: the last results (6 entries), the last tokens (7 entries)
    verified  restoring reproduces every byte (blake3 78cfd2869ef7d6db…)
    undo      epitome undo
    --- status 0
    ");
}

#[test]
fn a_role_that_nobody_has_hides_no_body() {
    let world = World::new();
    let two_messages = r#"{"role":"user","content":"hi"},{"role":"wizard","content":""}"#;
    world.write("request.json", format!(r#"{{"model":"gpt","messages":[{two_messages}]}}"#));
    assert_snapshot!(world.run(&["inspect", "request.json", "--count", "estimate"]), @r"
    $ epitome inspect request.json --count estimate
    request.json
    openai-chat
    hi

              blocks  messages          disk
    user           1         1  100.0%   4 B   4.4%
    overhead                 -          86 B  95.6%
    total          1         1          90 B


    line  messages          disk  largest blocks
       1         1  100.0%   4 B  user            hi

    session    1 line · 2 of 2 entries are sent · 1 turn
    messages   1 tokens, counted with estimate
    disk       90 B
    not valid  line 1: messages.1: unknown role `wizard` (roles)
    --- status 0
    ");
}

#[test]
fn json_is_what_the_schema_says() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    for id in [CLAUDE, PI] {
        let objects = world.json(&["inspect", id, "--json", "--count", "estimate"]);
        world::check("inspect.schema.json", &objects);
    }
}
