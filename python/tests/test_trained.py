"""Networks of others become fitted estimators: what is kept, what is computed, what is refused."""

import json
import struct

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import bayespc

QUICK = {"solver": "lbfgs", "max_iter": 60, "random_state": 0}


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(300, 2)) * [1.0, 20.0] + [5.0, 100.0]
    y = 30.0 + 10.0 * np.sin(X[:, 0]) + 0.1 * X[:, 1] + rng.normal(size=300)
    return X, y


@pytest.fixture(scope="module")
def network(waves):
    return make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(8, 6), **QUICK)).fit(*waves)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestFromMlp:
    def test_the_mean_is_that_of_the_network_and_variance_grows_away_from_the_data(self, waves, network):
        X, y = waves
        model = bayespc.from_mlp(network, X, y)
        np.testing.assert_allclose(model.predict(X), network.predict(X), rtol=1e-9)
        aleatoric, epistemic = model.decompose(X)
        residual = np.mean((y - network.predict(X)) ** 2)
        assert 0.9 < aleatoric.mean() / residual < 1.2
        far = model.decompose(X + 1000.0)[1]
        assert far.min() > epistemic.max()

    def test_targets_and_inputs_may_be_scaled_by_steps_around_the_network(self, waves):
        X, y = waves
        scaled = TransformedTargetRegressor(
            make_pipeline(StandardScaler(), PCA(whiten=True), MLPRegressor(hidden_layer_sizes=(5,), **QUICK)),
            transformer=StandardScaler(),
        ).fit(X, y)
        model = bayespc.from_mlp(scaled, X, y)
        np.testing.assert_allclose(model.predict(X), scaled.predict(X), rtol=1e-8)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_the_probabilities_of_the_mean_network_are_those_of_the_classifier(self, n_classes):
        X, y = load_iris(return_X_y=True)
        labels = np.array(["a", "b", "c"])[y][y < n_classes]
        X = X[y < n_classes]
        mlp = MLPClassifier(hidden_layer_sizes=(6,), alpha=1.0, **QUICK).fit(X, labels)
        # Not every class need be there again.
        model = bayespc.from_mlp(mlp, X[:80], labels[:80], method="mean")
        assert list(model.classes_) == list(mlp.classes_)
        np.testing.assert_allclose(model.predict_proba(X), mlp.predict_proba(X), atol=1e-9)
        model.method = "linearised"
        assert (model.predict(X) == mlp.predict(X)).mean() > 0.95
        assert (model.decompose(X).epistemic >= 0).all()

    def test_it_is_an_estimator_like_any_other(self, waves, network, tmp_path):
        X, y = waves
        model = bayespc.from_mlp(network, X, y, random_state=0)
        model.save(tmp_path / "m.safetensors")
        again = bayespc.load(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(again.predict(X, return_std=True), model.predict(X, return_std=True))
        assert again.get_params() == model.get_params()
        before = model.score(X, y)
        model.partial_fit(X, y)
        assert model.model_.n_seen == 600
        assert model.score(X, y) > before - 0.05
        pytest.importorskip("onnx")
        assert bayespc.to_onnx(again).graph.output

    def test_samples_the_network_has_not_seen_calibrate_it(self, waves, network):
        X, y = waves
        model = bayespc.from_mlp(network, X, y, calibration="conformal", random_state=0)
        lower, upper = model.predict_interval(X, 0.8)
        assert 0.7 < ((lower < y) & (y < upper)).mean() < 0.95
        with pytest.raises(ValueError, match="calibration"):
            model.partial_fit(X, y)

    def test_frames_keep_their_names_and_weights_count(self, waves):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(waves[0], columns=["a", "b"]).assign(y=waves[1])
        mlp = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(4,), **QUICK)).fit(
            frame[["a", "b"]], frame["y"]
        )
        model = bayespc.from_mlp(mlp, frame, "y")
        assert list(model.feature_names_in_) == ["a", "b"]
        twice = bayespc.from_mlp(mlp, pd.concat([frame, frame]), "y")
        weighted = bayespc.from_mlp(mlp, frame.assign(w=2.0), "y", sample_weight="w")
        np.testing.assert_allclose(
            weighted.predict(frame[["a", "b"]], return_std=True)[1],
            twice.predict(frame[["a", "b"]], return_std=True)[1],
            rtol=1e-9,
        )
        with pytest.raises(ValueError, match="trained on"):
            bayespc.from_mlp(mlp, frame[["b", "a"]], frame["y"])

    def test_what_cannot_be_done_says_why(self, waves, network):
        X, y = waves
        with pytest.raises(TypeError, match="LinearRegression"):
            bayespc.from_mlp(LinearRegression().fit(X, y), X, y)
        with pytest.raises(NotFittedError):
            bayespc.from_mlp(MLPRegressor(), X, y)
        bent = make_pipeline(
            PolynomialFeatures(2), StandardScaler(), MLPRegressor(hidden_layer_sizes=(3,), **QUICK)
        ).fit(X, y)
        with pytest.raises(ValueError, match="not affine"):
            bayespc.from_mlp(bent, X, y)
        with pytest.raises(ValueError, match="features"):
            bayespc.from_mlp(network[-1], X[:, :1], y)
        several = MLPClassifier(hidden_layer_sizes=(3,), **QUICK).fit(X, np.column_stack([y > 30, y > 20]))
        with pytest.raises(ValueError, match="several labels"):
            bayespc.from_mlp(several, X, y > 30)
        with pytest.warns(UserWarning, match="no better than a constant"):
            bayespc.from_mlp(network[-1], X, y)


