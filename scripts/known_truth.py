"""The default where the truth is known: whether intervals cover, and noise and ignorance are told apart.

    pip install ".[plots]"  &&  python scripts/known_truth.py [--tables 5] [--out FOLDER]

Tables are drawn from known functions with known noise, the default is fitted, and 500 new rows of each are
predicted. Two Markdown tables: the share of new targets inside intervals of 50, 80, 90 and 99 %, with the
standard error over tables; and the mean variance that is called noise and ignorance beside what they are. The
probability integral transforms of all rows are drawn as a histogram (coverage.svg in FOLDER), each of whose
bars should be 1 high.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bayespc import BPCRegressor

Array = np.ndarray
LEVELS = (0.5, 0.8, 0.9, 0.99)
NEW = 500


def friedman(X: Array) -> Array:
    """Return Friedman's first function, of five columns."""
    first = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return first + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "friedman": friedman,
    "linear": lambda X: X @ np.arange(1.0, 6.0),
    "sine": lambda X: 3 * np.sin(6 * X[:, 0]),
    "nothing": lambda X: np.zeros(len(X)),
}


def noises(rng: np.random.Generator, X: Array) -> Iterator[tuple[str, Array, Array]]:
    """Yield name, variance and draws of each kind of noise, of variance 1 on average."""
    n = len(X)
    yield "normal", np.ones(n), rng.normal(size=n)
    std = 0.3 + 1.4 * X[:, 4]
    std = std / np.sqrt(np.mean(std**2))
    yield "grows with a column", std**2, std * rng.normal(size=n)
    yield "heavy tails (t, 4)", np.ones(n), rng.standard_t(4, size=n) / np.sqrt(2)
    yield "skewed (exponential)", np.ones(n), rng.exponential(size=n) - 1


def main() -> None:
    """Fit, predict and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=5, help="tables of each kind (5)")
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 400, 1600], help="rows to learn from")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where coverage.svg goes (out)")
    arguments = parser.parse_args()
    # All together come first, then each way to take them apart.
    order = ["all", *(f"{rows} rows" for rows in arguments.rows), *FUNCTIONS]
    covered: dict[str, list[Array]] = {key: [] for key in order}
    parts: dict[str, list[Array]] = {key: [] for key in order}
    transforms = []
    for rows in arguments.rows:
        for name, function in FUNCTIONS.items():
            for table in range(arguments.tables):
                rng = np.random.default_rng([rows, len(name), table])
                X = rng.uniform(size=(rows + NEW, 5))
                truth = function(X)
                for noise, variance, draws in noises(rng, X):
                    y = truth + draws
                    model = BPCRegressor(random_state=table).fit(X[:rows], y[:rows])
                    distribution = model.predict_dist(X[rows:])
                    pit = np.asarray(distribution.cdf(y[rows:]))
                    transforms.append(pit)
                    inside = [np.mean(np.abs(pit - 0.5) <= level / 2) for level in LEVELS]
                    for key in (f"{rows} rows", name, f"noise: {noise}", "all"):
                        covered.setdefault(key, []).append(np.array(inside))
                    aleatoric, epistemic = model.decompose(X[rows:])
                    error = np.mean((model.predict(X[rows:]) - truth[rows:]) ** 2)
                    said = [np.mean(aleatoric), np.mean(epistemic)]
                    for key in (f"{rows} rows", name, "all"):
                        parts[key].append(np.array([variance[rows:].mean(), error, *said]))
    print(f"| of {len(transforms)} tables | " + " | ".join(f"{level:.0%}" for level in LEVELS) + " |")
    print("|---|" + "---|" * len(LEVELS))
    for key, values in covered.items():
        mean, spread = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(len(values))
        cells = " | ".join(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))
        print(f"| {key} | {cells} |")
    print("\n| | noise | called noise | squared error | called ignorance |\n|---|---|---|---|---|")
    for key, values in parts.items():
        noise, error, aleatoric, epistemic = np.mean(values, axis=0)
        print(f"| {key} | {noise:.2f} | {aleatoric:.2f} | {error:.3f} | {epistemic:.3f} |")
    draw(np.concatenate(transforms), arguments.out)


def draw(pit: Array, folder: Path) -> None:
    """Draw the histogram of the transforms."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
    counts, edges = np.histogram(pit, bins=20, range=(0, 1))
    ax.bar(edges[:-1], counts * 20 / len(pit), width=0.05, align="edge", color="#2a78d6", edgecolor="white")
    ax.axhline(1, color="#6b7280", linewidth=1)
    ax.set(xlabel="distribution function at the new target", ylabel="density", xlim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "coverage.svg")


if __name__ == "__main__":
    main()
