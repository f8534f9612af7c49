"""The default estimators beside scikit-learn's on tables that come with scikit-learn: two Markdown tables.

    pip install .  &&  python scripts/small_tables.py

Five random splits of 70 to 30 (three of digits); means, and the seconds of one fit. Nothing is tuned.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import ARDRegression, BayesianRidge, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayespc import BPCClassifier, BPCRegressor

Array = np.ndarray
Table = tuple[Array, Array]


def calibration_error(probabilities: Array, y: Array) -> float:
    """Return the expected calibration error of the largest probability, in ten bins."""
    largest, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == y
    places = np.minimum((10 * largest).astype(int), 9)
    gaps = [abs(right[places == b].sum() - largest[places == b].sum()) for b in range(10)]
    return float(sum(gaps) / len(y))


def classes() -> Iterable[tuple[str, Table, int]]:
    """Return tables of classes and how often each is split."""
    yield "iris", datasets.load_iris(return_X_y=True), 5
    yield "wine", datasets.load_wine(return_X_y=True), 5
    yield "breast cancer", datasets.load_breast_cancer(return_X_y=True), 5
    imbalanced = datasets.make_classification(
        2000, 10, n_informative=5, weights=[0.97], flip_y=0.01, random_state=0
    )
    yield "imbalanced", imbalanced, 5
    yield "digits", datasets.load_digits(return_X_y=True), 3


def numbers() -> Iterable[tuple[str, Table, int]]:
    """Return tables of numbers and how often each is split."""
    yield "diabetes", datasets.load_diabetes(return_X_y=True), 5
    for name, make, noise in [
        ("friedman1", datasets.make_friedman1, 1.0),
        ("friedman2", datasets.make_friedman2, 125.0),
        ("friedman3", datasets.make_friedman3, 0.1),
    ]:
        yield name, make(1000, noise=noise, random_state=0), 5
    X, y = datasets.make_regression(250, 300, n_informative=2, noise=10.0, random_state=0)
    yield "wide", (X, y), 5
    # Counts, and amounts that are often 0: their mean is a product of what moves them.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    mean = np.exp(0.8 + 0.8 * X[:, 0] + 0.6 * np.sin(2 * X[:, 1]) + 0.4 * X[:, 2] * X[:, 3])
    yield "counts", (X, rng.poisson(mean).astype(float)), 5
    yield "amounts", (X, np.maximum(mean * np.exp(0.4 * rng.normal(size=1500)) - 1, 0)), 5


def normal_log_density(mean: Array, std: Array, y: Array) -> float:
    """Return the mean log density of y under normal predictions."""
    return float(np.mean(-0.5 * ((y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)))


def score_classes(model: Any, X: Array, y: Array) -> list[float]:
    """Return negative log-likelihood, accuracy and calibration error."""
    p = model.predict_proba(X)
    return [float(log_loss(y, p)), float(np.mean(p.argmax(axis=1) == y)), calibration_error(p, y)]


def score_numbers(model: Any, X: Array, y: Array) -> list[float]:
    """Return RMSE, log density and coverage of 90 % intervals; NaN where a model has no distribution."""
    if isinstance(model, BPCRegressor):
        distribution = model.predict_dist(X)
        mean, density = model.predict(X), float(np.mean(distribution.logpdf(y)))
        low, high = model.predict_interval(X, coverage=0.9)
    elif hasattr(model, "sigma_"):
        mean, std = model.predict(X, return_std=True)
        density = normal_log_density(mean, std, y)
        low, high = mean - 1.6449 * std, mean + 1.6449 * std
    else:
        mean, density, low = model.predict(X), float("nan"), None
    covered = float("nan") if low is None else float(np.mean((low < y) & (y < high)))
    return [float(np.sqrt(np.mean((mean - y) ** 2))), density, covered]


def compare(
    title: list[str],
    tables: Iterable[tuple[str, Table, int]],
    models: dict[str, Callable[[], Any]],
    score: Any,
) -> None:
    """Print a Markdown table of mean scores and seconds."""
    print("| " + " | ".join(["table", "method", *title, "seconds"]) + " |")
    print("|" + "---|" * (3 + len(title)))
    for name, (X, y), splits in tables:
        rows: dict[str, list[list[float]]] = {method: [] for method in models}
        for seed in range(splits):
            stratify = y if score is score_classes else None
            A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=stratify)
            for method, make in models.items():
                begun = time.perf_counter()
                model = make().fit(A, a)
                seconds = time.perf_counter() - begun
                rows[method].append([*score(model, B, b), seconds])
        for method, scores in rows.items():
            cells = ["" if np.isnan(mean) else f"{mean:.3g}" for mean in np.mean(scores, axis=0)]
            print(f"| {name} | {method} | " + " | ".join(cells) + " |", flush=True)
    print()


if __name__ == "__main__":
    compare(
        ["NLL", "accuracy", "ECE"],
        classes(),
        {
            "bayespc": lambda: BPCClassifier(random_state=0),
            "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
            "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
        },
        score_classes,
    )
    compare(
        ["RMSE", "log density", "covers"],
        numbers(),
        {
            "bayespc": lambda: BPCRegressor(random_state=0),
            "BayesianRidge": BayesianRidge,
            "ARDRegression": ARDRegression,
            "gradient boosting": lambda: HistGradientBoostingRegressor(random_state=0),
        },
        score_numbers,
    )
