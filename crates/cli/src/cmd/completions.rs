//! `epitome completions`: completion scripts for shells.

use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;

use crate::app::App;
use crate::failure::Result;

const EXAMPLES: &str = "\
Examples:
  epitome completions bash > ~/.local/share/bash-completion/completions/epitome
  epitome completions zsh > ~/.zfunc/_epitome
  epitome completions fish > ~/.config/fish/completions/epitome.fish";

/// Print completions for a shell
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "epitome", &mut script);
    app.print_bytes(&script)
}
