"""Give every reader inputs that libFuzzer makes up, and say what came of it.

    python3 scripts/fuzz.py [--seconds 60] [--jobs 1] [TARGET …]

Each target runs until it has had so many seconds *of a core*, however busy the machine is, and may take
only so much address space: libFuzzer's own limit of memory sees what is used, not what is asked for. The
compiler is the stable one, with coverage counters and without a sanitizer. What is found is left in
fuzz/artifacts, inputs that reached something new in fuzz/corpus; neither is in the repository. Prints a row
of a table for each target, and exits with 1 if anything was found.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ = ROOT / "fuzz"

MEGABYTES = {
    "model_file": 600,
    "latent_file": 600,
    "statistics_file": 600,
    "encoding_notes": 600,
    "settings_toml": 4000,  # networks as large as they may be
    "settings_json": 4000,
    "csv": 600,
    "parquet": 420,
    "archive": 600,
    "splits": 420,
    "server": 1500,  # a stack for every thread
}
"""The targets, and the address space of each."""

COUNTERS = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)

MOST_FINDINGS = 10
"""After so many a target is given up; its defects want mending first."""


@dataclass
class Tally:
    """What a target has had so far."""

    executions: int = 0
    core_seconds: float = 0.0
    edges: int = 0
    megabytes: int = 0
    findings: int = 0


def build() -> Path:
    """Compile the targets with counters in them, and return their folder."""
    said = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = re.search(r"^host: (.*)$", said, re.MULTILINE)
    assert host is not None, "rustc says what it compiles for"
    # With a target, build scripts have no counters.
    line = ["cargo", "build", "--quiet", "--release", "--manifest-path", str(FUZZ / "Cargo.toml")]
    environment = {**os.environ, "RUSTFLAGS": " ".join(COUNTERS)}
    subprocess.run([*line, "--target", host[1], "--bins"], check=True, env=environment)
    return FUZZ / "target" / host[1] / "release"


def sow(built: Path) -> None:
    """Write inputs that are right, for the fuzzer to begin with."""
    corpus = FUZZ / "corpus"
    corpus.mkdir(exist_ok=True)
    environment = {**os.environ, "BAYESPC_SEEDS": str(corpus)}
    subprocess.run([built / "seeds", "-runs=0"], check=True, env=environment, capture_output=True)
    # Files that others write reach more of the code.
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists():
        subprocess.run([python, ROOT / "scripts" / "fuzz_seeds.py", corpus / "parquet"], check=True)


def fuzz(target: str, built: Path, seconds: float) -> Tally:
    """Run a target until it has had its seconds of a core."""
    tally = Tally()
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts = FUZZ / "artifacts"
    artifacts.mkdir(exist_ok=True)
    limit = MEGABYTES[target] << 20
    while tally.core_seconds < seconds and tally.findings < MOST_FINDINGS:
        left = max(1, round(seconds - tally.core_seconds))
        line = [str(built / target), f"-max_total_time={left}", "-timeout=20", "-max_len=65536"]
        line += [
            "-rss_limit_mb=0",
            "-print_final_stats=1",
            f"-artifact_prefix={artifacts}/{target}-",
            str(corpus),
        ]
        log = artifacts / f"{target}.{tally.findings}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                line,
                stdout=file,
                stderr=file,
                # Every arena of the allocator reserves address space of its own.
                env={**os.environ, "MALLOC_ARENA_MAX": "1"},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        said = log.read_text(errors="replace")
        tally.core_seconds += usage.ru_utime + usage.ru_stime
        tally.megabytes = max(tally.megabytes, usage.ru_maxrss >> 10)
        executed = re.findall(r"stat::number_of_executed_units: *(\d+)", said)
        tally.executions += int(executed[-1]) if executed else 0
        tally.edges = max([tally.edges, *map(int, re.findall(r" cov: (\d+) ", said))])
        if process.returncode != 0:
            tally.findings += 1
            print(f"{target}: exit code {process.returncode}, see {log}", file=sys.stderr, flush=True)
    return tally


def main() -> None:
    """Run the targets that were named, or all."""
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"all unless given: {', '.join(MEGABYTES)}"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="of a core, for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets side by side")
    arguments = parser.parse_args()
    targets = arguments.targets or list(MEGABYTES)
    if unknown := set(targets) - MEGABYTES.keys():
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    built = build()
    sow(built)
    print("| target | executions | core seconds | edges | memory | found |")
    print("|---|---|---|---|---|---|", flush=True)
    found = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        tallies = pool.map(lambda name: fuzz(name, built, arguments.seconds), targets)
        for target, tally in zip(targets, tallies, strict=True):
            found += tally.findings
            executions, edges = (f"{n:,}".replace(",", " ") for n in (tally.executions, tally.edges))
            cells = [target, executions, f"{tally.core_seconds:.0f}", edges, f"{tally.megabytes} MB"]
            print("| " + " | ".join([*cells, str(tally.findings or "nothing")]) + " |", flush=True)
    for left in Path("/dev/shm").glob("bayespc-fuzz-*"):
        left.unlink(missing_ok=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
