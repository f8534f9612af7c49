"""A fitted model as an ONNX graph, in double precision.

The graph does what the linearised predictor of the core does: columns become inputs, every network runs
forward and its outputs backward,

    epistemic = Σ_l (φᵀVφ) · G ⟨Σ⁻¹⟩⁻¹ Gᵀ ,   aleatoric = ⟨Σ⟩ or e^ℓ

calibration changes noise and doubt, the mixture is averaged and brought to the units of the target.
"""

from __future__ import annotations

import itertools
import json
import struct
from typing import Any

import numpy as np

from ._onnx_columns import encoded, features
from ._onnx_graph import Graph
from ._onnx_wide import WideLayer
from ._validation import Array

LEAKY_SLOPE = 0.01

PI_8 = np.pi / 8.0


def to_onnx(estimator: Any, path: Any = None) -> Any:
    """Export a fitted estimator as an ONNX model.

    The graph has one input, ``X`` of shape (n_samples, n_features) in float64, and outputs in float64: for a
    regressor ``mean``, ``aleatoric_variance`` and ``epistemic_variance``, each of shape
    (n_samples, n_outputs); for a classifier ``probabilities`` of shape (n_samples, n_classes). Scaling, codes
    of columns and calibration are inside. It predicts by the linearised method, whatever that of the
    estimator.

    An estimator that was fitted to a frame takes its columns as numbers: `onnx_input` makes them from a
    frame, and says what they are. Columns of free text cannot be exported, nor can networks with the
    activation "gelu", for which onnxruntime has no double precision.

    Parameters
    ----------
    estimator : BPCRegressor or BPCClassifier
        Fitted.
    path : str or path-like, default=None
        Where to write the model, if anywhere.

    Returns
    -------
    onnx.ModelProto

    See Also
    --------
    bayespc.onnx_input : Samples as the model takes them.
    """
    estimator._check_fitted()
    graph = Graph()
    columns = features(estimator)
    file = _File(estimator.model_.to_bytes())
    networks = _Networks(graph, file, encoded(graph, columns))
    notes = {"columns": json.dumps(columns)}
    if estimator.model_.classes:
        notes["classes"] = json.dumps([str(label) for label in estimator.classes_])
        outputs = [(networks.probabilities(), "probabilities", file.n_targets)]
    else:
        names = ("mean", "aleatoric_variance", "epistemic_variance")
        outputs = [
            (value, name, file.n_targets) for value, name in zip(networks.moments(), names, strict=True)
        ]
    model = graph.model(len(columns), outputs, notes)
    if path is not None:
        graph.onnx.save(model, str(path))
    return model


class _File:
    """A model file, read."""

    def __init__(self, content: bytes) -> None:
        (length,) = struct.unpack("<Q", content[:8])
        index: dict[str, Any] = json.loads(content[8 : 8 + length])
        self.header: dict[str, Any] = json.loads(index.pop("__metadata__")["bayespc"])
        self._index = index
        self._data = content[8 + length :]
        self.n_targets: int = self.header["n_targets"]

    def tensor(self, name: str) -> Array:
        entry = self._index[name]
        start, end = entry["data_offsets"]
        return np.frombuffer(self._data[start:end], dtype="<f8").reshape(entry["shape"]).copy()

    def layers(self, member: int, part: str) -> list[_Layer | WideLayer]:
        """Return the posteriors of a member's hidden layers or output blocks."""
        found: list[_Layer | WideLayer] = []
        while layer := self._layer(f"member.{member}.{part}.{len(found)}."):
            found.append(layer)
        return found

    def _layer(self, name: str) -> _Layer | WideLayer | None:
        if f"{name}numbers" in self._index:
            return WideLayer(lambda part: self.tensor(name + part), lambda part: name + part in self._index)
        if f"{name}posterior.count" in self._index:
            fields = ("pre_pre", "post_pre", "post_post", "count")
            return _Layer(*(self.tensor(f"{name}posterior.{field}") for field in fields))
        return None


