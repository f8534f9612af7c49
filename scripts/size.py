"""How large the code is, beside the budgets of scripts/size_budgets.toml.

    python3 scripts/size.py        (or `make size`)

Needs no build: it reads the sources. Comments, strings and inline tests (items behind `#[cfg(test)]`)
count for lines only. One row per crate, one column per counter; `figure / budget` where there is a budget:

files           .rs files in src
lines           lines of these files, as `wc -l` has them
code            lines outside inline tests that have more than a comment
inline tests    lines of items behind `#[cfg(test)]`, and of files that are such a module
other tests     lines of the crate's other .rs files: tests, examples, benches
default path    files that scripts/default_path.txt lists: a default fit and a prediction execute them
settings        fields of structs whose name ends in `Settings`
errors          variants of enums that derive `Error`
public          functions, methods, structs, enums, traits, types, constants and statics behind `pub`
unnamed         those of them whose name is nowhere in another crate, its tests included; at least so many
                are unused, as the same name of something else counts as use
circles         groups of modules in one folder that depend on each other in a circle, by the paths in the
                code that begin with `crate`, `super` or `self`; an item that a folder's own file
                re-exports counts as the folder's
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_PATH = "scripts/default_path.txt"

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]+?|[^'\\\n])'""",
    re.DOTALL | re.VERBOSE,
)
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")
PUBLIC = re.compile(r"(?m)^\s*pub (?:const |async )*(?:fn|struct|enum|trait|type|const|static) (\w+)")
INNERMOST = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
USE_GROUP = re.compile(r"(\w+(?:\s*::\s*\w+)*)\s*::\s*\{([^{}]*)\}")
OWN_PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")

COUNTERS = (
    "files",
    "lines",
    "code",
    "inline tests",
    "other tests",
    "default path",
    "settings",
    "errors",
    "public",
    "unnamed",
    "circles",
)

Module = tuple[str, ...]


def plain(text: str) -> str:
    """Return Rust source without comments and with quotes in place of all that strings hold; lines stay."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", "" if m["comment"] else '"', m[0]), text)


def replace_all(pattern: re.Pattern[str], by: str | Callable[[re.Match[str]], str], text: str) -> str:
    """Replace a pattern until it is nowhere."""
    while (after := pattern.sub(by, text)) != text:
        text = after
    return text


def end_of_item(code: str, start: int) -> int:
    """Return where the item that begins at `start` ends: after its `;` or its closing brace."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0 and code[i] in ";}":
            return i + 1
    return len(code)


class Source(NamedTuple):
    """A source file: `code` is without comments, `shipped` without inline tests as well."""

    path: Path
    lines: int
    code: str
    shipped: str
    test_modules: list[Path]

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read a file."""
        text = path.read_text(encoding="utf-8")
        code = shipped = plain(text)
        folder = path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("")
        modules = []
        while test := TEST_ITEM.search(shipped):
            end = end_of_item(shipped, test.end())
            if module := re.search(r"\bmod (\w+);$", shipped[test.end() : end]):
                modules += [folder / f"{module[1]}.rs", folder / module[1] / "mod.rs"]
            shipped = shipped[: test.start()] + shipped[end:]
        return cls(path, text.count("\n"), code, shipped, modules)


def bodies(code: str, head: str) -> Iterator[str]:
    """Yield what stands between the braces of every item that `head` matches, without inner brackets."""
    for item in re.finditer(head + r"[^;{]*(?=\{)", code):
        body = code[item.end() : end_of_item(code, item.end())]
        yield replace_all(INNERMOST, "", body[1:-1])


def count_settings(code: str) -> int:
    """Return the number of fields of structs whose name ends in `Settings`."""
    return sum(len(re.findall(r"\b\w+\s*:(?!:)", body)) for body in bodies(code, r"\bstruct \w*Settings\b"))


def count_errors(code: str) -> int:
    """Return the number of variants of enums that derive `Error`."""
    head = r"#\[derive\([^\]]*\bError\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?enum \w+"
    return sum(len(re.findall(r"\w+", re.sub("=[^,]*", "", body))) for body in bodies(code, head))


def module_of(path: Path) -> Module:
    """Return the module of a file, by its path in src."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def dependencies(module: Module, code: str) -> set[Module]:
    """Return what a module names by a path that begins with `crate`, `super` or `self`."""

    def spread(group: re.Match[str]) -> str:
        return ", ".join(f"{group[1]}::{path.strip()}" for path in group[2].split(","))

    targets = set()
    for path in OWN_PATH.findall(replace_all(USE_GROUP, spread, code)):
        first, *rest = path.split("::")
        base = () if first == "crate" else module if first == "self" else module[:-1]
        while rest[:1] == ["super"]:
            base, rest = base[:-1], rest[1:]
        targets.add((*base, *rest))
    return targets


