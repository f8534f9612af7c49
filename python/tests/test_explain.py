"""Explanations add up to predictions, in arrays and frames, and go along with shap and scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from quick import quick_classifier, quick_regressor
from sklearn.inspection import partial_dependence, permutation_importance

import bayespc
from bayespc import plots


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3))
    y = 3 * X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * rng.normal(size=n)
    return X, y


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.uniform(20, 90, n),
            "place": rng.choice(["north", "south", "west"], n),
            "built": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 6000, n), "D"),
        }
    )
    y = table["size"] * (1 + 0.5 * (table["place"] == "north")) + rng.normal(size=n)
    return table, y.to_numpy()


@pytest.fixture(scope="module")
def model():
    return quick_regressor(max_iter=20, random_state=0, n_members=2, bins=5).fit(*rows())


def test_values_and_base_add_up_to_mean_and_variances(model):
    X, _ = rows(7, seed=1)
    parts = model.decompose(X)
    for of, expected in (("mean", model.predict(X)), ("aleatoric", parts[0]), ("epistemic", parts[1])):
        why = model.explain(X, of)
        assert why.values.shape == (7, 3) and why.base.shape == (7,)
        np.testing.assert_allclose(why.values.sum(axis=1) + why.base, expected, rtol=1e-9)
        np.testing.assert_allclose(why.totals, expected, rtol=1e-9)
    assert why.feature_names == ["x0", "x1", "x2"]
    assert len(why[2:4]) == 2 and len(why[3]) == 1
    assert "Explanation(7 × 3" in repr(why)


def test_what_matters_is_found_and_a_baseline_can_be_given(model):
    X, _ = rows(40, seed=2)
    importance = model.explain(X).importance()
    assert importance.argmax() == 0 and importance[2] < 0.2 * importance[0]
    same = model.explain(X[:1], baseline=X[:1])
    assert np.abs(same.values).max() == 0.0
    averaged = model.explain(X[:1], baseline=X[1:4])
    np.testing.assert_allclose(averaged.base, model.predict(X[1:4]).mean(), rtol=1e-9)
    np.testing.assert_allclose(averaged.totals, model.predict(X[:1]), rtol=1e-9)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_take_the_sum_of_their_inputs(library):
    table, y = frame()
    given = table if library == "pandas" else pl.from_pandas(table)
    fitted = quick_regressor(max_iter=20, random_state=0).fit(given, y)
    why = fitted.explain(given[:9])
    assert why.feature_names == ["size", "place", "built"]
    assert why.values.shape == (9, 3) and why.data.shape == (9, 3)
    assert set(why.data[:, 1]) <= {"north", "south", "west"}
    np.testing.assert_allclose(why.totals, fitted.predict(given[:9]), rtol=1e-8)
    line = bayespc.curve(fitted, given[:9], "place")
    assert list(line.grid) == ["north", "south", "west"] and line.mean[0] > line.mean[1]


def test_classes_are_explained_by_label():
    X, y = rows()
    labels = np.where(y > 2, "high", np.where(y < -2, "low", "middle"))
    fitted = quick_classifier(max_iter=20, random_state=0).fit(X, labels)
    why = fitted.explain(X[:5])
    assert why.values.shape == (5, 3, 3) and why.output_names == ["high", "low", "middle"]
    np.testing.assert_allclose(why.totals, fitted.predict_proba(X[:5]), atol=1e-9)
    one = fitted.explain(X[:5], target="low")
    np.testing.assert_allclose(one.values, why.values[:, :, 1], atol=1e-12)
    with pytest.raises(ValueError, match="'lo' is not a class"):
        fitted.explain(X[:5], target="lo")
    parts = fitted.decompose(X[:5])
    for of, expected in (("aleatoric", parts.aleatoric), ("epistemic", parts.epistemic)):
        why = fitted.explain(X[:5], of)
        assert why.values.shape == (5, 3) and why.output_names is None
        np.testing.assert_allclose(why.totals, expected, atol=1e-6)
    with pytest.raises(ValueError, match="all classes together"):
        fitted.explain(X[:5], "epistemic", target="low")
    line = bayespc.curve(fitted, X[:20], 0, target="high", grid=[-2.0, 2.0])
    assert line.mean[1] > line.mean[0] and (line.lower <= line.mean).all() and (line.upper <= 1).all()


def test_several_outputs_have_an_axis():
    X, y = rows()
    fitted = quick_regressor(max_iter=10, random_state=0).fit(X, np.column_stack([y, -2 * y]))
    why = fitted.explain(X[:4])
    assert why.values.shape == (4, 3, 2) and why.base.shape == (4, 2)
    np.testing.assert_allclose(why.totals, fitted.predict(X[:4]), rtol=1e-9)
    assert fitted.explain(X[:4], target=1).values.shape == (4, 3)


def test_mistakes_are_named(model):
    X, _ = rows(3)
    with pytest.raises(ValueError, match="of"):
        model.explain(X, "median")
    with pytest.raises(ValueError, match="features"):
        model.explain(X[:, :2])
    with pytest.raises(ValueError, match="target"):
        model.explain(X, target=3)
    with pytest.raises(ValueError, match="3 columns"):
        bayespc.curve(model, X, 5)


def test_a_curve_is_scikit_learns_partial_dependence_with_bands(model):
    X, _ = rows(30, seed=3)
    theirs = partial_dependence(model, X, [1], kind="average", grid_resolution=9, percentiles=(0, 1))
    ours = bayespc.curve(model, X, 1, grid=theirs["grid_values"][0])
    np.testing.assert_allclose(ours.mean, theirs["average"][0], rtol=1e-9)
    assert (ours.lower < ours.mean).all() and (ours.epistemic_std > 0).all()
    found = permutation_importance(model, X, model.predict(X), random_state=0)
    assert found.importances_mean.argmax() == 0


def test_shap_draws_it(model):
    shap = pytest.importorskip("shap")
    plt = pytest.importorskip("matplotlib.pyplot")
    X, _ = rows(10, seed=4)
    theirs = model.explain(X).to_shap()
    assert isinstance(theirs, shap.Explanation)
    shap.plots.waterfall(theirs[0], show=False)
    plt.close("all")


def test_pictures_are_drawn(model):
    plt = pytest.importorskip("matplotlib.pyplot")
    X, _ = rows(12, seed=5)
    why = model.explain(X)
    for draw in (
        lambda ax: plots.curve(model, X, 0, individual=2, ax=ax),
        lambda ax: plots.importance(why, ax=ax),
        lambda ax: plots.explanation(why, 3, most=2, ax=ax),
    ):
        _, ax = plt.subplots()
        assert draw(ax) is ax and (ax.lines or ax.patches)
    table, y = frame()
    fitted = quick_regressor(max_iter=5, random_state=0).fit(table, y)
    _, ax = plt.subplots()
    assert [label.get_text() for label in plots.curve(fitted, table, "place", ax=ax).get_xticklabels()] == [
        "north",
        "south",
        "west",
    ]
    plt.close("all")
