"""Every script under examples/ runs, with its training cut short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda script: script.stem)
def test_an_example_runs_without_a_warning(script, tmp_path):
    environment = os.environ | {"BAYESPC_QUICK": "1", "PYTHONWARNINGS": "error::FutureWarning"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout
    assert not any(tmp_path.iterdir()), "an example leaves nothing behind"
