"""Read 10⁶ rows of 30 mixed columns: bayespc beside polars and pandas, on the same file in the same minutes.

    cargo build --release -p bayespc-bench
    python -m venv .venv-peers && .venv-peers/bin/pip install polars pandas pyarrow numpy
    .venv-peers/bin/python scripts/read_times.py [--rows N] [--rounds K] [--bench PROGRAM]

Every program reads in a process of its own, in turn; seconds are of the reader alone, medians over rounds.
polars is asked to recognise dates, which bayespc always does; pandas is not. Prints a table and polars' time
over ours.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

READERS = {
    "polars": "import polars as m; "
    "read = lambda f: m.read_csv(f, try_parse_dates=True, infer_schema_length=10_000)",
    "pandas": "import pandas as m; read = lambda f: m.read_csv(f)",
    "pandas (pyarrow)": "import pandas as m; read = lambda f: m.read_csv(f, engine='pyarrow')",
}
TIMED = (
    "import sys, time; {}; start = time.perf_counter(); read(sys.argv[1]); print(time.perf_counter() - start)"
)


def write_table(path: Path, rows: int) -> None:
    """Write the table of `bayespc-bench read`: numbers, counts, codes, words, dates, times, bits, holes."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    words = np.array(["Aarau", "Bern", "Chur", "Davos", "Genève", "Zürich, Stadt", "Uri", "Zug"])
    codes = np.array([f"k{i:04}" for i in range(5000)])
    makers = {
        "real": (12, lambda: rng.uniform(-100, 100, rows).round(5)),
        "count": (5, lambda: rng.integers(0, 10_000, rows)),
        "code": (3, lambda: codes[rng.integers(0, len(codes), rows)]),
        "word": (4, lambda: words[rng.integers(0, len(words), rows)]),
        "day": (2, lambda: rng.integers(7300, 20_000, rows).astype("datetime64[D]")),
        "instant": (
            2,
            lambda: (
                rng.integers(1_700_000_000, 1_730_000_000, rows)
                .astype("datetime64[s]")
                .astype("datetime64[ms]")
            ),
        ),
        "bit": (2, lambda: rng.integers(0, 2, rows).astype(bool)),
    }
    columns = []
    for kind, (count, make) in makers.items():
        for _ in range(count):
            column = pl.Series(f"{kind}{len(columns)}", make())
            holes = pl.Series(rng.random(rows) < 0.05)
            columns.append(pl.select(pl.when(~holes).then(column).alias(column.name)).to_series())
    pl.DataFrame(columns).write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S")


def main() -> None:
    """Write, read in turn, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bench", type=Path, default=Path("target/release/bayespc-bench"))
    args = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in ["bayespc", *READERS]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, args.rows)
        for _ in range(args.rounds):
            bench = [args.bench, "read", "--file", path, "--threads", "2", "--repeats", "1", "--json"]
            ours = json.loads(subprocess.run(bench, capture_output=True, check=True, text=True).stdout)
            seconds["bayespc"].append(ours["runs"][0]["seconds"])
            for name, code in READERS.items():
                run = [sys.executable, "-c", TIMED.format(code), str(path)]
                seconds[name].append(
                    float(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
                )
    print(
        f"{ours['rows']} rows of {ours['columns']} columns, {ours['megabytes']:.0f} MB, "
        f"median of {args.rounds}\n"
    )
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:<18}{median:7.2f} s  {ours['megabytes'] / median:6.0f} MB/s")
    ratio = statistics.median(seconds["polars"]) / statistics.median(seconds["bayespc"])
    print(f"\nspeed against polars: {ratio:.2f}")
    print(
        f"peak memory of bayespc {ours['peak_rss_mb']:.0f} MB while reading, "
        f"{ours['peak_rss_with_matrix_mb']:.0f} MB with the encoded matrix of {ours['matrix_mb']:.0f} MB"
    )


if __name__ == "__main__":
    main()
