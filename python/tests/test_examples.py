"""Every script under examples/ runs, with its training cut short."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import nbformat
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


def test_notebooks_are_the_scripts_in_cells():
    script = EXAMPLES.parent / "scripts" / "notebooks.py"
    subprocess.run([sys.executable, script, "--check"], check=True)
    for path in sorted((EXAMPLES / "notebooks").glob("*.ipynb")):
        read = nbformat.read(path, as_version=4)
        nbformat.validate(read)
        code = "\n".join(cell["source"] for cell in read["cells"] if cell["cell_type"] == "code")
        # The cells one after the other are the script: the same statements, and the call at the end.
        statements = ast.parse((EXAMPLES / f"{path.stem}.py").read_text()).body[1:-1]
        assert [ast.dump(s) for s in ast.parse(code).body[:-1]] == [ast.dump(s) for s in statements]
        assert code.endswith("main()")
