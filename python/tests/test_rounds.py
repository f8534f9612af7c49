"""Learning a table in parts: pure functions of bytes, and no cut changes a bit."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from bayespc import _core

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.7, 1.7, (2500, 3))
Y = (np.sin(X[:, :1] * X[:, 1:2]) + 0.1 * RNG.standard_normal((2500, 1))).copy()


def begun(classes: int = 0, **rounds: object) -> bytes:
    settings = json.loads(_core.preset_settings("fast"))
    settings["network"]["hidden_layer_sizes"] = [5]
    every = json.loads(_core.rounds_settings()) | {"rounds": 3, "batch_rows": 1000} | rounds
    return _core.rounds_begin(json.dumps(settings), json.dumps(every), classes)


def made(
    cuts: list[int], x: np.ndarray = X, y: np.ndarray = Y, classes: int = 0, combine: bool = False
) -> bytes:
    model = begun(classes)
    while _core.rounds_next_pass(model) is not None:
        ends = [0, *cuts, len(x)]
        parts = [_core.rounds_statistics(model, x[a:b], y[a:b], None, a) for a, b in itertools.pairwise(ends)]
        parts.reverse()
        if combine:
            parts = [_core.rounds_combine(model, parts[:2]), *parts[2:]]
        model = _core.rounds_absorb(model, parts)
    return model


def test_no_cut_changes_a_bit_and_the_end_is_an_ordinary_model() -> None:
    whole = made([])
    assert made([1024, 2048]) == whole
    assert made([1, 1, 700, 2499], combine=True) == whole
    mean = _core.model_from_bytes(whole).predict(X).mean()
    assert np.corrcoef(mean[:, 0], Y[:, 0])[0, 1] > 0.5


def test_single_precision_inputs_are_the_same_rows() -> None:
    x = X.astype(np.float32)
    assert made([700], x) == made([], x.astype(np.float64))


def test_classes_and_parts_of_weight_zero() -> None:
    labels = (X[:, 0] > 0).astype(np.int64)
    assert made([900], X, labels, classes=2) == made([], X, labels, classes=2)
    model = begun()
    weights = np.zeros(100)
    part = _core.rounds_statistics(model, X[:100], Y[:100], weights, 0)
    rest = _core.rounds_statistics(model, X[100:], Y[100:], np.ones(2400), 100)
    assert json.loads(_core.rounds_next_pass(_core.rounds_absorb(model, [part, rest]))) == {
        "pass": "round",
        "index": 1,
        "of": 3,
    }


def test_what_does_not_belong_together_is_refused() -> None:
    model = begun()
    part = _core.rounds_statistics(model, X[:900], Y[:900], None, 0)
    rest = _core.rounds_statistics(model, X[1000:], Y[1000:], None, 1000)
    with pytest.raises(ValueError, match="rows 900 to 999 are in no statistics"):
        _core.rounds_absorb(model, [part, rest])
    with pytest.raises(ValueError, match="another model"):
        _core.rounds_absorb(begun(rounds=4), [part])
    with pytest.raises(ValueError, match="no statistics"):
        _core.rounds_absorb(model, [b"x"])
    with pytest.raises(ValueError, match=r"NaN|nan"):
        _core.rounds_statistics(model, np.full((2, 3), np.nan), Y[:2], None, 0)
