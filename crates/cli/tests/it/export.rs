//! `epitome export` on the command line.

use std::fs;

use crate::world::sessions::{self, CLAUDE, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

#[test]
fn a_session_becomes_a_request_of_every_wire() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    for (wire, format) in [
        ("anthropic", "anthropic"),
        ("openai-chat", "openai-chat"),
        ("openai-responses", "openai-responses"),
        ("gemini", "gemini-request"),
    ] {
        for id in [CLAUDE, PI] {
            let out = format!("{wire}-{id}.json");
            let terminal = world.run(&["export", "--to", wire, id, "--out", &out]);
            assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
            let object = &world.json(&["inspect", &out, "--agent", format, "--json"])[0];
            assert_eq!(object["breaches"], serde_json::json!([]), "{wire}");
        }
    }
}

#[test]
fn it_says_what_is_written_and_what_stays_behind() {
    let world = World::new();
    world.write("request.json", fixtures::case("anthropic", "request").bytes());
    let args = ["export", "--to", "openai-chat", "request.json", "--out", "chat.json"];
    assert_snapshot!(world.run(&args), @r"
    $ epitome export --to openai-chat request.json --out chat.json
    --- stderr
    written: 11 messages, 16.9 KB, chat.json
    left out: 1 block of reasoning, signed for another API
    left out: the definitions of tools
    redacted: 1 piece of personal data
    --- status 0
    ");
    assert_snapshot!(world.run(&args), @r"
    $ epitome export --to openai-chat request.json --out chat.json
    --- stderr
    error: there is something of that name already: chat.json
      hint: choose another name, or remove what is there
    --- status 4
    ");
    assert_snapshot!(world.run(&["export", "--to", "gemini", "request.json", "--json"]), @r"
    $ epitome export --to gemini request.json --json
    --- stderr
    error: --json prints a report, so the export needs --out
    --- status 2
    ");
    assert_snapshot!(fs::read_to_string(world.home.join("chat.json")).expect("a request"), @r#"
    {"messages":[{"role":"system","content":"You are a careful engineer."},{"role":"user","content":[{"type":"text","text":"Prices are wrong on Sundays. Find out why."},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJgggAA"}}]},{"role":"assistant","content":"I look at the code.","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"Read","arguments":"{\n      \"file_path\": \"~/project/src/price.py\"\n     }"}},{"id":"toolu_2","type":"function","function":{"name":"Bash","arguments":"{\n      \"command\": \"pytest -q\"\n     }"}}]},{"role":"tool","tool_call_id":"toolu_1","content":"1\tline 1 of the prices, with words to fill it\n2\tline 2 of the prices, with words to fill it\n3\tline 3 of the prices, with words to fill it\n4\tline 4 of the prices, with words to fill it\n5\tline 5 of the prices, with words to fill it\n6\tline 6 of the prices, with words to fill it\n7\tline 7 of the prices, with words to fill it\n8\tline 8 of the prices, with words to fill it\n9\tline 9 of the prices, with words to fill it\n10\tline 10 of the prices, with words to fill it\n11\tline 11 of the prices, with words to fill it\n12\tline 12 of the prices, with words to fill it\n13\tline 13 of the prices, with words to fill it\n14\tline 14 of the prices, with words to fill it\n15\tline 15 of the prices, with words to fill it\n16\tline 16 of the prices, with words to fill it\n17\tline 17 of the prices, with words to fill it\n18\tline 18 of the prices, with words to fill it\n19\tline 19 of the prices, with words to fill it\n20\tline 20 of the prices, with words to fill it\n21\tline 21 of the prices, with words to fill it\n22\tline 22 of the prices, with words to fill it\n23\tline 23 of the prices, with words to fill it\n24\tline 24 of the prices, with words to fill it\n25\tline 25 of the prices, with words to fill it\n26\tline 26 of the prices, with words to fill it\n27\tline 27 of the prices, with words to fill it\n28\tline 28 of the prices, with words to fill it\n29\tline 29 of the prices, with words to fill it\n30\tline 30 of the prices, with words to fill it\n31\tline 31 of the prices, with words to fill it\n32\tline 32 of the prices, with words to fill it\n33\tline 33 of the prices, with words to fill it\n34\tline 34 of the prices, with words to fill it\n35\tline 35 of the prices, with words to fill it\n36\tline 36 of the prices, with words to fill it\n37\tline 37 of the prices, with words to fill it\n38\tline 38 of the prices, with words to fill it\n39\tline 39 of the prices, with words to fill it\n40\tline 40 of the prices, with words to fill it\n41\tline 41 of the prices, with words to fill it\n42\tline 42 of the prices, with words to fill it\n43\tline 43 of the prices, with words to fill it\n44\tline 44 of the prices, with words to fill it\n45\tline 45 of the prices, with words to fill it\n46\tline 46 of the prices, with words to fill it\n47\tline 47 of the prices, with words to fill it\n48\tline 48 of the prices, with words to fill it\n49\tline 49 of the prices, with words to fill it\n50\tline 50 of the prices, with words to fill it\n51\tline 51 of the prices, with words to fill it\n52\tline 52 of the prices, with words to fill it\n53\tline 53 of the prices, with words to fill it\n54\tline 54 of the prices, with words to fill it\n55\tline 55 of the prices, with words to fill it\n56\tline 56 of the prices, with words to fill it\n57\tline 57 of the prices, with words to fill it\n58\tline 58 of the prices, with words to fill it\n59\tline 59 of the prices, with words to fill it\n60\tline 60 of the prices, with words to fill it\n61\tline 61 of the prices, with words to fill it\n62\tline 62 of the prices, with words to fill it\n63\tline 63 of the prices, with words to fill it\n64\tline 64 of the prices, with words to fill it\n65\tline 65 of the prices, with words to fill it\n66\tline 66 of the prices, with words to fill it\n67\tline 67 of the prices, with words to fill it\n68\tline 68 of the prices, with words to fill it\n69\tline 69 of the prices, with words to fill it\n70\tline 70 of the prices, with words to fill it\n71\tline 71 of the prices, with words to fill it\n72\tline 72 of the prices, with words to fill it\n73\tline 73 of the prices, with words to fill it\n74\tline 74 of the prices, with words to fill it\n75\tline 75 of the prices, with words to fill it\n76\tline 76 of the prices, with words to fill it\n77\tline 77 of the prices, with words to fill it\n78\tline 78 of the prices, with words to fill it\n79\tline 79 of the prices, with words to fill it\n80\tline 80 of the prices, with words to fill it\n81\tline 81 of the prices, with words to fill it\n82\tline 82 of the prices, with words to fill it\n83\tline 83 of the prices, with words to fill it\n84\tline 84 of the prices, with words to fill it\n85\tline 85 of the prices, with words to fill it\n86\tline 86 of the prices, with words to fill it\n87\tline 87 of the prices, with words to fill it\n88\tline 88 of the prices, with words to fill it\n89\tline 89 of the prices, with words to fill it\n90\tline 90 of the prices, with words to fill it\n91\tline 91 of the prices, with words to fill it\n92\tline 92 of the prices, with words to fill it\n93\tline 93 of the prices, with words to fill it\n94\tline 94 of the prices, with words to fill it\n95\tline 95 of the prices, with words to fill it\n96\tline 96 of the prices, with words to fill it\n97\tline 97 of the prices, with words to fill it\n98\tline 98 of the prices, with words to fill it\n99\tline 99 of the prices, with words to fill it\n100\tline 100 of the prices, with words to fill it\n101\tline 101 of the prices, with words to fill it\n102\tline 102 of the prices, with words to fill it\n103\tline 103 of the prices, with words to fill it\n104\tline 104 of the prices, with words to fill it\n105\tline 105 of the prices, with words to fill it\n106\tline 106 of the prices, with words to fill it\n107\tline 107 of the prices, with words to fill it\n108\tline 108 of the prices, with words to fill it\n109\tline 109 of the prices, with words to fill it\n110\tline 110 of the prices, with words to fill it\n111\tline 111 of the prices, with words to fill it\n112\tline 112 of the prices, with words to fill it\n113\tline 113 of the prices, with words to fill it\n114\tline 114 of the prices, with words to fill it\n115\tline 115 of the prices, with words to fill it\n116\tline 116 of the prices, with words to fill it\n117\tline 117 of the prices, with words to fill it\n118\tline 118 of the prices, with words to fill it\n119\tline 119 of the prices, with words to fill it"},{"role":"tool","tool_call_id":"toolu_2","content":"case 1 ... ok\ncase 2 ... ok\ncase 3 ... ok\ncase 4 ... ok\ncase 5 ... ok\ncase 6 ... ok\ncase 7 ... ok\ncase 8 ... ok\ncase 9 ... ok\ncase 10 ... ok\ncase 11 ... ok\ncase 12 ... ok\ncase 13 ... ok\ncase 14 ... ok\ncase 15 ... ok\ncase 16 ... ok\ncase 17 ... ok\ncase 18 ... ok\ncase 19 ... ok\ncase 20 ... ok\ncase 21 ... ok\ncase 22 ... ok\ncase 23 ... ok\ncase 24 ... ok\ncase 25 ... ok\ncase 26 ... ok\ncase 27 ... ok\ncase 28 ... ok\ncase 29 ... ok\ncase 30 ... ok\ncase 31 ... ok\ncase 32 ... ok\ncase 33 ... ok\ncase 34 ... ok\ncase 35 ... ok\ncase 36 ... ok\ncase 37 ... ok\ncase 38 ... ok\ncase 39 ... ok\ncase 40 ... ok\ncase 41 ... ok\ncase 42 ... ok\ncase 43 ... ok\ncase 44 ... ok\ncase 45 ... ok\ncase 46 ... ok\ncase 47 ... ok\ncase 48 ... ok\ncase 49 ... ok\ncase 50 ... ok\ncase 51 ... ok\ncase 52 ... ok\ncase 53 ... ok\ncase 54 ... ok\ncase 55 ... ok\ncase 56 ... ok\ncase 57 ... ok\ncase 58 ... ok\ncase 59 ... ok\ncase 60 ... ok\ncase 61 ... ok\ncase 62 ... ok\ncase 63 ... ok\ncase 64 ... ok\ncase 65 ... ok\ncase 66 ... ok\ncase 67 ... ok\ncase 68 ... ok\ncase 69 ... ok\ncase 70 ... ok\ncase 71 ... ok\ncase 72 ... ok\ncase 73 ... ok\ncase 74 ... ok\ncase 75 ... ok\ncase 76 ... ok\ncase 77 ... ok\ncase 78 ... ok\ncase 79 ... ok\ncase 80 ... ok\ncase 81 ... ok\ncase 82 ... ok\ncase 83 ... ok\ncase 84 ... ok\ncase 85 ... ok\ncase 86 ... ok\ncase 87 ... ok\ncase 88 ... ok\ncase 89 ... ok\ncase 90 ... ok\ncase 91 ... ok\ncase 92 ... ok\ncase 93 ... ok\ncase 94 ... ok\ncase 95 ... ok\ncase 96 ... ok\ncase 97 ... ok\ncase 98 ... ok\ncase 99 ... ok\ncase 100 ... ok\ncase 101 ... ok\ncase 102 ... ok\ncase 103 ... ok\ncase 104 ... ok\ncase 105 ... ok\ncase 106 ... ok\ncase 107 ... ok\ncase 108 ... ok\ncase 109 ... ok\ncase 110 ... ok\ncase 111 ... ok\ncase 112 ... ok\ncase 113 ... ok\ncase 114 ... ok\ncase 115 ... ok\ncase 116 ... ok\ncase 117 ... ok\ncase 118 ... ok\ncase 119 ... ok\ncase 120 ... ok\ncase 121 ... ok\ncase 122 ... ok\ncase 123 ... ok\ncase 124 ... ok\ncase 125 ... ok\ncase 126 ... ok\ncase 127 ... ok\ncase 128 ... ok\ncase 129 ... ok\ncase 130 ... ok\ncase 131 ... ok\ncase 132 ... ok\ncase 133 ... ok\ncase 134 ... ok\ncase 135 ... ok\ncase 136 ... ok\ncase 137 ... ok\ncase 138 ... ok\ncase 139 ... ok\ncase 140 ... ok\ncase 141 ... ok\ncase 142 ... ok\ncase 143 ... ok\ncase 144 ... ok\ncase 145 ... ok\ncase 146 ... ok\ncase 147 ... ok\ncase 148 ... ok\ncase 149 ... ok\nerror: sunday is out of range\n"},{"role":"user","content":"<system-reminder>Work in small steps.</system-reminder>"},{"role":"assistant","content":"Line 12 is wrong.","tool_calls":[{"id":"toolu_3","type":"function","function":{"name":"Write","arguments":"{\n      \"file_path\": \"~/project/notes.md\",\n      \"content\": \"1\\tline 1 of the prices, with words to fill it\\n2\\tline 2 of the prices, with words to fill it\\n3\\tline 3 of the prices, with words to fill it\\n4\\tline 4 of the prices, with words to fill it\\n5\\tline 5 of the prices, with words to fill it\\n6\\tline 6 of the prices, with words to fill it\\n7\\tline 7 of the prices, with words to fill it\\n8\\tline 8 of the prices, with words to fill it\\n9\\tline 9 of the prices, with words to fill it\\n10\\tline 10 of the prices, with words to fill it\\n11\\tline 11 of the prices, with words to fill it\\n12\\tline 12 of the prices, with words to fill it\\n13\\tline 13 of the prices, with words to fill it\\n14\\tline 14 of the prices, with words to fill it\\n15\\tline 15 of the prices, with words to fill it\\n16\\tline 16 of the prices, with words to fill it\\n17\\tline 17 of the prices, with words to fill it\\n18\\tline 18 of the prices, with words to fill it\\n19\\tline 19 of the prices, with words to fill it\\n20\\tline 20 of the prices, with words to fill it\\n21\\tline 21 of the prices, with words to fill it\\n22\\tline 22 of the prices, with words to fill it\\n23\\tline 23 of the prices, with words to fill it\\n24\\tline 24 of the prices, with words to fill it\\n25\\tline 25 of the prices, with words to fill it\\n26\\tline 26 of the prices, with words to fill it\\n27\\tline 27 of the prices, with words to fill it\\n28\\tline 28 of the prices, with words to fill it\\n29\\tline 29 of the prices, with words to fill it\\n30\\tline 30 of the prices, with words to fill it\\n31\\tline 31 of the prices, with words to fill it\\n32\\tline 32 of the prices, with words to fill it\\n33\\tline 33 of the prices, with words to fill it\\n34\\tline 34 of the prices, with words to fill it\\n35\\tline 35 of the prices, with words to fill it\\n36\\tline 36 of the prices, with words to fill it\\n37\\tline 37 of the prices, with words to fill it\\n38\\tline 38 of the prices, with words to fill it\\n39\\tline 39 of the prices, with words to fill it\\n40\\tline 40 of the prices, with words to fill it\\n41\\tline 41 of the prices, with words to fill it\\n42\\tline 42 of the prices, with words to fill it\\n43\\tline 43 of the prices, with words to fill it\\n44\\tline 44 of the prices, with words to fill it\\n45\\tline 45 of the prices, with words to fill it\\n46\\tline 46 of the prices, with words to fill it\\n47\\tline 47 of the prices, with words to fill it\\n48\\tline 48 of the prices, with words to fill it\\n49\\tline 49 of the prices, with words to fill it\\n50\\tline 50 of the prices, with words to fill it\\n51\\tline 51 of the prices, with words to fill it\\n52\\tline 52 of the prices, with words to fill it\\n53\\tline 53 of the prices, with words to fill it\\n54\\tline 54 of the prices, with words to fill it\\n55\\tline 55 of the prices, with words to fill it\\n56\\tline 56 of the prices, with words to fill it\\n57\\tline 57 of the prices, with words to fill it\\n58\\tline 58 of the prices, with words to fill it\\n59\\tline 59 of the prices, with words to fill it\\n60\\tline 60 of the prices, with words to fill it\\n61\\tline 61 of the prices, with words to fill it\\n62\\tline 62 of the prices, with words to fill it\\n63\\tline 63 of the prices, with words to fill it\\n64\\tline 64 of the prices, with words to fill it\\n65\\tline 65 of the prices, with words to fill it\\n66\\tline 66 of the prices, with words to fill it\\n67\\tline 67 of the prices, with words to fill it\\n68\\tline 68 of the prices, with words to fill it\\n69\\tline 69 of the prices, with words to fill it\\n70\\tline 70 of the prices, with words to fill it\\n71\\tline 71 of the prices, with words to fill it\\n72\\tline 72 of the prices, with words to fill it\\n73\\tline 73 of the prices, with words to fill it\\n74\\tline 74 of the prices, with words to fill it\\n75\\tline 75 of the prices, with words to fill it\\n76\\tline 76 of the prices, with words to fill it\\n77\\tline 77 of the prices, with words to fill it\\n78\\tline 78 of the prices, with words to fill it\\n79\\tline 79 of the prices, with words to fill it\\n80\\tline 80 of the prices, with words to fill it\\n81\\tline 81 of the prices, with words to fill it\\n82\\tline 82 of the prices, with words to fill it\\n83\\tline 83 of the prices, with words to fill it\\n84\\tline 84 of the prices, with words to fill it\\n85\\tline 85 of the prices, with words to fill it\\n86\\tline 86 of the prices, with words to fill it\\n87\\tline 87 of the prices, with words to fill it\\n88\\tline 88 of the prices, with words to fill it\\n89\\tline 89 of the prices, with words to fill it\\n90\\tline 90 of the prices, with words to fill it\\n91\\tline 91 of the prices, with words to fill it\\n92\\tline 92 of the prices, with words to fill it\\n93\\tline 93 of the prices, with words to fill it\\n94\\tline 94 of the prices, with words to fill it\\n95\\tline 95 of the prices, with words to fill it\\n96\\tline 96 of the prices, with words to fill it\\n97\\tline 97 of the prices, with words to fill it\\n98\\tline 98 of the prices, with words to fill it\\n99\\tline 99 of the prices, with words to fill it\\n100\\tline 100 of the prices, with words to fill it\\n101\\tline 101 of the prices, with words to fill it\\n102\\tline 102 of the prices, with words to fill it\\n103\\tline 103 of the prices, with words to fill it\\n104\\tline 104 of the prices, with words to fill it\\n105\\tline 105 of the prices, with words to fill it\\n106\\tline 106 of the prices, with words to fill it\\n107\\tline 107 of the prices, with words to fill it\\n108\\tline 108 of the prices, with words to fill it\\n109\\tline 109 of the prices, with words to fill it\\n110\\tline 110 of the prices, with words to fill it\\n111\\tline 111 of the prices, with words to fill it\\n112\\tline 112 of the prices, with words to fill it\\n113\\tline 113 of the prices, with words to fill it\\n114\\tline 114 of the prices, with words to fill it\\n115\\tline 115 of the prices, with words to fill it\\n116\\tline 116 of the prices, with words to fill it\\n117\\tline 117 of the prices, with words to fill it\\n118\\tline 118 of the prices, with words to fill it\\n119\\tline 119 of the prices, with words to fill it\"\n     }"}}]},{"role":"tool","tool_call_id":"toolu_3","content":"written"},{"role":"assistant","content":"It is written down."},{"role":"user","content":"Then mend it."},{"role":"assistant","content":null,"tool_calls":[{"id":"toolu_4","type":"function","function":{"name":"Edit","arguments":"{\n      \"file_path\": \"~/project/src/price.py\",\n      \"old_string\": \"sunday = 7\",\n      \"new_string\": \"sunday = 6\"\n     }"}}]},{"role":"tool","tool_call_id":"toolu_4","content":"done"}]}
    "#);
    let args = ["export", "--to", "gemini", "request.json", "--json", "--out", "g.json"];
    world::check("export.schema.json", &world.json(&args));
}

#[test]
fn a_session_becomes_text() {
    let world = World::new();
    world.write("run.traj.json", fixtures::case("mini-swe", "run").bytes());
    assert_snapshot!(world.run(&["export", "--to", "transcript", "run.traj.json"]));
}

#[test]
fn a_session_may_come_from_standard_input_and_one_that_says_nothing_is_refused() {
    let world = World::new();
    let body = br#"{"system":"Be brief.","messages":[{"role":"user","content":"hi"}]}"#;
    assert_snapshot!(world.run_with(&["export", "--to", "openai-responses", "-"], body), @r#"
    $ epitome export --to openai-responses -
    {"instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}
    --- status 0
    "#);
    let empty = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}\n";
    assert_snapshot!(world.run_with(&["export", "--to", "anthropic", "-"], empty), @r"
    $ epitome export --to anthropic -
    --- stderr
    error: the session sends nothing to a model: -
    --- status 3
    ");
}

#[test]
fn a_request_becomes_smaller_and_stays_valid() {
    let world = World::new();
    for format in ["anthropic", "openai-chat", "openai-responses", "gemini-request"] {
        let name = format!("{format}.json");
        let path = world.write(&name, fixtures::case(format, "request").bytes());
        let before = fs::read(&path).expect("a request");
        let small = format!("small-{name}");
        let args = ["compact", &name, "--out", &small, "--keep-turns=1", "--count=estimate"];
        let terminal = world.run(&args);
        assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
        assert_eq!(fs::read(&path).expect("a request"), before, "the request stays");
        let object = &world.json(&["inspect", &small, "--json"])[0];
        assert_eq!(object["agent"], format);
        assert_eq!(object["breaches"], serde_json::json!([]), "{format}");
        assert!(fs::read(world.home.join(&small)).expect("a request").len() < before.len());
        assert_eq!(world.status(&["compact", &name, "--keep-turns=1"]), 0);
        assert_eq!(world.status(&["restore", &name]), 0);
        assert_eq!(fs::read(&path).expect("a request"), before, "everything comes back");
    }
}

#[test]
fn inspect_names_every_breach_with_its_place() {
    let world = World::new();
    let body = r#"{"max_tokens": 1, "system": "", "messages": [
  {"role": "assistant", "content": [{"type": "tool_use", "id": "t 1", "name": "x", "input": {}}]},
  {"role": "user", "content": [
    {"type": "text", "text": " "},
    {"type": "tool_result", "tool_use_id": "t2", "content": "x"}
  ], "id": "m"}
]}"#;
    world.write("broken.json", body);
    assert_snapshot!(world.run(&["inspect", "broken.json", "--count", "estimate"]), @r"
    $ epitome inspect broken.json --count estimate
    broken.json
    anthropic


                    blocks  messages          disk
    user                 1         1  25.0%    3 B   1.0%
    call arguments       1         2  50.0%    2 B   0.7%
    results              1         1  25.0%    3 B   1.0%
    overhead                       -         287 B  97.3%
    total                3         4         295 B

    tool  calls  arguments  results         disk
    x         1          2        0  50.0%   2 B  0.7%

    line  messages         disk  largest blocks
       2         2  50.0%   2 B  call arguments  x
       4         1  25.0%   3 B  user
       5         1  25.0%   3 B  results         result

    session    5 lines · 3 of 3 entries are sent · 0 turns
    messages   4 tokens, counted with estimate
    disk       295 B
    not valid  line 2: messages.0.content.0: the call t 1 has no result in the next message (pairing)
               line 5: messages.1.content.1: a result without its call t2 in the message before (pairing)
               line 4: messages.1.content.0: a text of only white space (empty text)
               line 2: messages.0.content.0: `id` has other characters than a-z, A-Z, 0-9, _ and - (shape)
               line 2: messages.0.content.0: the first message is not of the user (roles)
               line 6: messages.1: `id` is not a key of this (unknown keys)
    --- status 0
    ");
}
