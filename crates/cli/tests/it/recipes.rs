//! The schema of recipe files: what editors accept is what the program accepts.

use epitome_passes::{BUILT_IN, Recipe};
use serde_json::Value;

use crate::world::World;

/// Whether a recipe with these lines is valid. Each text follows `name` and `about`.
const LINES: &[(bool, &str)] = &[
    (true, "target = 40_000\nstages = {}"),
    (true, "target = { percent = 60, chars = 9 }\nstages = {}"),
    (false, "target = { tokns = 1 }\nstages = {}"),
    (true, "target = { percent = 100 }\nstages = {}"),
    (false, "target = { percent = 101 }\nstages = {}"),
    (false, "live = { target = { percent = 101 } }\nstages = {}"),
    (false, "target = -1\nstages = {}"),
    (false, "keep = {}"),
    (true, "keep = { turns = 2, share = 25, unanswered = true, pins = ['RULES.md'] }\nstages = {}"),
    (false, "keep = { turn = 2 }\nstages = {}"),
    (true, "trigger = { stored = { bytes = 7 }, live = { percent = 80 } }\nstages = {}"),
    (false, "trigger = { stored = { token = 7 } }\nstages = {}"),
    (true, "stop = 'pass'\nat_least = 5\nexempt_tools = ['X']\nstages = {}"),
    (false, "stop = 'never'\nstages = {}"),
    (true, "live = { when = 'request', target = { percent = 60 } }\nstages = {}"),
    (false, "live = { when = 'later' }\nstages = {}"),
    (true, "stages = { passes = [{ pass = 'results', style = 'cleared', exempt = ['read'] }] }"),
    (true, "stages = { passes = [{ pass = 'thinking' }, { pass = 'copies', scope = 'all' }] }"),
    (false, "stages = { passes = [{ pass = 'results', mini = 3 }] }"),
    (false, "stages = { passes = [{ pass = 'unheard-of' }] }"),
    (false, "stages = { passes = [{ style = 'cleared' }] }"),
    (true, "stages = { trim = { over = 5, keep = 4, head = 1 }, live = { ingest = { cap = 4 } } }"),
    (false, "stages = { trim = { over = 5 } }"),
    (false, "stages = { pases = [] }"),
    (false, "stages = { live = { cut = [] } }"),
    (true, "stages = { summary = { sections = 'pi' }, digest = { focus = 'the parser' } }"),
    (true, "stages = { summary = { sections = ['Goal'], over = { tokens = 9 } } }"),
    (false, "stages = { summary = { sections = 3 } }"),
];

fn validator(schema: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

fn document(recipe: &str) -> Value {
    let table: toml::Table = recipe.parse().expect("TOML");
    serde_json::to_value(table).expect("TOML is JSON")
}

#[test]
fn the_schema_of_recipes_and_the_program_take_the_same() {
    let printed = World::new().output(&["recipes", "--schema"]).stdout;
    let printed = String::from_utf8(printed).expect("text");
    let validator = validator(&printed);
    for (is_valid, text) in LINES {
        let recipe = format!("name = 'a'\nabout = 'b'\n{text}");
        assert_eq!(validator.is_valid(&document(&recipe)), *is_valid, "the schema: {text}");
        assert_eq!(Recipe::parse(&recipe).is_ok(), *is_valid, "the program: {text}");
    }
    let example = include_str!("../../../../docs/recipes.md").split("```toml\n").nth(1);
    let example = example.and_then(|rest| rest.split("```").next()).expect("an example");
    for (name, text) in BUILT_IN.iter().chain([&("the example of docs/recipes.md", example)]) {
        let recipe = document(text);
        let errors = validator.iter_errors(&recipe).map(|err| err.to_string());
        assert_eq!(errors.collect::<Vec<String>>(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_published_schema_of_recipes_is_the_printed_one() {
    let printed = World::new().output(&["recipes", "--schema"]).stdout;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/recipe.schema.json");
    let published = std::fs::read(path).unwrap_or_default();
    assert!(printed == published, "epitome recipes --schema > docs/schema/recipe.schema.json");
}

/// Wrong recipes, each with the end of what the program says of it. Each text follows `name` and
/// `about`.
const WRONG: &[(&str, &str)] = &[
    (
        "target = { percent = 150 }\nstages = {}",
        "
  cause: TOML parse error at line 3, column 22
           |
         3 | target = { percent = 150 }
           |                      ^^^
         invalid value: integer `150`, expected a whole number from 1 to 100
  hint: `epitome recipes epitome` prints one to start from",
    ),
    (
        "target = '150%'\nstages = {}",
        "expected a number of tokens, a percentage from \"1%\" to \"100%\", a number of characters \
         (\"80000 chars\"), or a table with `tokens`, `percent` or `chars`
  hint: `epitome recipes epitome` prints one to start from",
    ),
    (
        "trigger = 5\nstages = {}",
        "invalid type: integer `5`, expected a table with `stored` and `live`
  hint: `epitome recipes epitome` prints one to start from",
    ),
    (
        "[live]\nreserve = 5",
        "
  cause: missing field `stages`: a recipe needs `name` and `about`, which are texts, and `stages`, \
         a table that may be empty
  hint: `epitome recipes epitome` prints one to start from",
    ),
    (
        "[[stages.passes]]\npass = 'results'\nmin_byte = 3",
        "
  cause: TOML parse error at line 5, column 1
           |
         5 | min_byte = 3
           | ^^^^^^^^
         unknown key `min_byte`
  hint: did you mean `min_bytes`?",
    ),
    (
        "stages = { passes = [{ pass = 'stale', zzz = 3 }] }",
        "unknown key `zzz`
  hint: the keys here are: min_bytes, pass",
    ),
];

#[test]
fn what_is_wrong_with_a_recipe_is_said_with_its_place_and_what_is_right() {
    let world = World::new();
    for (text, expect) in WRONG {
        world.write("wrong.toml", format!("name = 'a'\nabout = 'b'\n{text}"));
        let terminal = world.run(&["compact", "0f3c", "--recipe", "wrong.toml"]);
        let expect = format!("{expect}\n--- status 2\n");
        assert!(terminal.ends_with(&expect), "{text}: {terminal}");
    }
}
