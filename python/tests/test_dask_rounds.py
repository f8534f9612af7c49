"""Rounds over partitions: the same bits however rows are cut and whoever works, though workers are lost."""

import asyncio
import os
import signal
import threading
import time
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bayespc import BPCRegressor, load, presets

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

import bayespc.dask._columns as columns  # noqa: E402
import bayespc.dask._reader as reader  # noqa: E402
import bayespc.dask._tasks as tasks  # noqa: E402
import bayespc.dask._whole as whole  # noqa: E402
from bayespc.dask import DaskBPCClassifier, DaskBPCRegressor  # noqa: E402

QUICK = presets.fast() | {"hidden_layer_sizes": (8,), "max_iter": 4, "batch_size": 700, "random_state": 0}
LOCAL = {"threads_per_worker": 1, "dashboard_address": ":0", "host": "127.0.0.1"}


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=2, **LOCAL) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    """Let a task be a partition, where it would be all of so small a table."""
    monkeypatch.setattr(tasks, "ROWS_PER_TASK", 1)


def numbers(n=3000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) - X[:, 1] + 0.1 * rng.normal(size=n)


def cut(values, sizes):
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == len(values)
    return [dask.delayed(values[a:b]) for a, b in pairwise(ends)]


def in_rounds(X, y, sizes, weights=None, kind=DaskBPCRegressor, fit=(), **params):
    parts = [None if values is None else cut(values, sizes) for values in (X, y, weights)]
    return kind(**QUICK | params).fit(*parts, rounds=True, **dict(fit))


@pytest.fixture(scope="module")
def expected(client):
    X, y = numbers()
    return in_rounds(X, y, [3000]).model_.to_bytes()


@pytest.mark.parametrize(
    "sizes", [[1500, 1500], [1000] * 3, [0, 1, 999, 0, 1300, 700, 0], [1024, 1024, 952]], ids=str
)
def test_how_rows_are_cut_changes_no_bit(client, expected, sizes):
    assert in_rounds(*numbers(), sizes).model_.to_bytes() == expected


def test_small_partitions_share_a_task(client, expected, monkeypatch):
    monkeypatch.setattr(tasks, "ROWS_PER_TASK", 8192)
    assert in_rounds(*numbers(), [100] * 30).model_.to_bytes() == expected


def test_whether_rows_wait_for_their_rounds_changes_no_bit(client, expected, monkeypatch):
    model = in_rounds(*numbers(), [1000] * 3)
    assert [p["reads"] for p in model.passes_ if p["pass"] == "round"] == [True, False, False, False]
    monkeypatch.setattr(reader, "SHARE", 0.0)
    again = in_rounds(*numbers(), [1000] * 3)
    assert all(p["reads"] for p in again.passes_)
    assert model.model_.to_bytes() == again.model_.to_bytes() == expected


@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_number_of_workers_changes_no_bit(n_workers, expected):
    options = LOCAL | {"threads_per_worker": 2 if n_workers == 1 else 1}
    with distributed.LocalCluster(n_workers=n_workers, **options) as cluster:
        with distributed.Client(cluster, set_as_default=False) as own:
            assert in_rounds(*numbers(), [700, 700, 700, 900], client=own).model_.to_bytes() == expected


def test_an_array_a_dataframe_and_a_list_are_the_same_table(client, expected):
    X, y = numbers()
    arrays = da.from_array(X, chunks=(700, 3)), da.from_array(y, chunks=700)
    model = DaskBPCRegressor(**QUICK).fit(*arrays, rounds=True)
    assert model.model_.to_bytes() == expected
    assert model.score(*arrays) > 0.5
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=4)
    named = DaskBPCRegressor(**QUICK).fit(frame, dd.from_pandas(pd.Series(y), npartitions=4), rounds=True)
    np.testing.assert_array_equal(named.predict(frame).compute(), model.predict(X))
    assert list(named.feature_names_in_) == ["a", "b", "c"]