def forward(layers, X, activation=np.tanh):
    """Activities φ_0 … and the output, straight from the definition."""
    pre, z = [], X
    for i, layer in enumerate(layers):
        phi = np.column_stack([z if i == 0 else activation(z), np.ones(len(X))])
        pre.append(phi)
        z = phi @ layer.T
    return pre, z


def test_the_posterior_is_the_kronecker_factored_laplace_posterior():
    """Beside K-FAC's factors from their definition, with derivatives by differences.

    laplace-torch's Kronecker posterior has the precision A_l ⊗ B_l + δ I per layer, with A_l = Σ φφᵀ over the
    samples and B_l the mean of Gᵀ Λ G, Λ the precision of the noise. Ours is (A_l + V⁰⁻¹) ⊗ (B_l + tr B_l/d):
    the same curvature, with the prior in the factors instead of beside their product.
    """
    X, y = load_diabetes(return_X_y=True)
    X = (X[:, :4] - X[:, :4].mean(axis=0)) / X[:, :4].std(axis=0)
    y = np.column_stack([y, y[::-1]])
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    rng = np.random.default_rng(1)
    shapes = [(5, 5), (3, 6), (2, 4)]
    layers = [rng.normal(size=shape) / np.sqrt(shape[1]) for shape in shapes]
    named = {
        f"{2 * i}.{kind}": part
        for i, layer in enumerate(layers)
        for kind, part in (("weight", layer[:, :-1]), ("bias", layer[:, -1]))
    }
    with pytest.warns(UserWarning, match="no better than a constant"):
        model = bayespc.from_weights(named, X, y, activation="tanh", prior_var=2.0)
    network = bayespc.Network.from_estimator(model)
    posteriors = network.posteriors

    pre, output = forward(layers, X)
    errors = y - output
    n, d = errors.shape
    # The noise of the top layer around its kept mean: ν = n + d + 2, Ψ⁻¹ as in the head of finalise.rs.
    inv_scale = errors.T @ errors + 1e-3 * np.eye(d)
    noise_precision = (n + d + 2) * np.linalg.inv(inv_scale)
    np.testing.assert_allclose(posteriors[-1].expected_precision(), noise_precision, rtol=1e-8)
    step = 1e-5
    for i, (layer, posterior) in enumerate(zip(layers[:-1], posteriors[:-1], strict=True)):
        np.testing.assert_allclose(posterior.mean, layer, rtol=1e-9, atol=1e-12)
        A = pre[i].T @ pre[i]
        np.testing.assert_allclose(
            np.linalg.inv(posterior.col_cov), A + np.eye(len(A)) / 2.0, rtol=1e-7, atol=1e-7
        )
        width = len(layer)
        G = np.empty((n, d, width))
        for k in range(width):
            moved = [
                forward_from(layers, pre[i] @ layer.T + sign * step * np.eye(width)[k], i) for sign in (1, -1)
            ]
            G[:, :, k] = (moved[0] - moved[1]) / (2 * step)
        B = np.einsum("nik,ij,njl->kl", G, noise_precision, G) / n
        np.testing.assert_allclose(
            posterior.expected_precision(), B + np.trace(B) / width * np.eye(width), rtol=1e-6, atol=1e-9
        )


