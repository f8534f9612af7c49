"""Tables with columns of noise added: a model finds them, or not, and predicts as well without them, or not.

    pip install .  &&  python scripts/pruning.py [--noise 50] [--seeds 3] [--tables concrete energy diabetes]

Of every table half is learned from, a quarter is for pruning and a quarter for the scores. The columns of
noise are normal. A Markdown table: how well columns of the table and columns of noise are told apart by
`bayespc.relevance` and by the order in which `bayespc.prune` silences them (area under the ROC curve; 0.5 is
chance, 1 all of them), how many of each are silenced, and root mean squared error and log density: of
networks with one prior variance for all inputs (`search.relevance = false`), of the default, of the default
when pruned, and of a fit that never saw the noise; all on the last quarter, as means over seeds.
"""

import argparse

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import roc_auc_score

import bayespc
from bayespc import BPCRegressor

Array = np.ndarray


def table(name: str) -> tuple[Array, Array]:
    """Return inputs and target of a table."""
    if name == "diabetes":
        return load_diabetes(return_X_y=True)
    data = bayespc.datasets.load_uci(name)
    return data.data, data.target


def scores(model: BPCRegressor, X: Array, y: Array) -> list[float]:
    """Return root mean squared error and mean log density."""
    return [
        float(np.sqrt(np.mean((model.predict(X) - y) ** 2))),
        float(np.mean(model.predict_dist(X).logpdf(y))),
    ]


def trial(X: Array, y: Array, n_noise: int, seed: int, tolerance: float) -> list[float]:
    """Return AUCs, shares silenced and scores of one split."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    wide = np.hstack([X, rng.normal(size=(len(X), n_noise))])
    learn, held = len(X) // 2, 3 * len(X) // 4
    model = BPCRegressor(random_state=seed).fit(wide[:learn], y[:learn])
    found = bayespc.prune(model, wide[learn:held], y[learn:held], tolerance=tolerance)
    is_real = np.arange(wide.shape[1]) < X.shape[1]
    costs = np.array(list(bayespc.relevance(model).values()))
    # Columns that were never tried without are the last to go.
    places = {name: place for place, (name, _, _) in enumerate(found.path)}
    rank = np.array([places.get(f"x{i}", len(is_real)) for i in range(len(is_real))])
    silent = np.isin([f"x{i}" for i in range(len(is_real))], found.silenced)
    one = BPCRegressor(search={"relevance": False}, random_state=seed).fit(wide[:learn], y[:learn])
    clean = BPCRegressor(random_state=seed).fit(X[:learn], y[:learn])
    return [
        float(roc_auc_score(is_real, costs)),
        float(roc_auc_score(is_real, rank)),
        float(silent[is_real].sum()),
        float(silent[~is_real].sum()),
        *scores(one, wide[held:], y[held:]),
        *scores(model, wide[held:], y[held:]),
        *scores(found.model, wide[held:], y[held:]),
        *scores(clean, X[held:], y[held:]),
    ]


def main() -> None:
    """Fit, prune and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tables", nargs="+", default=["concrete", "energy", "diabetes"], help="which tables"
    )
    parser.add_argument("--noise", type=int, default=50, help="columns of noise (50)")
    parser.add_argument("--seeds", type=int, default=3, help="splits of each table (3)")
    parser.add_argument(
        "--tolerance", type=float, default=0.01, help="what held-out log density may lose (0.01)"
    )
    arguments = parser.parse_args()
    kinds = ["one variance", "default", "pruned", "no noise"]
    heads = [f"RMSE, {kinds[0]}", *kinds[1:], f"log density, {kinds[0]}", *kinds[1:]]
    print("| table | AUC of relevance | of the order | silenced: own | noise | " + " | ".join(heads) + " |")
    print("|---|" + "---|" * 12)
    for name in arguments.tables:
        X, y = table(name)
        rows = [trial(X, y, arguments.noise, seed, arguments.tolerance) for seed in range(arguments.seeds)]
        a, b, own, noise, *both = np.mean(rows, axis=0)
        rmse = " | ".join(f"{value:.3g}" for value in both[::2])
        density = " | ".join(f"{value:.3f}" for value in both[1::2])
        found = f"{own:.1f} of {X.shape[1]} | {noise:.1f} of {arguments.noise}"
        print(f"| {name} | {a:.3f} | {b:.3f} | {found} | {rmse} | {density} |", flush=True)


if __name__ == "__main__":
    main()
