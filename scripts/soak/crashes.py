"""Kill the command at random moments and see what is left.

    python scripts/soak/crashes.py --command target/release/bayespc [--minutes 5] [--seed 0]
        [--python .venv/bin/python]

Trials take turns, in a folder of their own:

* `fit --out` over an existing model, killed (SIGKILL): the old file or the new one is there, whole, and
  nothing else;
* `fit --stream --checkpoint`, killed again and again and started again with the same command: the model it
  ends with has the bits of an undisturbed run;
* everything the command writes, with room for a part of it, on a full device, in a folder that is read-only
  or not there: an error, the old file as it was, and nothing else;
* a table and a model that are replaced while `predict` reads them: the predictions of what was there before
  or after, whole, and of no mixture of the two; of files that are cut off: predictions or an error, never a
  crash;
* two writers of one file at once: one of their two models, whole;
* `reproduce figure2 --quick`, killed and started again until it ends: the records of an undisturbed run;
* with `--python`, a fit in rounds on a Dask cluster with a checkpoint, of which client and workers are
  killed, until it ends: the bits of an undisturbed fit.

One JSON line in the end: how many kills, in how many of them a new file was found, what went wrong
(nothing, or the script exits with 1).
"""

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROWS = 30_000

ROUNDS = """
import sys
import dask
import numpy as np
from distributed import Client, LocalCluster
from bayespc import presets
from bayespc.dask import DaskBPCRegressor

def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(X))
    parts = [dask.delayed(X[i : i + 2500]) for i in range(0, len(X), 2500)]
    targets = [dask.delayed(y[i : i + 2500]) for i in range(0, len(X), 2500)]
    options = presets.fast() | {"hidden_layer_sizes": (20,), "max_iter": 12, "random_state": 0}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        with Client(cluster):
            model = DaskBPCRegressor(**options).fit(parts, targets, rounds=True, checkpoint=sys.argv[1])
    model.save(sys.argv[2])

if __name__ == "__main__":
    main()
"""
"""A fit in rounds: checkpoint and result are its arguments."""


