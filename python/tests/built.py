"""What `cargo build` or `cargo test` has made, for tests that need it."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def newest(*parts: str) -> Path | None:
    """Return a program of the last build: of two profiles the newer, as the other may be of older sources."""
    paths = [ROOT.joinpath("target", profile, *parts) for profile in ("release", "debug")]
    found = [path for path in paths if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def command() -> str:
    """Return the command that BAYESPC_COMMAND names, or the one that was built; skip the test without one."""
    given = os.environ.get("BAYESPC_COMMAND")
    found = (shutil.which(given) or given) if given else newest("bayespc")
    if found is None:
        pytest.skip("no command: set BAYESPC_COMMAND or run `cargo build -p bayespc-cli`")
    return str(found)