def test_a_worker_that_dies_in_a_round_costs_no_bit(expected):
    """SIGKILL, again and again, while rounds go on."""
    X, y = numbers()
    with distributed.LocalCluster(n_workers=2, **LOCAL) as cluster:
        with distributed.Client(cluster, set_as_default=False) as own:
            killed = []
            over = threading.Event()

            def kill():
                while not over.wait(0.4) and len(killed) < 2:
                    pids = list(own.run(os.getpid).values())
                    os.kill(pids[len(killed) % len(pids)], signal.SIGKILL)
                    killed.append(pids)
                    time.sleep(1.5)

            slowly = [dask.delayed(_slow)(X[i : i + 500]) for i in range(0, 3000, 500)]
            thread = threading.Thread(target=kill)
            thread.start()
            try:
                model = DaskBPCRegressor(**QUICK, client=own).fit(slowly, cut(y, [500] * 6), rounds=True)
            finally:
                over.set()
                thread.join()
            assert killed, "nobody was killed"
            assert model.model_.to_bytes() == expected


def test_a_worker_that_dies_while_networks_are_trained_costs_no_bit(monkeypatch):
    X, y = numbers(100)
    options = {"max_iter": 3, "random_state": 0}
    with distributed.LocalCluster(n_workers=2, **LOCAL) as cluster:
        with distributed.Client(cluster, set_as_default=False) as own:
            pids = list(own.run(os.getpid).values())
            shared_out, deaths = whole.shared_out, []

            def deadly(*args):
                """Share networks out, and kill a worker when it has its second share."""
                if len(deaths) < 2:
                    deaths.append(threading.Timer(0.02, os.kill, (pids[0], signal.SIGKILL)))
                    if len(deaths) == 2:
                        deaths[1].start()
                return shared_out(*args)

            monkeypatch.setattr(whole, "WORTH", 0)
            monkeypatch.setattr(whole, "shared_out", deadly)
            model = DaskBPCRegressor(**options, client=own).fit(cut(X, [50, 50]), cut(y, [50, 50]))
            assert len(deaths) == 2, "nobody was killed"
            assert pids[0] not in own.run(os.getpid).values()
    assert model.model_.to_bytes() == BPCRegressor(**options).fit(X, y).model_.to_bytes()


def _slow(values):
    time.sleep(0.1)
    return values


