"""Columns a model can do without."""

import numpy as np
import pandas as pd
import pytest
from quick import quick_classifier, quick_regressor

import bayespc


def table(n: int = 240) -> pd.DataFrame:
    """Return two columns that tell, of which one has texts, and three that do not."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"noise{i}": rng.normal(size=n) for i in range(3)})
    frame["size"] = rng.uniform(20, 80, size=n)
    frame["city"] = rng.choice(["Bern", "Chur", "Aarau"], size=n)
    frame["rent"] = 8 * frame["size"] + 90 * (frame["city"] == "Bern") + rng.normal(0, 20, size=n)
    return frame


def test_relevance_tells_columns_of_a_frame_by_name() -> None:
    frame = table()
    model = quick_regressor(random_state=0).fit(frame.drop(columns="rent"), frame["rent"])
    costs = bayespc.relevance(model)
    assert list(costs) == ["noise0", "noise1", "noise2", "size", "city"]
    assert min(costs["size"], costs["city"]) > 2 * max(costs[f"noise{i}"] for i in range(3))


def test_a_pruned_regressor_does_not_look_at_what_is_silent() -> None:
    frame = table()
    X, y = frame.drop(columns="rent"), frame["rent"]
    model = quick_regressor(random_state=0).fit(X[:160], y[:160])
    before = model.predict(X[160:])
    found = bayespc.prune(model, X[160:], y[160:], tolerance=0.2)
    assert found.silenced and {"size", "city"}.isdisjoint(found.silenced)
    assert [name for name, _, _ in found.path[: len(found.silenced)]] == found.silenced
    last = found.path[len(found.silenced) - 1][2]
    assert last is not None and last >= found.log_density - 0.2
    other = X[160:].assign(**dict.fromkeys(found.silenced, 0.5))
    np.testing.assert_allclose(found.model.predict(other), found.model.predict(X[160:]), rtol=1e-6)
    # The one that was given stays as it was.
    np.testing.assert_array_equal(model.predict(X[160:]), before)


def test_a_pruned_classifier_is_saved_and_loaded(tmp_path) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 2] > 0, "yes", "no")
    model = quick_classifier(random_state=0).fit(X[:120], y[:120])
    found = bayespc.prune(model, X[120:], y[120:], tolerance=0.1)
    assert "x2" not in found.silenced
    found.model.save(tmp_path / "m.safetensors")
    again = bayespc.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), found.model.predict_proba(X))


def test_wrong_questions_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = quick_regressor(random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="tolerance"):
        bayespc.prune(model, X, X[:, 0], tolerance=-1)
    with pytest.raises(ValueError, match="fitted"):
        bayespc.relevance(quick_regressor())