class _Layer:
    """A layer's posterior, from its natural parameters."""

    def __init__(self, pre_pre: Array, post_pre: Array, post_post: Array, count: Array) -> None:
        d_post, d_pre = post_pre.shape
        self.mean: Array = np.linalg.solve(pre_pre, post_pre.T).T.astype(np.float64)
        inv_scale = post_post - self.mean @ post_pre.T
        inv_scale = 0.5 * (inv_scale + inv_scale.T)
        self.dof = float(count[0]) + d_post - d_pre + 1.0
        # φᵀVφ = ‖C⁻¹φ‖² for V⁻¹ = CCᵀ.
        self._inv_col_root: Array = np.linalg.inv(np.linalg.cholesky(pre_pre)).astype(np.float64)
        self._metric_root = np.linalg.cholesky(inv_scale) / np.sqrt(self.dof)
        self.noise = inv_scale / (self.dof - d_post - 1.0)

    def leverage(self, graph: Graph, x: str) -> str:
        """Return φᵀVφ of every row, (n, 1)."""
        return graph.total(graph.square(graph.affine(x, self._inv_col_root)), 1, keep=True)

    def white(self, graph: Graph, feedback: str) -> str:
        """Return rows whose products are those of ⟨Σ⁻¹⟩⁻¹, from feedback (n, K, d)."""
        return graph.matmul(feedback, self._metric_root)


class _Said:
    """What a network says: activity (n, d), epistemic and hidden covariance (n, K, K), output noise."""

    def __init__(self, activity: str, epistemic: str, hidden_noise: str | None, noise: Array) -> None:
        self.activity = activity
        self.epistemic = epistemic
        self.hidden_noise = hidden_noise
        self.noise = noise


