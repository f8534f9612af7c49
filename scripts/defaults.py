"""What the default estimators give on scikit-learn's tables, and how long one row takes to predict.

    pip install .  &&  python scripts/defaults.py

Diabetes over five random splits, breast cancer over five folds, digits and friedman1 on one split each.
"""

import time

import numpy as np
from sklearn import datasets
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

from bayespc import BPCClassifier, BPCRegressor


def one_row() -> None:
    """Print median times of one row through five networks of 50-50."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    model = BPCRegressor(search=False, n_members=5, random_state=0).fit(
        X, X[:, 0] + 0.3 * rng.normal(size=300)
    )
    for name, predict in [("predict", model.predict), ("predict_interval", model.predict_interval)]:
        times = []
        for _ in range(500):
            start = time.perf_counter()
            predict(X[:1])
            times.append(time.perf_counter() - start)
        print(f"one row, {name}: {1e6 * np.median(times):.0f} µs")


def regression(name: str, X: np.ndarray, y: np.ndarray, splits: int) -> None:
    """Print R² and coverage of 90 % intervals, averaged over random splits."""
    scores = []
    for seed in range(splits):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        model = BPCRegressor(random_state=0).fit(X_train, y_train)
        lower, upper = model.predict_interval(X_test, coverage=0.9)
        scores.append((model.score(X_test, y_test), np.mean((lower < y_test) & (y_test < upper))))
    r2, coverage = np.mean(scores, axis=0)
    print(f"{name}: R² {r2:.3f}, 90 % intervals cover {coverage:.3f} ({splits} splits)")


def classification(name: str, parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]) -> None:
    """Print accuracy and negative log-likelihood, averaged over the parts."""
    scores = []
    for X_train, X_test, y_train, y_test in parts:
        model = BPCClassifier(random_state=0).fit(X_train, y_train)
        scores.append((model.score(X_test, y_test), log_loss(y_test, model.predict_proba(X_test))))
    accuracy, loss = np.mean(scores, axis=0)
    print(f"{name}: accuracy {accuracy:.4f}, NLL {loss:.4f} ({len(parts)} parts)")


if __name__ == "__main__":
    one_row()
    regression("diabetes", *datasets.load_diabetes(return_X_y=True), splits=5)
    regression("friedman1", *datasets.make_friedman1(2000, noise=1.0, random_state=0), splits=1)
    X, y = datasets.load_breast_cancer(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    classification("breast cancer", [(X[a], X[b], y[a], y[b]) for a, b in folds])
    X, y = datasets.load_digits(return_X_y=True)
    classification("digits", [train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)])
