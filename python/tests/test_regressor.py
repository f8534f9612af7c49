from copy import copy

import numpy as np
import pytest
from quick import quick_regressor
from scipy import stats

from bayespc import BPCRegressor, Network, datasets

METHODS = ["linearised", "mean", "monte_carlo", "moments"]


@pytest.fixture(scope="module")
def curve():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(300, 1))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=300)


@pytest.fixture(scope="module")
def fitted(curve):
    return quick_regressor(hidden_layer_sizes=(20, 20), max_iter=60, random_state=0).fit(*curve)


@pytest.fixture(scope="module")
def linear(curve):
    """Bayesian linear regression, whose predictive is known exactly."""
    return quick_regressor(hidden_layer_sizes=(), random_state=0).fit(*curve)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_mean_and_spread_in_the_units_of_y(curve, fitted, method):
    X, y = curve
    model = copy(fitted).set_params(method=method)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == y.shape
    assert np.sqrt(np.mean((mean - np.sin(X[:, 0])) ** 2)) < 0.1
    noise = np.sqrt(model.predict_dist(X).aleatoric)
    np.testing.assert_allclose(noise, 0.2, rtol=0.2)
    assert (std >= noise).all()
    np.testing.assert_allclose(model.predict(X), mean)


def test_one_layer_predicts_the_students_t_of_the_textbook(curve, linear):
    X, y = curve
    [posterior] = Network.from_estimator(linear).posteriors
    (x_mean,), (x_std,) = linear.model_.input_scaling
    (y_mean,), (y_std,) = linear.model_.target_scaling
    phi = np.column_stack([(X[:, 0] - x_mean) / x_std, np.ones(len(X))])
    dof = posterior.dof
    inv_scale = 1 / posterior.scale[0, 0]
    scale = np.sqrt((1 + posterior.leverage(phi)) * inv_scale / dof)
    exact = stats.t(dof, y_mean + y_std * (phi @ posterior.mean[0]), y_std * scale)
    dist = linear.predict_dist(X)
    np.testing.assert_allclose(dist.mean, exact.mean(), rtol=1e-10)
    np.testing.assert_allclose(dist.std, exact.std(), rtol=1e-9)
    np.testing.assert_allclose(dist.logpdf(y), exact.logpdf(y), rtol=1e-8)
    np.testing.assert_allclose(dist.cdf(y), exact.cdf(y), rtol=1e-8)
    np.testing.assert_allclose(dist.ppf(0.9), exact.ppf(0.9), rtol=1e-8)


def test_aleatoric_and_epistemic_add_to_the_variance(curve, fitted):
    X, _ = curve
    parts = fitted.decompose(X)
    np.testing.assert_allclose(parts.aleatoric + parts.epistemic, fitted.predict_var(X))


def test_intervals_and_quantiles_agree(curve, fitted):
    X, y = curve
    low, high = fitted.predict_interval(X, coverage=0.8)
    quantiles = fitted.predict_quantiles(X, [0.1, 0.5, 0.9])
    assert quantiles.shape == (300, 3)
    np.testing.assert_allclose(quantiles[:, [0, 2]], np.column_stack([low, high]))
    np.testing.assert_allclose(fitted.predict_quantiles(X, 0.5), quantiles[:, 1])
    assert 0.7 < np.mean((low < y) & (y < high)) < 0.9


def test_draws_have_the_predicted_moments(curve, fitted):
    X = curve[0][:5]
    draws = fitted.sample_y(X, n_samples=4000, random_state=1)
    assert draws.shape == (5, 4000)
    mean, std = fitted.predict(X, return_std=True)
    # Five standard errors of a mean and of a standard deviation.
    np.testing.assert_array_less(np.abs(draws.mean(axis=1) - mean), 5 * std / np.sqrt(4000))
    np.testing.assert_array_less(np.abs(draws.std(axis=1) - std), 5 * std / np.sqrt(2000))
    np.testing.assert_array_equal(draws, fitted.sample_y(X, n_samples=4000, random_state=1))


