//! `cargo lab`: runs the program and measures it: tables, figures, faults, real agents, packages.

mod bench;
mod chaos;
mod e2e;
mod fit;
mod leaderboard;
mod package;
mod quality;
mod recipes;
mod redact;
mod search;
mod used;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo lab COMMAND

  used-home COMMAND…    runs a command, say a test, with a home full of sessions, as `ci` does
  e2e [AGENT…|port]     real agents resume what epitome compacted, restored and carried over
  e2e keep              real agents call it when a session ends
  e2e mcp               the model of a real agent searches past sessions
  e2e viewer            a real Chromium looks at the viewer
  e2e tools             other programs read compacted sessions and show the same figures
  e2e sdk               the providers' SDKs send what `epitome engine` says
  e2e --write           the same with all agents; the table goes into docs/agents.md
  chaos [--minutes N]   kills, full disks, damage, busy writers, hostile homes: nothing is lost
        [--seed S]      (--only PART --cases N runs some cases of one part again)
  recipes [FOLDER…]     a table: what each recipe saves, by default over the recorded sessions
  recipes --write       writes the tables of docs/recipes.md; `--check [--all]` compares them and
                        README.md with what this program does (of real work the default alone)
  leaderboard           tables: what all recipes keep and cost, over sessions of this repository
  leaderboard --write   writes the tables of docs/leaderboard.md; `--check` compares them
  quality [--target PERCENT] [RECIPE…]
                        what recipes keep of the open set and cost, by `simulate` and by the
                        instrument that it follows; where these are
  fit [--write]         fits the weights by which a digest is chosen to the open set, where it is,
                        and says how well they, and those of the program, tell what was used
  package [--target TARGET] [--profile PROFILE] [--check] [--program | --library]
                        an archive, a wheel and npm packages of the program, and a wheel and npm
                        packages of the library, in target/package; `--check` installs and uses
                        each (packaging/README.md)
  search                a table: which sessions 200 questions made from them find, and how fast
  redact                a table: what is found of planted credentials, by epitome and others
  bench [FOLDER]        a table: how fast and how large, by default over the recorded sessions
  bench --check [PROFILE]
                        holds the ratios over a small session against testing/lab/bench-baseline.tsv
                        (of `dist` if no profile is named); `--write` makes them the baseline";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["used-home", command @ ..] if !command.is_empty() => used::run(command),
        ["e2e", "--write"] => e2e::write(),
        ["e2e", agents @ ..] => e2e::run(agents),
        ["chaos", options @ ..] => chaos::run(options),
        ["recipes", "--check"] => recipes::check(false),
        ["recipes", "--check", "--all"] => recipes::check(true),
        ["recipes", "--write"] => recipes::write(),
        ["recipes", folders @ ..] => recipes::run(folders),
        ["leaderboard"] => leaderboard::run(),
        ["leaderboard", "--write"] => leaderboard::write(),
        ["leaderboard", "--check"] => leaderboard::check(),
        ["quality", args @ ..] => quality::run(args),
        ["fit"] => fit::run(fit::Write::No),
        ["fit", "--write"] => fit::run(fit::Write::Yes),
        ["package", args @ ..] => package::run(args),
        ["redact"] => redact::run(),
        ["search"] => search::run(),
        ["bench"] => bench::run(None),
        ["bench", "--check"] => bench::hold(bench::Held::Check, "dist"),
        ["bench", "--check", profile] => bench::hold(bench::Held::Check, profile),
        ["bench", "--write"] => bench::hold(bench::Held::Write, "dist"),
        ["bench", "--write", profile] => bench::hold(bench::Held::Write, profile),
        ["bench", folder] => bench::run(Some(folder.as_ref())),
        // `bench` calls this program again for each command that it measures, so that the peak of
        // memory of all children is the peak of this one child.
        [bench::MEASURE, command @ ..] => bench::measure(command),
        _ => Err(anyhow::anyhow!(USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            xtask::say(&format!("lab: {err:#}"));
            ExitCode::FAILURE
        }
    }
}
