"""Layers of which parts are kept: the keyword, the file, and what refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayespc import BPCClassifier, BPCRegressor, load

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=120)


def small(**given: Any) -> BPCRegressor:
    return BPCRegressor((24, 20), search=False, n_members=1, max_iter=5, random_state=0, **given)


@pytest.mark.parametrize("kept", [{"blocks": 6}, {"sketch": 6}])
def test_parts_are_kept_in_the_file_and_predict_alike(kept: dict[str, int], tmp_path: Path) -> None:
    model = small(wide_layers=kept).fit(X, Y)
    path = tmp_path / "wide.bpc"
    model.save(path)
    again = load(path)
    assert again.get_params()["wide_layers"] == kept
    mean, std = model.predict(X, return_std=True)
    assert np.all(np.isfinite(mean)) and np.all(std > 0)
    np.testing.assert_array_equal(again.predict(X), mean)


def test_auto_is_dense_to_the_bit_below_its_width() -> None:
    auto, dense = small().fit(X, Y), small(wide_layers="dense").fit(X, Y)
    np.testing.assert_array_equal(auto.predict(X), dense.predict(X))


@pytest.mark.parametrize("wrong", [{"blocks": 0}, {"block": 3}, {"blocks": 3, "sketch": 3}, "whole"])
def test_what_is_no_structure_is_named(wrong: Any) -> None:
    with pytest.raises(ValueError, match="wide_layers"):
        small(wide_layers=wrong).fit(X, Y)
    with pytest.raises(TypeError, match="wide_layers"):
        small(wide_layers={"blocks": 2.5}).fit(X, Y)


def test_streams_refuse_parts_by_name() -> None:
    with pytest.raises(ValueError, match="wide_layers"):
        small(wide_layers={"blocks": 6}).partial_fit(X, Y)
    classes = (Y > 0).astype(int)
    model = BPCClassifier(
        (24,), search=False, n_members=1, max_iter=5, wide_layers={"sketch": 6}, random_state=0
    )
    assert model.fit(X, classes).score(X, classes) > 0.7
    with pytest.raises(ValueError, match="wide_layers"):
        model.partial_fit(X, classes)