def test_epistemic_uncertainty_and_the_ood_score_grow_outside_the_data(fitted):
    inside, outside = fitted.ood_score([[0.0], [100.0]])
    assert 0 < inside < 1 < 10 < outside
    epistemic = fitted.decompose([[0.0], [100.0]]).epistemic
    assert epistemic[1] > 100 * epistemic[0]


def test_variance_head_finds_noise_that_grows():
    X, y = datasets.make_aleatoric(1000, random_state=0)
    model = quick_regressor(noise="variance", random_state=0).fit(X, y)
    noise = np.sqrt(model.decompose([[-0.3], [0.0], [0.4]]).aleatoric)
    np.testing.assert_allclose(noise, 0.45 * (np.array([-0.3, 0.0, 0.4]) + 0.5), rtol=0.5)
    assert noise[0] < noise[1] < noise[2]


def test_several_outputs_have_a_covariance(curve):
    X, y = curve
    rng = np.random.default_rng(1)
    shared = 0.6 * rng.normal(size=len(y))
    Y = np.column_stack([y + shared, 2 * y - shared])
    model = quick_regressor(hidden_layer_sizes=(20,), max_iter=30, random_state=0).fit(X, Y)
    mean, cov = model.predict(X[:4], return_cov=True)
    assert mean.shape == (4, 2) and cov.shape == (4, 2, 2)
    assert (cov[:, 0, 1] < 0).all()
    np.testing.assert_allclose(np.diagonal(cov, axis1=1, axis2=2), model.predict_var(X[:4]))
    assert model.predict_quantiles(X[:4], [0.1, 0.9]).shape == (4, 2, 2)
    assert model.sample_y(X[:4], 7).shape == (4, 2, 7)
    assert model.predict_dist(X[:4]).logpdf(Y[:4]).shape == (4,)
    assert model.score(X, Y) > 0.5


def test_integer_weights_are_repetitions_on_a_full_batch(curve):
    X, y = (part[:20] for part in curve)
    weights = np.arange(20) % 3
    keywords = dict(hidden_layer_sizes=(5,), batch_size=100, random_state=0, max_iter=20)
    weighted = quick_regressor(**keywords).fit(X, y, sample_weight=weights)
    repeated = quick_regressor(**keywords).fit(X.repeat(weights, axis=0), y.repeat(weights))
    for ours, theirs in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_a_stream_learns_and_counts_its_samples(curve):
    X, y = curve
    model = quick_regressor(hidden_layer_sizes=(20,), random_state=0)
    for _ in range(20):
        for part in np.array_split(np.arange(len(X)), 6):
            model.partial_fit(X[part], y[part])
    assert model.model_.n_seen == 20 * len(X)
    assert model.n_iter_ == 120
    assert model.score(X, y) > 0.8


def test_early_stopping_keeps_the_best_and_says_when_it_did_not_stop(curve):
    from sklearn.exceptions import ConvergenceWarning

    X, y = curve
    model = quick_regressor(early_stopping=True, n_iter_no_change=1, max_iter=400, random_state=0).fit(X, y)
    assert model.n_iter_ < 400
    assert len(model.validation_scores_) >= 2
    with pytest.warns(ConvergenceWarning):
        model.set_params(max_iter=5).fit(X, y)


def free_energy(model, X, y, weights=None):
    return sum(float((layers[:, 0] - layers[:, 1]).sum()) for layers in model.free_energy(X, y, weights))


def test_free_energy_prefers_the_layer_that_explains_the_data(curve):
    X, y = curve
    shuffled = np.random.default_rng(0).permutation(y)
    model = quick_regressor(hidden_layer_sizes=(), random_state=0)
    assert free_energy(model.fit(X, y), X, y) < free_energy(model.fit(X, shuffled), X, shuffled)