class _Networks:
    """The networks of a model, and their mixture."""

    def __init__(self, graph: Graph, file: _File, columns: str) -> None:
        self.graph = graph
        self.file = file
        self.k = file.n_targets
        header = file.header
        self.temperature = header["settings"]["temperature"] * header["calibrated_temperature"]
        self.members: list[dict[str, Any]] = header["members"]
        weights = np.array([member["plan"]["weight"] for member in self.members])
        self.weights = weights / weights.sum()
        offset, scale = file.tensor("scaling.input.offset"), file.tensor("scaling.input.scale")
        # A single column's scale must not be next to a product.
        scaled = graph.sub(graph.div(columns, scale), offset / scale)
        codes = {own["bins"]: own for own in header["codes"]}
        bins = {member["plan"]["bins"] for member in self.members}
        self.inputs = {b: self._coded(columns, scaled, codes.get(b)) for b in sorted(bins)}
        self.dofs: list[float] = []
        self.said = [self._said(place) for place in range(len(self.members))]

    def _coded(self, columns: str, scaled: str, codes: dict[str, Any] | None) -> str:
        """Return standardised columns and their piecewise-linear codes."""
        if codes is None:
            return scaled
        graph = self.graph
        owners: list[int] = []
        bounds: list[tuple[float, float]] = []
        # Codes that go on outside the data, and how fast: the first of a column below, the last above.
        below: dict[int, float] = {}
        above: dict[int, float] = {}
        # Files of 0.1 do not say how fast: as fast as inside.
        rates = codes.get("ends") or [[1.0, 1.0]] * len(codes["edges"])
        for column, edges in enumerate(codes["edges"]):
            n = len(edges) - 1
            if n < 2:
                continue
            below[len(owners)], above[len(owners) + n - 1] = rates[column]
            owners.extend([column] * n)
            bounds.extend(itertools.pairwise(edges))
        if not owners:
            return scaled
        starts, ends = np.array(bounds, dtype=np.float64).T
        along = graph.div(graph.sub(graph.columns(columns, owners), starts), ends - starts)
        zeros, ones = np.zeros(len(owners)), np.ones(len(owners))
        code = graph.within(along, zeros, ones)
        for places, beyond in [
            (below, graph.op("Min", along, zeros)),
            (above, graph.op("Max", graph.sub(along, ones), zeros)),
        ]:
            rate = zeros.copy()
            rate[list(places)] = list(places.values())
            code = graph.add(code, graph.mul(beyond, rate))
        scaling = codes["scaling"]
        return graph.beside(
            [scaled, graph.div(graph.sub(code, np.array(scaling["offset"])), np.array(scaling["scale"]))]
        )

    def _said(self, place: int) -> _Said:
        graph, member = self.graph, self.members[place]
        hidden, blocks = self.file.layers(place, "hidden"), self.file.layers(place, "output")
        activation = member["plan"]["network"]["activation"]
        x = self.inputs[member["plan"]["bins"]]
        slopes: list[str] = []
        leverages: list[str] = []
        for layer in hidden:
            leverages.append(layer.leverage(graph, x))
            x, slope = _activated(graph, activation, graph.affine(x, layer.mean))
            slopes.append(slope)
        top = np.concatenate([block.mean for block in blocks])
        activity = graph.affine(x, top)
        epistemic = ""
        start = 0
        noise = np.zeros((len(top), len(top)))
        for block in blocks:
            rows = slice(start, start + len(block.mean))
            noise[rows, rows] = block.noise
            own = np.zeros_like(noise)
            own[rows, rows] = block.noise
            start = rows.stop
            leverage = graph.axis(block.leverage(graph, x), 2)
            part = graph.mul(leverage, own[None, : self.k, : self.k])
            epistemic = graph.add(epistemic, part) if epistemic else part
        hidden_noise: str | None = None
        # Rows of G, from the last hidden layer down.
        rows_above: Any = top[None, : self.k, :-1]
        for level in range(len(hidden) - 1, -1, -1):
            layer = hidden[level]
            feedback = graph.mul(rows_above, graph.axis(slopes[level], 1))
            white = layer.white(graph, feedback)
            reach = graph.matmul(white, graph.op("Transpose", white, perm=[0, 2, 1]))
            epistemic = graph.add(epistemic, graph.mul(graph.axis(leverages[level], 2), reach))
            if member["hidden_noise"]:
                # ⟨Σ⟩ = ⟨Σ⁻¹⟩⁻¹ ν/(ν − d − 1).
                part = graph.mul(reach, layer.dof / (layer.dof - len(layer.mean) - 1.0))
                hidden_noise = part if hidden_noise is None else graph.add(hidden_noise, part)
            rows_above = graph.matmul(feedback, layer.mean[:, :-1])
        self.dofs.append(min(block.dof - len(block.mean) + 1.0 for block in blocks))
        return _Said(activity, epistemic, hidden_noise, noise[: self.k, : self.k])

    def moments(self) -> tuple[str, str, str]:
        """Return mean and both variances of the targets, in their own units, each (n, d)."""
        graph, spread = self.graph, self.file.header["spread"]
        targets = list(range(self.k))
        parts: list[tuple[str, str, str]] = []
        for member, said in zip(self.members, self.said, strict=True):
            head = member["plan"]["network"]["head"]
            mean = graph.columns(said.activity, targets)
            if head["kind"] == "variance_node":
                noise = self._node_variance(said, head)
            else:
                noise = self._plus_hidden(np.diag(said.noise)[None, :], said)
            doubt = self._diagonal(said.epistemic)
            temperature = member["plan"]["temperature"]
            noise, doubt = graph.mul(noise, temperature), graph.mul(doubt, temperature)
            curve = member["plan"].get("curve")
            if curve is not None:
                mean, slope = _unbent(graph, curve, mean)
                noise, doubt = (graph.mul(variance, graph.square(slope)) for variance in (noise, doubt))
            if spread is not None:
                noise, doubt = _spread(graph, spread, noise, doubt)
            parts.append((mean, noise, doubt))
        mean, noise, doubt = (self._average([part[i] for part in parts]) for i in range(3))
        apart = self._average([graph.square(graph.sub(part[0], mean)) for part in parts])
        offset, scale = self.file.tensor("scaling.target.offset"), self.file.tensor("scaling.target.scale")
        unit = scale**2 * self._recalibrated()
        shape = np.zeros((1, self.k))
        noise = graph.add(graph.mul(noise, unit * self.temperature), graph.mul(graph.mul(mean, 0.0), shape))
        epistemic = graph.mul(graph.add(graph.mul(doubt, self.temperature), apart), unit)
        return graph.add(graph.mul(mean, scale), offset), noise, epistemic

    def probabilities(self) -> str:
        """Return the probabilities of the classes, (n, K)."""
        graph = self.graph
        parts: list[str] = []
        for member, said in zip(self.members, self.said, strict=True):
            head = member["plan"]["network"]["head"]
            mean = graph.columns(said.activity, list(range(self.k)))
            tau = float(member["plan"]["temperature"])
            if head["kind"] == "categorical":
                variance = self._plus_hidden(self._diagonal(said.epistemic), said)
                ratio = graph.op("Sqrt", graph.add(graph.mul(variance, PI_8), 1.0))
                logits = graph.div(graph.sub(graph.div(mean, ratio), 0.5), tau)
            else:
                logits = self._code_logits(said, head, mean, tau)
            parts.append(graph.op("Softmax", graph.div(logits, self.temperature), axis=1))
        return self._average(parts)

    def _code_logits(self, said: _Said, head: dict[str, Any], mean: str, tau: float) -> str:
        """Return C⁻¹μ − ½ diag C⁻¹ with C = τ (aleatoric + epistemic)."""
        graph = self.graph
        if head["kind"] == "variance_node":
            noise = graph.mul(graph.axis(self._node_variance(said, head), 2), np.eye(self.k)[None])
        else:
            noise = graph.constant(said.noise[None])
            if said.hidden_noise is not None:
                noise = graph.add(noise, said.hidden_noise)
        covariance = graph.mul(graph.add(noise, said.epistemic), np.full((1, self.k, self.k), tau))
        precision = _inverse(graph, covariance, self.k)
        scaled = graph.op("Squeeze", graph.matmul(precision, graph.axis(mean, 2)), np.array([2], np.int64))
        return graph.sub(scaled, graph.mul(self._diagonal(precision), 0.5))

    def _node_variance(self, said: _Said, head: dict[str, Any]) -> str:
        places = list(range(self.k, 2 * self.k))
        log_variance = self.graph.columns(said.activity, places)
        return self.graph.op(
            "Exp", self.graph.within(log_variance, float(head["floor"]), float(head["ceiling"]))
        )

    def _plus_hidden(self, variance: Any, said: _Said) -> Any:
        if said.hidden_noise is None:
            return variance
        return self.graph.add(variance, self._diagonal(said.hidden_noise))

    def _diagonal(self, matrices: str) -> str:
        return self.graph.total(self.graph.mul(matrices, np.eye(self.k)[None]), 2)

    def _average(self, parts: list[Any]) -> str:
        graph = self.graph
        sums = graph.mul(parts[0], float(self.weights[0]))
        for part, weight in zip(parts[1:], self.weights[1:], strict=True):
            sums = graph.add(sums, graph.mul(part, float(weight)))
        return sums

    def _recalibrated(self) -> Array:
        """Return by what conformal scores change the variance of each target."""
        header = self.file.header
        if header["conformal"] == 0:
            return np.ones(self.k)
        if header["spread"] is not None:
            dof = float(header["spread"]["dof"])
        else:
            heads = [member["plan"]["network"]["head"] for member in self.members]
            tails = [head.get("tail_dof", dof) for head, dof in zip(heads, self.dofs, strict=True)]
            dof = float(min(tails))
        return np.array([_residual_variance(self.file.tensor(f"conformal.{i}"), dof) for i in range(self.k)])


