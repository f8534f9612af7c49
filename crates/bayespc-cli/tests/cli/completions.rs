//! What shells complete.

use crate::support::Sandbox;

#[test]
fn shells_get_their_completions() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sandbox.ok(&format!("completions {shell}"));
        assert!(script.contains("bayespc") && script.contains("test-fraction"), "{shell}");
    }
}
