"""Scorers of distributions and weights of classes."""

import pickle

import numpy as np
import pytest
from quick import quick_classifier, quick_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayespc import scorers


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X, y, quick_regressor((10,), prior_var=0.1, max_iter=10, random_state=0).fit(X, y)


def test_scores_are_means_of_the_distributions(diabetes):
    X, y, model = diabetes
    dist = model.predict_dist(X)
    lower, upper = dist.interval(0.8)
    inside = ((lower < y) & (y < upper)).mean()
    assert scorers.log_density(model, X, y) == pytest.approx(dist.logpdf(y).mean())
    assert scorers.neg_crps(model, X, y) == pytest.approx(-dist.crps(y).mean())
    assert scorers.coverage(0.8)(model, X, y) == pytest.approx(inside)
    assert scorers.neg_coverage_error(0.8)(model, X, y) == pytest.approx(-abs(inside - 0.8))
    weights = np.arange(len(y))
    weighted = np.average(dist.logpdf(y), weights=weights)
    assert scorers.log_density(model, X, y, sample_weight=weights) == pytest.approx(weighted)


def test_the_log_density_of_labels_is_the_log_loss():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = quick_classifier(max_iter=5, random_state=0).fit(X, names)
    expected = -log_loss(names, model.predict_proba(X))
    assert scorers.log_density(model, X, names) == pytest.approx(expected)


def test_a_grid_search_over_a_pipeline_chooses_by_density(diabetes):
    X, y, _ = diabetes
    model = make_pipeline(StandardScaler(), quick_regressor((20,), max_iter=30, random_state=0))
    grid = {"bpcregressor__prior_var": [0.1, 100.0]}
    scoring = {"density": scorers.log_density, "covers": scorers.coverage(0.9)}
    search = GridSearchCV(model, grid, scoring=scoring, refit="density", cv=2, n_jobs=2).fit(X, y)
    assert search.best_params_["bpcregressor__prior_var"] == 0.1
    covered = search.cv_results_["mean_test_covers"]
    assert covered[1] < covered[0] - 0.1


def test_scorers_travel_to_other_processes(diabetes):
    X, y, model = diabetes
    again = pickle.loads(pickle.dumps(scorers.coverage(0.5)))
    assert again(model, X, y) == scorers.coverage(0.5)(model, X, y)


def test_the_weights_of_classes_multiply_those_of_samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.where(X[:, 0] + rng.normal(size=120) > 1.0, "rare", "usual")
    weights = rng.uniform(0.5, 2.0, size=120)

    def fit(class_weight, sample_weight):
        model = quick_classifier((4,), max_iter=5, class_weight=class_weight, random_state=0)
        return model.fit(X, y, sample_weight).predict_proba(X)

    share = (y == "rare").mean()
    balanced = np.where(y == "rare", 0.5 / share, 0.5 / (1 - share))
    np.testing.assert_allclose(fit("balanced", weights), fit(None, weights * balanced), rtol=1e-9)
    np.testing.assert_allclose(
        fit({"rare": 3.0}, None), fit(None, np.where(y == "rare", 3.0, 1.0)), rtol=1e-9
    )
    assert fit("balanced", None)[:, 0].mean() > fit(None, None)[:, 0].mean()
    stream = quick_classifier((4,), class_weight="balanced", random_state=0)
    with pytest.raises(ValueError, match=r"class_weight 'balanced' is not supported for partial_fit"):
        stream.partial_fit(X, y, classes=["rare", "usual"])
