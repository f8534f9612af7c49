"""The estimators on Dask: what they take, what they give, and that it is what the local ones would."""

import asyncio
import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from bayespc import BPCClassifier, BPCRegressor, load, presets

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

import bayespc.dask._whole as whole  # noqa: E402
from bayespc.dask import DaskBPCClassifier, DaskBPCRegressor  # noqa: E402

QUICK = presets.fast() | {"hidden_layer_sizes": (8,), "max_iter": 2, "random_state": 0}
LINEAR = QUICK | {"hidden_layer_sizes": (), "prior_var": 1.0}


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "host": "127.0.0.1"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def numbers(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=n)


def table(n=300, seed=0):
    """Return a frame of numbers, categories, booleans and times with holes, and targets."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "kind": pd.Categorical(rng.choice(["a", "b"], n)),
            "sold": rng.random(n) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), unit="D"),
        }
    )
    frame.loc[5, "size"] = np.nan
    y = frame["size"].fillna(0) + (frame["colour"] == "red") + 0.1 * rng.normal(size=n)
    return frame, y.rename("price")


def same(a, b):
    """Return whether two fitted estimators have the same bits."""
    return a.model_.to_bytes() == b.model_.to_bytes()


# --- What an estimator is -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lazy", "local"), [(DaskBPCRegressor, BPCRegressor), (DaskBPCClassifier, BPCClassifier)]
)
def test_parameters_are_those_of_the_local_estimator_and_a_client(lazy, local):
    ours, theirs = (dict(inspect.signature(kind).parameters) for kind in (lazy, local))
    own = ours.pop("client")
    assert ours == theirs
    assert own.default is None
    assert own.kind is inspect.Parameter.KEYWORD_ONLY
    assert lazy(client=None).get_params().keys() == local().get_params().keys() | {"client"}


def test_without_a_client_the_error_says_how_to_make_one():
    model = DaskBPCRegressor(**QUICK)
    X, y = numbers(20)
    with pytest.raises(ValueError, match="there is no dask client: make one first"):
        model.fit(da.from_array(X), da.from_array(y))


def test_a_clone_keeps_the_client_and_a_pickle_does_not(client):
    model = DaskBPCRegressor(**QUICK, client=client)
    assert clone(model).client is client
    assert clone(model).get_params() == model.get_params()
    X, y = numbers()
    model.fit(da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100))
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert same(again, model)
    assert not hasattr(clone(model), "model_")


def test_what_is_wrong_with_parameters_is_said_before_anything_is_computed():
    X, y = numbers(20)
    model = DaskBPCRegressor(max_iter=0)
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        model.fit(da.from_array(X), da.from_array(y))
    with pytest.raises(ValueError, match="only rounds have checkpoints"):
        DaskBPCRegressor().fit(da.from_array(X), da.from_array(y), rounds=False, checkpoint="x")
    with pytest.raises(ValueError, match="warm_start"):
        DaskBPCRegressor(warm_start=True).fit(da.from_array(X), da.from_array(y))


# --- A table that fits one worker ---------------------------------------------------------------------------


def test_a_whole_fit_has_the_bits_of_the_local_one(client):
    X, y = numbers()
    w = np.random.default_rng(1).uniform(0.5, 2, len(y))
    local = BPCRegressor(**QUICK).fit(X, y, w)
    for rows in (300, 77):
        # y and weights come in other chunks than X.
        arrays = da.from_array(X, chunks=(rows, 3)), da.from_array(y, chunks=90), da.from_array(w, chunks=50)
        assert same(DaskBPCRegressor(**QUICK).fit(*arrays), local)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)
    series = dd.from_pandas(pd.Series(y, name="y"), npartitions=3)
    named = BPCRegressor(**QUICK).fit(frame.compute(), series.compute())
    model = DaskBPCRegressor(**QUICK, verbose=1).fit(frame, series)
    assert same(model, named)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.verbose == 1


@pytest.mark.parametrize("worth", [0, np.inf])
def test_a_default_fit_has_the_bits_of_the_local_one(client, worth, monkeypatch):
    """Whether its networks are tasks or not."""
    monkeypatch.setattr(whole, "WORTH", worth)
    X, y = numbers(60)
    options = {"max_iter": 2, "random_state": 3}
    local = BPCRegressor(**options).fit(X, y)
    model = DaskBPCRegressor(**options).fit(da.from_array(X, chunks=(25, 3)), da.from_array(y, chunks=25))
    assert same(model, local)
    assert model.candidates_ == local.candidates_


@pytest.mark.parametrize("n", [2_000, 20_000])
def test_a_table_that_has_crossed_from_worker_to_worker_is_fitted_to_the_same_bits(client, n):
    """What a process receives lies anywhere in its message: its numbers need not be aligned."""
    X, y = numbers(n, 12)
    w = np.random.default_rng(1).uniform(0.5, 2, n)
    first, second = client.scheduler_info()["workers"]
    parts = client.scatter([X, y, w], workers=[first])
    ready = client.submit(lambda *part: whole._ready([part], BPCRegressor(**LINEAR)), *parts, workers=[first])
    model = client.submit(whole._step, ready, [], None, workers=[second]).result()
    if isinstance(model, whole.Failure):
        raise model.error
    assert same(model, BPCRegressor(**LINEAR).fit(X, y, w))


def test_networks_are_shared_out_evenly():
    wanted = [(f"{i}", cost) for i, cost in enumerate([1, 9, 3, 3, 2])]
    assert whole.shared_out(wanted, 2) == [{"1"}, {"2", "3", "4", "0"}]
    assert whole.shared_out(wanted[:1], 3) == [{"0"}]


def test_classes_of_all_partitions(client):
    X, _ = numbers()
    y = np.where(X[:, 0] > 0, "up", "down").astype(object)
    y[250:] = "late"
    local = BPCClassifier(**QUICK).fit(X, y)
    model = DaskBPCClassifier(**QUICK).fit(da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100))
    assert same(model, local)
    assert model.classes_.tolist() == ["down", "late", "up"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_lists_of_delayed_frames(client, library):
    frame, y = table(90)
    make = {"pandas": lambda x: x, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[library]
    cuts = [slice(0, 20), slice(20, 20), slice(20, 90)]
    X = [dask.delayed(make)(frame.iloc[cut]) for cut in cuts]
    local = BPCRegressor(**LINEAR).fit(frame, y)
    model = DaskBPCRegressor(**LINEAR).fit(X, [dask.delayed(y.iloc[cut]) for cut in cuts])
    assert same(model, local)
    parts = dask.compute(*model.predict(X))
    assert [len(part) for part in parts] == [20, 0, 70]
    np.testing.assert_array_equal(np.concatenate(parts), local.predict(frame))
    lower, _ = model.predict_interval(X)
    np.testing.assert_array_equal(np.concatenate(dask.compute(*lower)), local.predict_interval(frame)[0])


def test_rows_without_a_target_are_left_out_and_counted(client):
    frame, y = table(90)
    y[[3, 50, 60]] = np.nan
    with pytest.warns(UserWarning, match="3 rows without a target left out"):
        local = BPCRegressor(**LINEAR).fit(frame, y)
    with pytest.warns(UserWarning, match="3 rows without a target left out"):
        model = DaskBPCRegressor(**LINEAR).fit(dd.from_pandas(frame, 3), dd.from_pandas(y, 3))
    assert same(model, local)


# --- Lazy answers -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def regression(client):
    X, y = numbers()
    local = BPCRegressor(**QUICK).fit(X, y)
    lazy = da.from_array(X, chunks=(110, 3))
    return DaskBPCRegressor(**QUICK).fit(lazy, da.from_array(y, chunks=110)), local, lazy, X, y


def test_answers_for_arrays_are_lazy_and_right(regression):
    model, local, lazy, X, y = regression
    questions = {
        "predict": {},
        "predict_var": {},
        "ood_score": {},
        "predict_interval": {"coverage": 0.8},
        "decompose": {},
    }
    for method, options in questions.items():
        answers, expected = (getattr(m, method)(x, **options) for m, x in ((model, lazy), (local, X)))
        for answer, values in zip(
            np.atleast_1d(answers) if False else _tuple(answers), _tuple(expected), strict=True
        ):
            assert isinstance(answer, da.Array)
            assert answer.chunks == ((110, 110, 80),)
            assert answer.dtype == values.dtype
            assert type(answer._meta) is np.ndarray
            np.testing.assert_array_equal(answer.compute(), values)
    quantiles = model.predict_quantiles(lazy, [0.1, 0.5, 0.9])
    assert quantiles.chunks == ((110, 110, 80), (3,))
    np.testing.assert_array_equal(quantiles.compute(), local.predict_quantiles(X, [0.1, 0.5, 0.9]))
    median = model.predict_quantiles(lazy, 0.5)
    np.testing.assert_array_equal(median.compute(), local.predict_quantiles(X, 0.5))
    with pytest.raises(ValueError, match="alpha"):
        model.predict_quantiles(lazy, [0.5, 1.5])
    mean, std = model.predict(lazy, return_std=True)
    np.testing.assert_array_equal(std.compute(), local.predict(X, return_std=True)[1])
    np.testing.assert_array_equal(mean.compute(), local.predict(X))
    assert model.score(lazy, da.from_array(y, chunks=50)) == pytest.approx(
        r2_score(y, local.predict(X)), rel=1e-12
    )


def _tuple(answers):
    return answers if isinstance(answers, tuple) else (answers,)


def test_answers_in_memory_are_given_at_once(regression):
    model, local, _, X, y = regression
    np.testing.assert_array_equal(model.predict(X), local.predict(X))
    np.testing.assert_array_equal(model.predict_dist(X).var, local.predict_var(X))
    assert model.score(X, y) == local.score(X, y)


def test_what_would_compute_everything_at_once_is_refused(regression):
    model, _, lazy, _, _ = regression
    with pytest.raises(TypeError, match="takes arrays in memory"):
        model.predict_dist(lazy)
    with pytest.raises(TypeError, match="one network for all rows"):
        model.sample_y(lazy)


def test_chunks_of_unknown_size(regression):
    model, local, lazy, X, _ = regression
    some = lazy[lazy[:, 0] > 0]
    answer = model.predict(some)
    assert np.isnan(answer.chunks[0]).all()
    np.testing.assert_array_equal(answer.compute(), local.predict(X[X[:, 0] > 0]))


def test_several_targets(client):
    X, y = numbers()
    Y = np.column_stack([y, X[:, 2]])
    local = BPCRegressor(**LINEAR).fit(X, Y)
    lazy = da.from_array(X, chunks=(110, 3)), da.from_array(Y, chunks=(110, 2))
    model = DaskBPCRegressor(**LINEAR).fit(*lazy)
    assert same(model, local)
    for method in ("predict_interval", "decompose"):
        for answer, values in zip(getattr(model, method)(lazy[0]), getattr(local, method)(X), strict=True):
            assert answer.chunks == ((110, 110, 80), (2,))
            np.testing.assert_array_equal(answer.compute(), values)
    assert model.score(*lazy) == pytest.approx(local.score(X, Y), rel=1e-12)
    frame = pd.DataFrame(X, columns=list("abc"))
    model.fit(dd.from_pandas(frame, 2), dd.from_pandas(pd.DataFrame(Y, columns=["u", "v"]), 2))
    quantiles = model.predict_quantiles(dd.from_pandas(frame, 2), (0.25, 0.75))
    assert list(quantiles.columns) == ["u 0.25", "u 0.75", "v 0.25", "v 0.75"]
    expected = local.predict_quantiles(X, (0.25, 0.75)).reshape(len(X), 4)
    np.testing.assert_array_equal(quantiles.compute().to_numpy(), expected)
    assert model.predict_quantiles(lazy[0], (0.25, 0.75)).compute().shape == (len(X), 2, 2)
    lower, _ = model.predict_interval(dd.from_pandas(frame, 2))
    assert list(lower.columns) == ["u", "v"]
    expected = local.predict_interval(X)[0]
    np.testing.assert_array_equal(lower.compute().to_numpy(), expected)


def test_answers_for_dataframes_have_their_index(client):
    frame, y = table()
    frame.index = y.index = pd.Index(np.arange(1000, 1300), name="at")
    local = BPCRegressor(**LINEAR).fit(frame, y)
    lazy, targets = dd.from_pandas(frame, npartitions=3), dd.from_pandas(y, npartitions=3)
    model = DaskBPCRegressor(**LINEAR).fit(lazy, targets)
    assert same(model, local)
    mean = model.predict(lazy)
    assert isinstance(mean, dd.Series)
    assert mean.divisions == lazy.divisions
    assert (mean.name, mean.dtype) == ("price", np.float64)
    found = mean.compute()
    pd.testing.assert_index_equal(found.index, frame.index)
    np.testing.assert_array_equal(found, local.predict(frame))
    for answer, name, values in zip(
        model.predict_interval(lazy), ("lower", "upper"), local.predict_interval(frame), strict=True
    ):
        assert answer.name == name
        np.testing.assert_array_equal(answer.compute(), values)
    aleatoric, _ = model.decompose(lazy)
    np.testing.assert_array_equal(aleatoric.compute(), local.decompose(frame).aleatoric)
    assert model.columns_ == local.columns_


def test_a_classifier_answers_lazily(client, tmp_path):
    X, _ = numbers()
    frame = pd.DataFrame(X, columns=list("abc"))
    y = pd.Series(np.where(X[:, 0] > 0, "up", "down"), name="way")
    local = BPCClassifier(**QUICK).fit(frame, y)
    lazy = dd.from_pandas(frame, npartitions=2)
    model = DaskBPCClassifier(**QUICK).fit(lazy, dd.from_pandas(y, npartitions=2))
    chances = model.predict_proba(lazy)
    assert list(chances.columns) == ["down", "up"]
    np.testing.assert_array_equal(chances.compute().to_numpy(), local.predict_proba(frame))
    np.testing.assert_array_equal(model.predict(lazy).compute(), local.predict(frame))
    # NumPy adds in another order in arrays of another length.
    np.testing.assert_allclose(
        model.decompose(lazy)[1].compute(), local.decompose(frame).epistemic, rtol=1e-10, atol=1e-15
    )
    np.testing.assert_array_equal(model.ood_score(lazy).compute(), local.ood_score(frame))
    w = np.random.default_rng(0).random(len(y))
    score = model.score(
        lazy, dd.from_pandas(y, npartitions=2), [dask.delayed(w[:150]), dask.delayed(w[150:])]
    )
    assert score == pytest.approx(accuracy_score(y, local.predict(frame), sample_weight=w), rel=1e-12)
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(frame), local.predict(frame))
    assert same(model.to_local(), local)
    assert type(model.to_local()) is BPCClassifier


# --- Partitions as they arrive ------------------------------------------------------------------------------


def test_a_stream_is_learned_in_the_order_of_its_partitions(client):
    X, y = numbers()
    local = BPCRegressor(**QUICK)
    cuts = [slice(0, 50), slice(50, 50), slice(50, 60), *(slice(i, i + 20) for i in range(60, 300, 20))]
    for cut in cuts:
        if len(y[cut]):
            local.partial_fit(X[cut], y[cut])
    parts = ([dask.delayed(values[cut]) for cut in cuts] for values in (X, y))
    model = DaskBPCRegressor(**QUICK).partial_fit(*parts)
    assert same(model, local)
    assert model.n_iter_ == local.n_iter_
    # It goes on.
    local.partial_fit(X, y)
    assert same(model.partial_fit(da.from_array(X), da.from_array(y)), local)


def test_a_stream_of_classes(client):
    X, _ = numbers(100)
    y = (X[:, 0] > 0).astype(int)
    local = BPCClassifier(**QUICK)
    for i in (0, 50):
        local.partial_fit(X[i : i + 50], y[i : i + 50], classes=[0, 1, 2])
    arrays = da.from_array(X, chunks=(50, 3)), da.from_array(y, chunks=50)
    model = DaskBPCClassifier(**QUICK)
    assert same(model.partial_fit(*arrays, classes=[0, 1, 2]), local)
    before = model.model_.to_bytes()
    bad = da.from_array(np.where(np.arange(100) == 70, 7, y), chunks=50)
    with pytest.raises(ValueError, match=r"partition 1: y contains labels that are not in classes: \[7\]"):
        model.partial_fit(arrays[0], bad)
    assert model.model_.to_bytes() == before, "an error leaves the estimator as it was"


# --- What is wrong is named ---------------------------------------------------------------------------------


def delayed(*parts):
    return [dask.delayed(part) for part in parts]


@pytest.mark.parametrize(
    ("X", "y", "kind", "words"),
    [
        (np.zeros((4, 2)), delayed(np.zeros(4)), TypeError, r"X must be a dask array.* got numpy\.ndarray"),
        (da.zeros((4, 2), chunks=(4, 1)), da.zeros(4), ValueError, r"2 chunks of columns.*X\.rechunk"),
        (da.zeros(4), da.zeros(4), ValueError, "X must have two dimensions"),
        (da.zeros((4, 2)), da.zeros(5), ValueError, "X has 4 rows, y has 5"),
        (delayed(1, 2), delayed(1), ValueError, "X has 2 partitions, y has 1"),
    ],
)
def test_input_of_the_wrong_form_is_refused_before_anything_is_computed(X, y, kind, words):
    with pytest.raises(kind, match=words):
        DaskBPCRegressor(**QUICK).fit(X, y)


A = np.arange(10.0).reshape(5, 2)
F = pd.DataFrame(A, columns=["a", "b"])


@pytest.mark.parametrize(
    ("X", "y", "kind", "words"),
    [
        ((A, A[:, :1]), None, ValueError, "partition 1: X has 1 columns, in partition 0 2"),
        ((F, F.rename(columns={"b": "c"})), None, ValueError, "partition 1: .* it has 'c' and lacks 'b'"),
        ((F, F[["b", "a"]]), None, ValueError, "partition 1: .* it has them in another order"),
        ((F, A), None, TypeError, "partition 1: X is an array, in partition 0 a frame"),
        (
            (F, F.astype({"b": str})),
            None,
            TypeError,
            "partition 1: column 'b' holds texts, in partition 0 numb",
        ),
        ((A[:0], A[:0]), None, ValueError, "X has no rows: all of its 2 partitions are empty"),
        ((A, np.where(A == 3, np.inf, A)), None, ValueError, "partition 1: Input X contains infinity"),
        ((A, A), (np.zeros(5), np.zeros(4)), ValueError, "partition 1: X has 5 rows, y has 4"),
        ((A, A), (np.zeros(5), np.full(5, np.nan)), ValueError, "partition 1: Input y contains NaN"),
        (
            (A, A),
            (np.zeros(5), np.zeros((5, 2))),
            ValueError,
            "partition 1: y has 2 columns, in partition 0 1",
        ),
        ((A, A), (np.zeros(5), np.array(list("abcde"))), ValueError, "partition 1: "),
        ((A, A[0]), None, ValueError, "partition 1: "),
    ],
)
def test_a_bad_partition_is_named(client, X, y, kind, words):
    y = y or [np.arange(len(part), dtype=float) for part in X]
    with pytest.raises(kind, match=words):
        DaskBPCRegressor(**QUICK).fit(delayed(*X), delayed(*y))


def test_a_hole_that_is_an_error_is_named(client):
    holed = A.copy()
    holed[2, 1] = np.nan
    model = DaskBPCRegressor(**QUICK, missing="error")
    with pytest.raises(ValueError, match="partition 1: column 'x1' has a missing cell, in row 3"):
        model.fit(delayed(A, holed), delayed(np.zeros(5), np.zeros(5)))


def test_labels_of_two_types_are_named(client):
    model = DaskBPCClassifier(**QUICK)
    labels = delayed(np.array([0, 1, 0, 1, 0]), np.array(list("ababa")))
    with pytest.raises(TypeError, match="partition 1: labels are of type <U1, in partition 0 int64"):
        model.fit(delayed(A, A), labels)


# --- Clients ------------------------------------------------------------------------------------------------


def test_an_asyncio_client(client):
    X, y = numbers()
    local = BPCRegressor(**QUICK).fit(X, y)

    async def use():
        async with distributed.Client(client.scheduler.address, asynchronous=True) as own:
            lazy, targets = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
            model = await DaskBPCRegressor(**QUICK, client=own).fit(lazy, targets)
            mean = await own.compute(model.predict(lazy))
            score = await model.score(lazy, targets)
            streamed = await DaskBPCRegressor(**QUICK, client=own).partial_fit(lazy, targets)
            return model, mean, score, streamed

    model, mean, score, streamed = asyncio.run(use())
    assert same(model, local)
    np.testing.assert_array_equal(mean, local.predict(X))
    assert score == pytest.approx(local.score(X, y))
    assert streamed.n_iter_ == 3


def test_a_fit_inside_a_task(client):
    def work():
        X, y = numbers()
        lazy = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
        return DaskBPCRegressor(**QUICK).fit(*lazy)

    X, y = numbers()
    assert same(client.submit(work).result(timeout=60), BPCRegressor(**QUICK).fit(X, y))
