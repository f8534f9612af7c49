"""Default fits of long and wide tables: seconds, peak memory and scores.

    pip install .  &&  python scripts/long_tables.py [rows|columns|mnist]

`rows` makes 102 000 rows of 20 columns and holds 2000 of them out. `columns` makes tables of far more
columns than rows, of which two or all tell something, and fits ridge and lasso beside, each chosen by
cross-validation. `mnist` takes the images as a plain array, with no word that they are images (BAYESPC_DATA
is a folder that has them).
"""

import gzip
import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.metrics import log_loss

from bayespc import BPCClassifier, BPCRegressor


def peak() -> str:
    """Return the largest memory of this process so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"


def unpacked(name: str, header: int) -> np.ndarray:
    """Return the bytes of one of MNIST's files."""
    path = Path(os.environ["BAYESPC_DATA"]) / "mnist" / f"{name}.gz"
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


def images(part: str) -> np.ndarray:
    """Return pixels, a row for each image."""
    return unpacked(f"{part}-images-idx3-ubyte", 16).reshape(-1, 784).astype(float)


def labels(part: str) -> np.ndarray:
    """Return digits."""
    return unpacked(f"{part}-labels-idx1-ubyte", 8).astype(int)


def rows() -> None:
    """Fit 100 000 rows of 20 columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(102_000, 20))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.5 * rng.normal(size=len(X))
    before, begun = peak(), time.perf_counter()
    model = BPCRegressor(random_state=0).fit(X[:100_000], y[:100_000])
    seconds, after = time.perf_counter() - begun, peak()
    error = np.sqrt(np.mean((model.predict(X[100_000:]) - y[100_000:]) ** 2))
    low, high = model.predict_interval(X[100_000:], coverage=0.9)
    covered = np.mean((low < y[100_000:]) & (y[100_000:] < high))
    print(f"100 000 × 20: {seconds:.0f} s, memory {before} before and {after} at most")
    print(f"RMSE {error:.3f} where the noise is 0.5; 90 % intervals cover {covered:.3f}")


def wide(n: int, d: int, telling: int, kept: str) -> str:
    """Fit n rows of d columns of which some tell something, and return a row of a table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 500, d))
    weights = np.where(np.arange(d) < telling, 2.0 / np.sqrt(telling), 0.0)
    y = X @ weights + 0.5 * rng.normal(size=len(X))
    before = peak()
    begun = time.perf_counter()
    model = BPCRegressor(wide_layers=kept, random_state=0).fit(X[:n], y[:n])
    seconds, after = time.perf_counter() - begun, peak()
    low, high = model.predict_interval(X[n:], coverage=0.9)
    covered = np.mean((low < y[n:]) & (y[n:] < high))
    cells = [f"{n} × {d}, {telling} tell, {kept}", f"{seconds:.1f}", f"{after} ({before})"]
    peers = [RidgeCV(np.logspace(-1, 5, 13)), LassoCV()]
    for fitted in (model, *(peer.fit(X[:n], y[:n]) for peer in peers)):
        cells.append(f"{np.sqrt(np.mean((fitted.predict(X[n:]) - y[n:]) ** 2)):.3f}")
    return "| " + " | ".join([*cells, f"{covered:.3f}"]) + " |"


def columns() -> None:
    """Fit tables of many columns, each in a process of its own, so that its memory is its own, too."""
    print("| table | seconds | memory at most (before) | RMSE | ridge | lasso | 90 % intervals cover |")
    print("|---|---|---|---|---|---|---|")
    shapes = [(150, 1500, 2), (150, 1500, 1500), (150, 3000, 2), (800, 3000, 3000), (150, 10_000, 2)]
    tables = [(150, 1500, 2, "dense"), *((*shape, "auto") for shape in shapes)]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.starmap(wide, tables, chunksize=1):
            print(row, flush=True)


def mnist() -> None:
    """Fit MNIST's pixels as if they were any columns."""
    X_train, X_test = images("train"), images("t10k")
    y_train, y_test = labels("train"), labels("t10k")
    begun = time.perf_counter()
    model = BPCClassifier(random_state=0).fit(X_train, y_train)
    seconds = time.perf_counter() - begun
    accuracy, loss = model.score(X_test, y_test), log_loss(y_test, model.predict_proba(X_test))
    print(f"MNIST, {X_train.shape[0]} × {X_train.shape[1]}: {seconds:.0f} s, memory {peak()} at most")
    print(f"accuracy {accuracy:.4f}, NLL {loss:.4f}")


if __name__ == "__main__":
    {"rows": rows, "columns": columns, "mnist": mnist}[sys.argv[1] if len(sys.argv) > 1 else "rows"]()