def _activated(graph: Graph, activation: str, z: str) -> tuple[str, str]:
    """Return f(z) and f′(z)."""
    if activation == "identity":
        return z, graph.add(graph.mul(z, 0.0), 1.0)
    if activation == "relu":
        return graph.op("Relu", z), graph.positive(z)
    if activation == "leaky_relu":
        slope = graph.op("Where", graph.op("Greater", z, 0.0), 1.0, LEAKY_SLOPE)
        return graph.mul(z, slope), slope
    if activation == "tanh":
        value = graph.op("Tanh", z)
        return value, graph.sub(1.0, graph.square(value))
    if activation == "gelu":
        raise ValueError("activation = 'gelu' cannot be exported: onnxruntime has no erf in double precision")
    sigmoid = graph.op("Sigmoid", z)
    slope = graph.mul(sigmoid, graph.sub(1.0, sigmoid))
    if activation == "sigmoid":
        return sigmoid, slope
    if activation == "softplus":
        tail = graph.op("Log", graph.add(graph.op("Exp", graph.op("Neg", graph.op("Abs", z))), 1.0))
        return graph.add(graph.op("Relu", z), tail), sigmoid
    if activation == "silu":
        return graph.mul(z, sigmoid), graph.add(sigmoid, graph.mul(z, slope))
    raise ValueError(f"activation = '{activation}' cannot be exported")


