"""Seconds of a default fit beside NGBoost's default, alternating, on the first split of the six tables.

    pip install ngboost  &&  cargo build --release -p bayespc-cli
    python scripts/fit_times.py [--data FOLDER] [--rounds 2]

FOLDER, by default BAYESPC_DATA, holds `uci/<name>/data.csv` and `splits.csv`. Prints the least of the
rounds: what the machine does besides only adds to a time.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time

import numpy as np
from ngboost import NGBRegressor

TABLES = ("yacht", "housing", "energy", "concrete", "wine", "power")
COMMAND = pathlib.Path(__file__).parents[1] / "target" / "release" / "bayespc"


def ours(name: str, data: str, preset: str) -> float:
    """Return the seconds of one fit by the command."""
    call = [COMMAND, "evaluate", name, "--data", data, "--max-splits", "1", "--preset", preset, "--json"]
    result = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
    return result["seconds_fit"]


def ngboost(name: str, data: str) -> float:
    """Return the seconds of one fit by NGBoost."""
    folder = pathlib.Path(data) / "uci" / name
    table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)
    with (folder / "splits.csv").open() as lines:
        test = [int(row) for row in next(lines).split(",")]
    train = np.delete(table, test, axis=0)
    started = time.perf_counter()
    NGBRegressor(verbose=False, random_state=0).fit(train[:, :-1], train[:, -1])
    return time.perf_counter() - started


def main() -> None:
    """Print a table of times."""
    parser = argparse.ArgumentParser(description="Times of a default fit and of NGBoost's.")
    parser.add_argument("--data", default=os.environ.get("BAYESPC_DATA", "data"))
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    print("| table | default | fast | NGBoost | default / NGBoost |\n|---|---|---|---|---|")
    for name in TABLES:
        rounds = [
            (
                ours(name, arguments.data, "default"),
                ours(name, arguments.data, "fast"),
                ngboost(name, arguments.data),
            )
            for _ in range(arguments.rounds)
        ]
        default, fast, other = np.min(rounds, axis=0)
        print(f"| {name} | {default:.1f} s | {fast:.2f} s | {other:.1f} s | {default / other:.2f} |")


if __name__ == "__main__":
    main()
