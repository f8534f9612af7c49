import copy
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from quick import quick_regressor
from sklearn.preprocessing import StandardScaler

import bayespc
from bayespc import BPCRegressor, MatrixNormalWishart, Network, SufficientStats, datasets, presets


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])


def statistics(batch, rows=slice(None)):
    X, Y = batch
    pre = np.column_stack([X, np.ones(len(X))])
    return SufficientStats(np.ascontiguousarray(pre[rows]), np.ascontiguousarray(Y[rows]))


def prior():
    return MatrixNormalWishart(np.zeros((2, 4)), np.eye(4) / 10, np.eye(2) / 1000, 4.0)


def test_statistics_of_parts_add_to_those_of_the_whole(batch):
    whole = statistics(batch)
    parts = statistics(batch, slice(0, 20)) + statistics(batch, slice(20, 60))
    np.testing.assert_allclose(parts.pre_pre, whole.pre_pre)
    np.testing.assert_allclose(parts.post_pre, whole.post_pre)
    np.testing.assert_allclose(parts.post_post, whole.post_post)
    assert parts.count == whole.count == 60
    np.testing.assert_allclose((2 * whole).post_pre, (whole + whole).post_pre)
    assert whole + SufficientStats.zero(2, 4) == whole


def test_statistics_travel_as_bytes(batch):
    whole = statistics(batch)
    assert SufficientStats.from_bytes(whole.to_bytes()) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    with pytest.raises(ValueError, match="safetensors"):
        SufficientStats.from_bytes(b"nonsense")


def test_statistics_of_other_widths_do_not_add(batch):
    with pytest.raises(ValueError, match="statistics"):
        statistics(batch) + SufficientStats.zero(1, 4)


def test_the_posterior_mean_is_ridge_regression(batch):
    X, Y = batch
    pre = np.column_stack([X, np.ones(len(X))])
    posterior = prior().update(statistics(batch))
    ridge = np.linalg.solve(pre.T @ pre + np.eye(4) / 10, pre.T @ Y).T
    np.testing.assert_allclose(posterior.mean, ridge, rtol=1e-10)
    assert posterior.dof == 64
    np.testing.assert_allclose(posterior.col_cov, np.linalg.inv(pre.T @ pre + np.eye(4) / 10), rtol=1e-9)


def test_free_energy_of_a_conjugate_update_is_the_log_evidence(batch):
    """The evidence by the chain rule: log p(A, B) = log p(A) + log p(B | A)."""
    a, b = statistics(batch, slice(0, 20)), statistics(batch, slice(20, 60))

    def evidence(before, stats):
        after = before.update(stats)
        return after.expected_log_likelihood(stats) - after.kl_divergence(before)

    whole = evidence(prior(), a + b)
    np.testing.assert_allclose(evidence(prior(), a) + evidence(prior().update(a), b), whole, rtol=1e-10)


def test_draws_of_weights_scatter_around_the_mean(batch):
    posterior = prior().update(statistics(batch))
    draws = np.array([posterior.sample(seed)[0] for seed in range(2000)])
    spread = draws.std(axis=0)
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - posterior.mean), 5 * spread / np.sqrt(2000))


def test_one_layer_learns_the_exact_posterior_in_one_step(batch):
    X, Y = batch
    network = Network(3, 2, hidden_layer_sizes=(), rule="relaxation", random_state=0)
    network.learn(X, Y)
    exact = network.priors[0].update(statistics(batch))
    np.testing.assert_allclose(network.weights[0], exact.mean, rtol=1e-9)
    np.testing.assert_allclose(network.posteriors[0].col_cov, exact.col_cov, rtol=1e-9)