def forward_from(layers, z, i):
    """The output from z_{i+1} on."""
    for layer in layers[i + 1 :]:
        z = np.column_stack([np.tanh(z), np.ones(len(z))]) @ layer.T
    return z


def written(path, tensors):
    """A safetensors file, by its format: length of the header, header, numbers."""
    header, data = {}, b""
    for name, values in tensors.items():
        values = np.ascontiguousarray(values, dtype="<f4")
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [len(data), len(data) + values.nbytes],
        }
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class TestFromWeights:
    def test_a_file_and_a_mapping_give_the_same_model(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 3))
        tensors = {
            "layers.0.weight": rng.normal(size=(4, 3)),
            "layers.0.bias": rng.normal(size=4),
            "layers.10.weight": rng.normal(size=(1, 4)),
            "layers.10.bias": rng.normal(size=1),
        }
        tensors = {name: values.astype(np.float32) for name, values in tensors.items()}
        stacked = [
            np.column_stack([tensors[f"layers.{i}.weight"], tensors[f"layers.{i}.bias"]]) for i in (0, 10)
        ]
        y = forward(stacked, X, lambda z: np.maximum(z, 0))[1][:, 0] + 0.1 * rng.normal(size=80)
        written(tmp_path / "net.safetensors", tensors)
        of_file = bayespc.from_weights(tmp_path / "net.safetensors", X, y)
        of_mapping = bayespc.from_weights(tensors, X, y)
        np.testing.assert_array_equal(
            of_file.predict(X, return_std=True), of_mapping.predict(X, return_std=True)
        )
        assert of_file.score(X, y) > 0.9

    def test_classes_are_in_the_order_that_is_said(self):
        X, y = load_iris(return_X_y=True)
        mlp = MLPClassifier(hidden_layer_sizes=(4,), alpha=1.0, **QUICK).fit(X, y)
        order = [2, 0, 1]
        tensors = {
            "0.weight": mlp.coefs_[0].T,
            "0.bias": mlp.intercepts_[0],
            "1.weight": mlp.coefs_[1].T[order],
            "1.bias": mlp.intercepts_[1][order],
        }
        model = bayespc.from_weights(tensors, X, y, classes=order, method="mean")
        np.testing.assert_allclose(model.predict_proba(X), mlp.predict_proba(X), atol=1e-9)

    def test_what_is_wrong_is_named(self, tmp_path):
        X, y = np.eye(3), np.arange(3.0)
        with pytest.raises(ValueError, match="running_mean"):
            bayespc.from_weights({"0.weight": np.ones((1, 3)), "1.running_mean": np.ones(1)}, X, y)
        with pytest.raises(ValueError, match="order"):
            bayespc.from_weights({"a.weight": np.ones((3, 3)), "b.weight": np.ones((1, 3))}, X, y)
        with pytest.raises(TypeError, match="no array"):
            bayespc.from_weights({"0.weight": "text"}, X, y)
        with pytest.raises(ValueError, match="2 outputs"):
            bayespc.from_weights({"0.weight": np.ones((2, 3))}, X, [0, 1, 2], classes=[0, 1, 2])
        with pytest.raises(ValueError, match="rows"):
            bayespc.from_weights({"0.weight": np.ones((2, 3))}, X, y)
        (tmp_path / "bad.safetensors").write_bytes(b"nothing")
        with pytest.raises(ValueError, match="safetensors"):
            bayespc.from_weights(tmp_path / "bad.safetensors", X, y)
        with pytest.raises(FileNotFoundError):
            bayespc.from_weights(tmp_path / "none.safetensors", X, y)
