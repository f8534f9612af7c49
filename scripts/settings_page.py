"""Every setting on one page: names, defaults and what they mean, from the code itself.

    python scripts/settings_page.py > docs/settings.md

Meanings are the comments of the Rust sources, defaults what the compiled library says. A test compares the
page with what this prints.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bayespc import _core

CORE = Path(__file__).parents[1] / "crates" / "bayespc" / "src"

SHOWN = ("schedule", "optimiser", "method", "hidden_precision", "init")
"""Settings whose values are short mappings."""

FIELD = re.compile(r"((?:    /// [^\n]*\n)+)(?:    #\[[^\n]*\]\n)*    pub (\w+): ")
VARIANT = re.compile(r"((?:    /// [^\n]*\n)+)(?:    #\[[^\n]*\]\n)*    (\w+)(?:\(([^)]*)\)| \{([^}]*)\})?,")


def body(path: str, kind: str, name: str) -> str:
    """Return what stands between the braces of a struct or enum."""
    text = (CORE / path).read_text(encoding="utf-8")
    start = text.index(f"pub {kind} {name} {{\n") + len(f"pub {kind} {name} {{\n")
    return text[start : text.index("\n}\n", start) + 1]


def words(comment: str) -> str:
    """Return a comment as one line, without links to Rust's items."""
    lines = (line.strip().removeprefix("///").strip() for line in comment.splitlines())
    return re.sub(r"\[(`[^`]*`)\](\([^)]*\))?", r"\1", " ".join(lines)).replace("|", "\\|")


def fields(path: str, name: str, defaults: dict[str, Any]) -> list[str]:
    """Return a table of the settings in a struct."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    found = FIELD.findall(body(path, "struct", name))
    if left_out := set(defaults) - {field for _, field in found} - {"kind"}:
        raise ValueError(f"{name} in {path}: no comment is found of {left_out}")
    for comment, field in found:
        value = defaults.get(field)
        kept = isinstance(value, dict) and field not in SHOWN
        default = "below" if kept else f"`{json.dumps(value)}`"
        rows.append(f"| `{field}` | {default} | {words(comment)} |")
    return rows


def snake(name: str) -> str:
    """Return the name of a variant as settings write it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def variants(path: str, name: str) -> list[str]:
    """Return a table of the values that an enum has."""
    rows = ["| value | meaning |", "|---|---|"]
    for comment, variant, _, inner in VARIANT.findall(body(path, "enum", name)):
        own = re.findall(r"(\w+): ", re.sub(r"///[^\n]*", "", inner))
        shown = f"{snake(variant)} {{ {', '.join(own)} }}" if own else snake(variant)
        rows.append(f"| `{shown}` | {words(comment)} |")
    return rows


def page() -> str:
    """Return the page."""
    default = json.loads(_core.preset_settings("default"))
    network = default["network"]
    feedback = json.loads(_core.rule_settings("feedback"))
    relaxation = json.loads(_core.rule_settings("paper"))
    parts: list[tuple[str, str, list[str]]] = [
        ("The model", "", fields("model/settings.rs", "ModelSettings", default)),
        ("`network`", "", fields("network/settings.rs", "NetworkSettings", network)),
        ("`network.prior`", "", fields("network/settings.rs", "PriorSettings", network["prior"])),
        ("`network.activation`", "", variants("network/activation/function.rs", "Activation")),
        ("`network.init`", "", variants("network/init.rs", "Init")),
        ("`network.wide_layers`", "", variants("network/wide_layers.rs", "WideLayers")),
        ("`network.head`", "As `{kind = …}`.", variants("heads/mod.rs", "HeadSettings")),
        (
            "`network.head`, kind `variance_node`",
            "",
            fields("heads/variance_node.rs", "VarianceNode", VARIANCE_NODE),
        ),
        ("`training`", "", fields("training/settings.rs", "TrainingSettings", default["training"])),
        (
            "`rule`",
            "As `{kind = …}`, with the settings of one of the next two tables.",
            variants("learners/bpc.rs", "Rule"),
        ),
        (
            "`rule`, kind `feedback`",
            "",
            fields("inference/feedback/settings.rs", "FeedbackSettings", feedback),
        ),
        (
            "`rule`, kind `relaxation`",
            "Defaults are the paper's (`bayespc.presets.paper`, `--preset paper`). "
            '`rule="relaxation"` in Python is the variant that learns, which differs in '
            + ", ".join(f"`{key} = {json.dumps(value)}`" for key, value in tied(relaxation).items())
            + ".",
            fields("inference/relaxation/settings.rs", "RelaxationSettings", relaxation),
        ),
        ("`schedule` of a rule", "", variants("learning/schedule.rs", "Schedule")),
        ("`rule.hidden_precision`", "", variants("inference/relaxation/settings.rs", "HiddenPrecision")),
        ("`rule.presynaptic`", "", variants("inference/relaxation/settings.rs", "Presynaptic")),
        ("`rule.variables`", "", variants("inference/relaxation/settings.rs", "Variables")),
        ("`rule.sweep`", "", variants("inference/relaxation/settings.rs", "Sweep")),
        (
            "`rule.optimiser`",
            "Of relaxation.",
            variants("inference/relaxation/optimiser.rs", "ActivityOptimiser"),
        ),
        ("`search`", "", fields("model/selection/settings.rs", "SearchSettings", default["search"])),
        ("`method`", "", variants("prediction/method.rs", "Method")),
        ("`calibration`", "", variants("model/calibration.rs", "Calibration")),
        ("`input_scaling`", "", variants("model/settings.rs", "InputScaling")),
        ("`precision`", "", variants("real.rs", "Precision")),
    ]
    lines = [
        "# Every setting",
        "",
        "Made by `scripts/settings_page.py` from the code; [choosing settings](guides/settings.md) says "
        "which matter. The command takes them as `--set network.prior.var=3` or from a file (`--config`), "
        "Rust as the structs of these names. In Python the estimators have keywords for what people set; "
        "`rule` and `search` take mappings with the names below, `Network(settings=…)` those of `network`.",
    ]
    for heading, text, rows in parts:
        lines += ["", f"## {heading}", "", *([text, ""] if text else []), *rows]
    return "\n".join(lines) + "\n"


def tied(paper: dict[str, Any]) -> dict[str, Any]:
    """Return what the relaxation that learns has otherwise than the paper's."""
    own = json.loads(_core.rule_settings("relaxation"))
    return {key: value for key, value in own.items() if value != paper[key]}


def default_of(source: str, field: str) -> Any:
    """Return a number from a `Default` of the Rust source."""
    found = re.search(rf"\b{field}: (-?[0-9.]+)", source)
    return json.loads(found.group(1)) if found else None


def _variance_node() -> dict[str, Any]:
    text = (CORE / "heads/variance_node.rs").read_text(encoding="utf-8")
    made = text[text.index("fn default() -> Self") :]
    names = [field for _, field in FIELD.findall(body("heads/variance_node.rs", "struct", "VarianceNode"))]
    return {name: default_of(made[: made.index("}\n}")], name) for name in names}


VARIANCE_NODE = _variance_node()

if __name__ == "__main__":
    print(page(), end="")
