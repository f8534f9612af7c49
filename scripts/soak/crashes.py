"""Kill the command at random moments and see what is left.

    python scripts/soak/crashes.py --command target/release/bayespc [--minutes 5] [--seed 0]

Four trials take turns, in a folder of their own:

* `fit --out` over an existing model, killed (SIGKILL): the old file or the new one is there, whole, and nothing else;
* `fit --stream --checkpoint`, killed again and again and started again with the same command: the model it ends with has
  the bits of an undisturbed run;
* `fit --out` where the disk is full or the folder is read-only: an error, and the old file as it was;
* two writers of one file at once: one of their two models, whole.

One JSON line in the end: how many kills, in how many of them a new file was found, what went wrong (nothing, or the
script exits with 1).
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 30_000


class Driver:
    """The command, a folder, and what was seen."""

    def __init__(self, command: Path, folder: Path, seed: int) -> None:
        self.command = str(command.resolve())
        self.folder = folder
        self.random = random.Random(seed)
        self.counts = {"kills": 0, "old": 0, "new": 0, "resumed": 0, "refused": 0, "races": 0}
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

    def start(self, arguments: list[str], where: Path) -> "subprocess.Popen[bytes]":
        """Start the command."""
        return subprocess.Popen([self.command, *arguments], cwd=where, **self.quiet)  # type: ignore[call-overload]

    def run(self, arguments: list[str], where: Path) -> int:
        """Run the command to its end."""
        return self.start(arguments, where).wait()

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
        where = self.folder / "overwriting"
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
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
        where = self.folder / "resuming"
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
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
        where = self.folder / "refusing"
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        fit = ["fit", str(self.small), "--target", "y", "--preset", "fast", "--set", "training.epochs=1"]
        for target in ("/dev/full", "no/such/folder/m.safetensors"):
            if self.run([*fit, "--out", target], where) == 0:
                self.complain(f"a model was written to {target}")
            self.counts["refused"] += 1
        if any(where.iterdir()):
            self.complain(f"a failed write left {sorted(where.iterdir())}")

    def racing(self) -> None:
        """Let two commands write one file."""
        where = self.folder / "racing"
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
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


def main() -> None:
    """Take turns until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", type=Path, required=True, help="the program bayespc")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(arguments.command, Path(folder), arguments.seed)
        trials = [driver.overwriting, driver.resuming, driver.refusing, driver.racing]
        turn = 0
        while turn < len(trials) or time.monotonic() < end:
            trials[turn % len(trials)]()
            turn += 1
    print(json.dumps({**driver.counts, "wrong": driver.wrong}))
    sys.exit(1 if driver.wrong else 0)


if __name__ == "__main__":
    main()