def test_free_energies_come_per_member_and_layer(curve):
    X, y = curve
    model = quick_regressor((5, 4), n_members=2, noise="variance", max_iter=2, random_state=0).fit(X, y)
    assert [layers.shape for layers in model.free_energy(X, y)] == [(4, 2), (4, 2)]
    assert not hasattr(model, "free_energy_")


def test_ensemble_is_the_mixture_of_its_members(curve):
    X, y = curve
    pair = quick_regressor(hidden_layer_sizes=(10,), n_members=2, max_iter=20, random_state=0).fit(X, y)
    assert pair.model_.n_members == 2
    assert pair.model_.predict(X).n_components == 2
    single = quick_regressor(hidden_layer_sizes=(10,), max_iter=20, random_state=0).fit(X, y)
    assert pair.decompose(X).epistemic.mean() > 0
    assert not np.allclose(pair.predict(X), single.predict(X))


@pytest.mark.parametrize("batch_size", [1000, 32])
def test_the_free_energy_counts_a_sample_by_its_weight(curve, batch_size):
    X, y = curve
    counts = np.arange(len(X)) % 3
    model = quick_regressor((4,), max_iter=3, batch_size=batch_size, random_state=0)
    model.fit(X, y, sample_weight=counts)
    repeated = free_energy(model, np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(free_energy(model, X, y, counts), repeated, rtol=1e-10)


def test_validation_scores_are_those_of_all_members(curve):
    X, y = curve
    keywords = dict(
        hidden_layer_sizes=(10,), max_iter=20, early_stopping=True, n_iter_no_change=9, random_state=0
    )
    with pytest.warns(UserWarning, match="still improving"):
        pair = quick_regressor(n_members=2, **keywords).fit(X, y)
        single = quick_regressor(**keywords).fit(X, y)
    assert len(pair.validation_scores_) == len(single.validation_scores_) == 4
    assert pair.validation_scores_ != single.validation_scores_


def test_one_sample_and_constant_targets_are_told():
    with pytest.warns(UserWarning, match="one sample"):
        quick_regressor(random_state=0).fit([[1.0]], [2.0])
    with pytest.warns(UserWarning, match="target 0 has one value"):
        quick_regressor(max_iter=2, random_state=0).fit([[1.0], [2.0], [3.0]], [5.0, 5.0, 5.0])


@pytest.mark.parametrize(("size", "words"), [(1e200, "beyond"), (1e-200, "varies by less")])
def test_targets_whose_variance_no_float_holds_are_refused(curve, size, words):
    X, y = curve
    with pytest.raises(ValueError, match=words):
        quick_regressor(max_iter=1).fit(X, size * y)


@pytest.mark.parametrize("size", [1e140, 1e-140])
def test_targets_of_great_and_small_size_have_a_spread_of_their_size(curve, size):
    X, y = curve
    plain = quick_regressor((10,), max_iter=5, random_state=0).fit(X, y)
    sized = quick_regressor((10,), max_iter=5, random_state=0).fit(X, size * y)
    _, expected = plain.predict(X, return_std=True)
    np.testing.assert_allclose(sized.predict(X, return_std=True)[1] / size, expected, rtol=1e-6)


def test_networks_beyond_all_memory_are_a_memory_error(curve):
    with pytest.raises(MemoryError, match="hidden_layer_sizes"):
        quick_regressor((10_000_000,), max_iter=1).fit(*curve)


def test_a_stream_warns_of_what_it_cannot_choose_and_of_another_scale(curve):
    X, y = curve
    model = BPCRegressor((5,), n_members=1, random_state=0)
    taken = "activation = relu, prior_var = 10, bins = 0, noise = constant"
    with pytest.warns(UserWarning, match=taken) as caught:
        model.partial_fit(X, y).partial_fit(X, y)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=r"features \[0\] are on average") as caught:
        model.partial_fit(1000 * X, y).partial_fit(1000 * X, y)
    assert len(caught) == 1