def test_training_by_hand_is_what_the_estimator_does(batch):
    """With full batches, on data standardised and sorted as the estimator does it."""
    X, Y = batch
    order = np.lexsort(np.column_stack([X, Y]).T[::-1])
    model = quick_regressor((10,), max_iter=50, batch_size="full", random_state=0).fit(X, Y)
    (x_mean, x_std), (y_mean, y_std) = model.model_.input_scaling, model.model_.target_scaling
    np.testing.assert_allclose(x_mean, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(y_std, Y.std(axis=0), rtol=1e-12)
    x, y = ((X - x_mean) / x_std)[order], ((Y - y_mean) / y_std)[order]

    loop = Network(3, 2, hidden_layer_sizes=(10,), random_state=0)
    losses = [loop.learn(x, y, total_steps=50) for _ in range(50)]
    loop.finish(x, y)
    assert losses[-1] < 0.5 * losses[0]
    assert repr(loop) == "Network(3-10-2, rule='feedback', n_steps=50)"
    np.testing.assert_allclose(losses, model.loss_curve_, rtol=1e-6)
    by_hand, dist = loop.predict((X - x_mean) / x_std), model.predict_dist(X)
    np.testing.assert_allclose(by_hand.mean * y_std + y_mean, dist.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(by_hand.std * y_std, dist.std, rtol=1e-6)


def test_relaxation_lowers_the_energy_and_shows_its_activities(batch):
    X, Y = batch
    network = Network(3, 2, hidden_layer_sizes=(10, 5), rule=presets.paper()["rule"], random_state=0)
    network.learn(X, Y, n_total=60)
    settings = {
        "steps": 50,
        "tolerance": 1e-9,
        "halve_steps": True,
        "optimiser": {"gradient": {"rate": None}},
    }
    relaxed = network.relax(X, Y, settings)
    assert [z.shape for z in relaxed.activities] == [(60, 3), (60, 10), (60, 5), (60, 2)]
    assert (np.diff(relaxed.energy) <= 1e-9 * np.abs(relaxed.energy[:-1])).all()
    assert relaxed.energy[-1] < relaxed.energy[0]
    np.testing.assert_array_equal(relaxed.activities[0], X)
    np.testing.assert_array_equal(relaxed.activities[-1], Y)
    assert relaxed.layer_energies.shape == (3,)
    assert len(network.relax(X, Y).energy) >= 2


def test_layer_energies_add_up_to_the_energy_with_inputs_missing(batch):
    X, Y = batch
    network = Network(3, 2, hidden_layer_sizes=(10, 5), rule=presets.paper()["rule"], random_state=0)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    relaxed = network.relax(X, Y)
    np.testing.assert_allclose(relaxed.layer_energies.sum(), relaxed.energy[-1], rtol=1e-12)


def test_a_variance_node_relaxes_to_its_working_targets(batch):
    X, Y = batch
    rule = presets.paper()["rule"]
    network = Network(3, 2, hidden_layer_sizes=(10,), noise="variance", rule=rule, random_state=0)
    network.learn(X, Y, n_total=60)
    relaxed = network.relax(X, Y, {"hidden_precision": {"fixed": 1.0}})
    assert [z.shape for z in relaxed.activities] == [(60, 3), (60, 10), (60, 4)]
    np.testing.assert_allclose(relaxed.activities[-1], network.infer(X, Y)[-1])
    assert relaxed.energy[-1] < relaxed.energy[0]
    np.testing.assert_allclose(relaxed.layer_energies.sum(), relaxed.energy[-1], rtol=1e-12)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing values"):
        network.relax(X, Y)


def test_feedback_moves_activities_towards_the_target(batch):
    X, Y = batch
    network = Network(3, 2, hidden_layer_sizes=(10,), random_state=0)
    forward, inferred = network.activities(X), network.infer(X, Y)
    assert [z.shape for z in inferred] == [(60, 10), (60, 2)]
    assert not np.allclose(forward[0], inferred[0])
    np.testing.assert_allclose(inferred[1], Y)


def test_a_linear_network_imputes_the_exact_conditional():
    """y = 2x + noise: a missing x is a Gaussian product of prior and likelihood."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    Y = 2 * X + 0.5 * rng.normal(size=(2000, 1))
    network = Network(1, 1, hidden_layer_sizes=(), rule="relaxation", random_state=0)
    network.learn(X, Y)
    slope, bias = network.weights[0][0]
    precision = network.posteriors[0].expected_precision()[0, 0]
    filled = network.impute([[np.nan]], [[1.0]], weight_uncertainty=0.0)
    variance = 1 / (1 + slope**2 * precision)
    np.testing.assert_allclose(filled.X[0, 0], variance * slope * precision * (1 - bias), rtol=1e-6)
    np.testing.assert_allclose(filled.X_var[0, 0], variance, rtol=1e-6)
    assert filled.y_var[0, 0] == 0


def correlation_time(series):
    """Return how many draws of a chain are worth one: pairs of lags while they are positive (Geyer)."""
    centred = series - series.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * len(series))) ** 2
    covariance = np.fft.irfft(spectrum)[: len(series)]
    correlation = covariance / covariance[0]
    pairs = correlation[:-1:2] + correlation[1::2]
    ends = np.flatnonzero(pairs <= 0)
    return 2 * pairs[: ends[0] if len(ends) else None].sum() - 1


def assert_expected(series, expected, deviation):
    """A chain's mean is within five standard errors, by the exact deviation of a draw and how they follow."""
    error = deviation * np.sqrt(correlation_time(series) / len(series))
    assert abs(series.mean() - expected) < 5 * error, (series.mean(), expected, error)


def joint_normal(network):
    """Return mean and covariance of x, z_1 … z_L of a linear network, weights at their means."""
    mean, cov = np.zeros(network.widths[0]), np.eye(network.widths[0]) * network.settings["input_var"]
    for weights, posterior in zip(network.weights, network.posteriors, strict=True):
        width = weights.shape[1] - 1
        lift = np.vstack([np.eye(len(mean)), np.zeros((len(weights), len(mean)))])
        lift[len(mean) :, len(mean) - width :] = weights[:, :-1]
        noise = np.zeros((len(lift), len(lift)))
        noise[len(mean) :, len(mean) :] = np.linalg.inv(posterior.expected_precision())
        mean, cov = lift @ mean, lift @ cov @ lift.T + noise
        mean[-len(weights) :] += weights[:, -1]
    return mean, cov


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_draws_of_missing_entries_have_the_exact_conditional_moments(hidden):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    Y = X @ rng.normal(size=(3, 2)) + 0.7 * rng.normal(size=(300, 2))
    network = Network(
        3, 2, hidden_layer_sizes=hidden, activation="identity", rule="relaxation", random_state=0
    )
    for _ in range(5):
        network.learn(X, Y, n_total=300)
    x = np.array([[np.nan, 0.3, np.nan], [0.5, np.nan, -1.0], [0.1, 0.2, 0.3]])
    y = np.array([[1.0, np.nan], [0.2, -0.4], [np.nan, np.nan]])
    drawn = network.draw_missing(x, y, 4000, n_steps=3, weight_uncertainty=0.0, random_state=0)
    assert drawn.X.shape == (4000, 3, 3)
    assert drawn.y.shape == (4000, 3, 2)
    assert 0.4 < drawn.accepted < 1
    mean, cov = joint_normal(network)
    visible = np.r_[:3, len(mean) - 2 : len(mean)]
    mean, cov = mean[visible], cov[np.ix_(visible, visible)]
    for row in range(3):
        values = np.r_[x[row], y[row]]
        gone = np.isnan(values)
        draws = np.concatenate([drawn.X[:, row], drawn.y[:, row]], axis=1)
        np.testing.assert_array_equal(draws[:, ~gone], np.broadcast_to(values[~gone], (4000, (~gone).sum())))
        gain = np.linalg.solve(cov[np.ix_(~gone, ~gone)], cov[np.ix_(~gone, gone)]).T
        centred = draws[:, gone] - mean[gone] - gain @ (values[~gone] - mean[~gone])
        spread = cov[np.ix_(gone, gone)] - gain @ cov[np.ix_(~gone, gone)]
        for a, own in enumerate(np.diag(spread)):
            assert_expected(centred[:, a], 0.0, np.sqrt(own))
            for b in range(a + 1):
                deviation = np.sqrt(own * spread[b, b] + spread[a, b] ** 2)
                assert_expected(centred[:, a] * centred[:, b], spread[a, b], deviation)


def test_draws_of_a_bent_network_follow_its_density():
    """One input, one hidden unit, one target: the moments of a missing input by quadrature over both."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    Y = np.tanh(2 * X) + 0.2 * rng.normal(size=(400, 1))
    network = Network(1, 1, hidden_layer_sizes=(1,), activation="tanh", rule="relaxation", random_state=0)
    for _ in range(20):
        network.learn(X, Y, n_total=400)
    (w, b), (v, c) = (weights[0] for weights in network.weights)
    below, above = (posterior.expected_precision()[0, 0] for posterior in network.posteriors)
    x, z = np.meshgrid(np.linspace(-8, 8, 801), np.linspace(-12, 12, 1201), indexing="ij")
    energy = 0.5 * (x**2 + below * (z - w * x - b) ** 2 + above * (1.0 - v * np.tanh(z) - c) ** 2)
    density = np.exp(energy.min() - energy)
    density /= density.sum()
    moments = [(density * x**power).sum() for power in range(5)]
    drawn = network.draw_missing(
        [[np.nan]], [[1.0]], 8000, n_steps=3, weight_uncertainty=0.0, random_state=0
    ).X.ravel()
    for power in (1, 2):
        deviation = np.sqrt(moments[2 * power] - moments[power] ** 2)
        assert_expected(drawn**power, moments[power], deviation)


def test_draws_of_missing_entries_follow_their_seed(batch):
    X, Y = batch
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    network = Network(3, 2, hidden_layer_sizes=(5,), activation="tanh", random_state=0)
    first, again, other = (network.draw_missing(X, Y, 3, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    gone = np.isnan(X)
    assert np.all(first.X[:, gone] != other.X[:, gone])
    assert np.all(np.isfinite(first.X))
    np.testing.assert_array_equal(first.y, np.broadcast_to(Y, (3, *Y.shape)))
    whole = network.draw_missing(first.X[0], Y, 2, random_state=1)
    np.testing.assert_array_equal(whole.X, np.stack([first.X[0]] * 2))


def test_wrong_input_of_drawing_is_refused_by_name(batch):
    X, Y = batch
    network = Network(3, 2, hidden_layer_sizes=(5,), random_state=0)
    for keywords, culprit in (
        ({"n_draws": 0}, "n_draws must be at least 1; got 0"),
        ({"n_steps": 0}, "n_steps must be at least 1; got 0"),
        ({"step_size": 0.0}, "step_size must be greater than 0"),
        ({"step_size": np.inf}, "step_size must be"),
        ({"weight_uncertainty": np.nan}, "weight_uncertainty must be between 0 and 1; got nan"),
        ({"weight_uncertainty": 1.5}, "weight_uncertainty must be between 0 and 1; got 1.5"),
    ):
        with pytest.raises(ValueError, match=culprit):
            network.draw_missing(X, Y, **keywords)
    with pytest.raises(TypeError, match="n_draws must be an integer"):
        network.draw_missing(X, Y, 2.5)
    with pytest.raises(ValueError, match="input has 2 features, expected 3"):
        network.draw_missing(X[:, :2], Y)
    with pytest.raises(ValueError, match="target has 1 columns, expected 2"):
        network.draw_missing(X, Y[:, :1])
    with pytest.raises(ValueError, match="target has 59 samples, expected 60"):
        network.draw_missing(X, Y[:-1])
    X = X.copy()
    X[4, 1] = np.inf
    with pytest.raises(ValueError, match=r"input.*row 4.*column 1"):
        network.draw_missing(X, Y)
    with pytest.raises(ValueError, match="y must have two dimensions"):
        network.draw_missing(X, Y[:, 0])
    with pytest.raises(ValueError, match="head other than gaussian"):
        Network(3, 2, noise="variance", hidden_layer_sizes=(5,), random_state=0).draw_missing(X, Y)


def test_generated_targets_look_like_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1))
    Y = 2 * X + 0.5 * rng.normal(size=(2000, 1))
    network = Network(1, 1, hidden_layer_sizes=(), rule="relaxation", random_state=0)
    network.learn(X, Y)
    x, y = network.generate(5000, random_state=0)
    np.testing.assert_allclose(np.polyfit(x[:, 0], y[:, 0], 1)[0], 2, atol=0.05)
    np.testing.assert_array_equal(y, network.generate(5000, random_state=0)[1])


def test_missing_values_are_learned_from_by_relaxation_only(batch):
    X, Y = batch
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    relaxation = Network(3, 2, hidden_layer_sizes=(5,), rule="relaxation", random_state=0)
    assert np.isfinite(relaxation.learn(X, Y, n_total=60))
    with pytest.raises(ValueError, match="missing values"):
        Network(3, 2, hidden_layer_sizes=(5,), random_state=0).learn(X, Y)


def test_wrong_shapes_are_refused_by_name(batch):
    X, Y = batch
    network = Network(3, 2, hidden_layer_sizes=(5,), random_state=0)
    with pytest.raises(ValueError, match="X must have two dimensions"):
        network.activities(X[0])
    for call in (network.activities, lambda X: network.learn(X, Y), lambda X: network.infer(X, Y)):
        with pytest.raises(ValueError, match="input has 2 features, expected 3"):
            call(X[:, :2])
    for call in (network.learn, network.infer, network.relax, network.finish, network.free_energy):
        with pytest.raises(ValueError, match="target"):
            call(X, Y[:, :1])
    with pytest.raises(ValueError, match="target has 1 columns, expected 2"):
        network.impute(X, Y[:, :1])


def test_a_network_of_an_estimator_predicts_like_it(batch):
    X, Y = batch
    model = quick_regressor(hidden_layer_sizes=(8,), max_iter=5, random_state=0).fit(X, Y)
    network = Network.from_estimator(model)
    (x_mean, x_std), (y_mean, y_std) = model.model_.input_scaling, model.model_.target_scaling
    mean = network.predict((X - x_mean) / x_std).mean * y_std + y_mean
    np.testing.assert_allclose(mean, model.predict(X), rtol=1e-9, atol=1e-12)


def test_presets_make_an_estimator():
    X, y = datasets.make_epistemic(60, random_state=0)
    settings = presets.paper() | {"hidden_layer_sizes": (16,), "max_iter": 5, "random_state": 0}
    model = BPCRegressor(**settings).fit(X, y)
    assert model.model_.predict(X).n_components == 20


def test_standard_splits_are_those_of_numpy():
    rng = np.random.RandomState(1)
    for train, test in datasets.standard_splits(50, 3):
        expected = rng.choice(range(50), 50, replace=False)
        np.testing.assert_array_equal(np.concatenate([train, test]), expected)
        assert len(train) == 45


def test_an_unknown_data_set_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="yacht"):
        datasets.load_uci("atlantis")
    with pytest.raises(ValueError, match="fashion-mnist"):
        datasets.load_images("atlantis")


def test_images_come_with_their_test_set_and_the_names_of_their_classes():
    folder = Path(os.environ.get("BAYESPC_DATA", "")) / "fashion-mnist"
    if not folder.is_dir():
        pytest.skip("BAYESPC_DATA has no fashion-mnist")
    clothes = datasets.load_images("fashion-mnist", download=False)
    assert (clothes.data.shape, clothes.data.dtype) == ((60_000, 784), np.float32)
    assert (np.bincount(clothes.test_target) == 1000).all()
    assert clothes.target_names[9] == "Ankle boot"


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(80, 1))
    network = Network(2, 1, hidden_layer_sizes=(6,), random_state=0)
    for _ in range(10):
        network.learn(X, y, n_total=80, total_steps=20)
    return network, X, y


class TestCopies:
    def test_a_copy_learns_on_to_the_bit_and_leaves_the_first_alone(self, trained):
        network, X, y = trained
        before = [weights.copy() for weights in network.weights]
        one, other = copy.deepcopy(network), copy.copy(network)
        for twin in (one, other):
            assert twin.n_steps == 10
            twin.learn(X, y, n_total=80, total_steps=20)
        for a, b in zip(one.weights, other.weights, strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(network.weights, before, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_a_pickle_and_a_file_predict_the_same_and_go_on(self, trained, tmp_path):
        network, X, y = trained
        network = copy.deepcopy(network)
        network.finish(X, y)
        network.save(tmp_path / "n.safetensors")
        for again in (pickle.loads(pickle.dumps(network)), Network.load(tmp_path / "n.safetensors")):
            assert (again.n_steps, again.rule, again.settings) == (10, network.rule, network.settings)
            np.testing.assert_allclose(again.predict(X).mean, network.predict(X).mean, atol=1e-10)
            np.testing.assert_allclose(again.predict(X).std, network.predict(X).std, rtol=1e-8)
            loss = again.learn(X, y, n_total=80, total_steps=20)
            assert loss == pytest.approx(copy.deepcopy(network).learn(X, y, n_total=80, total_steps=20))
        assert bayespc.load(tmp_path / "n.safetensors").score(X, y[:, 0]) > 0.5

    def test_it_becomes_an_estimator_in_the_units_of_the_data(self, trained, tmp_path):
        network, X, y = trained
        network = copy.deepcopy(network)
        network.finish(X, y)
        raw, targets = 3.0 + 10.0 * X, 5.0 * y - 7.0
        x_scaler, y_scaler = StandardScaler().fit(raw), StandardScaler().fit(targets)
        # The network was trained on X and y, not on what the scalers make of them: what counts is the map.
        model = network.to_estimator(x_scaler=x_scaler, y_scaler=y_scaler)
        expected = network.predict(x_scaler.transform(raw))
        mean, std = model.predict(raw, return_std=True)
        np.testing.assert_allclose(mean, expected.mean[:, 0] * y_scaler.scale_[0] + y_scaler.mean_[0])
        np.testing.assert_allclose(std, expected.std[:, 0] * y_scaler.scale_[0])
        model.save(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(bayespc.load(tmp_path / "m.safetensors").predict(raw), mean)
        with pytest.raises(ValueError, match="from_estimator"):
            Network.load(tmp_path / "m.safetensors")
        with pytest.raises(TypeError, match="x_scaler"):
            network.to_estimator(x_scaler="standard")

    def test_codes_of_classes_become_a_classifier(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(60, 2))
        labels = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
        network = Network(2, 2, hidden_layer_sizes=(), rule="relaxation", random_state=0)
        network.learn(X, np.eye(2)[(X[:, 0] > 0).astype(int)])
        model = network.to_estimator(classes=["no", "yes"])
        assert model.score(X, labels) > 0.9
        with pytest.raises(ValueError, match="sorted"):
            network.to_estimator(classes=["yes", "no"])
        with pytest.raises(ValueError, match="classes"):
            network.to_estimator(classes=["a", "b", "c"])


def test_the_energy_of_every_step_is_there_and_why_it_ended(trained):
    network, X, y = trained
    relaxed = network.relax(X, y, {"steps": 7})
    assert (len(relaxed.energy), relaxed.stop) == (8, "max_steps")
    np.testing.assert_allclose(relaxed.layer_energies.sum(), relaxed.energy[-1])
    careful = {"steps": 500, "optimiser": {"gradient": {}}, "sweep": "sequential", "halve_steps": True}
    resting = network.relax(X, y, careful)
    assert resting.stop == "converged"
    assert (np.diff(resting.energy) <= 1e-9 * resting.energy[0]).all()
    diverged = network.relax(X, y, {"steps": 50, "optimiser": {"gradient": {"rate": 1e200}}})
    assert diverged.stop == "diverged"
    np.testing.assert_array_equal(diverged.activities[1], network.activities(X)[0])
