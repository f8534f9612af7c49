"""Missing cells filled in, beside what else there is: RMSE and log density of cells that were removed.

    pip install .
    python scripts/imputing.py [--data FOLDER] [--seeds 3] [--share 0.2] [--only digits swiss_roll]

A share of all cells is removed at random from digits (8 by 8 pixels) and a swiss roll, both from
scikit-learn, and from the six benchmark tables, which FOLDER (or BAYESPC_DATA) holds as the command fetches
them. Errors are in deviations of the column's cells that are left. The log density is that of the removed
cells of a row together, given the others, per cell; column means have independent normal distributions, and
scikit-learn's imputers give none. PPCA is the exact maximum-likelihood model, by EM with holes, with as many
latents as predict cells best that it has not seen. Two rows of Markdown for each table, errors and densities:
mean over seeds ± their standard deviation, and what each seed chose.
"""

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_swiss_roll
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from bayespc import BPCImputer

Array = np.ndarray
Score = tuple[float, float, str]
TABLES = ("yacht", "energy", "concrete", "housing", "wine", "power")
LATENTS = (1, 2, 3, 5, 8, 12, 18, 27, 41)


def table(name: str, folder: Path) -> Array:
    """Return a table without holes and constant columns."""
    match name:
        case "digits":
            X = load_digits().data
        case "swiss_roll":
            X = make_swiss_roll(1500, noise=0.1, random_state=0)[0]
        case _:
            X = np.loadtxt(folder / "uci" / name / "data.csv", delimiter=",", skiprows=1)
    return X[:, X.std(axis=0) > 0]


class Ppca:
    """Probabilistic principal components with holes (Tipping and Bishop 1999), by EM."""

    def __init__(self, latents: int, steps: int = 200) -> None:
        self.latents, self.steps = latents, steps

    def fit(self, X: Array) -> "Ppca":
        """Learn from the cells that are there."""
        there = ~np.isnan(X)
        filled = np.where(there, X, 0.0)
        self.mean = filled.sum(0) / there.sum(0)
        _, values, axes = np.linalg.svd(np.where(there, X - self.mean, 0.0), full_matrices=False)
        k = self.latents
        self.loadings = axes[:k].T * values[:k] / np.sqrt(len(X))
        self.noise = 0.5
        before = -np.inf
        for _ in range(self.steps):
            z, cov = self._latents(filled, there)
            phi = np.concatenate([z, np.ones((len(z), 1))], axis=1)
            second = phi[:, :, None] * phi[:, None]
            second[:, :k, :k] += cov
            sums = np.einsum("nd,nab->dab", there, second, optimize=True)
            cross = (there * filled).T @ phi
            weights = np.linalg.solve(sums + 1e-8 * np.eye(k + 1), cross[..., None])[..., 0]
            self.loadings, self.mean = weights[:, :k], weights[:, k]
            squares = (there * filled**2).sum() - np.einsum("da,da->", weights, cross)
            self.noise = max(squares / there.sum(), 1e-6)
            if self.noise > 0 and abs(before - self.noise) < 1e-6 * self.noise:
                break
            before = self.noise
        return self

    def _latents(self, filled: Array, there: Array) -> tuple[Array, Array]:
        outer = self.loadings[:, :, None] * self.loadings[:, None] / self.noise
        precision = np.eye(self.latents) + np.tensordot(there, outer, 1)
        pull = (there * (filled - self.mean)) @ self.loadings / self.noise
        cov = np.linalg.inv(precision)
        return np.einsum("nab,nb->na", cov, pull), cov

    def score(self, X: Array, holed: Array) -> tuple[float, float]:
        """Return RMSE and log density of the cells of X that `holed` lacks."""
        there = ~np.isnan(holed)
        z, cov = self._latents(np.where(there, holed, 0.0), there)
        mean = z @ self.loadings.T + self.mean
        total = 0.0
        for row in np.flatnonzero(~there.all(1)):
            gone = ~there[row]
            W = self.loadings[gone]
            S = W @ cov[row] @ W.T + self.noise * np.eye(len(W))
            error = (X - mean)[row, gone]
            total -= 0.5 * (error @ np.linalg.solve(S, error) + np.linalg.slogdet(2 * np.pi * S)[1])
        return rmse(X, mean, ~there), total / (~there).sum()

    def held_out(self, X: Array, holed: Array, hidden: Array) -> float:
        """Return the log density of `hidden` cells, each by itself, given those that `holed` has."""
        there = ~np.isnan(holed)
        z, cov = self._latents(np.where(there, holed, 0.0), there)
        mean = z @ self.loadings.T + self.mean
        spread = np.einsum("da,nab,db->nd", self.loadings, cov, self.loadings, optimize=True)
        density = -0.5 * (X - mean) ** 2 / (self.noise + spread)
        density -= 0.5 * np.log(2 * np.pi * (self.noise + spread))
        return float(density[hidden].mean())