class Driver:
    """The command, a folder, and what was seen."""

    def __init__(self, command: Path, folder: Path, seed: int) -> None:
        self.folder = folder
        # A copy: a user who may write nothing may not be able to read the original either.
        self.command = str(shutil.copy(command, folder / "bayespc"))
        self.random = random.Random(seed)
        self.counts = {"kills": 0, "old": 0, "new": 0, "resumed": 0, "refused": 0, "races": 0}
        self.counts |= {"swapped": 0, "cut off": 0, "reproduced": 0, "rounds": 0}
        self.python: str | None = None
        self.wrong: list[str] = []
        self.table = folder / "table.csv"
        draw = random.Random(1)
        with self.table.open("w") as file:
            file.write("a,b,y\n")
            for _ in range(ROWS):
                a, b = draw.uniform(-1, 1), draw.uniform(-1, 1)
                file.write(f"{a:.6f},{b:.6f},{a * b + draw.gauss(0, 0.1):.6f}\n")
        self.small = folder / "small.csv"
        self.small.write_text("".join(self.table.open().readlines()[:401]))
        self.quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def emptied(self, name: str) -> Path:
        """Return the folder of a trial, with nothing in it."""
        where = self.folder / name
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        return where

    def start(self, arguments: list[str], where: Path, **options: object) -> "subprocess.Popen[bytes]":
        """Start the command."""
        line = [self.command, *arguments]
        return subprocess.Popen(line, cwd=where, **self.quiet, **options)  # type: ignore[call-overload]

    def run(self, arguments: list[str], where: Path, **options: object) -> int:
        """Run the command to its end."""
        return self.start(arguments, where, **options).wait()

    def killed(self, arguments: list[str], where: Path, longest: float) -> bool:
        """Run the command and kill it at a random moment; tell whether it was still running."""
        process = self.start(arguments, where)
        try:
            process.wait(self.random.uniform(0, longest))
            return False
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.counts["kills"] += 1
            return True

    def complain(self, what: str) -> None:
        """Remember what went wrong."""
        self.wrong.append(what)
        print(what, file=sys.stderr)

    def is_whole(self, model: Path, where: Path) -> bool:
        """Tell whether a model can be read; its checksum covers every bit."""
        return self.run(["inspect", model.name], where) == 0

    def overwriting(self) -> None:
        """Kill `fit --out` while it replaces a model."""
        where = self.emptied("overwriting")
        fit = ["fit", str(self.small), "--target", "y", "--preset", "fast", "--set", "training.epochs=5"]
        began = time.monotonic()
        self.run([*fit, "--seed", "1", "--out", "m.safetensors"], where)
        longest = 1.5 * (time.monotonic() - began)
        for seed in range(2, 22):
            before = (where / "m.safetensors").read_bytes()
            self.killed([*fit, "--seed", str(seed), "--out", "m.safetensors"], where, longest)
            left = sorted(path.name for path in where.iterdir())
            # SIGKILL may leave a temporary file, which the next writer takes away.
            if "m.safetensors" not in left or not self.is_whole(where / "m.safetensors", where):
                self.complain(f"fit --out, seed {seed}: left {left}")
            if len(left) > 2:
                self.complain(f"fit --out: files heap up: {left}")
            same = (where / "m.safetensors").read_bytes() == before
            self.counts["old" if same else "new"] += 1

    def resuming(self) -> None:
        """Kill a stream with checkpoints until it comes to its end."""
        where = self.emptied("resuming")
        stream = ["fit", str(self.table), "--target", "y", "--stream", "--set", "members=2"]
        began = time.monotonic()
        if self.run([*stream, "--out", "whole.safetensors"], where) != 0:
            self.complain("a stream that nobody disturbed failed")
            return
        longest = 1.2 * (time.monotonic() - began)
        again = [*stream, "--checkpoint", "c", "--every", "8192", "--out", "m.safetensors"]
        for attempt in range(30):
            if not self.killed(again, where, longest if attempt < 25 else 600.0):
                break
        if not (where / "m.safetensors").exists():
            self.complain("a stream that was killed again and again has no end")
            return
        self.counts["resumed"] += 1
        if self.networks(where / "m.safetensors") != self.networks(where / "whole.safetensors"):
            self.complain("a stream that went on after kills has other bits")

    @staticmethod
    def networks(model: Path) -> bytes:
        """Return the tensors of a model; its settings name files."""
        content = model.read_bytes()
        return content[8 + int.from_bytes(content[:8], "little") :][:-8]

    def refusing(self) -> None:
        """Write where there is no room, and where nobody may."""
        where = self.emptied("refusing")
        fit = ["fit", str(self.small), "--target", "y", "--preset", "fast", "--set", "training.epochs=1"]
        stream = ["fit", str(self.table), "--target", "y", "--stream"]
        predict = ["predict", str(self.folder / "model.safetensors"), str(self.table), "--out"]
        self.run([*fit, "--out", predict[1]], where)
        for target in ("/dev/full", "no/such/folder/m.safetensors"):
            self.refused([*fit, "--out", target], where)
        for line, name in (
            ([*fit, "--out"], "m.safetensors"),
            ([*fit, "--report"], "r.html"),
            (predict, "p.csv"),
            (predict, "p.parquet"),
            ([*stream, "--out"], "s.safetensors"),
            ([*stream, "--every", "8192", "--checkpoint"], "c.safetensors"),
        ):
            arguments = [*line, name]
            if self.run(arguments, where) != 0:
                self.complain(f"{arguments} failed where nothing was in its way")
            if name.startswith("c."):
                # A checkpoint is gone when its stream is at its end.
                shutil.copy(where / "s.safetensors", where / name)
            room = self.random.randrange((where / name).stat().st_size)
            self.refused(arguments, where, preexec_fn=lambda room=room: has_room_for(room))
            where.chmod(0o555)
            # Nothing is forbidden to root.
            self.refused(arguments, where, **({"user": "nobody"} if os.geteuid() == 0 else {}))
            where.chmod(0o755)

    def refused(self, arguments: list[str], where: Path, **options: object) -> None:
        """Run a command that cannot write, and see that all files are as they were."""
        before = {path.name: path.read_bytes() for path in where.iterdir()}
        code = self.run(arguments, where, **options)
        after = {path.name: path.read_bytes() for path in where.iterdir()}
        if code not in (1, 2):
            self.complain(f"{arguments} with {options} ended with {code}")
        if after != before:
            changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
            self.complain(f"{arguments} with {options} failed and changed {changed}")
        self.counts["refused"] += 1

    def replacing(self) -> None:
        """Replace a table and a model while they are read, or cut them off."""
        where = self.emptied("replacing")
        fit = ["fit", str(self.small), "--target", "y", "--preset", "fast", "--set", "training.epochs=1"]
        for seed in ("1", "2"):
            self.run([*fit, "--seed", seed, "--out", f"{seed}.safetensors"], where)
        lines = self.table.read_text().splitlines()
        # The same values in other columns: a header of one file and rows of the other would be accepted.
        (where / "a.csv").write_text("\n".join(["a,b,c", *lines[1:]]))
        (where / "b.csv").write_text("\n".join(["b,a,c", *lines[1:20_000]]))

        def put(name: str, suffix: str) -> None:
            shutil.copy(where / f"{name}.{suffix}", where / f"next.{suffix}")
            os.replace(where / f"next.{suffix}", where / f"now.{suffix}")

        predict = ["predict", "now.safetensors", "now.csv", "--out", "p.csv"]
        expected = {}
        began = time.monotonic()
        for pair in [(model, table) for model in "12" for table in "ab"]:
            put(pair[0], "safetensors")
            put(pair[1], "csv")
            self.run(predict, where)
            expected[(where / "p.csv").read_bytes()] = pair
        each = (time.monotonic() - began) / 4
        if len(expected) != 4:
            self.complain("two models of two tables should have four predictions")
        for turn in range(20):
            name, suffix = [("1", "safetensors"), ("a", "csv"), ("2", "safetensors"), ("b", "csv")][turn % 4]
            self.disturbed(predict, where, each, lambda name=name, suffix=suffix: put(name, suffix))
            if (where / "p.csv").read_bytes() not in expected:
                self.complain(f"predictions of a mixture when now.{suffix} became {name}.{suffix}")
            self.counts["swapped"] += 1
        for turn in range(10):
            put("a", "csv")
            put("1", "safetensors")
            cut = where / ("now.csv" if turn % 2 else "now.safetensors")
            size = self.random.randrange(cut.stat().st_size)
            (where / "p.csv").unlink(missing_ok=True)
            code = self.disturbed(predict, where, each, lambda cut=cut, size=size: os.truncate(cut, size))
            if code not in (0, 1) or (where / "p.csv").exists() != (code == 0):
                self.complain(f"{cut.name} was cut off at {size} while it was read: exit code {code}")
            self.counts["cut off"] += 1
        if left := [path.name for path in where.iterdir() if path.name.startswith(".")]:
            self.complain(f"reading what changes left {left}")

    def disturbed(self, arguments: list[str], where: Path, longest: float, what: Callable[[], None]) -> int:
        """Do something at a random moment of a command's life, and return how the command ended."""
        timer = threading.Timer(self.random.uniform(0, longest), what)
        process = self.start(arguments, where)
        timer.start()
        code = process.wait()
        timer.join()
        return code

    def racing(self) -> None:
        """Let two commands write one file."""
        where = self.emptied("racing")
        fit = ["fit", str(self.small), "--target", "y", "--preset", "fast", "--set", "training.epochs=2"]
        whole = []
        for seed in ("1", "2"):
            self.run([*fit, "--seed", seed, "--out", "m.safetensors"], where)
            whole.append((where / "m.safetensors").read_bytes())
        both = [self.start([*fit, "--seed", seed, "--out", "m.safetensors"], where) for seed in ("1", "2")]
        codes = [process.wait() for process in both]
        if (where / "m.safetensors").read_bytes() not in whole or all(codes):
            self.complain(f"two writers left neither model (exit codes {codes})")
        if len(list(where.iterdir())) != 1:
            self.complain(f"two writers left {sorted(where.iterdir())}")
        self.counts["races"] += 1

    def reproducing(self) -> None:
        """Kill an experiment until it comes to its end."""
        where = self.emptied("reproducing")
        line = ["reproduce", "figure2", "--quick", "--out"]
        began = time.monotonic()
        if self.run([*line, "whole"], where) != 0:
            self.complain(
                "an experiment that nobody disturbed failed (it needs the table yacht: set BAYESPC_DATA)"
            )
            return
        longest = 0.8 * (time.monotonic() - began)
        for attempt in range(12):
            if not self.killed([*line, "again"], where, longest if attempt < 10 else 600.0):
                break
        whole, again = where / "whole", where / "again"
        names = [{path.name for path in folder.iterdir()} for folder in (whole, again)]
        if names[0] != names[1]:
            self.complain(f"an experiment that was killed left {sorted(names[0] ^ names[1])}")
        for path in whole.glob("*.csv"):
            if self.records(path) != self.records(again / path.name):
                self.complain(f"an experiment that was killed has other records in {path.name}")
        self.counts["reproduced"] += 1

    @staticmethod
    def records(path: Path) -> list[str]:
        """Return the records of an experiment in any order, without the seconds they took."""
        return sorted(line for line in path.read_text().splitlines() if "seconds" not in line)

    def rounds(self) -> None:
        """Kill a fit on a cluster, client and workers, until it comes to its end."""
        where = self.emptied("rounds")
        (where / "fit.py").write_text(ROUNDS)
        self.cluster(where, "whole", None)
        if not (where / "whole.out").exists():
            self.complain("rounds that nobody disturbed failed")
            return
        for attempt in range(12):
            self.cluster(where, "again", self.random.uniform(2, 20) if attempt < 10 else None)
            if (where / "again.out").exists():
                break
        else:
            self.complain("rounds that were killed again and again have no end")
            return
        if self.networks(where / "again.out") != self.networks(where / "whole.out"):
            self.complain("rounds that went on after kills have other bits")
        self.counts["rounds"] += 1

    def cluster(self, where: Path, name: str, seconds: float | None) -> None:
        """Run the fit; kill the client and, as they are of its session, all workers after so many seconds."""
        line = [str(self.python), "fit.py", f"{name}.checkpoint", f"{name}.out"]
        process = subprocess.Popen(line, cwd=where, start_new_session=True, **self.quiet)  # type: ignore[call-overload]
        try:
            process.wait(seconds if seconds is not None else 600.0)
        except subprocess.TimeoutExpired:
            self.counts["kills"] += 1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def has_room_for(size: int) -> None:
    """Let a process write files of so many bytes and no larger, as where a disk fills up."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def main() -> None:
    """Take turns until the time is up."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--command", type=Path, required=True, help="the program bayespc")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--python", type=Path, help="a Python that has bayespc and dask")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(arguments.command, Path(folder), arguments.seed)
        # For whoever may write nothing to read.
        os.chmod(folder, 0o755)
        trials = [driver.overwriting, driver.resuming, driver.refusing, driver.replacing, driver.racing]
        trials.append(driver.reproducing)
        if arguments.python is not None:
            # Not resolved: a virtual environment is known by where its interpreter seems to be.
            driver.python = str(arguments.python.absolute())
            trials.append(driver.rounds)
        turn = 0
        while turn < len(trials) or time.monotonic() < end:
            trials[turn % len(trials)]()
            turn += 1
    print(json.dumps({**driver.counts, "wrong": driver.wrong}))
    sys.exit(1 if driver.wrong else 0)


if __name__ == "__main__":
    main()
