"""What stands in README, documentation and `--help` runs: Python and shell blocks of a page, in turn.

They run in a folder with the files they name. Of the Makefile, what takes seconds runs; make reads the rest.

Rust blocks are tried by crates/bayespc/tests/suite/documented.rs.
"""

import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import built
import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md"), ROOT / "README.md"])
# A block below such a comment needs something that is not here; the comment says what.
BLOCK = re.compile(r"(<!-- not run[^\n]*-->\n+)?```(\w+)\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#([^)]*))?\)")

COMMAND = """#!/bin/bash
# The command, but quick: a search gets two seconds, rounds and splits are few, a server ends at once.
case $1 in
serve)
    set -- "${{@/%9100/0}}"
    case " $* " in *" --port "*) set -- "${{@/%8000/0}}" ;; *) set -- "$@" --port 0 ;; esac
    : > serve.log
    {command} "$@" 2>> serve.log &
    until grep -qE '^serving|"listening"' serve.log || ! kill -0 $! 2> /dev/null; do sleep 0.1; done
    cat serve.log >&2
    kill -TERM $! && wait $!
    exit ;;
begin) exec {command} "$@" --rounds 3 ;;
esac
case " $* " in
" evaluate "*)
    case " $* " in *" --preset "*) ;; *) set -- "$@" --preset fast ;; esac
    case " $* " in *" --max-splits "*) ;; *) set -- "$@" --max-splits 2 ;; esac ;;
" fit "*) case " $* " in
    *" --stream "* | *" --preset "* | *" --time-limit "*) ;;
    *) exec {command} "$@" --time-limit 2 ;;
    esac ;;
esac
exec {command} "$@"
"""


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a page that run here."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for skip, kind, code in found if kind == language and not skip]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make the folder of a reader of the pages, and go there."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 80
    flats = pd.DataFrame({"id": range(500, 500 + n), "size": rng.uniform(20, 120, n).round(1)})
    flats["city"] = rng.choice(["Bern", "Chur", "Genf"], n)
    flats["zip"] = rng.choice([3000, 7000, 1200], n)
    flats["note"] = [f"{word} {i % 7} rooms" for i, word in enumerate(rng.choice(["sunny", "quiet"], n))]
    flats["built"] = pd.date_range("1990-01-01", periods=n, freq="90D").strftime("%Y-%m-%d")
    flats["rent"] = (12 * flats["size"] + rng.normal(0, 50, n)).round()
    flats.to_csv("flats.csv", index=False)
    flats.to_csv("flats.csv.gz", index=False)
    flats[40:].to_csv("other-flats.csv", index=False)
    flats[:5].drop(columns="rent").to_csv("new-flats.csv", index=False)
    flats[:5].drop(columns="rent").to_excel("new.xlsx", sheet_name="Offers", index=False)
    patients = pd.DataFrame(rng.normal(size=(n, 3)) @ rng.normal(size=(3, 5)), columns=list("abcde"))
    patients = patients.mask(rng.random(patients.shape) < 0.1)
    patients.to_csv("patients.csv", index=False)
    meters = pd.DataFrame({"hour": rng.integers(0, 24, 900), "heat": rng.normal(size=900)})
    meters["load"] = np.sin(meters["hour"]) + meters["heat"] + 0.1 * rng.normal(size=900)
    meters.to_csv("meters.csv.gz", index=False)
    meters[:100].to_csv("today.csv", index=False)
    meters.rename(columns={"load": "y"}).to_csv("big.csv", index=False)
    Path("parts").mkdir()
    for part in (6, 7):
        meters[part::8].to_csv(f"parts/{part:02}.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_the_examples_of_a_page_run(page, folder):
    names: dict[str, object] = {"__name__": page.stem}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, code in enumerate(blocks(page, "python"), 1):
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sh")], ids=lambda p: p.stem)
def test_the_commands_of_a_page_run(page, folder):
    shell = quick_shell(folder)
    shutil.copy("patients.csv" if page.stem == "generative" else wines(), "new.csv")
    for number, code in enumerate(blocks(page, "sh"), 1):
        done = shell(code)
        assert done.returncode == 0, f"{page.name}, block {number}:\n{code}\n{done.stderr}"


Shell = Callable[[str], subprocess.CompletedProcess[str]]


def quick_shell(folder: Path) -> Shell:
    """Return a function that runs shell code with a quick command; make the models that pages name."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    command = built.command()
    tools = folder / "tools"
    tools.mkdir()
    (tools / "bayespc").write_text(COMMAND.format(command=command))
    (tools / "bayespc").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    # What earlier pages made, and what is predicted in this one.
    quick = ["--preset", "fast", "--set", "training.epochs=2"]
    for target, data in (("rent", "flats.csv"), ("quality", "wine")):
        fit = [command, "fit", data, "--target", target, *quick]
        subprocess.run([*fit, "--out", f"{target}.safetensors"], check=True)

    def run(code: str) -> subprocess.CompletedProcess[str]:
        line = ["bash", "-e", "-o", "pipefail", "-c", code]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300)

    return run


# Those of `reproduce` take minutes or more: the library's own test runs every experiment on a few rows.
SUBCOMMANDS = [
    *("fit", "predict", "explain", "impute", "generate", "evaluate", "begin", "stats", "merge", "prune"),
    *("inspect", "serve", "data", "completions"),
]


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_the_examples_in_the_help_of_a_subcommand_run(subcommand, folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    shell = quick_shell(folder)
    block = re.search(r"^Examples?:.*\n((?:  .+\n)+)", help_of(subcommand), re.MULTILINE)
    assert block is not None, "no example"
    lines = block[1].splitlines()
    # A loop is one example; elsewhere a line without the command continues the one before.
    text = block[1] if "while " in block[1] else "\n".join(lines).replace("\n    ", " ")
    examples = [text] if "while " in text else [line.strip() for line in text.splitlines()]
    help_files(folder, subcommand, shell)
    for example in examples:
        if "fetch" in example or ("data/" in example and not Path("data").exists()):
            continue
        done = shell(example)
        assert done.returncode == 0, f"{example}\n{done.stderr}"


def help_of(*arguments: str) -> str:
    """Return what `--help` prints where lines are long enough for all examples."""
    line = [built.command(), *arguments, "--help"]
    environment = os.environ | {"COLUMNS": "1000"}
    return subprocess.run(line, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_examples_of_all_subcommands_are_tried():
    listed = help_of().partition("Commands:\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^  (\w+)", listed, re.MULTILINE)) == {*SUBCOMMANDS, "reproduce", "help"}


def help_files(folder: Path, subcommand: str, shell: Shell) -> None:
    """Write the files that examples of `--help` name and pages do not."""
    rng = np.random.default_rng(1)
    flowers = pd.DataFrame(rng.normal(size=(60, 2)), columns=["petal", "sepal"])
    flowers["species"] = np.where(flowers["petal"] > 0, "setosa", "virginica")
    flowers.to_csv("iris.csv", index=False)
    Path("settings.toml").write_text("[training]\nepochs = 5\n")
    pd.read_csv("meters.csv.gz").to_parquet("meters.parquet")
    pd.read_csv("new-flats.csv").to_csv("new.csv.gz", index=False)
    shutil.copy("today.csv" if subcommand == "begin" else "patients.csv", "new.csv")
    if subcommand in {"stats", "merge"}:
        rounds = ["bayespc begin parts/*.csv --target load --out model.3"]
        rounds += [f"bayespc stats parts/{part}.csv --model model.3 --out {part}.3" for part in ("06", "07")]
        assert shell("\n".join(rounds)).returncode == 0
        if subcommand == "stats":
            Path("07.3").unlink()
    shutil.copy("quality.safetensors", "wine.safetensors")
    Path("models").mkdir()
    shutil.copy("quality.safetensors", "models/wine-3.safetensors")
    Path("token").write_text("a-token-of-this-test\n")
    for name in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        (folder / name).mkdir(parents=True)
    if os.environ.get("BAYESPC_DATA"):
        Path("data").symlink_to(os.environ["BAYESPC_DATA"])


def test_every_target_of_the_makefile_can_be_made():
    text = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert targets is not None
    for target in targets[1].split():
        assert re.search(rf"^{target}:", text, re.MULTILINE), target
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


# Targets that take less than a minute on what `make test` has built.
@pytest.mark.parametrize("target", ["size"])
def test_a_quick_target_of_the_makefile_runs(target):
    done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def wines() -> str:
    """Write a table with the columns of the built-in wine data, and return its name."""
    names = "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides free_sulfur_dioxide"
    names += " total_sulfur_dioxide density ph sulphates alcohol"
    row = [7.4, 0.7, 0.0, 1.9, 0.076, 11.0, 34.0, 0.9978, 3.51, 0.56, 9.4]
    pd.DataFrame([row, row], columns=names.split()).to_csv("new-wines.csv", index=False)
    return "new-wines.csv"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_of_a_page_lead_somewhere(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