def rmse(X: Array, filled: Array, gone: Array) -> float:
    """Return the error of the cells that were gone."""
    return float(np.sqrt(np.mean((filled - X)[gone] ** 2)))


def means(X: Array, holed: Array, seed: int) -> Score:
    """Score the mean of each column."""
    gone = np.isnan(holed)
    mean, std = np.nanmean(holed, axis=0), np.nanstd(holed, axis=0)
    density = -0.5 * ((X - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
    return rmse(X, np.broadcast_to(mean, X.shape), gone), float(density[gone].mean()), ""


def ppca(X: Array, holed: Array, seed: int) -> Score:
    """Score PPCA with the number of latents that predicts a tenth of the cells best."""
    fewer = np.where(np.random.default_rng([seed, 1]).random(X.shape) < 0.1, np.nan, holed)
    hidden = np.isnan(fewer) & ~np.isnan(holed)
    numbers = [k for k in LATENTS if k < X.shape[1]]
    best = max(numbers, key=lambda k: Ppca(k).fit(fewer).held_out(X, fewer, hidden))
    error, density = Ppca(best).fit(holed).score(X, holed)
    return error, density, str(best)


def iterative(X: Array, holed: Array, seed: int) -> Score:
    """Score scikit-learn's chained regressions."""
    return rmse(X, IterativeImputer(random_state=seed).fit_transform(holed), np.isnan(holed)), np.nan, ""


def neighbours(X: Array, holed: Array, seed: int) -> Score:
    """Score scikit-learn's nearest neighbours."""
    return rmse(X, KNNImputer().fit_transform(holed), np.isnan(holed)), np.nan, ""


def ours(X: Array, holed: Array, seed: int, parts: int | str = "auto") -> Score:
    """Score the default, or one linear layer."""
    imputer = BPCImputer(n_parts=parts, random_state=seed).fit(holed)
    gone = np.isnan(holed)
    rows = gone.any(axis=1)
    model = imputer.model_
    whole = model.log_density(np.ascontiguousarray(X[rows]))
    gain = whole - model.log_density(np.ascontiguousarray(holed[rows]))
    chosen = f"{imputer.n_latents_} × {imputer.n_parts_}"
    return rmse(X, imputer.transform(holed), gone), float(gain.sum() / gone.sum()), chosen


METHODS: dict[str, Callable[[Array, Array, int], Score]] = {
    "means": means,
    "PPCA": ppca,
    "IterativeImputer": iterative,
    "KNNImputer": neighbours,
    "BPCImputer, one part": lambda X, holed, seed: ours(X, holed, seed, 1),
    "BPCImputer": ours,
}


def main() -> None:
    """Remove, fill in, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BAYESPC_DATA", "data")))
    parser.add_argument("--seeds", type=int, default=3, help="how often cells are removed (3)")
    parser.add_argument("--share", type=float, default=0.2, help="share of cells to remove (0.2)")
    parser.add_argument("--only", nargs="+", default=["digits", "swiss_roll", *TABLES], help="tables")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    print("| | | " + " | ".join(METHODS) + " | latents × parts |")
    print("|---|---|" + "---|" * (len(METHODS) + 1))
    for name in arguments.only:
        X = table(name, arguments.data)
        found: dict[str, list[Score]] = {method: [] for method in METHODS}
        for seed in range(arguments.seeds):
            gone = np.random.default_rng(seed).random(X.shape) < arguments.share
            left = np.where(gone, np.nan, X)
            scale = np.nanstd(left, axis=0)
            scale[scale == 0] = 1
            standard = (X - np.nanmean(left, axis=0)) / scale
            for method, score in METHODS.items():
                found[method].append(score(standard, np.where(gone, np.nan, standard), seed))
        chosen = ", ".join(score[2] for score in found["BPCImputer"])
        errors = " | ".join(spread([score[0] for score in scores], "{:.3f}") for scores in found.values())
        densities = " | ".join(spread([score[1] for score in scores], "{:+.2f}") for scores in found.values())
        print(f"| {name} | RMSE | {errors} | {chosen} |")
        print(f"| | log density | {densities} | |", flush=True)


def spread(numbers: list[float], form: str) -> str:
    """Return mean ± standard deviation."""
    if np.isnan(numbers).any():
        return "–"
    mean = form.format(np.mean(numbers)).replace("-", "−")
    return f"{mean} ± {form.replace('+', '').format(np.std(numbers, ddof=1))}" if len(numbers) > 1 else mean


if __name__ == "__main__":
    main()
