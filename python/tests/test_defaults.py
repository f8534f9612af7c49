"""One default: the estimator, the command and the library fit the same model, to the bit."""

import json
import os
import subprocess

import built
import numpy as np
import pytest
from test_command import command, write_table  # noqa: F401

import bayespc
from bayespc import BPCClassifier, BPCRegressor, _core, presets

KINDS = [BPCRegressor, BPCClassifier]


def sent(estimator):
    """Return the settings an estimator sends to the core."""
    return json.loads(estimator._settings())


def preset(name, seed=0):
    """Return the core's settings of this name."""
    settings = json.loads(_core.preset_settings(name))
    settings["training"]["seed"] = seed
    if isinstance(settings["method"], dict):
        settings["method"]["monte_carlo"]["seed"] = seed
    return settings


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["default", "fast", "paper"])
def test_a_preset_sends_the_settings_of_that_name(kind, name):
    keywords = getattr(presets, name)()
    assert sent(kind(random_state=7, **keywords)) == preset(name, seed=7)


@pytest.mark.parametrize("kind", KINDS)
def test_without_keywords_the_settings_are_the_default(kind):
    settings, default = sent(kind()), preset("default")
    settings["training"]["seed"] = 0
    assert settings == default


FIXED = {
    "prior_var": (2.5, {"prior_vars": [], "linear_vars": []}, ("prior", "var")),
    "activation": ("tanh", {"activations": []}, ("activation",)),
    "hidden_layer_sizes": ((50, 50), {"widths": [], "linear_vars": []}, ("hidden_layer_sizes",)),
}


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_keyword_that_is_set_is_taken_from_the_search_and_no_other(kind, name):
    value, emptied, place = FIXED[name]
    settings, default = sent(kind(random_state=0, **{name: value})), preset("default")
    default["search"] |= emptied
    inner = default["network"]
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = list(value) if isinstance(value, tuple) else value
    assert settings == default


@pytest.mark.parametrize(
    ("kind", "keywords", "head"),
    [
        (BPCRegressor, {"noise": "variance"}, "variance_node"),
        (BPCClassifier, {"likelihood": "categorical"}, "categorical"),
    ],
)
def test_a_head_that_is_set_is_not_searched(kind, keywords, head):
    settings = sent(kind(**keywords))
    assert settings["network"]["head"] == {"kind": head}
    assert not settings["search"]["noise"]
    assert settings["search"]["prior_vars"] == preset("default")["search"]["prior_vars"]


def test_with_everything_fixed_or_the_search_off_nothing_is_searched():
    X, y = regression(60)
    fixed = dict(hidden_layer_sizes=(8,), activation="relu", prior_var=1.0, noise="constant", bins=0)
    quick = dict(n_members=2, max_iter=3, random_state=0)
    assert BPCRegressor(**fixed, **quick).fit(X, y).candidates_ == []
    assert BPCRegressor(search=False, **quick).fit(X, y).candidates_ == []
    tried = BPCRegressor(**(fixed | {"prior_var": "auto"}), **quick).fit(X, y).candidates_
    assert len(tried) >= 3
    assert {candidate["activation"] for candidate in tried} == {"relu"}
    assert {tuple(candidate["hidden_layer_sizes"]) for candidate in tried} == {(8,)}


def test_a_mapping_changes_the_search():
    settings = sent(BPCRegressor(search={"folds": 3, "prior_vars": [1.0, 2.0]}))["search"]
    assert settings == preset("default")["search"] | {"folds": 3, "prior_vars": [1.0, 2.0]}


def regression(n=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) * [1.0, 1e3] + [0.0, 1e4]
    return X, np.sin(X[:, 0]) + X[:, 1] / 1e3 + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def example():
    """Return a function that runs the library's example and gives the numbers it printed."""
    found = os.environ.get("BAYESPC_FIT_CSV") or built.newest("examples", "fit_csv")
    if found is None:
        pytest.skip("no example: set BAYESPC_FIT_CSV or run `cargo build -p bayespc --example fit_csv`")

    def run(*arguments):
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return np.array([[float(cell) for cell in line.split(",")] for line in done.stdout.splitlines()])

    return run


def fitted_by_command(command, table, target, folder):  # noqa: F811
    command("fit", table, "--target", target, "--out", folder / "m")
    return bayespc.load(folder / "m")


# The arrays here have no names, the command's columns do.
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_regression_is_the_same_on_all_surfaces(command, example, tmp_path):  # noqa: F811
    X, y = regression()
    ours = BPCRegressor(random_state=0).fit(X, y)
    table = write_table(tmp_path / "t.csv", ["a", "b", "y"], *X.T, y)
    expected = np.column_stack(ours.predict(X, return_std=True))
    theirs = fitted_by_command(command, table, "y", tmp_path)
    np.testing.assert_array_equal(np.column_stack(theirs.predict(X, return_std=True)), expected)
    np.testing.assert_array_equal(example(table), expected)
    assert theirs.get_params() == ours.get_params()
    assert theirs.plans_ == ours.plans_


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_classification_is_the_same_on_all_surfaces(command, example, tmp_path):  # noqa: F811
    X, y = regression()
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    ours = BPCClassifier(random_state=0).fit(X, labels)
    table = write_table(tmp_path / "t.csv", ["a", "b", "kind"], *X.T, labels)
    words = write_table(tmp_path / "w.csv", ["a", "b", "kind"], *X.T, np.array(list("uvw"))[labels])
    expected = ours.predict_proba(X)
    theirs = fitted_by_command(command, words, "kind", tmp_path)
    np.testing.assert_array_equal(theirs.predict_proba(X), expected)
    np.testing.assert_array_equal(example(table, "classes"), expected)
    assert theirs.get_params() == ours.get_params()


def test_weighted_rows_are_the_same_in_python_and_rust(example, tmp_path):
    X, y = regression()
    weights = np.arange(len(y)) % 4 * 0.5
    ours = BPCRegressor(random_state=0).fit(X, y, sample_weight=weights)
    table = write_table(tmp_path / "t.csv", ["a", "weight", "b", "y"], X[:, 0], weights, X[:, 1], y)
    np.testing.assert_array_equal(example(table), np.column_stack(ours.predict(X, return_std=True)))
