import numpy as np
import pytest
from quick import quick_classifier, quick_regressor

from bayespc import datasets, plots

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def curve():
    X, y = datasets.make_epistemic(80, random_state=0)
    return X, y, quick_regressor(max_iter=20, random_state=0).fit(X, y)


def test_bands_contain_each_other_and_the_mean(ax, curve):
    X, y, model = curve
    assert plots.bands(model, X, y, ax=ax) is ax
    assert len(ax.collections) == 3
    np.testing.assert_allclose(
        ax.lines[0].get_ydata(), model.predict(np.asarray(ax.lines[0].get_xdata())[:, None])
    )


def test_decomposition_shows_both_parts(ax, curve):
    X, _, model = curve
    plots.decomposition(model, X, ax=ax)
    assert [line.get_label() for line in ax.lines] == ["aleatoric", "epistemic"]


def test_calibration_runs_from_corner_to_corner(ax, curve):
    X, y, model = curve
    plots.calibration(model, X, y, ax=ax)
    observed = ax.lines[1].get_ydata()
    assert observed[0] == 0 and observed[-1] == 1
    assert (np.diff(observed) >= 0).all()


def test_reliability_shows_accuracy_by_confidence(ax):
    X, y = datasets.make_moons(100, random_state=0)
    model = quick_classifier(max_iter=10, random_state=0).fit(X, y)
    plots.reliability(model, X, y, ax=ax)
    confidence = ax.lines[1].get_xdata()
    assert (np.diff(confidence) > 0).all() and confidence[0] >= 0.5


@pytest.mark.parametrize(
    "draw", [lambda m, X, y: plots.bands(m, X, y), lambda m, X, y: plots.decomposition(m, X)]
)
def test_a_curve_over_two_features_is_refused(draw):
    X, y = datasets.make_moons(50, random_state=0)
    model = quick_regressor((), random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one feature and one target; this one has 2 and 1"):
        draw(model, X, y)