def test_two_fits_at_once(client, expected):
    X, y = numbers()
    found = {}

    def fit(seed):
        found[seed] = in_rounds(X, y, [1000] * 3, random_state=seed, client=client).model_.to_bytes()

    threads = [threading.Thread(target=fit, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == expected
    assert found[1] == in_rounds(X, y, [3000], random_state=1).model_.to_bytes() != expected


def test_an_asyncio_client(client, expected):
    X, y = numbers()

    async def use():
        async with distributed.Client(client.scheduler.address, asynchronous=True) as own:
            model = DaskBPCRegressor(**QUICK, client=own)
            await model.fit(cut(X, [1000] * 3), cut(y, [1000] * 3), rounds=True)
            return model

    assert asyncio.run(use()).model_.to_bytes() == expected


def test_weights_of_parts(client):
    X, y = numbers()
    w = np.ones(3000)
    w[1500:] = np.random.default_rng(0).uniform(0, 2, 1500)
    w[2990:] = 0
    whole = in_rounds(X, y, [3000], w).model_.to_bytes()
    assert in_rounds(X, y, [1000] * 3, w).model_.to_bytes() == whole
    # The last part has no weight at all.
    assert in_rounds(X, y, [1500, 1490, 10], w).model_.to_bytes() == whole


def test_classes_that_only_one_part_has(client):
    X, _ = numbers()
    y = np.where(X[:, 0] > 0, "up", "down").astype(object)
    y[2900:] = "late"
    options = {"kind": DaskBPCClassifier, "class_weight": "balanced"}
    whole = in_rounds(X, y, [3000], **options)
    parts = in_rounds(X, y, [1000, 1900, 100], **options)
    assert parts.classes_.tolist() == ["down", "late", "up"]
    assert parts.model_.to_bytes() == whole.model_.to_bytes()
    assert parts.score(cut(X, [1500] * 2), cut(y, [1500] * 2)) > 0.5


def table(n=1200):
    """Return a frame with a hole, a category and a value that only its last rows have."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=n), "colour": rng.choice(["red", "green"], n)})
    frame.loc[n - 2, "colour"] = "ultraviolet"
    frame.loc[n - 1, "size"] = np.nan
    return frame, frame["size"].fillna(0) + (frame["colour"] == "red")


@pytest.mark.parametrize("missing", ["encode", "drop"])
@pytest.mark.parametrize("sample", [100_000, 50])
def test_values_and_holes_that_only_one_part_has(client, monkeypatch, missing, sample):
    monkeypatch.setattr(columns, "SAMPLE", sample)
    frame, y = table()

    def fitted(npartitions):
        lazy, targets = (dd.from_pandas(values, npartitions=npartitions) for values in (frame, y))
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model = DaskBPCRegressor(**QUICK, missing=missing).fit(lazy, targets, rounds=True)
        said = [str(warning.message) for warning in heard]
        assert said == (["1 row with missing cells left out"] if missing == "drop" else [])
        return model, lazy

    model, lazy = fitted(4)
    assert model.model_.to_bytes() == fitted(1)[0].model_.to_bytes()
    names = model.encoding_.feature_names
    assert "colour=ultraviolet" in names
    assert ("size=(missing)" in names) == (missing == "encode")
    assert np.isfinite(model.predict(lazy).compute()).all()
    if sample > len(y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            local = BPCRegressor(**QUICK, missing=missing).fit(frame, y)
        assert model.encoding_.json() == local.encoding_.json()


def test_a_hole_in_an_array(client):
    X, y = numbers()
    X[2900, 1] = np.nan
    whole = in_rounds(X, y, [3000])
    parts = in_rounds(X, y, [1000] * 3)
    assert whole.encoding_.feature_names == ["x0", "x1", "x1=(missing)", "x2"]
    assert parts.model_.to_bytes() == whole.model_.to_bytes()


def test_rows_without_a_target(client):
    X, y = numbers()
    frame, y = pd.DataFrame(X, columns=list("abc")), pd.Series(y)
    y[[5, 2000]] = np.nan
    y[2500:] = np.nan
    with pytest.warns(UserWarning, match="502 rows without a target left out"):
        model = in_rounds(frame, y, [1000, 1500, 500])
    known = y.notna()
    assert in_rounds(frame[known], y[known], [2498]).model_.to_bytes() == model.model_.to_bytes()


@pytest.mark.filterwarnings("ignore:1 row with missing cells left out")
def test_what_is_left_open_is_chosen_from_a_sample(client, tmp_path, monkeypatch):
    X, y = numbers(400)
    X[5, 1] = np.nan
    free = {"search": True, "hidden_layer_sizes": "auto", "missing": "drop"}
    model = in_rounds(X, y, [200, 200], **free)
    assert len(model.candidates_) > 10
    kept = {"fit": {"checkpoint": tmp_path / "fit.safetensors"}}
    other = in_rounds(X, y, [400], **free, **kept)
    assert model.model_.with_notes({}).to_bytes() == other.model_.with_notes({}).to_bytes()
    # A fit that goes on does not search again.
    monkeypatch.setattr("bayespc.dask._base.choose", None)
    again = in_rounds(X, y, [400], **free, **kept)
    assert again.model_.to_bytes() == other.model_.to_bytes()
    assert again.candidates_ == other.candidates_
    best = max((c for c in model.candidates_ if c["members"]), key=lambda c: c["density"])
    assert model.plans_[0]["bins"] == best["bins"]
    assert model.plans_[0]["network"]["prior"]["var"] == best["prior_var"]


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"time_limit": 60.0}, "time_limit"),
        ({"early_stopping": True}, r"training\.validation_fraction"),
        ({"rule": {"kind": "feedback", "gain": 0.5}}, r"rule\.gain"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_settings_that_rounds_do_not_obey_are_refused_before_anything_is_chosen(
    client, monkeypatch, params, name
):
    monkeypatch.setattr("bayespc.dask._base.choose", None)
    with pytest.raises(ValueError, match=f"{name} does not go with learning in rounds"):
        in_rounds(*numbers(400), [400], search=True, **params)


@pytest.mark.parametrize("params", [{}, {"batch_size": "full"}, {"max_iter": 100}, {"n_iter_no_change": 3}])
def test_settings_that_rounds_obey_or_that_have_no_effect_are_taken(client, monkeypatch, params):
    begun = []
    monkeypatch.setattr(
        "bayespc.dask._rounds._core.rounds_next_pass", lambda model: begun.append(model) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        in_rounds(*numbers(400), [400], **params)
    assert begun


# --- Checkpoints --------------------------------------------------------------------------------------------


def test_a_fit_goes_on_from_its_checkpoint_to_the_same_bits(client, expected, tmp_path, monkeypatch):
    X, y = numbers()
    file = tmp_path / "fit.safetensors"
    options = {"fit": {"checkpoint": file, "checkpoint_every": 2}}
    whole = in_rounds(X, y, [1000] * 3, **options)
    assert load(file).predict(X) == pytest.approx(whole.predict(X))
    file.unlink()

    absorb, left = bayespc_core().rounds_absorb, [4]

    def failing(model, parts):
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("the power is gone")
        return absorb(model, parts)

    monkeypatch.setattr(bayespc_core(), "rounds_absorb", failing)
    with pytest.raises(RuntimeError, match="the power is gone"):
        in_rounds(X, y, [1000] * 3, **options)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["fit.safetensors"]
    again = in_rounds(X, y, [700, 2300], **options)
    assert again.model_.to_bytes() == whole.model_.to_bytes()
    # A fit that has ended is there at once.
    assert in_rounds(X, y, [3000], **options).model_.to_bytes() == whole.model_.to_bytes()
    assert (
        DaskBPCRegressor(**QUICK).fit(cut(X, [3000]), cut(y, [3000]), rounds=True).model_.to_bytes()
        == expected
    )


def bayespc_core():
    import bayespc._core

    return bayespc._core


def test_a_checkpoint_of_another_fit_is_refused(client, tmp_path):
    X, y = numbers(400)
    file = tmp_path / "fit.safetensors"
    options = {"fit": {"checkpoint": file}}
    in_rounds(X, y, [400], **options)
    with pytest.raises(ValueError, match=r"is of another fit, with other rows: choose another file"):
        in_rounds(X[:300], y[:300], [300], **options)
    with pytest.raises(ValueError, match="with other settings"):
        in_rounds(X, y, [400], **options, prior_var=2.0)
    with pytest.raises(ValueError, match="with other settings and rounds"):
        in_rounds(X, y, [400], **options, max_iter=5)
    BPCRegressor(**QUICK).fit(X, y).save(file)
    with pytest.raises(ValueError, match="no checkpoint of a fit on dask"):
        in_rounds(X, y, [400], **options)
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"checkpoint .*fit\.safetensors: "):
        in_rounds(X, y, [400], **options)
    with pytest.raises(ValueError, match="there is no folder"):
        in_rounds(X, y, [400], fit={"checkpoint": tmp_path / "none" / "fit.safetensors"})


def test_a_part_that_changes_between_passes_is_named(client):
    X, y = numbers(400)
    calls = dask.delayed(_fickle)(X[200:])
    with pytest.raises(ValueError, match="partition 1: "):
        DaskBPCRegressor(**QUICK).fit([dask.delayed(X[:200]), calls], cut(y, [200, 200]), rounds=True)


def _fickle(values):
    """Return rows at first, and later rows with something that cannot be learned from."""
    worker = distributed.get_worker()
    worker.calls = getattr(worker, "calls", 0) + 1
    return values if worker.calls == 1 else np.where(values == values[3, 1], np.inf, values)
