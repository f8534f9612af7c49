"""Other programs on the benchmark's tables, as records beside those of `bayespc reproduce`.

    python scripts/peers_tables.py [--gaps] [--data FOLDER] [--tables wine,yacht] [--splits 9] [--only gp] OUT

Writes OUT/benchmark-peers.csv, on the standard splits, or with --gaps OUT/gaps-peers.csv; run
`bayespc reproduce benchmark --out OUT` or `bayespc reproduce gaps --out OUT` afterwards and it joins the
tables. What is there already is not run again. `make peers-tables` runs both in an environment of its own.
The programs, each where it is installed:

- NGBoost with its own settings (500 trees of depth 3, normal distribution);
- scikit-learn's Gaussian process, a squared-exponential kernel with one length per column and noise, its
  hyperparameters by marginal likelihood; at most 1000 training rows;
- MC dropout in JAX: 50-50 ReLU, rate 0.05, Adam, 300 epochs, 100 draws, noise from a tenth of the training
  rows;
- a deep ensemble in JAX: five 50-50 ReLU networks whose outputs are mean and log variance, by Adam on the
  Gaussian likelihood, 300 epochs, 200 for more than 3000 rows;
- XGBoost (500 trees of depth 6, rate 0.05, a random 80 % of the rows for each) and CatBoost with its own
  settings: errors, no densities.

With --gaps split f is made by column f: the rows are sorted by it, and the middle third is predicted from the
rest (`+gap` after the table's name) or the rest from the middle third (`+outside`). Unless told otherwise the
programs are then the Gaussian process, NGBoost and the deep ensemble.

FOLDER, by default BAYESPC_DATA, holds `uci/<name>/data.csv` and `splits.csv`. Inputs and targets are
standardised on the training part; scores are in original units. Seconds are those of fitting and predicting.
"""

import argparse
import csv
import importlib.util
import itertools
import os
import pathlib
import time
import warnings

import numpy as np

TABLES = ("housing", "concrete", "energy", "power", "wine", "yacht")
COLUMNS = ["experiment", "dataset", "learner", "split", "seed", "epoch", "metric", "value"]
NORMAL_90 = 1.6448536269514722
GP_ROWS = 1000


def ngboost(x, y, x_test, seed):
    """Return means and deviations, draws × rows."""
    from ngboost import NGBRegressor

    model = NGBRegressor(verbose=False, random_state=seed).fit(x, y)
    dist = model.pred_dist(x_test)
    return dist.loc[None], dist.scale[None]


def gp(x, y, x_test, seed):
    """Return means and deviations, draws × rows."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rows = np.random.default_rng(seed).permutation(len(x))[:GP_ROWS]
    kernel = ConstantKernel() * RBF(np.ones(x.shape[1])) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, random_state=seed).fit(x[rows], y[rows])
    mean, std = model.predict(x_test, return_std=True)
    return mean[None], std[None]


def adam(loss, params, inputs):
    """Minimise loss(params, *input) by Adam at 0.001, one step for each of `inputs`."""
    import jax
    import jax.numpy as jnp

    def step(state, given):
        params, m, v, t = state
        gradient = jax.grad(loss)(params, *given)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradient)
        params = jax.tree.map(
            lambda p, m, v: p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8),
            params,
            m,
            v,
        )
        return (params, m, v, t), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    (params, *_), _ = jax.lax.scan(step, (params, zeros, zeros, 0.0), inputs)
    return params


def first_weights(widths, rng):
    """Weights and biases of a ReLU network before training."""
    return [(rng.normal(size=(i, o)) * np.sqrt(2 / i), np.zeros(o)) for i, o in itertools.pairwise(widths)]


def shuffled_batches(rows, epochs, batch, rng):
    """Row numbers, steps × batch: every epoch in a new order, without what does not fill a batch."""
    count = rows // batch * batch
    order = np.stack([rng.permutation(rows)[:count] for _ in range(epochs)])
    return order.reshape(-1, batch)


def mc_dropout(x, y, x_test, seed, rate=0.05, epochs=300, batch=32, draws=100):
    """Return means and deviations, draws × rows."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    held, rows = order[: len(x) // 10], order[len(x) // 10 :]
    params = jax.tree.map(jnp.asarray, first_weights([x.shape[1], 50, 50, 1], rng))

    def forward(params, x, key):
        for weights, bias in params[:-1]:
            key, own = jax.random.split(key)
            kept = jax.random.bernoulli(own, 1 - rate, x.shape) / (1 - rate)
            x = jax.nn.relu((x * kept) @ weights + bias)
        key, own = jax.random.split(key)
        kept = jax.random.bernoulli(own, 1 - rate, x.shape) / (1 - rate)
        return ((x * kept) @ params[-1][0] + params[-1][1])[:, 0]

    train_x, train_y = jnp.asarray(x[rows]), jnp.asarray(y[rows])

    def loss(params, chosen, key):
        return ((forward(params, train_x[chosen], key) - train_y[chosen]) ** 2).mean()

    chosen = jnp.asarray(shuffled_batches(len(rows), epochs, batch, rng))
    keys = jax.random.split(jax.random.key(seed), len(chosen))
    params = adam(loss, params, (chosen, keys))
    keys = jax.random.split(jax.random.key(seed + 1), draws)
    predict = jax.jit(jax.vmap(lambda key, x: forward(params, x, key), in_axes=(0, None)))
    residual = np.asarray(predict(keys, jnp.asarray(x[held]))) - y[held]
    noise = np.sqrt((residual**2).mean())
    means = np.asarray(predict(keys, jnp.asarray(x_test)))
    return means, np.full_like(means, noise)


