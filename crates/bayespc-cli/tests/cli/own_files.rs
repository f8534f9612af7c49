//! What the user owns is never replaced by a result: data, settings, models, and one result by another.

use crate::support::{QUICK, Sandbox, flats};

/// A folder with a table, settings and a model, and its content.
fn furnished() -> (Sandbox, Vec<(String, Vec<u8>)>) {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", flats(60));
    sandbox.write("s.toml", "members = 1\n");
    std::fs::create_dir(sandbox.path("sub")).unwrap();
    sandbox.ok(&format!("fit a.csv --target rent --out m.safetensors {QUICK}"));
    let names = sandbox.files().into_iter().filter(|name| sandbox.path(name).is_file());
    let content = names.map(|name| (name.clone(), sandbox.read(&name))).collect();
    (sandbox, content)
}

/// Exit code 2, both named, and every file as it was.
fn refused(sandbox: &Sandbox, before: &[(String, Vec<u8>)], line: &str, words: &[&str]) {
    let files = sandbox.files();
    sandbox.fails(line, 2, words);
    assert_eq!(sandbox.files(), files, "{line}");
    for (name, content) in before {
        assert!(sandbox.read(name) == *content, "{line}: {name} has changed");
    }
}

#[test]
fn results_do_not_replace_what_was_read() {
    let (sandbox, before) = furnished();
    let here = sandbox.path("a.csv").display().to_string();
    for name in ["a.csv", "./a.csv", "sub/../a.csv", &here] {
        for option in ["--out", "--report", "--stream --out"] {
            let line = format!("fit a.csv --target rent {QUICK} {option} {name}");
            refused(&sandbox, &before, &line, &["the data to read", name]);
        }
        let line = format!("predict m.safetensors a.csv --out {name}");
        refused(&sandbox, &before, &line, &["--out", "the data to read"]);
        let line = format!("predict m.safetensors {here} --out {name}");
        refused(&sandbox, &before, &line, &["--out", "the data to read"]);
    }
    let line = "predict m.safetensors a.csv --out ./m.safetensors";
    refused(&sandbox, &before, line, &["--out ./m.safetensors is the model"]);
    for option in ["--out", "--report"] {
        let line = format!("fit a.csv --target rent --config s.toml {QUICK} {option} sub/../s.toml");
        refused(&sandbox, &before, &line, &[option, "the settings file of --config"]);
    }
}

#[cfg(unix)]
#[test]
fn links_of_both_kinds_are_seen_through() {
    let (sandbox, before) = furnished();
    std::os::unix::fs::symlink("a.csv", sandbox.path("soft.csv")).unwrap();
    std::os::unix::fs::symlink(".", sandbox.path("again")).unwrap();
    std::fs::hard_link(sandbox.path("a.csv"), sandbox.path("hard.csv")).unwrap();
    for name in ["soft.csv", "hard.csv", "again/a.csv", "again/soft.csv"] {
        for (data, out) in [("a.csv", name), (name, "a.csv")] {
            let line = format!("fit {data} --target rent {QUICK} --out {out}");
            refused(&sandbox, &before, &line, &["the data to read"]);
            let line = format!("predict m.safetensors {data} --out {out}");
            refused(&sandbox, &before, &line, &["the data to read"]);
        }
    }
}

#[test]
fn two_results_do_not_share_a_file() {
    let (sandbox, before) = furnished();
    sandbox.write("old", "old");
    for (out, report) in [("x", "x"), ("x", "./x"), ("sub/../x", "x"), ("old", "sub/../old")] {
        let line = format!("fit a.csv --target rent {QUICK} --out {out} --report {report}");
        refused(&sandbox, &before, &line, &["--report", "the file of --out too"]);
    }
    assert_eq!(sandbox.read("old"), b"old");
}

#[test]
fn the_files_of_a_named_data_set_are_data_too() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("data/uci")).unwrap();
    std::fs::create_dir_all(sandbox.path("data/mnist")).unwrap();
    let files = ["data/uci/yacht.csv", "data/mnist/t10k-labels-idx1-ubyte.gz"];
    for (name, file) in ["yacht", "mnist"].iter().zip(files) {
        sandbox.write(file, "kept");
        let line = format!("fit {name} --data data --out ./{file}");
        sandbox.fails(&line, 2, &["--out", file, "the data to read"]);
        assert_eq!(sandbox.read(file), b"kept");
    }
    sandbox.fails("reproduce figure1 --quick --data data --out ./data", 2, &["--out", "folder of the data"]);
}

#[test]
fn a_write_protected_file_is_kept() {
    let (sandbox, _) = furnished();
    sandbox.write("kept", "kept");
    let mut permissions = std::fs::metadata(sandbox.path("kept")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(sandbox.path("kept"), permissions).unwrap();
    let line = format!("fit a.csv --target rent {QUICK} --out kept");
    sandbox.fails(&line, 1, &["kept", "write-protected"]);
    assert_eq!(sandbox.read("kept"), b"kept");
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_stays_a_device() {
    let (sandbox, _) = furnished();
    // A link of our own: if it were replaced, the real device would still be there.
    std::os::unix::fs::symlink("/dev/stdout", sandbox.path("screen")).unwrap();
    let direct = sandbox.ok("predict m.safetensors a.csv");
    assert_eq!(sandbox.ok("predict m.safetensors a.csv --out screen"), direct);
    assert!(std::fs::symlink_metadata(sandbox.path("screen")).unwrap().is_symlink());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_its_file_is_replaced() {
    let (sandbox, _) = furnished();
    sandbox.write("sub/p.csv", "old");
    std::os::unix::fs::symlink("sub/p.csv", sandbox.path("p.csv")).unwrap();
    sandbox.ok("predict m.safetensors a.csv --out p.csv");
    assert!(std::fs::symlink_metadata(sandbox.path("p.csv")).unwrap().is_symlink());
    assert!(sandbox.read("sub/p.csv").starts_with(b"mean,"));
}

#[test]
fn everything_written_is_told() {
    let (sandbox, _) = furnished();
    let run = sandbox.run(&format!(
        "fit a.csv --target rent --stream --search off --set members=1 {QUICK} --out n.safetensors"
    ));
    assert_eq!((run.code, run.stderr.as_str()), (0, "model written to n.safetensors\n"));
    let run = sandbox.run("predict n.safetensors a.csv --out p.csv");
    assert_eq!((run.code, run.stderr.as_str()), (0, "predictions written to p.csv\n"));
}
