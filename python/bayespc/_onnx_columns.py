"""How a frame's columns become the numbers of an ONNX model's input, and these the inputs of its networks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from ._onnx_graph import Graph
from ._tables import dense
from ._validation import Array, ArrayLike

DAY = 86_400_000_000.0
"""Microseconds."""


def features(estimator: Any) -> list[dict[str, Any]]:
    """Return name and coding of each column of the input; a plain array's columns have none."""
    if estimator.encoding_ is not None:
        found: list[dict[str, Any]] = json.loads(estimator.encoding_.json())["features"]
        for feature in found:
            if feature["coding"]["kind"] == "hash":
                raise ValueError(f"column `{feature['name']}` is free text, which an ONNX model cannot read")
        return found
    names: Any = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(estimator.n_features_in_)])
    return [{"name": str(name), "coding": {"kind": "plain"}} for name in names]


def onnx_input(estimator: Any, X: ArrayLike) -> Array:
    """Return samples as the input ``X`` of the estimator's ONNX model.

    Parameters
    ----------
    estimator : BPCRegressor or BPCClassifier
        Fitted.
    X : array-like or frame of shape (n_samples, n_features)
        Samples as the estimator takes them.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Numbers as they are, NaN where a cell is missing; booleans as 0 and 1; times as microseconds since
        1970; categories as the place of their value in the model's list, and -1 for one that is not in it.
    """
    estimator._check_fitted()
    X = dense(X)
    if estimator.encoding_ is None:
        return np.ascontiguousarray(estimator._samples(X), dtype=np.float64)
    columns: list[Array] = []
    for place, feature in enumerate(features(estimator)):
        cells = X[feature["name"]] if hasattr(X, "columns") else np.asarray(X)[:, place]
        columns.append(_numbers(np.asarray(cells), feature["coding"]))
    return np.column_stack(columns)


def _numbers(cells: npt.NDArray[Any], coding: dict[str, Any]) -> Array:
    if coding["kind"] == "time":
        times = cells.astype("datetime64[us]")
        numbers = times.astype(np.int64).astype(np.float64)
        return np.where(np.isnat(times), np.nan, numbers)
    if coding["kind"] != "text":
        return np.array([np.nan if _is_missing(cell) else float(cell) for cell in cells])
    places = {value: k for k, value in enumerate(coding["values"])}
    pooled = set(coding.get("pooled", []))
    other = len(places)

    def place(cell: Any) -> float:
        if _is_missing(cell):
            return np.nan
        text = str(cell)
        return float(places.get(text, other if text in pooled else -1))

    return np.array([place(cell) for cell in cells])


def _is_missing(cell: Any) -> bool:
    return cell is None or cell != cell or type(cell).__name__ in ("NAType", "NaTType")


def encoded(graph: Graph, columns: list[dict[str, Any]]) -> str:
    """Return the networks' inputs, before they are standardised."""
    if all(column["coding"]["kind"] == "plain" for column in columns):
        return "X"
    kinds = {"number": _number, "bool": _boolean, "text": _category, "time": _time}
    parts: list[str] = []
    for place, column in enumerate(columns):
        coding = column["coding"]
        parts += kinds[coding["kind"]](graph, graph.column("X", place), coding)
    return graph.beside(parts)


def _number(graph: Graph, x: str, coding: dict[str, Any]) -> list[str]:
    missing = graph.op("IsNaN", x)
    for mark in coding.get("marks", []):
        missing = graph.op("Or", missing, graph.op("Equal", x, float(mark)))
    limits = coding.get("limits")
    value = x if limits is None else graph.within(x, float(limits[0]), float(limits[1]))
    known = graph.op("Where", missing, float(coding["mean"]), value)
    return [known, *_holes(graph, missing, coding)]


def _boolean(graph: Graph, x: str, coding: dict[str, Any]) -> list[str]:
    missing = graph.op("IsNaN", x)
    fill = float(coding["most_frequent"] and not coding.get("missing", False))
    return [graph.op("Where", missing, fill, x), *_holes(graph, missing, coding)]