def deep_ensemble(x, y, x_test, seed, members=5, batch=32):
    """Return means and deviations, members × rows."""
    import jax
    import jax.numpy as jnp

    epochs = 300 if len(x) <= 3000 else 200
    rngs = np.random.default_rng(seed).spawn(members)
    networks = [first_weights([x.shape[1], 50, 50, 2], rng) for rng in rngs]
    params = jax.tree.map(lambda *each: jnp.asarray(np.stack(each)), *networks)
    chosen = jnp.asarray(np.stack([shuffled_batches(len(x), epochs, batch, rng) for rng in rngs]))
    train_x, train_y = jnp.asarray(x), jnp.asarray(y)

    def forward(params, x):
        for weights, bias in params[:-1]:
            x = jax.nn.relu(x @ weights + bias)
        out = x @ params[-1][0] + params[-1][1]
        # Far from the data a line can end anywhere; e^−14 is about the usual least variance of 10^−6.
        return out[:, 0], jnp.clip(out[:, 1], -14, 14)

    def loss(params, chosen):
        mean, log_var = forward(params, train_x[chosen])
        return 0.5 * (log_var + (train_y[chosen] - mean) ** 2 * jnp.exp(-log_var)).mean()

    params = jax.jit(jax.vmap(lambda params, chosen: adam(loss, params, (chosen,))))(params, chosen)
    mean, log_var = jax.vmap(forward, in_axes=(0, None))(params, jnp.asarray(x_test))
    return np.asarray(mean, float), np.exp(0.5 * np.asarray(log_var, float))


def xgboost(x, y, x_test, seed):
    """Return means, 1 × rows, and no deviations."""
    from xgboost import XGBRegressor

    model = XGBRegressor(n_estimators=500, learning_rate=0.05, max_depth=6, subsample=0.8, random_state=seed)
    return model.fit(x, y).predict(x_test)[None], None


