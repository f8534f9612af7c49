"""An exported model says in onnxruntime what it says here."""

import json

import numpy as np
import pandas as pd
import pytest
from quick import quick_classifier

import bayespc
from bayespc import BPCClassifier, BPCRegressor, presets

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def run(estimator, X, path=None):
    content = bayespc.to_onnx(estimator, path).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    values = session.run(None, {"X": X})
    return dict(zip([output.name for output in session.get_outputs()], values, strict=True))


def rows(n=150, seed=0, d_out=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 3)) * [1.0, 10.0, 0.1]
    y = 50 + 3 * X[:, 0] + np.sin(0.2 * X[:, 1]) + np.exp(0.3 * X[:, 0]) * 0.2 * rng.normal(size=n)
    return X, y if d_out is None else np.column_stack([(k + 1) * y + k * X[:, 0] for k in range(d_out)])


def check_regressor(fitted, X, given=None):
    found = run(fitted, X if given is None else given)
    # Rows far away, where codes go on as straight lines.
    d = fitted.model_.n_targets
    dist = fitted.predict_dist(X)
    for name, expected in (
        ("mean", dist.mean),
        ("aleatoric_variance", dist.aleatoric),
        ("epistemic_variance", dist.epistemic),
    ):
        assert found[name].dtype == np.float64
        np.testing.assert_allclose(found[name], np.reshape(expected, (-1, d)), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"noise": "variance", "bins": 6},
        {"n_members": 3, "bins": 4, "activation": "silu"},
        {"activation": "tanh"},
        {"activation": "leaky_relu", "hidden_layer_sizes": (7,)},
        {"activation": "softplus"},
        {"activation": "sigmoid"},
        {"hidden_layer_sizes": ()},
        {"calibration": "conformal"},
        {"calibration": "holdout", "noise": "variance"},
        presets.paper() | {"max_iter": 3, "method": "linearised"},
    ],
    ids=lambda keywords: "-".join(map(str, list(keywords)[:3])) or "default",
)
def test_regression(keywords):
    X, y = rows()
    fitted = quick_regressor(**({"max_iter": 10, "random_state": 0} | {"n_members": 1} | keywords)).fit(X, y)
    check_regressor(fitted, np.vstack([X[:20], 5 * X[:5]]))


@pytest.mark.parametrize(
    "kept", [{"blocks": 6}, {"blocks": 1}, {"blocks": 24}, {"sketch": 6}, {"sketch": 26}]
)
@pytest.mark.parametrize("noise", ["constant", "variance"])
def test_layers_of_which_parts_are_kept(kept, noise):
    X, y = rows(d_out=2)
    fitted = quick_regressor(
        hidden_layer_sizes=(30, 24), max_iter=10, n_members=1, wide_layers=kept, noise=noise, random_state=0
    ).fit(X, y)
    check_regressor(fitted, np.vstack([X[:20], 5 * X[:5]]))


@pytest.mark.parametrize("kept", [{"blocks": 6}, {"sketch": 6}])
@pytest.mark.parametrize("likelihood", ["one_hot", "categorical"])
def test_classes_by_layers_of_which_parts_are_kept(kept, likelihood):
    X, y = rows()
    labels = np.digitize(y, [45, 50, 54])
    fitted = quick_classifier(
        hidden_layer_sizes=(24,), max_iter=10, likelihood=likelihood, wide_layers=kept, random_state=0
    ).fit(X, labels)
    found = run(fitted, X)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_an_exported_wide_layer_has_no_matrix_of_its_width():
    X, y = rows(40)
    fitted = quick_regressor(
        hidden_layer_sizes=(2000,), max_iter=1, n_members=1, wide_layers={"blocks": 50}, random_state=0
    ).fit(X, y)
    sizes = [np.prod(tensor.dims) for tensor in bayespc.to_onnx(fitted).graph.initializer]
    # A sketch of the 64 directions that blocks share has room for as many again.
    assert max(sizes) <= 2001 * 128


def quick_regressor(**keywords):
    return BPCRegressor(**(presets.fast() | keywords))


def test_one_column():
    X, y = bayespc.datasets.make_aleatoric(100, random_state=0)
    for keywords in ({}, {"bins": 5}, presets.paper() | {"max_iter": 3, "method": "linearised"}):
        check_regressor(quick_regressor(**({"max_iter": 10, "random_state": 0} | keywords)).fit(X, y), X)