def _unbent(graph: Graph, curve: dict[str, float], z: str) -> tuple[str, str]:
    """Return the target whose logarithm is z, along tangents beyond the data, and its slope there."""
    within = graph.within(z, np.array([[curve["low"]]]), np.array([[curve["high"]]]))
    log = graph.add(graph.mul(within, np.array([[curve["spread"]]])), np.array([[curve["centre"]]]))
    value = graph.op("Exp", log)
    slope = graph.mul(value, np.array([[curve["spread"]]]))
    beyond = graph.mul(slope, graph.sub(z, within))
    return graph.add(graph.sub(value, np.array([[curve["zero"]]])), beyond), slope


def _spread(graph: Graph, spread: dict[str, float], noise: Any, doubt: str) -> tuple[str, str]:
    """Return noise and doubt as rows that networks had not seen ask for: `parts` of the core's spread."""
    near = graph.op("Min", doubt, spread["near"])
    known = graph.add(graph.mul(noise, spread["aleatoric"]), spread["floor"])
    known = graph.add(known, graph.mul(near, spread["epistemic"]))
    # Where both are 0 the doubt is, whatever the factor.
    sum_of_both = graph.op("Max", graph.add(near, noise), float(np.finfo(np.float64).tiny))
    own = graph.mul(near, graph.op("Min", graph.div(known, sum_of_both), spread["epistemic"]))
    far = graph.mul(graph.sub(doubt, near), spread["far"])
    return graph.sub(known, own), graph.add(own, far)


def _inverse(graph: Graph, matrices: str, k: int) -> str:
    """Return the inverses of positive definite matrices (n, k, k), by sweeps: ONNX has no operator for it."""
    swept = matrices
    for i in range(k):
        unit = np.eye(k)[i]
        column = graph.matmul(swept, unit)
        pivot = graph.total(graph.mul(column, unit), 1, keep=True)
        scaled = graph.div(graph.mul(column, 1.0 - unit), pivot)
        outer = graph.mul(graph.axis(scaled, 2), graph.axis(column, 1))
        rest = graph.mul(graph.sub(swept, outer), np.outer(1.0 - unit, 1.0 - unit)[None])
        side = graph.mul(graph.axis(scaled, 2), unit[None, None, :])
        below = graph.mul(graph.axis(scaled, 1), unit[None, :, None])
        corner = graph.mul(graph.axis(graph.div(-1.0, pivot), 2), np.outer(unit, unit)[None])
        swept = graph.add(graph.add(rest, corner), graph.add(side, below))
    return graph.op("Neg", swept)


def _residual_variance(scores: Array, dof: float) -> float:
    """Return E[Z²] of a residual whose size has these scores as quantiles, with a Student-t tail."""
    from scipy import stats  # pyright: ignore

    t: Any = stats.t if np.isfinite(dof) else stats.norm
    shape = (dof,) if np.isfinite(dof) else ()
    places, survivals = [0.0], [1.0]
    for rank, at in enumerate(scores, start=1):
        if at > places[-1]:
            places.append(float(at))
            survivals.append(1.0 - rank / (len(scores) + 1))
    if len(places) == 1 or not np.isfinite(places[-1]):
        return 1.0
    rate = -t.ppf(0.5 * survivals[-1], *shape) / places[-1]
    a, b = np.array(places[:-1]), np.array(places[1:])
    body = float((-np.diff(survivals) * (a * a + a * b + b * b) / 3.0).sum())
    x = rate * places[-1]
    tail, density = t.sf(x, *shape), t.pdf(x, *shape)
    if np.isfinite(dof):
        moment = (x * (dof + x * x) * density + dof * tail) / (dof - 2.0)
    else:
        moment = x * density + tail
    return body + 2.0 / rate**2 * float(moment)
