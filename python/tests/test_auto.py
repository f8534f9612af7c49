"""Settings chosen from the data (`"auto"`), and calibration on data held out."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from quick import quick_classifier, quick_regressor
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayespc import BPCClassifier, BPCRegressor, load, scorers

RNG = np.random.default_rng(0)


def funnel(n: int):
    """A line with noise that grows along it."""
    X = RNG.uniform(0, 1, size=(n, 1))
    return X, 3 * X[:, 0] + (0.02 + X[:, 0]) * RNG.normal(size=n)


def heads(model):
    return {plan["network"]["head"]["kind"] for plan in model.plans_}


def test_noise_that_depends_on_the_input_is_found():
    X, y = funnel(300)
    model = BPCRegressor((20,), activation="relu", n_members=2, max_iter=30, random_state=0).fit(X, y)
    assert heads(model) == {"variance_node"}
    _, std = model.predict([[0.05], [0.95]], return_std=True)
    assert std[1] > 3 * std[0]


def test_the_choice_is_the_same_for_the_same_seed_and_survives_a_clone():
    X, y = funnel(100)
    model = BPCRegressor((10,), n_members=2, max_iter=10, random_state=3).fit(X, y)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert model.candidates_ == again.candidates_ and model.plans_ == again.plans_
    assert model.get_params()["prior_var"] == "auto"


def test_what_was_tried_and_chosen_is_told():
    X, y = funnel(100)
    model = BPCRegressor((10,), n_members=3, max_iter=10, random_state=3).fit(X, y)
    assert sum(candidate["members"] for candidate in model.candidates_) == len(model.plans_) == 3
    chosen = {candidate["prior_var"] for candidate in model.candidates_ if candidate["members"]}
    assert {plan["network"]["prior"]["var"] for plan in model.plans_} == chosen
    assert max(candidate["density"] for candidate in model.candidates_) > -2
    # Two layers, and a third where the noise has a node of its own.
    layers = [2 + (plan["network"]["head"]["kind"] == "variance_node") for plan in model.plans_]
    assert [len(parts) for parts in model.free_energy(X, y)] == layers


def test_a_given_prior_stays_when_the_rest_is_chosen():
    X, y = funnel(100)
    # Whether the target is positive is left to chance.
    model = BPCRegressor((10,), prior_var=2.5, n_members=2, max_iter=5, search={"log_target": False})
    model.set_params(random_state=0).fit(X, y)
    assert {plan["network"]["prior"]["var"] for plan in model.plans_} == {2.5}
    assert {candidate["prior_var"] for candidate in model.candidates_} == {2.5}
    # Constant noise or not, three codes, another activation of the best.
    assert len(model.candidates_) == 7


def test_a_warm_start_keeps_what_was_chosen_and_does_not_warn_again():
    X, y = funnel(100)
    model = BPCRegressor((10,), max_iter=5, n_members=2, random_state=0, warm_start=True)
    with pytest.warns(UserWarning, match="target 0 has one value"):
        model.fit(X, np.ones(100))
    chosen = model.plans_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
    assert model.plans_ == chosen
    assert model.candidates_


def test_the_temperature_fits_probabilities_to_overlapping_classes():
    X = RNG.normal(size=(600, 2))
    y = (X[:, 0] + RNG.normal(size=600) > 0).astype(int)
    train, test = slice(0, 300), slice(300, 600)
    auto = BPCClassifier((20,), likelihood="one_hot", n_members=1, max_iter=20, random_state=0)
    wide = clone(auto).set_params(prior_var=10.0, search=False)
    auto.fit(X[train], y[train]), wide.fit(X[train], y[train])
    assert log_loss(y[test], auto.predict_proba(X[test])) < log_loss(y[test], wide.predict_proba(X[test]))
    assert auto.plans_[0]["temperature"] != 1.0


def test_a_handful_of_samples_is_fitted_by_the_linear_model():
    X, y = funnel(6)
    model = BPCRegressor(random_state=0).fit(X, y)
    assert [plan["network"]["hidden_layer_sizes"] for plan in model.plans_] == [[]]
    assert np.isfinite(model.predict(X)).all()


def test_the_first_thing_anybody_tries_is_honest():
    """331 noisy rows, which one network with a wide prior interpolates."""
    X, y = load_diabetes(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = BPCRegressor(max_iter=20, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.3
    # 111 samples: three standard errors of a share of 0.9 are 0.085.
    assert abs(scorers.coverage(0.9)(model, X_test, y_test) - 0.9) < 0.1
    assert scorers.log_density(model, X_test, y_test) > -5.6


def test_another_word_is_refused():
    X, y = funnel(30)
    with pytest.raises(ValueError, match="noise must be one of constant, variance, auto"):
        BPCRegressor(noise="automatic").fit(X, y)  # pyright: ignore[reportArgumentType]


def test_every_network_is_chosen_for_what_it_adds(tmp_path: Path):
    X, y = funnel(200)
    model = BPCRegressor((20,), n_members=4, max_iter=20, random_state=0).fit(X, y)
    assert len(model.plans_) == 4
    assert {plan["network"]["activation"] for plan in model.plans_} <= {"relu", "silu"}
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.get_params() == model.get_params()
    assert again.plans_ == model.plans_ and again.candidates_ == model.candidates_
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_classes_can_be_learned_as_logits(tmp_path: Path):
    X = RNG.normal(size=(300, 2))
    y = (X[:, 0] + 0.3 * RNG.normal(size=300) > 0).astype(int)
    model = quick_classifier(likelihood="categorical", max_iter=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert log_loss(y, model.predict_proba(X)) < 0.4
    model.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").get_params()["likelihood"] == "categorical"
    chosen = BPCClassifier((20,), n_members=1, max_iter=10, random_state=0).fit(X, y)
    assert chosen.score(X, y) > 0.85


def test_conformal_intervals_cover_what_they_say():
    X, y = funnel(500)
    model = quick_regressor(calibration="conformal", max_iter=30, random_state=0).fit(X, y)
    X, y = funnel(2000)
    lower, upper = model.predict_interval(X, coverage=0.9)
    # Coverage given 50 scores is Beta(46, 5): mean 0.902, standard deviation 0.041.
    assert abs(((lower < y) & (y < upper)).mean() - 0.9) < 0.1


def test_a_held_out_part_scales_the_variance():
    X, y = funnel(300)
    model = quick_regressor(calibration="holdout", max_iter=30, random_state=0).fit(X, y)
    assert model.model_.temperature != 1.0
    with pytest.raises(ValueError, match="calibration"):
        quick_regressor(calibration="hold-out").fit(X, y)


@pytest.mark.parametrize("calibration", ["holdout", "conformal"])
def test_calibration_goes_neither_with_a_stream_nor_with_a_warm_start(calibration):
    X, y = funnel(60)
    model = quick_regressor(calibration=calibration, max_iter=3, random_state=0, warm_start=True)
    with pytest.raises(ValueError, match=r"calibration on held-out samples.*a stream"):
        model.partial_fit(X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"calibration on held-out samples.*a stream"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"calibration on held-out samples.*a warm start"):
        model.fit(X, y)
    again = model.set_params(calibration="none").fit(X, y)
    assert again.model_.temperature == 1.0
    again.partial_fit(X, y)


def test_a_classifier_learns_a_stream_without_calibration_only():
    X = RNG.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    quick_classifier(random_state=0).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"calibration on held-out samples.*a stream"):
        quick_classifier(calibration="holdout", random_state=0).partial_fit(X, y, classes=[0, 1])
