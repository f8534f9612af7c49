"""`make size`: what it counts in a made-up workspace, and whether its list of executed files is true."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from built import ROOT


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


size = script("size")

LIB = """//! A line of documentation.

/* pub fn commented() {} */
mod fit;
mod score;
/// What can be set.
#[derive(Clone)]
pub struct FitSettings {
    /// Doc: of a field.
    pub rate: Vec<(f64, u8)>, // a: comment
    #[serde(default = "size: 3")]
    pub(crate) head: crate::score::Head<u8>,
}
pub struct Other { not_a_setting: u8 }
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    #[error("{what}, {}", 1)]
    Shape { what: String, rows: [u8; 2] },
    #[error("empty")]
    Empty,
    Io(Box<u8>, u8),
}
#[derive(Clone)]
pub enum NoFault { One, Two }
pub fn used() -> char { '"' }
pub const fn unused() -> &'static str { r#"not the end: "
pub fn in_a_string() {"# }
pub(crate) fn inner() {}
impl Other {
    pub fn method(&self) {}
}
"""
FIT = """use super::score::{Head, self};
#[cfg(test)]
mod hidden;
#[cfg(test)]
#[allow(dead_code)]
mod tests {
    pub fn in_a_test() -> char { '}' }
}
"""
SCORE = """use crate::{fit::Fit, Error};
pub mod a;
pub mod b;
"""
FILES = {
    "crates/one/Cargo.toml": "",
    "crates/one/src/lib.rs": LIB,
    "crates/one/src/fit.rs": FIT,
    "crates/one/src/fit/hidden.rs": "use crate::score;\npub fn also_a_test() {}\n",
    "crates/one/src/score/mod.rs": SCORE,
    "crates/one/src/score/a.rs": "#[cfg(test)]\nuse super::b::B;\npub struct A;\n",
    "crates/one/src/score/b.rs": "fn b() -> super::a::A {}\n",
    "crates/one/tests/used.rs": "fn unused() {}\n\n",
    "crates/two/Cargo.toml": "",
    "crates/two/src/main.rs": "fn main() { one::used(); } // unused, method\n",
    "fuzz/src/lib.rs": "use one::Fault;\n",
    "scripts/default_path.txt": "crates/one/src/fit.rs\ncrates/one/src/score/mod.rs\n",
    "scripts/size_budgets.toml": """
[rust]
lines = 90
circles = 0
[python]
lines = 7
[crates.one]
lines = 30
[crates.part]
within = "one"
lines = 12
files = 4
[crates.two]
lines = 5
""",
    "python/bayespc/__init__.py": "1\n2\n",
    "python/bayespc/dask/_core.pyi": "3\n",
    "python/tests/test_one.py": "4\n",
}


@pytest.fixture
def workspace(tmp_path):
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def one(workspace):
    return size.count(workspace)["one"]


def test_lines_are_code_tests_or_neither(one):
    assert one["files"] == 6
    inside = [text for name, text in FILES.items() if name.startswith("crates/one/src/")]
    assert one["lines"] == sum(text.count("\n") for text in inside)
    # Of lib.rs all but four lines of comments and an empty one; fit.rs, a.rs and b.rs have one line each,
    # score/mod.rs has three.
    assert one["code"] == LIB.count("\n") - 5 + 1 + 1 + 3 + 1
    # Modules and uses for tests, without the end of their last line; a file of its own.
    assert one["inline tests"] == 1 + 4 + 1 + 2
    assert one["other tests"] == 2


def test_fields_of_settings_are_counted(one):
    assert one["settings"] == 2


def test_variants_of_errors_are_counted(one):
    assert one["errors"] == 3


def test_public_items_are_counted_outside_tests_comments_and_strings(one):
    # FitSettings, Other, Fault, NoFault, used, unused, method, A.
    assert one["public"] == 8


def test_an_item_is_named_by_the_code_of_another_crate_only(one):
    # `used` is by two, `Fault` by fuzz; its own tests and comments elsewhere do not count.
    assert one["unnamed"] == 6


def test_circles_are_those_of_shipped_code_within_a_folder(workspace, one):
    assert one["circles"] == ["src: fit, score"]
    a = workspace / "crates/one/src/score/a.rs"
    a.write_text("use super::b::B;\n", encoding="utf-8")
    assert size.count(workspace)["one"]["circles"] == ["src: fit, score", "score: a, b"]
    (workspace / "crates/one/src/fit.rs").write_text(FIT.replace("score", "other"), encoding="utf-8")
    assert size.count(workspace)["one"]["circles"] == ["score: a, b"]


def test_files_on_the_default_path_are_counted_by_crate(workspace, one):
    assert one["default path"] == 2
    assert size.count(workspace)["two"]["default path"] == 0


def test_python_is_the_package_with_its_stubs(workspace):
    assert size.count_python(workspace) == (2, 3)


def test_the_budget_of_a_crate_contains_what_is_still_within_it(workspace):
    def row(name):
        return next(line for line in size.table(workspace).splitlines() if line.startswith(f"| {name}"))

    lines = size.count(workspace)["one"]["lines"]
    assert re.split(r" *\| *", row("one "))[2:4] == ["6 / 4", f"{lines} / 42"]
    assert "– / 4 | – / 12" in re.sub(" +", " ", row("part, in one"))
    assert f"{lines + 1 + 2} / 90" in row("Rust, all")
    assert row("Rust, all").endswith(" 1 / 0 |")
    assert "3 / 7" in row("Python")
    part = workspace / "crates/part"
    part.mkdir()
    (part / "Cargo.toml").touch()
    assert f" {lines} / 30 " in row("one ")
    assert "0 / 12" in row("part ")


def test_every_listed_file_of_the_default_path_exists():
    listed = (ROOT / size.DEFAULT_PATH).read_text(encoding="utf-8").splitlines()
    assert listed and listed == sorted(set(listed))
    gone = [path for path in listed if not (ROOT / path).is_file()]
    assert not gone, "run: python3 scripts/default_path.py"


def test_the_default_path_is_what_a_default_fit_and_prediction_execute():
    trace = script("default_path")
    if not trace.can_trace():
        pytest.skip("the list of executed files is checked on Linux, x86-64, with gdb only")
    sources = [path.stat().st_mtime for path in Path(ROOT, "crates/bayespc").rglob("*.rs")]
    if not trace.EXAMPLE.is_file() or trace.EXAMPLE.stat().st_mtime < max(sources):
        pytest.skip("not built since the last change: cargo build -p bayespc --example default_fit")
    # A program of its own, as it waits for every child that it has.
    run = subprocess.run([sys.executable, trace.__file__], capture_output=True, text=True)
    if "PermissionError" in run.stderr:
        pytest.skip("this system does not let a program be traced")
    assert run.returncode == 0, run.stderr
    listed = (ROOT / size.DEFAULT_PATH).read_text(encoding="utf-8").splitlines()
    assert listed == run.stdout.splitlines(), f"run: python3 scripts/default_path.py > {size.DEFAULT_PATH}"
