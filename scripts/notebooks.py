"""Make a notebook of each script that decides something, in examples/notebooks.

    python scripts/notebooks.py            write them
    python scripts/notebooks.py --check    say which are not in step with their scripts, and fail

The text at the head of a script becomes the first cell; imports and constants, each function, and the call
that runs it are cells of their own. Results are left out: they are made where the notebook is run.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = (
    "active_learning",
    "bayesian_optimisation",
    "thompson_sampling",
    "abstaining_classifier",
    "drift_alarm",
)


def notebook(script: Path) -> str:
    """Return the notebook of a script, as JSON."""
    source = script.read_text()
    tree = ast.parse(source)
    cells = [_text(script, ast.get_docstring(tree) or "")]
    cells += [_code(script, number, code) for number, code in enumerate(_blocks(source, tree), start=1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _text(script: Path, docstring: str) -> dict[str, object]:
    """Return the first cell: the text of the script, without how to run it as one."""
    title, _, lead = docstring.partition("\n\n")[0].partition(": ")
    paragraphs = [p for p in docstring.split("\n\n")[1:] if not p.startswith("Run with")]
    source = f"examples/{script.name}"
    note = f"The same as the script `{source}`. Needs `pip install bayespc`."
    text = "\n\n".join([f"# {title}", lead[:1].upper() + lead[1:], *paragraphs, note])
    return {"cell_type": "markdown", "id": f"{script.stem}-0", "metadata": {}, "source": _lines(text)}


def _code(script: Path, number: int, code: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"{script.stem}-{number}",
        "metadata": {},
        "outputs": [],
        "source": _lines(code),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _blocks(source: str, tree: ast.Module) -> list[str]:
    """Return the code in pieces: what stands between functions, each function, and the call at the end."""
    lines = source.splitlines()
    statements = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    blocks: list[str] = []
    start = statements[0].lineno - 1 if statements else len(lines)
    together = False
    for place, statement in enumerate(statements):
        is_function = isinstance(statement, ast.FunctionDef | ast.ClassDef)
        is_call = isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"
        # Comments above a statement belong to it: a piece ends where the one before does.
        end = statement.end_lineno or statement.lineno
        code = "\n".join(lines[start:end]).strip("\n")
        if is_call:
            code = "\n".join(ast.unparse(inner) for inner in statement.body)
        if together and not is_function and not is_call:
            blocks[-1] += "\n" + "\n".join(lines[statements[place - 1].end_lineno : end])
        else:
            blocks.append(code)
        together = not is_function
        start = end
    return blocks


def main() -> None:
    """Write or check all of them."""
    folder = EXAMPLES / "notebooks"
    stale: list[str] = []
    for name in SCRIPTS:
        made, path = notebook(EXAMPLES / f"{name}.py"), folder / f"{name}.ipynb"
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != made:
                stale.append(path.name)
        else:
            folder.mkdir(exist_ok=True)
            path.write_text(made)
    if stale:
        sys.exit(f"not in step with their scripts: {', '.join(stale)}; run python scripts/notebooks.py")


if __name__ == "__main__":
    main()