def catboost(x, y, x_test, seed):
    """Return means, 1 × rows, and no deviations."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(silent=True, random_seed=seed, allow_writing_files=False)
    return model.fit(x, y).predict(x_test)[None], None


PROGRAMS = {
    "ngboost": (ngboost, "ngboost"),
    "gp": (gp, "sklearn"),
    "mc_dropout": (mc_dropout, "jax"),
    "deep_ensemble": (deep_ensemble, "jax"),
    "xgboost": (xgboost, "xgboost"),
    "catboost": (catboost, "catboost"),
}
GAP_PROGRAMS = ("gp", "ngboost", "deep_ensemble")


def quantile(mean, std, probability):
    """Quantiles of equal mixtures of normals, by bisection."""
    from scipy.special import ndtr

    low, high = (mean - 10 * std).min(0), (mean + 10 * std).max(0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = ndtr((middle - mean) / std).mean(0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)


def crps(mean, std, y):
    """Mean score of equal mixtures of normals: E|Y − y| − ½ E|Y − Y′|."""
    from scipy.special import ndtr

    def distance(shift, spread):
        z = shift / spread
        return shift * (2 * ndtr(z) - 1) + 2 * spread * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)

    first = distance(y - mean, std).mean(0)
    pairs = np.zeros_like(y)
    for k in range(len(mean)):
        pairs += distance(mean - mean[k], np.sqrt(std**2 + std[k] ** 2)).mean(0) / len(mean)
    return (first - 0.5 * pairs).mean()


def scores(mean, std, y, scale):
    """Scores in original units of standardised predictions; without deviations there is only an error."""
    error = {"rmse": np.sqrt(((mean.mean(0) - y) ** 2).mean()) * scale}
    if std is None:
        return error
    z = (y - mean) / std
    log = -0.5 * z * z - np.log(std) - 0.5 * np.log(2 * np.pi)
    lpd = (np.logaddexp.reduce(log, axis=0) - np.log(len(mean))).mean()
    inside = (quantile(mean, std, 0.05) < y) & (y < quantile(mean, std, 0.95))
    return error | {
        "lpd": lpd,
        "ll": lpd - np.log(scale),
        "crps": crps(mean, std, y) * scale,
        "coverage_90": inside.mean(),
    }


def standard_splits(name, folder, table, count):
    """Name in the records, number and test rows of each standard split."""
    for k, line in enumerate((folder / "splits.csv").read_text().split()[:count]):
        test = np.zeros(len(table), bool)
        test[[int(row) for row in line.split(",")]] = True
        yield name, k, test


def gap_splits(name, folder, table, count):
    """Name in the records, number and test rows: the middle third by each column, and all but it."""
    n = len(table)
    for column in range(table.shape[1] - 1)[:count]:
        middle = np.zeros(n, bool)
        middle[np.argsort(table[:, column], kind="stable")[n // 3 : 2 * n // 3]] = True
        yield f"{name}+gap", column, middle
        yield f"{name}+outside", column, ~middle


def main():
    """Run what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("BAYESPC_DATA"))
    parser.add_argument("--gaps", action="store_true")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only")
    args = parser.parse_args()
    if args.data is None:
        raise SystemExit("where are the tables? Give --data FOLDER or set BAYESPC_DATA")
    data = pathlib.Path(args.data)
    experiment, make_splits, programs = (
        ("gaps", gap_splits, GAP_PROGRAMS) if args.gaps else ("benchmark", standard_splits, tuple(PROGRAMS))
    )
    programs = args.only.split(",") if args.only else programs
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{experiment}-peers.csv"
    done = set()
    if path.is_file():
        with path.open() as lines:
            done = {
                (r["dataset"], r["learner"], int(r["split"]))
                for r in csv.DictReader(lines)
                if r["metric"] == "unit_records"
            }
    warnings.simplefilter("ignore")
    with path.open("a") as file:
        writer = csv.writer(file, lineterminator="\n")
        if path.stat().st_size == 0:
            writer.writerow(COLUMNS)
        for name in args.tables.split(","):
            folder = data / "uci" / name
            table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)
            for dataset, k, test in make_splits(name, folder, table, args.splits):
                train = table[~test]
                # A column that does not vary may have a deviation of rounding errors.
                scale = np.where(np.ptp(train, axis=0) > 0, train.std(0), 1)
                scaled = (table - train.mean(0)) / scale
                x, y, x_test, y_test = (
                    scaled[~test, :-1],
                    scaled[~test, -1],
                    scaled[test, :-1],
                    scaled[test, -1],
                )
                for learner in programs:
                    program, package = PROGRAMS[learner]
                    if (dataset, learner, k) in done or importlib.util.find_spec(package) is None:
                        continue
                    start = time.perf_counter()
                    predicted = program(x, y, x_test, k)
                    seconds = time.perf_counter() - start
                    values = scores(*predicted, y_test, scale[-1]) | {"seconds_fit": seconds}
                    values["unit_records"] = len(values)
                    unit = [experiment, dataset, learner, k, 0, ""]
                    writer.writerows([*unit, metric, float(value)] for metric, value in values.items())
                    file.flush()
                    shown = ", ".join(f"{metric} {value:.3f}" for metric, value in list(values.items())[:-1])
                    print(f"{dataset} {learner} split {k}: {shown}", flush=True)


if __name__ == "__main__":
    main()