def test_networks_that_learn_the_logarithm_of_the_target():
    X, y = rows()
    y = np.exp(0.5 * (y - 50))
    search = {"bins": [0], "prior_vars": [10.0], "slices": 0}
    fitted = BPCRegressor(max_iter=10, search=search, random_state=0).fit(X, y)
    assert any("curve" in plan for plan in fitted.plans_)
    check_regressor(fitted, np.vstack([X[:20], 5 * X[:5]]))


def test_the_default_with_its_search_and_several_targets():
    X, y = rows()
    fitted = BPCRegressor(max_iter=5, random_state=0).fit(X, y)
    assert fitted.model_.n_members > 1
    check_regressor(fitted, np.vstack([X[:20], 5 * X[:5]]))
    X, y = rows(d_out=2)
    for noise in ("constant", "variance"):
        check_regressor(quick_regressor(max_iter=10, noise=noise, random_state=0).fit(X, y), X[:9])


@pytest.mark.parametrize("likelihood", ["one_hot", "categorical"])
@pytest.mark.parametrize("n_members", [1, 2])
def test_classes(likelihood, n_members):
    X, y = rows()
    labels = np.digitize(y, [45, 50, 54])
    fitted = quick_classifier(max_iter=10, likelihood=likelihood, random_state=0).set_params(
        n_members=n_members
    )
    fitted.fit(X, labels)
    found = run(fitted, X)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_the_default_classifier():
    X, y = rows()
    fitted = BPCClassifier(max_iter=3, random_state=0).fit(X, y > 50)
    found = run(fitted, X)["probabilities"]
    np.testing.assert_allclose(found, fitted.predict_proba(X), rtol=1e-9, atol=1e-12)


def frame(n=400):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "size": rng.uniform(20, 90, n),
            "place": rng.choice(["north", "south", "west"], n),
            "old": rng.random(n) < 0.4,
            "when": pd.Timestamp("1999-11-03") + pd.to_timedelta(rng.integers(0, 3000 * 24, n), "h"),
        }
    )
    y = table["size"] + 10 * (table["place"] == "north") + 5 * table["old"] + rng.normal(size=n)
    return table, y.to_numpy()


def test_columns_of_a_frame_are_encoded_inside():
    table, y = frame()
    table.loc[::17, "size"] = np.nan
    table.loc[::23, "place"] = None
    fitted = quick_regressor(max_iter=10, random_state=0).fit(table, y)
    kinds = [column["coding"]["kind"] for column in json.loads(fitted.encoding_.json())["features"]]
    assert kinds == ["number", "text", "bool", "time"]
    given = bayespc.onnx_input(fitted, table)
    assert given.shape == (400, 4) and np.isnan(given[0, 0])
    check_regressor(fitted, table, given)
    # A value that was not in training.
    unseen = table[:3].assign(place="east")
    given = bayespc.onnx_input(fitted, unseen)
    assert (given[:, 1] == -1).all()
    with pytest.warns(UserWarning, match="place"):
        expected = fitted.predict(unseen)
    np.testing.assert_allclose(run(fitted, given)["mean"][:, 0], expected, rtol=1e-9)


def test_the_file_says_what_its_input_is(tmp_path):
    import onnx

    table, y = frame(120)
    fitted = quick_regressor(max_iter=3, random_state=0).fit(table, y)
    path = tmp_path / "model.onnx"
    run(fitted, bayespc.onnx_input(fitted, table), path)
    notes = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    columns = json.loads(notes["columns"])
    assert [column["name"] for column in columns] == ["size", "place", "old", "when"]
    assert columns[1]["coding"]["values"] == ["north", "south", "west"]


def test_what_cannot_be_exported_is_named():
    X, y = rows()
    gelu = quick_regressor(activation="gelu", max_iter=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="gelu"):
        bayespc.to_onnx(gelu)
    table, target = frame(60)
    words = table.assign(words=[f"a flat with {k} rooms and a view" for k in range(60)])
    text = quick_regressor(max_iter=1, random_state=0, columns={"words": "text"}).fit(words, target)
    with pytest.raises(ValueError, match="words"):
        bayespc.to_onnx(text)
