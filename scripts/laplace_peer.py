"""Kronecker posteriors of laplace-torch and of `bayespc.from_weights` around the same weights.

    pip install torch laplace-torch . && python scripts/laplace_peer.py [--splits 3] [--only diabetes energy]

A network of PyTorch, tanh in its hidden layers, is trained on standardised rows of diabetes (scikit-learn)
and energy (UCI, by the benchmark's splits). Both posteriors are then made from the training rows, with the
same noise.

Factors. laplace-torch has the precision A ⊗ B / σ² + δ of the weights and B / σ² + δ of the biases of each
layer; how constants are shared by A and B is its own affair, so that shapes (each divided by its trace) and
the product of the traces are compared. Ours has the precision (V⁰⁻¹ + A) ⊗ (F + tr(F)/d) of weights and
biases together.

Predictions. δ of each layer is chosen as alike as it can be: the mean over its units of V⁰⁻¹ times our
precision of them. Beside it stands the δ that maximises laplace-torch's marginal likelihood, one for all
layers. What makes the difference is told by laws between the two, from the same factors: A ⊗ F + δ with
weights and biases together, the same with the ridge tr(F)/d in it, and ours.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from laplace import Laplace
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from torch.utils.data import DataLoader, TensorDataset

import bayespc

PRIOR_VAR = 10.0

TABLES = {"diabetes": ((10,), 0.05), "energy": ((50, 50), 1e-4)}
"""Hidden layers, and how much weights decay."""


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and target."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    loaded = bayespc.datasets.load_uci(name)
    return loaded.data, loaded.target


def trained(X: torch.Tensor, y: torch.Tensor, hidden: Sequence[int], decay: float) -> torch.nn.Sequential:
    """Return a network trained on all rows at once."""
    torch.manual_seed(0)
    widths = [X.shape[1], *hidden]
    layers: list[torch.nn.Module] = []
    for below, above in itertools.pairwise(widths):
        layers += [torch.nn.Linear(below, above), torch.nn.Tanh()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 2000)
    for _ in range(2000):
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(model(X), y)
        loss.backward()
        optimiser.step()
        schedule.step()
    return model


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference of two matrices, each divided by its trace, beside the largest entry."""
    a, b = a / np.trace(a), b / np.trace(b)
    return float(np.abs(a - b).max() / np.abs(a).max())


def factors(la: Laplace, posteriors: list[bayespc.MatrixNormalWishart], n: int) -> tuple[float, float, float]:
    """Return the largest differences over layers: of A, of F, and of the product of their traces."""
    sigma2 = float(la.sigma_noise) ** 2
    worst = np.zeros(3)
    for layer, posterior in enumerate(posteriors):
        B, A = (factor.numpy() for factor in la.H_facs.kfacs[2 * layer])
        (B_bias,) = (factor.numpy() for factor in la.H_facs.kfacs[2 * layer + 1])
        own = np.linalg.inv(posterior.col_cov) - np.eye(len(A) + 1) / PRIOR_VAR
        F = posterior.expected_precision()
        if layer < len(posteriors) - 1:
            F = F - 0.5 * np.trace(F) / len(F) * np.eye(len(F))
        traces = np.trace(A) * np.trace(B) / sigma2 / (np.trace(own[:-1, :-1]) * np.trace(F))
        # The bias has φ = 1 in every row.
        bias = np.trace(B_bias) / sigma2 / (own[-1, -1] * np.trace(F))
        found = difference(own[:-1, :-1], A), max(difference(F, B), difference(F, B_bias))
        worst = np.maximum(worst, [*found, max(abs(traces - 1), abs(bias - 1))])
        assert abs(own[-1, -1] / n - 1) < 1e-6
    return tuple(worst)


def between(
    model: torch.nn.Sequential, posteriors: list[bayespc.MatrixNormalWishart], X: np.ndarray
) -> dict[str, np.ndarray]:
    """Return epistemic deviations by laws between laplace-torch's and ours, of rows X."""
    layers = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
    pre, x = [], X
    for layer in layers:
        pre.append(np.column_stack([x, np.ones(len(x))]))
        x = np.tanh(pre[-1] @ np.column_stack([layer.weight.detach(), layer.bias.detach()]).T)
    variances = {"together": np.zeros(len(X)), "with a ridge": np.zeros(len(X)), "ours": np.zeros(len(X))}
    feedback = np.ones((len(X), 1))
    for level in range(len(layers) - 1, -1, -1):
        posterior = posteriors[level]
        if level < len(layers) - 1:
            slopes = 1.0 - pre[level + 1][:, :-1] ** 2
            feedback = (feedback @ layers[level + 1].weight.detach().numpy()) * slopes
        metric = posterior.expected_precision()
        delta = np.trace(metric) / len(metric) / PRIOR_VAR
        ridge = 0.5 * np.trace(metric) / len(metric) if level < len(layers) - 1 else 0.0
        columns, A = np.linalg.eigh(
            np.linalg.inv(posterior.col_cov) - np.eye(len(posterior.col_cov)) / PRIOR_VAR
        )
        units, F = np.linalg.eigh(metric)
        reach = np.einsum("ni,nj->nij", (pre[level] @ A) ** 2, (feedback @ F) ** 2)
        products = {
            "together": np.outer(columns, units - ridge) + delta,
            "with a ridge": np.outer(columns, units) + delta,
            "ours": np.outer(columns + 1.0 / PRIOR_VAR, units),
        }
        for name, precision in products.items():
            variances[name] += (reach / precision).sum(axis=(1, 2))
    return {name: np.sqrt(variance) for name, variance in variances.items()}


