//! `bayespc completions`: what a shell needs to complete this command's words.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::print;

/// Print what a shell needs to complete this command.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc completions bash > ~/.local/share/bash-completion/completions/bayespc
  bayespc completions zsh > ~/.zfunc/_bayespc
  bayespc completions fish > ~/.config/fish/completions/bayespc.fish")]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Run the command.
pub fn run(args: &CompletionsArgs, command: &mut Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "bayespc", &mut script);
    print(String::from_utf8_lossy(&script).trim_end())
}
