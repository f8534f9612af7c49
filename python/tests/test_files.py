import json
import struct

import numpy as np
import pandas as pd
import pytest

import bayespc
from bayespc import BPCClassifier, BPCRegressor, datasets, presets


@pytest.fixture(scope="module")
def moons():
    return datasets.make_moons(100, random_state=0)


def small(kind=BPCClassifier, **keywords):
    return kind(
        **({"hidden_layer_sizes": (8,), "max_iter": 10, "random_state": 0} | presets.fast() | keywords)
    )


def test_a_saved_classifier_comes_back_whole(moons, tmp_path):
    X, y = moons
    names = np.array(["inner", "outer"])
    model = small(n_members=2, prior_var=0.3, method="monte_carlo", n_draws=7).fit(X, names[y])
    model.save(tmp_path / "m.safetensors")
    again = bayespc.load(tmp_path / "m.safetensors")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.loss_curve_ == model.loss_curve_ and again.n_iter_ == model.n_iter_


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("noise", ["constant", "variance"])
def test_a_saved_regressor_comes_back_whole(moons, tmp_path, columns, noise):
    X, _ = moons
    y = X[:, 0] if columns == 1 else X
    model = small(BPCRegressor, noise=noise, rule="feedback").fit(X, y)
    model.save(tmp_path / "m")
    again = bayespc.load(str(tmp_path / "m"))
    assert again.get_params() == model.get_params()
    for ours, theirs in zip(
        model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    again.partial_fit(X, y)


def test_feature_names_are_in_the_file(moons, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = moons
    table = pandas.DataFrame(X, columns=["left", "up"])
    small().fit(table, y).save(tmp_path / "m")
    assert list(bayespc.load(tmp_path / "m").feature_names_in_) == ["left", "up"]


def test_the_file_is_safetensors_with_documented_notes(moons, tmp_path):
    X, y = moons
    small().fit(X, y).save(tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    content = (tmp_path / "m").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    notes = json.loads(header["__metadata__"]["bayespc"])["notes"]
    python = json.loads(notes["python"])
    assert python.pop("params")["random_state"] == 0
    assert python == {"feature_names": None, "classes": [0, 1], "dtype": "<i8", "class_weight": None}
    encoding = json.loads(notes["encoding"])
    assert [feature["name"] for feature in encoding["features"]] == ["x0", "x1"]
    assert encoding["target"] == {
        "task": "classification",
        "column": "y",
        "kind": "number",
        "classes": ["0", "1"],
    }


def test_a_model_of_the_command_loads_with_its_classes(moons, tmp_path):
    """The command notes only its encoding."""
    X, y = moons
    model = small().fit(X, y)
    encoding = {
        "features": [
            {"name": "size", "coding": {"kind": "number", "mean": 0.0}},
            {"name": "hue", "coding": {"kind": "text", "values": ["red"], "most_frequent": 0}},
        ],
        "target": {
            "task": "classification",
            "column": "moon",
            "kind": "text",
            "classes": ["inner", "outer"],
        },
        "missing": "error",
    }
    content = model.model_.with_notes({"encoding": json.dumps(encoding)}).to_bytes()
    (tmp_path / "m").write_bytes(content)
    again = bayespc.load(tmp_path / "m")
    assert isinstance(again, BPCClassifier)
    assert list(again.classes_) == ["inner", "outer"]
    assert list(again.feature_names_in_) == ["size", "hue"]


def test_a_model_without_notes_loads_with_numbered_classes(moons, tmp_path):
    X, y = moons
    (tmp_path / "m").write_bytes(small().fit(X, y).model_.to_bytes())
    assert list(bayespc.load(tmp_path / "m").classes_) == [0, 1]


COMBINATIONS = [
    {"search": True, "max_iter": 2},
    {"search": True, "max_iter": 2, "hidden_layer_sizes": "auto"},
    {"search": True, "max_iter": 2, "activation": "silu"},
    {"search": True, "max_iter": 2, "prior_var": 0.3},
    {"search": True, "max_iter": 2, "activation": "relu", "prior_var": 0.3, "n_members": 2},
    {"search": {"folds": 3, "prior_vars": [0.5, 5.0]}, "max_iter": 2},
    {"hidden_layer_sizes": 7, "batch_size": "full"},
    {"hidden_layer_sizes": (50, 50), "activation": "tanh", "prior_var": 2.0},
    {"hidden_layer_sizes": (), "random_state": None, "verbose": 0, "warm_start": True},
    {"time_limit": 1000.0},
    {"rule": "relaxation", "precision": "float32", "n_draws": 3},
    {"calibration": "holdout", "method": "moments"},
    {"early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 3},
    {"validation_fraction": 0.3, "n_iter_no_change": 7, "method": "monte_carlo", "n_draws": 4},
    presets.paper() | {"max_iter": 2},
]


@pytest.mark.filterwarnings("ignore:Maximum iterations")
@pytest.mark.parametrize("keywords", COMBINATIONS)
@pytest.mark.parametrize("kind", [BPCRegressor, BPCClassifier])
def test_parameters_are_in_the_file_as_they_were_set(moons, tmp_path, kind, keywords):
    X, y = moons
    model = small(kind, **keywords).fit(X, y)
    model.save(tmp_path / "m")
    again = bayespc.load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    assert again.model_.settings == model.model_.settings
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "keywords",
    [
        {"likelihood": "one_hot", "class_weight": {0: 1.0, 1: 2.5}},
        {"likelihood": "categorical", "class_weight": "balanced"},
        {"likelihood": "auto", "search": True, "max_iter": 2},
    ],
)
def test_what_only_classifiers_have_is_in_the_file(moons, tmp_path, keywords):
    X, y = moons
    model = small(**keywords).fit(X, y)
    model.save(tmp_path / "m")
    assert bayespc.load(tmp_path / "m").get_params() == model.get_params()


@pytest.mark.parametrize(
    "notes", ['"text"', "[]", '{"classes": [0, 1, 2], "dtype": "<i8"}', '{"dtype": 3}', "{"]
)
def test_damaged_notes_are_refused(moons, tmp_path, notes):
    X, y = moons
    content = small().fit(X, y).model_.with_notes({"python": notes}).to_bytes()
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ValueError, match="notes are damaged"):
        bayespc.load(tmp_path / "m")


def test_notes_with_any_value_changed_are_read_or_refused(moons, tmp_path):
    """Every value becomes something else, one at a time: a model or a ValueError, and nothing else."""
    X, y = moons
    table = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.where(y, "x", "y"))
    model = small().fit(table, y)
    model.save(tmp_path / "m")
    core = bayespc.load(tmp_path / "m").model_
    refused = tried = 0
    for key in ("python", "encoding"):
        for changed in _changed(json.loads(core.notes[key])):
            (tmp_path / "m").write_bytes(core.with_notes(core.notes | {key: json.dumps(changed)}).to_bytes())
            tried += 1
            try:
                bayespc.load(tmp_path / "m").predict_proba(table[:3])
            except ValueError:
                refused += 1
    assert tried > 100 and refused > tried // 4


def _changed(value):
    """Yield copies of a JSON value with one part replaced."""
    yield from (None, [], {}, "text", -1, 1e300)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: other for name, other in value.items() if name != key}
            yield from (value | {key: changed} for changed in _changed(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value[:2]):
            yield from ([*value[:place], changed, *value[place + 1 :]] for changed in _changed(inner))


def test_a_damaged_file_is_refused(moons, tmp_path):
    X, y = moons
    small().fit(X, y).save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(content[:-100])
    with pytest.raises(ValueError, match="model file"):
        bayespc.load(tmp_path / "m")
    with pytest.raises(FileNotFoundError):
        bayespc.load(tmp_path / "absent")


def test_an_unfitted_estimator_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        small().save(tmp_path / "m")
    assert not (tmp_path / "m").exists()
