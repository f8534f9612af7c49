"""Frames as people have them: text, dates, booleans, categories, holes; the command's encoder, to the bit."""

import datetime
import decimal
import json
import pickle
import warnings

import numpy as np
import pytest
from quick import quick_classifier, quick_regressor
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from test_command import command, predicted  # noqa: F401

import bayespc
from bayespc import BPCClassifier, BPCRegressor

pd = pytest.importorskip("pandas", reason="frames of these tests are made with pandas")

N = 160


def flats(n=N, seed=0):
    """Return a frame of every kind with holes, and a target."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(20, 120, n).round(1)
    city = np.array(["Aarau", "Bern", "Chur", "Davos"])[rng.integers(4, size=n)]
    lift = rng.random(n) < 0.4
    rent = 12 * size + 200 * (city == "Bern") + 90 * lift + 50 * rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "key": [f"F{i:04}" for i in range(n)],
            "size": np.where(rng.random(n) < 0.1, np.nan, size),
            "rooms": rng.integers(1, 7, n),
            "city": np.where(rng.random(n) < 0.1, None, city),
            "lift": lift,
            "built": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D"),
            "note": [f"nice flat {i // 2} by the lake" for i in range(n)],
            "country": "CH",
        }
    )
    return frame, rent.round(2)


def small(kind=BPCRegressor, **keywords):
    fast = bayespc.presets.fast()
    return kind(**({"hidden_layer_sizes": (8,), "max_iter": 5, "random_state": 0} | fast | keywords))


def understood(model):
    return {column["name"]: (column["understood"], column["inputs"]) for column in model.columns_}


KINDS = {
    "key": ("identifier", 0),
    "size": ("number", 2),
    "rooms": ("number", 1),
    "city": ("category", 5),
    "lift": ("bool", 1),
    "built": ("time", 10),
    "note": ("text", 0),
    "country": ("constant", 0),
}


def test_a_frame_as_people_have_it_is_fitted_and_tells_what_it_understood():
    X, y = flats()
    model = small().fit(X, y)
    assert understood(model) == KINDS
    assert model.model_.n_features == 19
    assert model.n_features_in_ == 8 and list(model.feature_names_in_) == list(X.columns)
    assert "understood as" in repr(model.columns_) and "left out" in repr(model.columns_)
    # Columns are found by name; those that are left out, and others, may be there or not.
    expected = model.predict(X)
    np.testing.assert_array_equal(model.predict(X[X.columns[::-1]].assign(more=1)), expected)
    np.testing.assert_array_equal(model.predict(X.drop(columns=["key", "note", "country"])), expected)
    with pytest.raises(
        ValueError, match=r"X has no column 'city'; did you mean 'City'\? \(its columns: key, size"
    ):
        model.predict(X.rename(columns={"city": "City"}))


@pytest.mark.parametrize("library", ["polars", "pyarrow", "stream", "interchange"])
def test_frames_of_other_libraries_give_the_same_bits(library):
    pytest.importorskip("pyarrow", reason="frames of other libraries pass through pyarrow here")
    X, y = flats()
    model = small().fit(X, y)
    other = as_frame(X, library)
    again = small().fit(other, y)
    assert understood(again) == KINDS
    assert again.encoding_.json() == model.encoding_.json()
    np.testing.assert_array_equal(again.predict(other), model.predict(X))
    np.testing.assert_array_equal(model.predict(other), model.predict(X))
    numbers = X[["rooms"]].assign(b=np.arange(N) ** 2)
    plain = small().fit(numbers, y)
    other = as_frame(numbers, library)
    again = small().fit(other, y)
    assert again.encoding_ is None and list(again.feature_names_in_) == ["rooms", "b"]
    np.testing.assert_array_equal(again.predict(other), plain.predict(numbers))


def as_frame(X, library):
    import pyarrow

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.Table.from_pandas(X, preserve_index=False).__arrow_c_stream__(requested_schema)

    class Interchange:
        def __dataframe__(self, nan_as_null=False, allow_copy=True):
            return (
                X.assign(lift=X.get("lift")).dropna(axis=1, how="all").__dataframe__(nan_as_null, allow_copy)
            )

    match library:
        case "polars":
            return pytest.importorskip("polars", reason="polars is not installed").from_pandas(X)
        case "pyarrow":
            return pyarrow.Table.from_pandas(X, preserve_index=False)
        case "stream":
            return Stream()
        case _:
            return Interchange()


def test_a_numeric_frame_and_an_array_give_the_same_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    X[:, 2] = 7.0
    model = small().fit(X, y)
    for frame in (pd.DataFrame(X, columns=list("abc")), pd.DataFrame(X)):
        named = small().fit(frame, y)
        assert named.encoding_ is None
        np.testing.assert_array_equal(named.predict(frame), model.predict(X))
        assert [column["understood"] for column in named.columns_] == ["number"] * 3


DTYPES = {
    "nullable integers": lambda: pd.array([1, 2, None, 4] * 10, dtype="Int64"),
    "nullable floats": lambda: pd.array([1.5, None, 2.0, 4.0] * 10, dtype="Float64"),
    "decimals": lambda: [decimal.Decimal("1.5"), None, decimal.Decimal(2), decimal.Decimal("4.25")] * 10,
    "nullable booleans": lambda: pd.array([True, None, False, True] * 10, dtype="boolean"),
    "objects of booleans": lambda: [True, None, False, True] * 10,
    "strings": lambda: pd.array(["a", None, "b", "a"] * 10, dtype="string"),
    "categories": lambda: pd.Categorical(["a", None, "b", "a"] * 10),
    "categories of numbers": lambda: pd.Categorical([1, 2, 3, 2] * 10),
    "times": lambda: pd.to_datetime(
        ["2020-01-01", None, "2021-05-01T07:00", "2022-01-01"] * 10, format="ISO8601"
    ),
    "zoned times": lambda: pd.to_datetime(["2020-01-01", None, "2021-05-01", "2022-01-01"] * 10).tz_localize(
        "CET"
    ),
    "dates": lambda: (
        [datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1), datetime.date(2024, 1, 1)] * 10
    ),
    "text dates": lambda: ["2020-01-01", None, "2021-05-01", "2022-01-01"] * 10,
    "durations": lambda: pd.to_timedelta([1, None, 3, 4] * 10, unit="h"),
    "times of day": lambda: [datetime.time(1), None, datetime.time(7, 30), datetime.time(23)] * 10,
    "periods": lambda: pd.period_range("2020-01", periods=40, freq="M"),
}

EXPECTED = {
    "nullable integers": "number",
    "nullable floats": "number",
    "decimals": "number",
    "durations": "number",
    "nullable booleans": "bool",
    "objects of booleans": "bool",
    "strings": "category",
    "categories": "category",
    "categories of numbers": "category",
}


@pytest.mark.parametrize("name", DTYPES)
def test_every_kind_of_column_is_understood_and_predicted(name):
    cells = pd.Series(DTYPES[name]())
    frame = pd.DataFrame({"a": cells, "b": np.arange(40) ** 2 % 17})
    y = np.arange(40.0) % 4
    model = small().fit(frame, y)
    assert understood(model)["a"][0] == EXPECTED.get(name, "time")
    assert model.columns_[0]["missing"] == int(cells.isna().sum())
    assert np.isfinite(model.predict(frame)).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame[:7]), model.predict(frame[:7]))
    if pytest.importorskip("pyarrow", reason="pyarrow is not installed") and name != "periods":
        arrow = pd.DataFrame({"b": frame["b"], "a": cells.convert_dtypes(dtype_backend="pyarrow")})
        np.testing.assert_array_equal(model.predict(arrow), model.predict(frame))


def test_zoned_times_are_points_in_utc():
    zoned = pd.Series(pd.date_range("2024-03-01", periods=60, freq="7h", tz="Europe/Zurich"))
    frame = pd.DataFrame({"t": zoned})
    naive = pd.DataFrame({"t": zoned.dt.tz_convert("UTC").dt.tz_localize(None)})
    y = np.sin(np.arange(60.0))
    np.testing.assert_array_equal(small().fit(frame, y).predict(frame), small().fit(naive, y).predict(naive))


def test_nested_cells_are_left_out_and_an_error_if_asked_for():
    frame = pd.DataFrame({"a": [[1], [2]] * 10, "b": np.arange(20) ** 2})
    model = small().fit(frame, np.arange(20.0))
    assert understood(model)["a"] == ("unsupported", 0)
    with pytest.raises(ValueError, match="column `a` has type list, which cannot be used"):
        small(columns={"a": "category"}).fit(frame, np.arange(20.0))


def test_every_decision_can_be_overridden():
    X, y = flats()
    choices = {
        "note": "text:8",
        "rooms": "category",
        "built": "ignore",
        "key": "category:5",
        "country": "number",
    }
    with pytest.raises(ValueError, match=r"row 1 .counted from 1., column `country`: `CH` is not a number"):
        small(columns=choices).fit(X, y)
    del choices["country"]
    model = small(columns=choices).fit(X, y)
    inputs = {name: n for name, (_, n) in understood(model).items()}
    assert (inputs["note"], inputs["rooms"], inputs["built"], inputs["key"]) == (8, 6, 0, 6)
    with pytest.raises(ValueError, match="X has no column 'roms'; did you mean 'rooms'"):
        small(columns={"roms": "number"}).fit(X, y)
    array = np.column_stack([X["rooms"], y])
    model = small(columns={"x0": "category"}).fit(array, y)
    assert model.model_.n_features == 7
    np.testing.assert_array_equal(
        model.predict(array), small(columns={0: "category"}).fit(array, y).predict(array)
    )


def test_holes_of_an_array_are_those_of_a_frame_and_of_a_file(command, tmp_path):  # noqa: F811
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    y = X.sum(axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 2] = np.nan_to_num(X[:, 2], nan=0.25)
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    model = BPCRegressor(random_state=0, max_iter=3).fit(X, y)
    assert model.encoding_.feature_names == ["x0", "x0=(missing)", "x1", "x1=(missing)", "x2"]
    assert model.n_features_in_ == 3 and not hasattr(model, "feature_names_in_")
    expected = model.predict(X, return_std=True)
    again = BPCRegressor(random_state=0, max_iter=3).fit(frame, y)
    for ours, theirs in zip(expected, again.predict(frame, return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    flags = ("--test-fraction", 0, "--set", "training.epochs=3", "--out", tmp_path / "m")
    command("fit", tmp_path / "t.csv", "--target", "y", *flags)
    loaded = bayespc.load(tmp_path / "m")
    assert loaded.model_.notes["encoding"] == again._encoding_text()
    for ours, theirs in zip(expected, loaded.predict(frame, return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert loaded.get_params() == again.get_params()


def test_a_hole_where_training_had_none_gets_the_mean_with_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(loc=[3.0, 0.0], size=(60, 2))
    y = X[:, 0]
    model = small().fit(X, y)
    filled = X[:5].copy()
    filled[:, 0] = X[:, 0].mean()
    holes = filled.copy()
    holes[:, 0] = np.nan
    with pytest.warns(UserWarning, match="column `x0`: 5 missing values imputed"):
        found = model.predict(holes)
    np.testing.assert_allclose(found, model.predict(filled), rtol=1e-12)
    named = small().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    with pytest.warns(UserWarning, match="column `a`: 5 missing values imputed"):
        named.predict(pd.DataFrame(holes, columns=["a", "b"]))
    with pytest.raises(ValueError, match="contains NaN"):
        small(missing="error").fit(X, y).predict(holes)


def test_missing_cells_are_refused_or_their_rows_dropped():
    X, y = flats()
    with pytest.raises(
        ValueError, match=r"X, row \d+ \(counted from 1\), column `size`: the value is missing"
    ):
        small(missing="error").fit(X, y)
    whole = X[["size", "city"]].notna().all(axis=1).to_numpy()
    weights = np.arange(1.0, N + 1.0)
    with pytest.warns(UserWarning, match=f"{(~whole).sum()} rows with missing cells left out"):
        dropped = small(missing="drop").fit(X, y, sample_weight=weights)
    model = small().fit(X[whole], y[whole], sample_weight=weights[whole])
    np.testing.assert_array_equal(dropped.predict(X[whole]), model.predict(X[whole]))


def test_rows_without_a_target_are_left_out_of_frames_and_refused_in_arrays():
    X, y = flats()
    holes = pd.Series(y, name="rent")
    holes[::10] = np.nan
    known = holes.notna().to_numpy()
    with pytest.warns(UserWarning, match="16 rows without a target left out"):
        model = small().fit(X, holes)
    expected = small().fit(X[known], y[known])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        small().fit(X, holes.to_numpy())
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with pytest.warns(UserWarning, match="16 rows without a target left out"):
        again = small().fit(polars.from_pandas(X), polars.Series(holes.tolist()))
    np.testing.assert_array_equal(again.predict(X), expected.predict(X))
    labels = pd.Series(np.where(known, np.where(y > 900, "dear", "cheap"), None))
    with pytest.warns(UserWarning, match="16 rows without a target left out"):
        classifier = small(BPCClassifier).fit(X, labels)
    assert list(classifier.classes_) == ["cheap", "dear"]


def test_an_unseen_value_is_warned_of_and_raises_the_epistemic_variance():
    X, y = flats()
    model = small().fit(X, y)
    new = X[:1].assign(city="Zug")
    with pytest.warns(
        UserWarning, match="column `city`: 1 values were not seen in training, first `Zug` in row 1"
    ):
        unseen = model.decompose(new).epistemic
    assert unseen[0] > model.decompose(X[:1].assign(city="Bern")).epistemic[0]


def test_wrong_kinds_are_named_by_column_and_row():
    X, y = flats()
    model = small().fit(X, y)
    wrong = X.astype({"rooms": object})
    wrong.loc[3, "rooms"] = "many"
    with pytest.raises(
        ValueError, match=r"X, row 4 \(counted from 1\), column `rooms`: `many` is not a number"
    ):
        model.predict(wrong)
    plain = small().fit(X[["rooms"]], y)
    with pytest.raises(ValueError, match=r"row 4 \(counted from 1\), column `rooms`: `many` is not a number"):
        plain.predict(wrong[["rooms"]])
    with pytest.raises(ValueError, match="two columns called `rooms`"):
        small().fit(pd.concat([X, X[["rooms"]]], axis=1), y)
    with pytest.raises(ValueError, match="X has 2 features, but BPCRegressor is expecting 8"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="no column to learn from"):
        small().fit(X[["key", "country"]], y)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_matrices_are_made_dense(form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)) * (rng.random((80, 5)) < 0.3)
    y = X.sum(axis=1)
    model = small().fit(form(X), y)
    np.testing.assert_array_equal(model.predict(form(X)), small().fit(X, y).predict(X))
    with pytest.raises(MemoryError, match=r"is sparse, and as an array of .* it needs"):
        small().fit(sparse.csr_matrix((10**7, 10**6)), y)


def test_the_tools_of_scikit_learn_take_frames():
    X, y = flats()
    scores = cross_val_score(small(hidden_layer_sizes=()), X, y, cv=3)
    assert scores.min() > 0.8
    chosen = make_column_transformer((OneHotEncoder(), ["city"]), ("passthrough", ["rooms", "lift"]))
    assert np.isfinite(make_pipeline(chosen, small()).fit(X, y).predict(X)).all()
    frame = make_column_transformer(
        ("passthrough", ["size", "city", "built"]), verbose_feature_names_out=False
    )
    piped = make_pipeline(frame.set_output(transform="pandas"), small()).fit(X, y)
    assert understood(piped[-1]) == {name: KINDS[name] for name in ("size", "city", "built")}
    cloned = clone(small(columns={"rooms": "category"}, missing="drop"))
    assert cloned.columns == {"rooms": "category"} and cloned.missing == "drop"


def test_a_stream_keeps_the_encoding_of_its_first_frame():
    X, y = flats()
    model = small().partial_fit(X[:100], y[:100])
    names = model.encoding_.feature_names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.partial_fit(X[100:].assign(city="Zug"), y[100:])
    assert model.encoding_.feature_names == names
    assert model.n_iter_ == 2
    assert np.isfinite(model.predict(X)).all()


def test_a_classifier_of_a_frame_comes_back_from_its_file_and_from_pickle(tmp_path):
    X, y = flats()
    labels = np.where(y > np.median(y), "dear", "cheap")
    model = small(BPCClassifier, columns={"rooms": "category"}).fit(X, labels)
    model.save(tmp_path / "m")
    for again in (bayespc.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert list(again.feature_names_in_) == list(X.columns)
        assert again.columns_ == model.columns_
        assert again.get_params() == model.get_params()


def test_the_command_predicts_what_was_fitted_on_a_frame(command, tmp_path):  # noqa: F811
    X, y = flats()
    model = small().fit(X, pd.Series(y, name="rent"))
    model.save(tmp_path / "m")
    X[X.columns[::-1]].to_csv(tmp_path / "x.csv", index=False)
    columns = predicted(command, tmp_path / "m", tmp_path / "x.csv")
    np.testing.assert_allclose(np.array(columns["mean"], dtype=float), model.predict(X), rtol=1e-9)
    facts = json.loads(command("inspect", tmp_path / "m", "--json"))
    assert facts["targets"] == ["rent"]
    assert facts["columns"] == model.columns_


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_command_and_estimator_fit_the_same_model_to_a_frame(command, tmp_path, task):  # noqa: F811
    X, y = flats()
    y = pd.Series(y, name="rent")
    kind = BPCRegressor
    if task == "classification":
        y, kind = pd.Series(np.where(y > y.median(), "dear", "cheap"), name="rent"), BPCClassifier
    y[3] = None
    with pytest.warns(UserWarning, match="1 row without a target left out"):
        ours = kind(random_state=0, max_iter=3).fit(X, y)
    X.assign(rent=y).to_csv(tmp_path / "flats.csv", index=False)
    flags = ("--test-fraction", 0, "--seed", 0, "--set", "training.epochs=3")
    command("fit", tmp_path / "flats.csv", "--target", "rent", *flags, "--out", tmp_path / "m")
    theirs = bayespc.load(tmp_path / "m")
    assert theirs.model_.notes["encoding"] == ours._encoding_text()
    assert theirs.columns_ == ours.columns_
    bare = [model.model_.with_notes({}).to_bytes() for model in (ours, theirs)]
    assert bare[0] == bare[1]
    # Read back as any program reads it, with dates as texts.
    for frame in (X, pd.read_csv(tmp_path / "flats.csv")):
        np.testing.assert_array_equal(theirs.predict(frame), ours.predict(frame))


def test_quick_estimators_take_frames_too():
    X, y = flats(60)
    assert quick_regressor(max_iter=2).fit(X, y).n_features_in_ == 8
    assert quick_classifier(max_iter=2).fit(X, y > 900).n_features_in_ == 8
