//! Runs the command in a folder of its own.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder, and the command run inside it.
pub struct Sandbox(TempDir);

/// What the command did.
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Names of all files in the folder, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Those whose names contain `part`.
    pub fn files_with(&self, part: &str) -> Vec<String> {
        self.files().into_iter().filter(|name| name.contains(part)).collect()
    }

    /// The command, to be run in the folder; it finds no data sets but in it.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bayespc"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command.env_remove("BAYESPC_DATA").env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    /// Run the command with these words, separated by blanks.
    pub fn run(&self, line: &str) -> Run {
        Run::of(self.command(line).output().unwrap())
    }

    /// Run it and expect success; gives standard output.
    pub fn ok(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!(run.code, 0, "{line}: {}", run.stderr);
        run.stdout
    }

    /// Run it, expect this exit code and these words in the error; nothing on standard output.
    pub fn fails(&self, line: &str, code: i32, words: &[&str]) {
        let run = self.run(line);
        assert_eq!(run.code, code, "{line}: {}{}", run.stdout, run.stderr);
        assert!(run.stderr.starts_with("error: "), "{line}: {}", run.stderr);
        for word in words {
            assert!(run.stderr.contains(word), "{line}: no `{word}` in {}", run.stderr);
        }
        assert_eq!(run.stdout, "", "{line}");
    }
}

impl Run {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// y = 3 x₁ − x₂ + city, as CSV.
pub fn flats(n: usize) -> String {
    let mut text = "size,age,city,new,rent\n".to_owned();
    for i in 0..n {
        let (size, age) = ((i * 37 % 101) as f64 / 10.0, (i * 53 % 89) as f64 / 10.0);
        let city = ["Aarau", "Bern", "Chur"][i % 3];
        let rent = 3.0 * size - age + (i % 3) as f64 + 0.1 * ((i * 71 % 13) as f64 - 6.0);
        writeln!(text, "{size},{age},{city},{},{rent}", i % 2 == 0).unwrap();
    }
    text
}

/// Two classes by the sign of x₁ + x₂.
pub fn spots(n: usize) -> String {
    let mut text = "a,b,colour\n".to_owned();
    for i in 0..n {
        let (a, b) = ((i * 37 % 101) as f64 / 50.0 - 1.0, (i * 53 % 89) as f64 / 44.0 - 1.0);
        writeln!(text, "{a},{b},{}", if a + b > 0.0 { "red" } else { "blue" }).unwrap();
    }
    text
}

/// Flags that keep training short.
pub const QUICK: &str = "--set training.epochs=3 --set network.hidden_layer_sizes=[8] --threads 1";