def circles(modules: dict[Module, str]) -> list[str]:
    """Return the circles among modules, given with their code, as `folder: module, module`."""
    names = {module[:n] for module in modules for n in range(1, len(module) + 1)}
    used = {module: dependencies(module, code) for module, code in modules.items()}
    found = []
    for folder in sorted({name[:-1] for name in names}):
        n = len(folder)
        edges: dict[str, set[str]] = {name[n]: set() for name in names if name[:-1] == folder}
        for module, targets in used.items():
            if len(module) > n and module[:n] == folder:
                inside = {target[: n + 1] for target in targets if target[:n] == folder}
                edges[module[n]] |= {name[n] for name in inside & names if len(name) > n}
        reach = {name: reachable(edges, name) for name in edges}
        groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in edges}
        where = "/".join(folder) or "src"
        found += sorted(f"{where}: {', '.join(sorted(group))}" for group in groups if len(group) > 1)
    return found


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    """Return all that `start` leads to."""
    seen: set[str] = set()
    ahead = set(edges[start])
    while ahead:
        seen |= ahead
        ahead = set().union(*(edges[name] for name in ahead)) - seen
    return seen


def words(sources: Iterable[Source]) -> set[str]:
    """Return every word of the code."""
    return {word for source in sources for word in re.findall(r"\w+", source.code)}


def count(root: Path) -> dict[str, dict[str, int | list[str]]]:
    """Count every crate in the folder `crates`."""
    listed = root / DEFAULT_PATH
    paths = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    folders = sorted(file.parent for file in root.glob("crates/*/Cargo.toml"))
    sources = {f: [Source.read(p) for p in sorted(f.rglob("*.rs"))] for f in [*folders, root / "fuzz"]}
    vocabulary = {folder: words(found) for folder, found in sources.items()}
    result = {}
    for folder in folders:
        src = folder / "src"
        inside = [source for source in sources[folder] if source.path.is_relative_to(src)]
        test_modules = {path for source in inside for path in source.test_modules}
        shipped = {s.path: "" if s.path in test_modules else s.shipped for s in inside}
        everything = "\n".join(shipped.values())
        elsewhere = set().union(*(v for f, v in vocabulary.items() if f != folder))
        public = PUBLIC.findall(everything)
        lines = sum(source.lines for source in inside)
        result[folder.name] = {
            "files": len(inside),
            "lines": lines,
            "code": sum(bool(line.strip()) for line in everything.splitlines()),
            "inline tests": lines - sum(code.count("\n") for code in shipped.values()),
            "other tests": sum(source.lines for source in sources[folder]) - lines,
            "default path": sum(path.startswith(f"crates/{folder.name}/") for path in paths),
            "settings": count_settings(everything),
            "errors": count_errors(everything),
            "public": len(public),
            "unnamed": sum(name not in elsewhere for name in public),
            "circles": circles({module_of(path.relative_to(src)): code for path, code in shipped.items()}),
        }
    return result


def count_python(root: Path) -> tuple[int, int]:
    """Return the number of files and of lines of the Python package, stubs included."""
    files = [*root.glob("python/bayespc/**/*.py"), *root.glob("python/bayespc/**/*.pyi")]
    return len(files), sum(file.read_text(encoding="utf-8").count("\n") for file in files)


def with_parts(budgets: dict[str, dict], existing: Iterable[str]) -> dict[str, dict]:
    """Return the budgets of crates, each with those of the crates that are still within it."""
    result: dict[str, dict] = {name: dict(budget) for name, budget in budgets.items()}
    for name, budget in budgets.items():
        if name not in existing and "within" in budget:
            whole = result.setdefault(budget["within"], {})
            for counter in budget.keys() - {"within"}:
                whole[counter] = whole.get(counter, 0) + budget[counter]
    return result


def table(root: Path) -> str:
    """Return all figures as a table, and the circles."""
    budgets = tomllib.loads((root / "scripts/size_budgets.toml").read_text(encoding="utf-8"))
    crates = count(root)
    limits = with_parts(budgets["crates"], crates)
    circles_found = [f"{name}/{circle}" for name, crate in crates.items() for circle in crate["circles"]]
    figures = {name: {**crate, "circles": len(crate["circles"])} for name, crate in crates.items()}
    total = {counter: sum(crate[counter] for crate in figures.values()) for counter in COUNTERS}
    total["lines"] += total["other tests"]
    python_files, python_lines = count_python(root)

    rows = [(name, crate, limits.get(name, {})) for name, crate in figures.items()]
    rows += [(f"{n}, in {b['within']}", {}, b) for n, b in budgets["crates"].items() if n not in crates]
    rows += [("Rust, all", total, budgets["rust"])]
    rows += [("Python package", {"files": python_files, "lines": python_lines}, budgets["python"])]
    cells = [["crate", *COUNTERS]]
    for name, figure, limit in rows:
        cells.append([name, *(cell(figure.get(counter), limit.get(counter)) for counter in COUNTERS)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in cells]
    return "\n".join(
        [f"| {' | '.join(line)} |" for line in lines] + ["", "Circles:"] + [f"- {c}" for c in circles_found]
    )


def cell(figure: int | None, budget: int | None) -> str:
    """Return a figure and its budget."""
    shown = "–" if figure is None else str(figure)
    return f"{shown} / {budget}" if budget is not None else shown if figure is not None else ""


if __name__ == "__main__":
    print(table(ROOT))