def scores(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> tuple[float, float, float]:
    """Return RMSE, log density and the share in 90 % intervals of normal distributions."""
    inside = np.abs(y - mean) < norm.ppf(0.95) * std
    return np.sqrt(np.mean((y - mean) ** 2)), np.mean(norm.logpdf(y, mean, std)), np.mean(inside)


def run(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, hidden: Sequence[int], decay: float
):
    """Return how factors differ, how epistemic deviations do, and scores by name."""
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    offset, scale = y[train].mean(), y[train].std()
    inputs, targets = torch.tensor(X[train]), torch.tensor((y[train] - offset) / scale)[:, None]
    model = trained(inputs, targets, hidden, decay)
    ours = bayespc.from_weights(
        model.state_dict(), X[train], targets.numpy()[:, 0], activation="tanh", prior_var=PRIOR_VAR
    )
    posteriors = bayespc.Network.from_estimator(ours).posteriors
    sigma = float(posteriors[-1].expected_precision()[0, 0]) ** -0.5
    la = Laplace(model, "regression", subset_of_weights="all", hessian_structure="kron", sigma_noise=sigma)
    la.fit(DataLoader(TensorDataset(inputs, targets), batch_size=len(train)))
    apart = factors(la, posteriors, len(train))

    alike = [np.trace(q.expected_precision()) / len(q.mean) / PRIOR_VAR for q in posteriors]
    dist = ours.predict_dist(X[test])
    epistemic = np.sqrt(ours.decompose(X[test]).epistemic)
    by_name, spreads = {}, {}
    laws = between(model, posteriors, X[test])
    # ⟨Σ⟩ of the output stands where the laws have ⟨Σ⁻¹⟩⁻¹: the difference of one row in n.
    assert np.abs(laws.pop("ours") / epistemic - 1).max() < 10.0 / len(train)
    for name in ("alike", "marginal likelihood"):
        if name == "alike":
            la.prior_precision = torch.tensor(np.repeat(alike, 2))
            variance = la(torch.tensor(X[test]), pred_type="glm")[1].detach().numpy()[:, 0, 0]
            steps = {law: np.median(deviation / np.sqrt(variance)) for law, deviation in laws.items()}
        else:
            la.prior_precision = 1.0
            la.optimize_prior_precision(method="marglik", pred_type="glm")
        mean, variance = la(torch.tensor(X[test]), pred_type="glm")
        mean, variance = mean.detach().numpy()[:, 0], variance.detach().numpy()[:, 0, 0]
        assert np.abs(mean - dist.mean).max() < 1e-6
        ratio = epistemic / np.sqrt(variance)
        spreads[name] = (
            np.corrcoef(epistemic, np.sqrt(variance))[0, 1],
            *np.quantile(ratio, [0.1, 0.5, 0.9]),
        )
        own = np.sqrt(variance + sigma**2)
        by_name[f"laplace-torch, δ {name}"] = scores(y[test], offset + scale * mean, scale * own)
    mean, std = ours.predict(X[test], return_std=True)
    by_name["`from_weights`"] = scores(y[test], offset + scale * mean, scale * std)
    by_name["noise alone"] = scores(y[test], offset + scale * mean, np.full(len(test), scale * sigma))
    return apart, spreads, steps, by_name


def main() -> None:
    """Print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(TABLES), help="tables")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_default_dtype(torch.float64)
    for name in arguments.only:
        X, y = table(name)
        splits = bayespc.datasets.standard_splits(len(y), arguments.splits)
        found = [run(X, y, train, test, *TABLES[name]) for train, test in splits]
        A, F, traces = np.max([apart for apart, _, _, _ in found], axis=0)
        print(f"{name}: factors differ by at most {A:.1e} (Σφφᵀ), {F:.1e} (F), {traces:.1e} (their traces)")
        for prior in found[0][1]:
            correlation, low, middle, high = np.mean([spreads[prior] for _, spreads, _, _ in found], axis=0)
            print(
                f"{name}: epistemic deviations, ours over laplace-torch's with δ {prior}: "
                f"{middle:.2f} ({low:.2f} to {high:.2f}), correlation {correlation:.3f}"
            )
        for law in found[0][2]:
            step = np.mean([steps[law] for _, _, steps, _ in found])
            print(f"{name}: {law}, over laplace-torch's: {step:.2f}")
        print(f"\n| {name} | RMSE | log density | in 90 % |\n|---|---|---|---|")
        for row in found[0][3]:
            values = [by_name[row] for _, _, _, by_name in found]
            means, errors = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(max(len(values) - 1, 1))
            cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True)]
            print(f"| {row} | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
