"""The estimators' docstrings are written out in both, where editors find them; here they are kept in step."""

import inspect
import re

import pytest

from bayespc import BPCClassifier, BPCRegressor

OWN_WORDS = {"hidden_layer_sizes", "prior_var", "search", "n_draws", "calibration", "loss_curve_"}
"""What the two say differently, on purpose."""


def entries(kind, section):
    """Return {name: (type line, description)} of a numpydoc section."""
    text = inspect.cleandoc(kind.__doc__ or "")
    body = re.split(r"\n(?=\w[\w ]*\n-+\n)", text)
    (found,) = [part for part in body if part.startswith(f"{section}\n")]
    parts = re.split(r"\n(?=\w+ : )", found)[1:]
    return {part.split(" : ")[0]: part.split(" : ", 1)[1].strip() for part in parts}


@pytest.mark.parametrize("section", ["Parameters", "Attributes"])
def test_both_estimators_say_the_same_of_what_they_share(section):
    ours, theirs = entries(BPCRegressor, section), entries(BPCClassifier, section)
    shared = (ours.keys() & theirs.keys()) - OWN_WORDS
    assert len(shared) >= 6
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


@pytest.mark.parametrize("kind", [BPCRegressor, BPCClassifier])
def test_every_parameter_is_documented_with_its_default(kind):
    documented = entries(kind, "Parameters")
    parameters = inspect.signature(kind).parameters
    assert list(documented) == list(parameters)
    for name, parameter in parameters.items():
        said = re.search(r"default=(.+)$", documented[name].split("\n    ")[0], re.MULTILINE)
        assert said is not None, name
        default = parameter.default
        assert said[1] == (f'"{default}"' if isinstance(default, str) else repr(default)), name
