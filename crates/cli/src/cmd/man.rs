//! `epitome man`: the manual page.

use clap::{Args as ClapArgs, Command, CommandFactory};
use clap_mangen::Man;

use crate::app::App;
use crate::failure::Result;

/// Print the manual page, with every command and option
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = "Examples:\n  epitome man | man -l -\n  epitome man > epitome.1")]
pub struct Args {}

pub fn run(app: &App, _: &Args) -> Result<()> {
    let mut command = crate::Cli::command();
    command.build();
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    for verb in command.get_subcommands().filter(|it| it.get_name() != "help") {
        section(verb, &mut page)?;
        for below in verb.get_subcommands().filter(|it| it.get_name() != "help") {
            section(below, &mut page)?;
        }
    }
    app.print_bytes(&page)
}

/// Adds a section for a command to the page.
fn section(command: &Command, page: &mut Vec<u8>) -> Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    // Global options are documented once, at the top of the page.
    let own = command.clone().mut_args(|arg| {
        let global = arg.is_global_set();
        arg.hide(global)
    });
    let man = Man::new(own.disable_help_flag(true).disable_version_flag(true));
    let mut parts = Vec::new();
    man.render_synopsis_section(&mut parts)?;
    man.render_description_section(&mut parts)?;
    man.render_options_section(&mut parts)?;
    man.render_extra_section(&mut parts)?;
    let parts = String::from_utf8_lossy(&parts).replace("\n.SH ", "\n.SS ");
    let parts = parts.strip_prefix(".SH ").map_or(parts.clone(), |rest| format!(".SS {rest}"));
    page.extend(format!(".SH \"{}\"\n{parts}", name.to_uppercase()).bytes());
    Ok(())
}
