//! The command `bayespc`.

use std::process::ExitCode;

fn main() -> ExitCode {
    bayespc_cli::main()
}