def _category(graph: Graph, x: str, coding: dict[str, Any]) -> list[str]:
    n = len(coding["values"]) + bool(coding.get("pooled"))
    missing = graph.op("IsNaN", x)
    if not coding.get("missing", False) and coding["values"]:
        x = graph.op("Where", missing, float(coding["most_frequent"]), x)
    inputs = [graph.number(graph.op("Equal", x, np.arange(n, dtype=np.float64)[None, :]))] if n else []
    return [*inputs, *_holes(graph, missing, coding)]


def _time(graph: Graph, x: str, coding: dict[str, Any]) -> list[str]:
    missing = graph.op("IsNaN", x)
    t = graph.op("Where", missing, 0.0, x)
    there = graph.number(graph.op("Not", missing))
    days = graph.div(graph.sub(t, float(coding["start"])), DAY)
    parts = [graph.op("Where", missing, float(coding["mean"]), days)]
    day = graph.floor(graph.div(t, DAY))
    of_day = graph.div(graph.sub(t, graph.mul(day, DAY)), DAY)
    if coding.get("season", False):
        parts += [graph.mul(there, part) for part in _circle(graph, _of_year(graph, day, of_day))]
    if coding.get("weekdays"):
        # The first day of 1970 was a Thursday.
        shifted = graph.add(day, 3.0)
        weekday = graph.sub(shifted, graph.mul(graph.floor(graph.div(shifted, 7.0)), 7.0))
        listed = np.array([coding["weekdays"]], dtype=np.float64)
        parts.append(graph.mul(there, graph.number(graph.op("Equal", weekday, listed))))
    if coding.get("hour", False):
        parts += [graph.mul(there, part) for part in _circle(graph, of_day)]
    return [*parts, *_holes(graph, missing, coding)]


def _circle(graph: Graph, share: str) -> list[str]:
    angle = graph.mul(share, 2.0 * np.pi)
    return [graph.op("Sin", angle), graph.op("Cos", angle)]


def _of_year(graph: Graph, day: str, of_day: str) -> str:
    """Return the share of its year that has passed at a day since 1970; years of the Gregorian calendar.

    Days are counted from 1 March of the year 0, so that leap days come last in their year, in eras of 400
    years.
    """

    def whole(x: str, by: float) -> str:
        return graph.floor(graph.div(x, by))

    since = graph.add(day, 719468.0)
    era = whole(since, 146097.0)
    of_era = graph.sub(since, graph.mul(era, 146097.0))
    leaps = graph.sub(graph.sub(whole(of_era, 36524.0), whole(of_era, 1460.0)), whole(of_era, 146096.0))
    year_of_era = whole(graph.add(of_era, leaps), 365.0)
    before = graph.sub(
        graph.add(graph.mul(year_of_era, 365.0), whole(year_of_era, 4.0)), whole(year_of_era, 100.0)
    )
    from_march = graph.sub(of_era, before)
    # 306 days after 1 March is 1 January, of the next year.
    early = graph.number(graph.op("Not", graph.op("Less", from_march, 306.0)))
    year = graph.add(graph.add(year_of_era, graph.mul(era, 400.0)), early)

    def divides(by: float) -> str:
        return graph.number(graph.op("Equal", graph.mul(whole(year, by), by), year))

    leap = graph.add(graph.sub(divides(4.0), divides(100.0)), divides(400.0))
    later = graph.add(graph.add(from_march, 59.0), leap)
    since_new_year = graph.op(
        "Where", graph.op("Less", from_march, 306.0), later, graph.sub(from_march, 306.0)
    )
    return graph.div(graph.add(since_new_year, of_day), graph.add(leap, 365.0))


def _holes(graph: Graph, missing: str, coding: dict[str, Any]) -> list[str]:
    return [graph.number(missing)] if coding.get("missing", False) else []
