"""Rounds on Dask: rows per second, memory of a worker, and a model of what a round costs.

    python scripts/dask_scaling.py                     10⁶ and 10⁷ rows × 20 columns with 1 and 2 workers
    python scripts/dask_scaling.py --rows 500000 --rounds 20 --workers 1

Rows are made on the workers by a seeded generator whenever they are read, so that the table is nowhere whole.
The cluster is processes of this machine. Prints a JSON object per fit, and the fitted model of costs at the
end.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import dask
import numpy as np
from dask.distributed import Client, LocalCluster

from bayespc.dask import DaskBPCRegressor


def made(part, rows, columns):
    """Return the rows of a part: the same whenever and wherever it is asked for."""
    rng = np.random.default_rng([2024, part])
    X = rng.standard_normal((rows, columns))
    signal = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] - 0.5 * np.abs(X[:, 3])
    return X, signal + 0.3 * rng.standard_normal(rows)


def parts_of(rows, columns, rows_per_part):
    """Return a table of delayed parts."""
    n = -(-rows // rows_per_part)
    sizes = [min(rows_per_part, rows - i * rows_per_part) for i in range(n)]
    pairs = [dask.delayed(made, nout=2)(i, size, columns) for i, size in enumerate(sizes)]
    return [X for X, _ in pairs], [y for _, y in pairs]


def peak():
    """Run on a worker: its largest memory so far, in bytes; not that of the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def measured(args, rows, workers):
    """Fit once; return what it took."""
    options = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": args.memory}
    with (
        LocalCluster(**options, dashboard_address=None, host="127.0.0.1") as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: __import__("bayespc"))
        before = max(client.run(peak).values())
        X, y = parts_of(rows, args.columns, args.rows_per_part)
        model = DaskBPCRegressor(
            (args.width, args.width), search=False, n_members=1, max_iter=args.rounds, random_state=0
        )
        begun = time.perf_counter()
        model.fit(X, y, rounds=True)
        seconds = time.perf_counter() - begun
        peaks = max(client.run(peak).values())
        score = model.score(X[:3], y[:3])
    rounds = [p["seconds"] for p in model.passes_ if p["pass"] == "round" and not p["reads"]]
    taking = [p["seconds"] for p in model.passes_ if p["pass"] == "round" and p["reads"]]
    others = {p["pass"]: round(p["seconds"], 2) for p in model.passes_ if p["pass"] != "round"}
    reading = [p["seconds"] for p in model.passes_ if p["pass"] in ("weights", "curvature")]
    return {
        "rows": rows,
        "columns": args.columns,
        "width": args.width,
        "workers": workers,
        "rounds": args.rounds,
        "seconds": round(seconds, 1),
        "rows_per_second": round(rows / seconds),
        "passes_that_read": sum(p["reads"] for p in model.passes_) + 1,
        "row_reads_per_second": round(rows * (sum(p["reads"] for p in model.passes_) + 1) / seconds),
        "round_seconds": round(float(np.median(rounds)), 4) if rounds else None,
        "taking_seconds": [round(t, 2) for t in taking],
        "reading_seconds": round(float(np.mean(reading)), 3),
        "other_passes": others,
        "statistics_bytes": int(
            np.median([p["statistics_bytes"] for p in model.passes_ if p["pass"] == "round"])
        ),
        "model_bytes": model.passes_[-1]["model_bytes"],
        "worker_peak_mb": round(peaks / 1e6),
        "worker_before_mb": round(before / 1e6),
        "r2": round(score, 4),
    }


def cost_model(found):
    """Return least-squares fits of what passes take, and what they come to for 10⁹ rows and 100 workers.

    reading pass  s = a₀ + a₁ · rows / workers
    round         s = b₀ + b₁ · rows / workers      the chunks of the table that every round adds up
    """
    if len(found) < 2:
        return None
    share = np.array([f["rows"] / f["workers"] for f in found])
    basis = np.column_stack([np.ones(len(share)), share])

    def fitted(values):
        coefficients, *_ = np.linalg.lstsq(basis, np.array(values, dtype=float), rcond=None)
        return np.maximum(coefficients, 0.0)

    reading = fitted([f["reading_seconds"] for f in found])
    rounds = fitted([f["round_seconds"] for f in found])
    rows, workers, n_rounds = 1e9, 100, found[0]["rounds"]
    each = np.array([1.0, rows / workers])
    said = {
        "reading_pass_seconds": {"constant": float(reading[0]), "per_row_and_worker": float(reading[1])},
        "round_seconds": {"constant": float(rounds[0]), "per_row_and_worker": float(rounds[1])},
        "1e9_rows_100_workers": {
            "reading_pass_seconds": float(reading @ each),
            "round_seconds": float(rounds @ each),
            "fit_minutes": float(6 * (reading @ each) + n_rounds * (rounds @ each)) / 60,
        },
    }
    return said


def main():
    """Measure, print, fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--width", type=int, default=50, help="of the two hidden layers")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--rows-per-part", type=int, default=100_000)
    parser.add_argument("--memory", default="1GB", help="of a worker")
    parser.add_argument("--saved", help="a file of earlier output, to fit the model of costs to")
    args = parser.parse_args()
    found = []
    if args.saved:
        with open(args.saved) as file:
            found = [json.loads(line) for line in file if line.startswith('{"rows"')]
        args.rows = []
    for rows in args.rows:
        for workers in args.workers:
            found.append(measured(args, rows, workers))
            print(json.dumps(found[-1]), flush=True)
    if all(f["round_seconds"] is not None for f in found):
        print(json.dumps({"cost_model": cost_model(found)}, indent=2))


if __name__ == "__main__":
    main()
