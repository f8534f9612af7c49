"""Layers of wide networks as parts of an ONNX graph: what they keep, and no matrix of width².

With R of the units' own part, diagonal or in blocks, and orthonormal directions Q,

    φᵀVφ = ‖Rφ − Q a‖² + Σ_j κ_j a_j² ,   a = Qᵀ R φ

With R = V⁰^½, directions Q and lengths s of B and κ = 1/(1 + s²) it is that of a sketch,
V⁻¹ = V⁰^−½ (I + B Bᵀ) V⁰^−½; with R = D^−½ and the directions of R B that of blocks, V⁻¹ = D + B Bᵀ.
The metric of a hidden layer is r I + U diag(λ) Uᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ._onnx_graph import Graph
from ._validation import Array

ROUNDING = 1e-11
"""Directions whose squared length, beside the longest, is less than this are rounding."""


class WideLayer:
    """A layer of a wide network, from its tensors."""

    def __init__(self, tensor: Callable[[str], Array], has: Callable[[str], bool]) -> None:
        self.mean = tensor("mean")
        d_post, d_pre = self.mean.shape
        numbers = tensor("numbers")
        self.dof = float(numbers[0]) + d_post - d_pre + 1.0
        self.noise = np.zeros((0, 0))
        if has("noise.inv_scale"):
            self.noise = tensor("noise.inv_scale") / (self.dof - d_post - 1.0)
        else:
            self._ridge = float(numbers[-1])
            self._basis = tensor("noise.basis").T
            self._values = tensor("noise.values")
        prior = tensor("columns.prior")
        if has("columns.dense"):
            lower = np.tril(tensor("columns.dense"))
            self._own: list[Array] = [_inverse_root(lower, prior)]
            self._directions = np.zeros((d_pre, 0))
        elif has("columns.sketch"):
            # Its units are those of the prior.
            self._own = [np.ones((1, 1)) / np.sqrt(precision) for precision in prior]
            self._directions = _directions(tensor("columns.sketch").T)
        else:
            shared = _directions(tensor("columns.shared").T)
            blocks: list[Array] = []
            start = 0
            while has(f"columns.blocks.{len(blocks)}"):
                block = np.tril(tensor(f"columns.blocks.{len(blocks)}"))
                own = shared[start : start + len(block)]
                rest = block - np.tril(own @ own.T)
                np.fill_diagonal(rest, np.maximum(np.diag(rest), 0.0))
                blocks.append(_inverse_root(rest, prior[start : start + len(block)]))
                start += len(block)
            self._own = blocks
            ends = np.cumsum([len(block) for block in blocks])[:-1]
            parts = np.split(shared, ends)
            self._directions = np.concatenate(
                [block @ part for block, part in zip(blocks, parts, strict=True)]
            )

    def leverage(self, graph: Graph, x: str) -> str:
        """Return φᵀVφ of every row, (n, 1)."""
        one = graph.add(graph.mul(graph.column(x, 0), 0.0), 1.0)
        pre = graph.beside([x, one])
        if all(len(block) == 1 for block in self._own):
            white = graph.mul(pre, np.concatenate([block[0] for block in self._own]))
        else:
            white = graph.beside(list(self._whitened(graph, pre)))
        if not self._directions.shape[1]:
            return graph.total(graph.square(white), 1, keep=True)
        basis, lengths, _ = np.linalg.svd(self._directions, full_matrices=False)
        along = graph.matmul(white, basis)
        across = graph.sub(white, graph.matmul(along, basis.T))
        weighted = graph.mul(graph.square(along), 1.0 / (1.0 + lengths**2))
        return graph.add(graph.total(graph.square(across), 1, keep=True), graph.total(weighted, 1, keep=True))

    def _whitened(self, graph: Graph, pre: str) -> Iterator[str]:
        start = 0
        for block in self._own:
            places = list(range(start, start + len(block)))
            yield graph.matmul(graph.columns(pre, places), block.T)
            start += len(block)

    def white(self, graph: Graph, feedback: str) -> str:
        """Return rows whose products are those of ⟨Σ⁻¹⟩⁻¹, from feedback (n, K, d)."""
        along = graph.matmul(feedback, self._basis)
        across = graph.sub(feedback, graph.matmul(along, self._basis.T))
        return graph.op(
            "Concat",
            graph.mul(across, 1.0 / np.sqrt(self._ridge)),
            graph.mul(along, 1.0 / np.sqrt(self._values + self._ridge)),
            axis=2,
        )


def _inverse_root(lower: Array, prior: Array) -> Array:
    """Return C⁻¹ of C Cᵀ = A + diag(prior), from the lower triangle of A."""
    whole = lower + np.tril(lower, -1).T + np.diag(prior)
    return np.linalg.inv(np.linalg.cholesky(whole)).astype(np.float64)


def _directions(columns: Array) -> Array:
    """Return the columns turned to be orthogonal, without rounding among them."""
    basis, lengths, _ = np.linalg.svd(columns, full_matrices=False)
    kept = lengths**2 > ROUNDING * np.max(lengths**2, initial=0.0)
    return (basis * lengths)[:, kept]
