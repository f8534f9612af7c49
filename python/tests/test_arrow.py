"""Arrow streams: targets by name, slices of any stream, texts by their dictionary."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from quick import quick_classifier, quick_regressor

import bayespc._arrow
from bayespc import load

pa = pytest.importorskip("pyarrow")


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n), "w": rng.uniform(1, 2, n)}
    )
    frame.loc[4, "b"] = None
    frame["price"] = frame["a"] + (frame["b"] == "x")
    return frame


class Stream:
    """An object that has the protocol and nothing else, and can be read once."""

    def __init__(self, frame, rows):
        self.batches = pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=rows)

    def __arrow_c_stream__(self, requested_schema=None):
        batches, self.batches = self.batches, None
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


def duck(frame):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("frame", frame)
    return connection.sql("select * from frame")


FORMS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy polars": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "chunks": lambda frame: pa.concat_tables(
        [pa.Table.from_pandas(part, preserve_index=False) for part in (frame[:7], frame[7:200], frame[200:])]
    ),
    "dictionary": lambda frame: FORMS["chunks"](frame).set_column(
        1, "b", FORMS["chunks"](frame).column("b").dictionary_encode()
    ),
    "reader": lambda frame: pa.Table.from_pandas(frame, preserve_index=False).to_reader(max_chunksize=64),
    "stream": lambda frame: Stream(frame, 50),
    "duckdb": duck,
}


@pytest.mark.parametrize("form", FORMS)
def test_targets_and_weights_by_name_are_those_apart(form):
    frame = table()
    expected = quick_regressor(max_iter=2, random_state=0).fit(frame[["a", "b"]], frame["price"], frame["w"])
    model = quick_regressor(max_iter=2, random_state=0).fit(FORMS[form](frame), "price", "w")
    assert model.model_.to_bytes() == expected.model_.to_bytes()
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict(FORMS[form](frame)), expected.predict(frame))


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_is_learned_in_slices_whatever_its_batches(form, monkeypatch):
    frame = table()
    expected = quick_regressor(random_state=0)
    for start in range(0, 300, 128):
        part = frame[start : start + 128]
        expected.partial_fit(part[["a", "b"]], part["price"], part["w"])
    monkeypatch.setattr(bayespc._arrow, "ROWS", 128)
    model = quick_regressor(random_state=0).partial_fit(FORMS[form](frame), "price", "w")
    assert model.model_.to_bytes() == expected.model_.to_bytes()
    assert model.n_iter_ == 3


def test_several_targets_by_name(tmp_path):
    frame = table().assign(cost=lambda frame: -frame["a"])
    model = quick_regressor(max_iter=2, random_state=0).fit(FORMS["arrow"](frame), ["price", "cost"], "w")
    expected = quick_regressor(max_iter=2, random_state=0)
    expected.fit(frame[["a", "b"]], frame[["price", "cost"]], frame["w"])
    assert model.model_.to_bytes() == expected.model_.to_bytes()
    model.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors")._y_names == ["price", "cost"]


def test_labels_by_name():
    frame = table().dropna()
    expected = quick_classifier(max_iter=2, random_state=0).fit(frame[["a", "w"]], frame["b"])
    arrow = FORMS["arrow"](frame.drop(columns="price"))
    model = quick_classifier(max_iter=2, random_state=0).fit(arrow, "b")
    assert model.model_.to_bytes() == expected.model_.to_bytes()
    streamed = quick_classifier(random_state=0).partial_fit(arrow, "b", classes=["x", "y", "z"])
    expected = quick_classifier(random_state=0)
    expected.partial_fit(frame[["a", "w"]], frame["b"], classes=["x", "y", "z"])
    assert streamed.model_.to_bytes() == expected.model_.to_bytes()


def test_a_list_of_labels_is_not_taken_for_names():
    frame = table().iloc[:2]
    model = quick_classifier(max_iter=1, random_state=0).fit(frame[["a", "w"]], ["a", "w"])
    assert model.classes_.tolist() == ["a", "w"]


def test_a_dictionary_says_that_a_column_is_a_category():
    frame = table()
    frame["code"] = np.arange(300) % 5
    arrow = FORMS["arrow"](frame)
    coded = arrow.set_column(4, "code", arrow.column("code").dictionary_encode())
    kinds = {"number": arrow, "category": coded}
    for kind, X in kinds.items():
        model = quick_regressor(max_iter=1, random_state=0).fit(X, "price", "w")
        assert next(column["understood"] for column in model.columns_ if column["name"] == "code") == kind


def test_chunks_without_rows_and_dictionaries_with_holes():
    rows = pa.chunked_array(
        [pa.array([], pa.string()), pa.array(["x", None, "y"]), pa.array([], pa.string())]
    )
    holes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["x", None]))
    X = pa.table({"a": [0.0, 1.0, 2.0], "b": rows, "c": holes, "y": [1.0, 2.0, 3.0]})
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": ["x", None, "y"], "c": ["x", None, None]})
    expected = quick_regressor(max_iter=1, random_state=0, columns={"c": "category"}).fit(
        frame, [1.0, 2.0, 3.0]
    )
    model = quick_regressor(max_iter=1, random_state=0, columns={"c": "category"}).fit(X, "y")
    assert model.model_.to_bytes() == expected.model_.to_bytes()


def test_what_is_wrong_is_named(monkeypatch):
    frame = table()
    model = quick_regressor(random_state=0)
    with pytest.raises(ValueError, match=r"X has no column 'pricy'; did you mean 'price'\?"):
        model.fit(FORMS["arrow"](frame), "pricy")
    with pytest.raises(TypeError, match="y = 'price' names a column, but X is no frame: ndarray"):
        model.fit(frame[["a"]].to_numpy(), "price")
    with pytest.raises(TypeError, match="sample_weight must name one too"):
        model.partial_fit(FORMS["arrow"](frame), "price", frame["w"])
    with pytest.raises(ValueError, match="X has no rows"):
        model.partial_fit(FORMS["arrow"](frame[:0]), "price")
    monkeypatch.setattr(bayespc._arrow, "ROWS", 128)
    monkeypatch.setattr(bayespc._base, "ROWS", 128)
    model.partial_fit(FORMS["arrow"](frame), "price")
    before = model.model_
    with pytest.raises(ValueError, match=r"rows 129 and on: .*infinity"):
        model.partial_fit(
            FORMS["arrow"](frame.assign(price=np.where(frame.index == 200, np.inf, 0.0))), "price"
        )
    assert model.model_ is before
