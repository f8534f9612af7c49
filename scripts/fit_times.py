"""Processor seconds of building, fitting, predicting, streaming and an epoch of MNIST, as one table.

    make demo && python3 scripts/fit_times.py [--only fit,predict] [--repeats 3]

Seconds are those of the processor, children included, so that other work on the machine matters less than by
the clock: medians of the repeats, with the least and the most. The command that is measured is the one in
target/release, or that of --command:

build    `make demo`'s cargo build into an empty folder, once; minutes
fit      `bayespc fit wine`, the built-in table
predict  that model, 50 times the rows of the table
stream   `bayespc fit --stream`, the same file
mnist    an epoch of `bayespc fit mnist`: a fit of three epochs less one of a single epoch, halved; from
         --data or BAYESPC_DATA, skipped without
ngboost  only if named: a table of its own, a default fit by the clock beside the preset `fast` and NGBoost's
         default, alternating, on the first split of six tables, the least of the repeats; needs `pip install
         ngboost`, and `uci/<name>/data.csv` and `splits.csv` in --data
"""

import argparse
import gzip
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WINE = ROOT / "crates/bayespc-data/built_in/winequality-red.csv.gz"
TIMES_WINE = 50
UCI = ("yacht", "housing", "energy", "concrete", "wine", "power")
PARTS = ("build", "fit", "predict", "stream", "mnist")

Row = tuple[str, str, list[float]]


def cpu_seconds(*call: str | Path, **environment: str) -> float:
    """Return the processor time of a command and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(call, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, call))} failed:\n{result.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def build() -> Iterator[Row]:
    """Build the command as `make demo` does, into an empty folder."""
    with tempfile.TemporaryDirectory() as target:
        call = "cargo build --release -p bayespc-cli --no-default-features --timings".split()
        seconds = cpu_seconds(*call, CARGO_TARGET_DIR=target)
        page = Path(target, "cargo-timings", "cargo-timing.html").read_text(encoding="utf-8")
    units = json.loads(re.search(r"UNIT_DATA = (\[.*?\]);", page, re.DOTALL)[1])
    yield "build", "cargo and the compiler", [seconds]
    elapsed = sum(unit["duration"] for unit in units)
    yield "build", f"sum of {len(units)} units in `--timings`, by the clock", [elapsed]


def tables(command: Path, only: set[str], repeats: int) -> Iterator[Row]:
    """Fit, predict and stream the built-in table."""
    with tempfile.TemporaryDirectory() as folder:
        model, rows, out = (Path(folder, name) for name in ("wine.safetensors", "rows.csv", "out.csv"))
        fit = (command, "fit", "wine", "--target", "quality", "--out", model)
        times = [cpu_seconds(*fit) for _ in range(repeats if "fit" in only else "predict" in only)]
        if "fit" in only:
            yield "fit", "built-in wine, 1599 rows", times
        header, *lines = gzip.decompress(WINE.read_bytes()).decode().splitlines(keepends=True)
        names = header.lower().replace(" ", "_")  # As the built-in table has them.
        rows.write_text(names + "".join(lines) * TIMES_WINE)
        what = f"{TIMES_WINE} × {len(lines)} rows of wine"
        if "predict" in only:
            predict = (command, "predict", model, rows, "--out", out)
            yield "predict", what, [cpu_seconds(*predict) for _ in range(repeats)]
        if "stream" in only:
            stream = (command, "fit", rows, "--target", "quality", "--stream")
            yield "stream", what, [cpu_seconds(*stream) for _ in range(repeats)]


def mnist(command: Path, data: str, repeats: int) -> Iterator[Row]:
    """Take a fit of one epoch from one of three: what is left is two epochs."""
    fit = (command, "fit", "mnist", "--data", data, "--set")
    pairs = [[cpu_seconds(*fit, f"training.epochs={n}") for n in (1, 3)] for _ in range(repeats)]
    yield "mnist", "an epoch of 60 000 images", [(three - one) / 2 for one, three in pairs]


def ours(command: Path, name: str, data: str, preset: str) -> float:
    """Return the seconds of one fit by the command."""
    call = [command, "evaluate", name, "--data", data, "--max-splits", "1", "--preset", preset, "--json"]
    return json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)["seconds_fit"]


def ngboost(name: str, data: str) -> float:
    """Return the seconds of one fit by NGBoost."""
    import numpy as np
    from ngboost import NGBRegressor

    folder = Path(data) / "uci" / name
    table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)
    with (folder / "splits.csv").open() as lines:
        test = [int(row) for row in next(lines).split(",")]
    train = np.delete(table, test, axis=0)
    started = time.perf_counter()
    NGBRegressor(verbose=False, random_state=0).fit(train[:, :-1], train[:, -1])
    return time.perf_counter() - started


def print_ngboost(command: Path, data: str, repeats: int) -> None:
    """Print the table of times beside NGBoost's."""
    print("| table | default | fast | NGBoost | default / NGBoost |\n|---|---|---|---|---|")
    for name in UCI:
        rounds = [
            (ours(command, name, data, "default"), ours(command, name, data, "fast"), ngboost(name, data))
            for _ in range(repeats)
        ]
        default, fast, other = map(min, zip(*rounds, strict=True))
        print(f"| {name} | {default:.1f} s | {fast:.2f} s | {other:.1f} s | {default / other:.2f} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Processor seconds of a build, fits and predictions.")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)},ngboost")
    parser.add_argument("--data", default=os.environ.get("BAYESPC_DATA"), help="folder of public data sets")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--command", type=Path, default=ROOT / "target/release/bayespc")
    arguments = parser.parse_args()
    only, data = set(arguments.only.split(",")), arguments.data
    if unknown := only - {*PARTS, "ngboost"}:
        parser.error(f"--only {', '.join(sorted(unknown))}: must be of {', '.join(PARTS)}, ngboost")
    if only != {"build"} and not arguments.command.is_file():
        parser.error(f"{arguments.command} is not there: run `make demo`, or give --command")
    if "ngboost" in only:
        if not data:
            parser.error("ngboost needs --data or BAYESPC_DATA")
        print_ngboost(arguments.command, data, arguments.repeats)
    rows = list(build()) if "build" in only else []
    if only & {"fit", "predict", "stream"}:
        rows += tables(arguments.command, only, arguments.repeats)
    note = ""
    if "mnist" in only and data and Path(data, "mnist").is_dir():
        rows += mnist(arguments.command, data, arguments.repeats)
    elif "mnist" in only:
        note = "mnist is skipped: set BAYESPC_DATA to a folder that holds mnist/."
    if rows:
        print("| part | what | processor s | least – most |\n|---|---|---|---|")
    for part, what, times in rows:
        print(f"| {part} | {what} | {statistics.median(times):.2f} | {min(times):.2f} – {max(times):.2f} |")
    if note:
        print(note)


if __name__ == "__main__":
    main()
