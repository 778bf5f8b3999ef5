//! The JSON output of commands conforms to the schemas, for every session in the repository.

use std::path::Path;

use crate::world::{self, World};

/// Only every n-th session of the corpus is tested; all with `EPITOME_WHOLE_CORPUS`.
const EVERY: usize = 15;

#[test]
fn json_is_what_the_schemas_say_for_sessions_of_the_repository() {
    let world = World::new();
    let mut files: Vec<_> = fixtures::cases().into_iter().map(|case| case.session).collect();
    for fixture in fixtures::all() {
        files.extend(fixture.sub_agents());
        files.push(fixture.path);
    }
    for file in files {
        check(&world, &file);
    }
}

#[test]
fn json_is_what_the_schemas_say_for_sessions_of_real_work() {
    let every = if std::env::var_os("EPITOME_WHOLE_CORPUS").is_some() { 1 } else { EVERY };
    for real in fixtures::corpus("schemas of real sessions").iter().step_by(every) {
        let world = World::new();
        check(&world, &world.write(&format!("{}.jsonl", real.name), real.bytes()));
    }
}

/// Runs the commands that read one session. If a command refuses the session, it reports that on
/// standard error and prints nothing.
fn check(world: &World, file: &Path) {
    let file = file.to_str().expect("text");
    for (schema, command) in [
        ("transcript.schema.json", &["render", "--no-redact", "--format", "json"][..]),
        ("inspect.schema.json", &["inspect", "--json", "--count=estimate"]),
        ("compact.schema.json", &["compact", "--dry-run", "--json", "--count=estimate"]),
        ("losses.schema.json", &["losses", "--json"]),
        ("scan.schema.json", &["scan", "--json"]),
    ] {
        let line = [command, &[file]].concat();
        // The arguments of a call are copied as they are, in several lines if the session has them
        // so.
        let printed = world.output(&line).stdout;
        let values = serde_json::Deserializer::from_slice(&printed).into_iter();
        let values: Vec<serde_json::Value> = values.map(|it| it.expect("JSON")).collect();
        if !values.is_empty() {
            world::check(schema, &values);
        }
    }
}
