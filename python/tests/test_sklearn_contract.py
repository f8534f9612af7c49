"""scikit-learn's own checks of an estimator, and the tools of scikit-learn around it."""

import json
import pickle

import joblib
import numpy as np
import pytest
from quick import quick_classifier, quick_regressor
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import (
    check_class_weight_classifiers,
    estimator_checks_generator,
    parametrize_with_checks,
)

from bayespc import BPCClassifier, BPCRegressor

EVERY_TIME = {
    "check_class_weight_classifiers",
    "check_dict_unchanged",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_methods_subset_invariance",
    "check_readonly_memmap_input",
    "check_sample_weight_equivalence_on_dense_data",
}
"""Checks of the default estimators that `make test` runs; `make test-slow` runs the others."""


def checks_of_defaults():
    for estimator in (BPCRegressor(), BPCClassifier()):
        for own, check in estimator_checks_generator(estimator):
            name = check.func.__name__
            marks = [] if name in EVERY_TIME else [pytest.mark.slow]
            yield pytest.param(own, check, marks=marks, id=f"{type(own).__name__}-{name}")


def test_scikit_learn_has_the_checks_named_here():
    checks = estimator_checks_generator(BPCClassifier())
    assert {check.func.__name__ for _, check in checks} >= EVERY_TIME


@pytest.mark.parametrize(("estimator", "check"), list(checks_of_defaults()))
def test_scikit_learn_accepts_the_default(estimator, check):
    check(estimator)


# With fewer epochs the checks take seconds.
@parametrize_with_checks([BPCRegressor(max_iter=5), BPCClassifier(max_iter=5)])
def test_scikit_learn_has_nothing_to_object_to(estimator, check):
    if "check_class_weight_classifiers" in str(check):
        pytest.skip("it sets max_iter to 1000, as above")
    check(estimator)


def test_scikit_learn_has_nothing_to_object_to_weights_of_classes():
    check_class_weight_classifiers("BPCClassifier", quick_classifier((10,)))


@parametrize_with_checks(
    [
        quick_regressor(noise="variance", max_iter=30),
        quick_regressor(rule="relaxation", max_iter=30),
        quick_regressor(n_members=2, precision="float32", max_iter=30),
    ]
)
def test_scikit_learn_has_nothing_to_object_to_other_settings(estimator, check):
    if "sample_weight_equivalence" in str(check) and estimator.precision == "float32":
        pytest.skip("equal to seven digits, which float32 does not have")
    check(estimator)


def small(**keywords):
    return quick_regressor(hidden_layer_sizes=(10,), max_iter=10, random_state=0, **keywords)


def test_grid_search_chooses_a_prior_inside_a_pipeline():
    X, y = load_diabetes(return_X_y=True)
    pipeline = make_pipeline(PolynomialFeatures(1, include_bias=False), small())
    search = GridSearchCV(pipeline, {"bpcregressor__prior_var": [1e-6, 10.0]}, cv=2).fit(X, y)
    # So narrow a prior keeps every weight near zero.
    assert search.best_params_["bpcregressor__prior_var"] == 10.0
    assert search.best_score_ > 0.3


def test_cross_validation_of_a_classifier():
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(quick_classifier(max_iter=30, random_state=0), X, y, cv=3)
    assert scores.mean() > 0.9


def test_clone_keeps_parameters_and_drops_what_was_learned():
    X, y = load_diabetes(return_X_y=True)
    model = small(prior_var=0.3).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)


@pytest.mark.parametrize("through", [pickle, joblib])
def test_a_pickled_estimator_predicts_the_same_bits(through, tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = small(n_members=2).fit(X, y)
    with open(tmp_path / "model", "wb") as file:
        through.dump(model, file)
    with open(tmp_path / "model", "rb") as file:
        again = through.load(file)
    for ours, theirs in zip(
        model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert again.loss_curve_ == model.loss_curve_


def test_html_repr_shows_the_parameters_that_differ():
    assert "prior_var" in small(prior_var=0.5)._repr_html_()


def test_warm_start_goes_on_where_the_last_fit_ended():
    X, y = load_diabetes(return_X_y=True)
    model = small(warm_start=True).fit(X, y)
    first = model.loss_curve_[0]
    model.set_params(max_iter=3).fit(X, y)
    assert model.loss_curve_[0] < 0.8 * first
    with pytest.raises(ValueError, match="warm start"):
        model.set_params(hidden_layer_sizes=(11,)).fit(X, y)


def test_same_seed_same_bits_and_another_seed_other_bits():
    X, y = load_diabetes(return_X_y=True)
    first, same = small().fit(X, y), small().fit(X, y)
    np.testing.assert_array_equal(first.predict(X), same.predict(X))
    other = small().set_params(random_state=1).fit(X, y)
    assert np.abs(first.predict(X) - other.predict(X)).max() > 0
    assert json.loads(other.model_.settings)["training"]["seed"] == 1
