"""Answers of a fitted model to parts that are not computed yet: as lazy as X, and of its kind.

A dask array gives dask arrays with the chunks of its rows, a dask dataframe gives series and dataframes with
its index and divisions, a list of delayed gives a list of delayed.
"""

from __future__ import annotations

import hashlib
import pickle
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._parts import blocks, check_columns, is_array, is_frame
from ._tasks import share_processors

_dask: Any = import_module("dask")
_array: Any = import_module("dask.array")


class Question(NamedTuple):
    """A method of a local estimator, and the shape of what it gives."""

    method: str
    options: dict[str, Any]
    names: tuple[str, ...] = ()
    """Names of the arrays that it gives; without any it gives one."""
    columns: tuple[Any, ...] = ()
    """Names of the columns of each; without any they have one dimension."""
    dtype: Any = np.float64
    label: str | None = None
    """Name of the series, where there is one."""
    last: tuple[Any, ...] = ()
    """Names along one more axis, the last: quantiles."""

    @property
    def tail(self) -> tuple[int, ...]:
        """Shape of the answer to a row, the arrays one beside the other."""
        return tuple(len(axis) for axis in (self.names, self.columns, self.last) if axis)


def ask(model: Any, X: Any, question: Question) -> Any:
    """Return the lazy answer of a local estimator: a tuple if the question has several."""
    node = _node(model)
    if is_array(X):
        return _of_array(node, X, question)
    if is_frame(X):
        return _of_frame(node, X, question)
    task = _dask.delayed(_answer, pure=True)
    answers = [task(part, node, question) for part in blocks("X", X)]
    if not question.names:
        return answers
    return tuple([answer[:, i] for answer in answers] for i in range(len(question.names)))


def _node(model: Any) -> Any:
    """Return the model as one node of the graph; the same model is the same node."""
    digest = hashlib.sha256(pickle.dumps(model)).hexdigest()
    return _dask.delayed(model, name=f"bayespc-model-{digest}", traverse=False)


def _of_array(node: Any, X: Any, question: Question) -> Any:
    check_columns("X", X)
    tail = question.tail
    answer = _array.map_blocks(
        _answer,
        X,
        node,
        question,
        dtype=question.dtype,
        drop_axis=[1],
        new_axis=list(range(1, 1 + len(tail))) or None,
        chunks=(X.chunks[0], *((n,) for n in tail)),
        meta=np.empty((0,) * (1 + len(tail)), dtype=question.dtype),
        name=None,
        token=f"bayespc-{question.method}",
    )
    if not question.names:
        return answer
    return tuple(answer[:, i] for i in range(len(question.names)))


def _of_frame(node: Any, X: Any, question: Question) -> Any:
    frames: Any = import_module("pandas")
    index = X._meta.index[:0]
    if not question.tail:
        meta = frames.Series(np.empty(0, dtype=question.dtype), index=index, name=question.label)
        return X.map_partitions(_series, node, question, meta=meta)
    labels = _labels(question)
    empty = np.empty((0, len(labels)), dtype=question.dtype)
    meta = frames.DataFrame(empty, index=index, columns=labels)
    table = X.map_partitions(_frame, node, question, meta=meta)
    if not question.names:
        return table
    if not question.columns:
        return tuple(table[name] for name in labels)
    k = len(question.columns)
    parts: list[Any] = []
    for i in range(len(question.names)):
        own = labels[i * k : (i + 1) * k]
        parts.append(table[own].rename(columns=dict(zip(own, question.columns, strict=True))))
    return tuple(parts)


def _labels(question: Question) -> list[Any]:
    """Return the columns of a dataframe of all arrays."""
    if question.last:
        if not question.columns:
            return list(question.last)
        return [f"{column} {name}" for column in question.columns for name in question.last]
    if not question.names:
        return list(question.columns)
    if not question.columns:
        return list(question.names)
    return [f"{name} {column}" for name in question.names for column in question.columns]


def _answer(X: Any, model: Any, question: Question) -> npt.NDArray[Any]:
    """Run on a worker: the answers for some rows."""
    share_processors()
    n = int(X.num_rows) if hasattr(X, "num_rows") else int(X.shape[0])
    if n == 0:
        return np.empty((0, *question.tail), dtype=question.dtype)
    found = getattr(model, question.method)(X, **question.options)
    found = np.stack(found, axis=1) if question.names else np.asarray(found)
    return found.astype(question.dtype, copy=False)


def _series(X: Any, model: Any, question: Question) -> Any:
    frames: Any = import_module("pandas")
    return frames.Series(_answer(X, model, question), index=X.index, name=question.label)


def _frame(X: Any, model: Any, question: Question) -> Any:
    frames: Any = import_module("pandas")
    answers = _answer(X, model, question).reshape(len(X), -1)
    return frames.DataFrame(answers, index=X.index, columns=_labels(question))
