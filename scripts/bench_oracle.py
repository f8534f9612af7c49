"""How much faster a training step is here than in the NumPy reference implementation, in the same run.

    python scripts/bench_oracle.py --oracle FOLDER [--steps 200] [--rounds 5] [--threads 1] [--at-least 5]
    python scripts/bench_oracle.py --oracle FOLDER --fit [--rounds 5] [--threads 1] [--at-least 10]

FOLDER holds `bpc_reference.py`, whose numbers the tests compare with. Both sides take feedback steps in
double precision on a 6-50-50-1 network with batches of 32. Rounds alternate, so that a busy machine slows
both; the medians over rounds are compared. `--threads` bounds the threads of NumPy's BLAS (default: its own
choice); a step of this size runs on one thread here. Ends with status 1 if the ratio is below `--at-least`.

With `--fit` whole fits are compared instead: five networks on a table of energy's shape (8-50-50-1, batches
of 32, 100 epochs, the final pass included), here by `bayespc-bench tabular` on all cores. The reference is
timed for a few epochs of one network, scaled to all epochs and to five networks one after the other.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 32
SIZES = [6, 50, 50, 1]
TABLE = "energy"
FIT_SIZES = [8, 50, 50, 1]
MEMBERS = 5
# Epochs the reference is timed for.
TIMED_EPOCHS = 5


def build(*what: str) -> pathlib.Path:
    """Build a program of this workspace, and return its path."""
    command = ["cargo", "build", "--release", *what]
    messages = subprocess.run(
        [*command, "--message-format", "json-render-diagnostics"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    built = [json.loads(line) for line in messages.splitlines()]
    return pathlib.Path(next(m["executable"] for m in reversed(built) if m.get("executable")))


def ours(program: pathlib.Path, steps: int) -> dict[str, float]:
    """Microseconds per step of this library, by precision."""
    output = subprocess.run([program, str(steps)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output)


def theirs(network, rng, steps: int) -> float:
    """Microseconds per step of the reference."""
    import numpy as np

    x = rng.uniform(-1.7, 1.7, (BATCH, SIZES[0]))
    y = np.sin(x[:, :1] * x[:, 1:2])
    start = time.perf_counter()
    for t in range(1, steps + 1):
        kappa = 0.005 + 0.295 * 0.5 * (1 + np.cos(np.pi * t / steps))
        network.step_feedback(x, y, kappa, 320 / BATCH)
    return 1e6 * (time.perf_counter() - start) / steps


def compare_steps(module, rng, rounds: int, steps: int) -> float:
    """Time both sides' steps in alternating rounds, print them, and return the ratio."""
    import numpy as np

    program = build("-p", "bayespc", "--example", "step_time")
    network = module.Network(SIZES, seed=0)
    theirs(network, rng, steps)  # warm up
    reference, double, single = [], [], []
    for _ in range(rounds):
        reference.append(theirs(network, rng, steps))
        times = ours(program, steps)
        double.append(times["microseconds_f64"])
        single.append(times["microseconds_f32"])
    oracle = statistics.median(reference)
    ratio = oracle / statistics.median(double)
    print(f"NumPy {np.__version__} reference  {oracle:9.1f} µs per feedback step")
    print(f"bayespc, f64            {statistics.median(double):9.1f} µs   {ratio:5.1f} times faster")
    print(
        f"bayespc, f32            {statistics.median(single):9.1f} µs   "
        f"{oracle / statistics.median(single):5.1f} times faster"
    )
    return ratio


def our_fit(program: pathlib.Path, cores: int) -> tuple[float, int, int]:
    """Seconds of a fit of all members on all cores, rows of the table, and epochs."""
    command = [program, "tabular", "--json", "--repeats", "1", "--threads", str(cores)]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    run = next(r for r in report["runs"] if r["table"].endswith(TABLE) and r["members"] == MEMBERS)
    return run["seconds_fit"], run["rows"], report["epochs"]


def their_fit(reference, rng, rows: int, epochs: int) -> float:
    """Seconds the reference would take for all members, from some epochs of one."""
    import numpy as np

    x = rng.uniform(-1.7, 1.7, (rows, FIT_SIZES[0]))
    y = np.sin(x[:, :1] * x[:, 1:2])
    start = time.perf_counter()
    reference.fit(reference.Network(FIT_SIZES, seed=0), x, y, epochs=TIMED_EPOCHS, batch=BATCH)
    return (time.perf_counter() - start) * MEMBERS * epochs / TIMED_EPOCHS


def compare_fits(reference, rng, rounds: int) -> float:
    """Time both sides' fits in alternating rounds, print them, and return the ratio."""
    program, cores = build("-p", "bayespc-bench"), os.cpu_count() or 1
    ours, theirs = [], []
    for _ in range(rounds):
        seconds, rows, epochs = our_fit(program, cores)
        ours.append(seconds)
        theirs.append(their_fit(reference, rng, rows, epochs))
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"{MEMBERS} networks, {rows} rows, {FIT_SIZES[0]} columns, {epochs} epochs, {cores} cores")
    scaled = f"scaled from {TIMED_EPOCHS} epochs of one network"
    print(f"NumPy reference  {statistics.median(theirs):7.2f} s, {scaled}")
    print(f"bayespc, f64     {statistics.median(ours):7.2f} s   {ratio:5.1f} times faster")
    return ratio


def main() -> int:
    """Time both sides and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--oracle", type=pathlib.Path, required=True, help="folder of bpc_reference.py")
    parser.add_argument("--steps", type=int, default=200, help="steps per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, help="threads of NumPy's BLAS")
    parser.add_argument("--fit", action="store_true", help="compare whole fits instead of steps")
    parser.add_argument("--at-least", type=float, help="the ratio to reach")
    arguments = parser.parse_args()
    if not (arguments.oracle / "bpc_reference.py").is_file():
        parser.error(f"{arguments.oracle} holds no bpc_reference.py")
    if arguments.steps < 1 or arguments.rounds < 1:
        parser.error("steps and rounds must be at least 1")
    if arguments.threads is not None:
        # BLAS reads these when NumPy is first imported.
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(arguments.threads)
    sys.path.insert(0, str(arguments.oracle.resolve()))
    import bpc_reference
    import numpy as np

    rng = np.random.default_rng(0)
    compare = compare_fits if arguments.fit else lambda *a: compare_steps(*a, steps=arguments.steps)
    ratio = compare(bpc_reference, rng, arguments.rounds)
    if arguments.at_least is not None and ratio < arguments.at_least:
        print(f"below the goal of {arguments.at_least} times", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
