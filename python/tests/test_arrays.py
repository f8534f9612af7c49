"""Arrays of any layout and byte order: every function of the compiled module takes them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayespc
from bayespc import _core

# Small integers, which all types hold exactly.
RNG = np.random.default_rng(0)
X = RNG.integers(-9, 10, (40, 3)).astype(np.float64)
Y = X[:, :1] + 2 * X[:, 1:2] + RNG.integers(-1, 2, (40, 1))
LABELS = (X[:, 0] > 0).astype(np.int64)
WEIGHTS = RNG.integers(1, 4, 40).astype(np.float64)
WITH_ONES = np.column_stack([X, np.ones(40)])

SETTINGS = json.loads(_core.preset_settings("fast"))
SETTINGS["network"]["hidden_layer_sizes"] = [4]
SETTINGS["training"]["epochs"] = 2
FAST = json.dumps(SETTINGS)
SETTINGS["network"]["hidden_layer_sizes"] = []
LINEAR = json.dumps(SETTINGS)
NETWORK = json.dumps(json.loads(FAST)["network"])
LATENT = json.dumps({"iterations": 2})
LANGEVIN = json.dumps({})
ROUNDS = json.dumps(json.loads(_core.rounds_settings()) | {"rounds": SETTINGS["training"]["epochs"]})


def model() -> _core.Model:
    return _core.Model.fit(X, Y, 0, None, FAST)


def classifier() -> _core.Model:
    return _core.Model.fit(X, LABELS, 2, None, FAST)


def predictive() -> _core.Predictive:
    return model().predict(X)


def latent() -> _core.LatentModel:
    return _core.LatentModel.fit(X, LATENT)


def network(rule: str = "feedback") -> _core.Network:
    return _core.Network(3, 1, NETWORK, _core.rule_settings(rule), 0)


def learned(*arrays: Any) -> list[Any]:
    """Return the weights after a step."""
    x, y, weights = arrays
    own = network()
    return [own.learn(x, y, 1, None, 40.0, True, weights), own.weights]


def finished(x: Any, y: Any) -> list[Any]:
    own = network()
    own.finish(x, y)
    return own.weights


def posterior() -> _core.MatrixNormalWishart:
    return _core.MatrixNormalWishart(np.ones((2, 4)), 2 * np.eye(4), 3 * np.eye(2), 5.0)


def begun() -> bytes:
    return _core.rounds_begin(FAST, ROUNDS, 0)


def table(number: Any, flag: Any, day: Any, codes: Any) -> list[tuple[str, Any]]:
    return [("number", number), ("flag", flag), ("day", day), ("text", (codes, ["a", "b", "c"]))]


CELLS = (
    X[:, 0].copy(),
    LABELS.astype(np.int8),
    np.arange(40) * 86_400_000_000,
    np.arange(40, dtype=np.int32) % 3,
)


def encoding() -> _core.Encoding:
    return _core.Encoding.fit(_core.Encoding.table(table(*CELLS), "{}"), "{}")


def encoded(cells: _core.Table) -> Any:
    return encoding().transform(cells)


Entry = tuple[Callable[..., Any], tuple[Any, ...]]

ENTRIES: dict[str, Entry] = {
    "Model.fit": (lambda x, y, w: _core.Model.fit(x, y, 0, w, FAST), (X, Y, WEIGHTS)),
    "Model.fit of classes": (lambda x, y, w: _core.Model.fit(x, y, 2, w, FAST), (X, LABELS, WEIGHTS)),
    "Model.from_weights": (
        lambda layer, x, y, w: _core.Model.from_weights([layer], x, y, 0, w, LINEAR),
        (np.ones((1, 4)), X, Y, WEIGHTS),
    ),
    "Model.for_stream": (lambda x, y: _core.Model.for_stream(x, y, 0, FAST), (X, Y)),
    "Model.partial_fit": (lambda x, y, w: model().partial_fit(x, y, 0, w), (X, Y, WEIGHTS)),
    "Model.predict": (lambda x: model().predict(x), (X,)),
    "Model.unlike": (lambda x: model().unlike(x), (X,)),
    "Model.probabilities": (lambda x: classifier().probabilities(x), (X,)),
    "Model.free_energy": (lambda x, y, w: model().free_energy(x, y, 0, w), (X, Y, WEIGHTS)),
    "explain": (lambda x, start: _core.explain(model(), x, "mean", 0, start), (X, X[:2].copy())),
    "prune": (
        lambda x, y, w: _core.prune(model(), x, y, 0, [[0], [1], [2]], 0.1, w),
        (X, Y, WEIGHTS),
    ),
    "fit_step": (lambda x, y, w: _core.fit_step(x, y, 0, w, FAST, {}, set()), (X, Y, WEIGHTS)),
    "rounds_statistics": (
        lambda x, y, w: _core.rounds_statistics(begun(), x, y, w, 0),
        (X, Y, WEIGHTS),
    ),
    "rounds_thin": (
        lambda x, y, w: _core.rounds_thin(
            _core.rounds_absorb(begun(), [_core.rounds_statistics(begun(), X, Y, None, 0)]), x, y, w, 0, 1
        ),
        (X, Y, WEIGHTS),
    ),
    "layers_of_tensors": (
        lambda w, b: _core.layers_of_tensors([("0.weight", [2, 20], w), ("0.bias", [2], b)]),
        (WEIGHTS, WEIGHTS[:2].copy()),
    ),
    "Encoding.table": (lambda *cells: encoded(_core.Encoding.table(table(*cells), "{}")), CELLS),
    "Encoding.read": (lambda *cells: encoded(encoding().read(table(*cells))), CELLS),
    "Table.select": (
        lambda rows: encoded(_core.Encoding.table(table(*CELLS), "{}").select(rows)),
        (np.arange(5),),
    ),
    "LatentModel.fit": (lambda x: _core.LatentModel.fit(x, LATENT), (X,)),
    "LatentModel.log_density": (lambda x: latent().log_density(x), (X,)),
    "LatentModel.impute": (lambda x: latent().impute(x), (X,)),
    "LatentModel.draw_missing": (lambda x: latent().draw_missing(x, 2, 0), (X,)),
    "LatentModel.latents": (lambda x: latent().latents(x), (X,)),
    "LatentModel.memberships": (lambda x: latent().memberships(x), (X,)),
    "Predictive.log_density": (lambda y: predictive().log_density(y), (Y,)),
    "Predictive.cdf": (lambda y: predictive().cdf(y), (Y,)),
    "Predictive.crps": (lambda y: predictive().crps(y), (Y,)),
    "SufficientStats.__new__": (_core.SufficientStats, (WITH_ONES, Y, WEIGHTS)),
    "MatrixNormalWishart.__new__": (
        lambda *arrays: _core.MatrixNormalWishart(*arrays, 5.0),
        (X[:2].copy(), 2 * np.eye(3), 3 * np.eye(2)),
    ),
    "MatrixNormalWishart.log_density": (posterior().log_density, (WITH_ONES[:2].copy(), np.eye(2))),
    "MatrixNormalWishart.leverage": (posterior().leverage, (WITH_ONES,)),
    "Network.forward": (lambda x: network().forward(x), (X,)),
    "Network.relax": (lambda x, y: network("relaxation").relax(x, y), (X, Y)),
    "Network.infer_by_feedback": (lambda x, y: network().infer_by_feedback(x, y), (X, Y)),
    "Network.learn": (learned, (X, Y, WEIGHTS)),
    "Network.finish": (finished, (X, Y)),
    "Network.predict": (lambda x: network().predict(x, '"linearised"'), (X,)),
    "Network.free_energy": (lambda x, y: network().free_energy(x, y), (X, Y)),
    "Network.impute": (lambda x, y: network().impute(x, y, 1.0), (X, Y)),
    "Network.draw_missing": (lambda x, y: network().draw_missing(x, y, 2, LANGEVIN), (X, Y)),
}


def unaligned(array: np.ndarray) -> np.ndarray:
    """Return the array one byte further, as the part of a received message may be."""
    room = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert array.itemsize == 1 or not moved.flags.aligned
    return moved


def strided(array: np.ndarray) -> np.ndarray:
    """Return every other number of an array that is twice as large along each axis."""
    for axis in range(array.ndim):
        array = np.repeat(array, 2, axis=axis)
    return array[(slice(None, None, 2),) * array.ndim]


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "unaligned": unaligned,
    "strided": strided,
    "reversed": lambda array: array[::-1].copy()[::-1],
    "Fortran": np.asfortranarray,
    "another byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "another byte order, unaligned, Fortran": lambda array: (
        unaligned(array.T.astype(array.dtype.newbyteorder())).T
    ),
    "read-only": read_only,
}

TYPES = {
    "float64": ["float32", "float16", "int64", "int32", "uint8"],
    "int64": ["int32", "uint32", "int8"],
}


def plain(result: Any) -> Any:
    """Return a result as what can be compared, to the bit."""
    match result:
        case _core.Model() | _core.LatentModel() | _core.SufficientStats():
            return result.to_bytes()
        case _core.Predictive():
            return plain([result.mean(), result.variance()])
        case _core.MatrixNormalWishart():
            return plain([result.mean, result.col_cov, result.scale, result.dof])
        case np.ndarray():
            return result.shape, result.tobytes()
        case list() | tuple():
            return [plain(part) for part in result]
        case _:
            return result


def test_every_function_of_the_stub_that_takes_an_array_is_in_the_list() -> None:
    stub = ast.parse(Path(bayespc.__file__).with_name("_core.pyi").read_text())
    found: set[str] = set()
    for node in stub.body:
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef):
                types = " ".join(ast.unparse(arg.annotation) for arg in function.args.args if arg.annotation)
                if re.search(r"\b(_F64|_I64|_Samples|_Targets|Any)\b", types):
                    found.add(owner + function.name)
    assert found == {name.split(" ")[0] for name in ENTRIES}


@pytest.mark.parametrize("name", ENTRIES)
def test_arrays_of_any_layout_give_the_same_bits(name: str) -> None:
    function, arrays = ENTRIES[name]
    expected = plain(function(*arrays))
    for layout, change in LAYOUTS.items():
        changed = [change(array) for array in arrays]
        for before, after in zip(arrays, changed, strict=True):
            np.testing.assert_array_equal(after, before)
        assert plain(function(*changed)) == expected, layout


@pytest.mark.parametrize("name", [name for name in ENTRIES if not name.startswith("Encoding")])
def test_numbers_of_any_type_give_the_same_bits(name: str) -> None:
    function, arrays = ENTRIES[name]
    expected = plain(function(*arrays))
    for i, array in enumerate(arrays):
        for dtype in TYPES[array.dtype.name]:
            changed = array.astype(dtype)
            if np.array_equal(changed, array):
                result = plain(function(*arrays[:i], changed, *arrays[i + 1 :]))
                assert result == expected, (i, dtype)


def test_what_is_no_array_of_numbers_is_refused() -> None:
    fit = ENTRIES["Model.fit"][0]
    for x in (X.astype(str), X.astype(object), X.astype(complex)):
        with pytest.raises(TypeError, match="Cannot cast array data from dtype"):
            fit(x, Y, WEIGHTS)
    with pytest.raises(TypeError, match="array must have 2 dimensions; got 1"):
        fit(X[:, 0], Y, WEIGHTS)
    # Labels are integers: a float that is rounded would be another class.
    with pytest.raises(TypeError, match="Cannot cast array data from dtype"):
        fit(X, LABELS + 0.5, WEIGHTS)


def test_the_type_of_cells_says_what_they_are() -> None:
    for cells in (CELLS[0].astype(np.float32), CELLS[1].astype(np.uint8), CELLS[3]):
        with pytest.raises(TypeError, match="CellArray"):
            _core.Encoding.table([("x", cells)], "{}")
