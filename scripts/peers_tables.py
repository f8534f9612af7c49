"""Other programs on the benchmark's tables and splits, as records beside those of `bayespc reproduce benchmark`.

    python scripts/peers_tables.py [--data FOLDER] [--splits 20] [--only ngboost,gp,mc_dropout] OUT

Writes OUT/benchmark-peers.csv; run `bayespc reproduce benchmark --out OUT` afterwards and it joins the tables. What is
there already is not run again. `make peers-tables` runs this in an environment of its own. The programs, each
where it is installed:

- NGBoost with its own settings (500 trees of depth 3, normal distribution);
- scikit-learn's Gaussian process, a squared-exponential kernel with one length per column and noise, its
  hyperparameters by marginal likelihood; at most 1000 training rows;
- MC dropout in JAX: 50-50 ReLU, rate 0.05, Adam, 300 epochs, 100 draws, noise from a tenth of the training rows.

FOLDER, by default BAYESPC_DATA, holds `uci/<name>/data.csv` and `splits.csv`. Inputs and targets are standardised
on the training part; scores are in original units.
"""

import argparse
import csv
import importlib.util
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


def mc_dropout(x, y, x_test, seed, rate=0.05, epochs=300, batch=32, draws=100):
    """Return means and deviations, draws × rows."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    held, rows = order[: len(x) // 10], order[len(x) // 10 :]
    widths = [x.shape[1], 50, 50, 1]
    params = [
        (jnp.asarray(rng.normal(size=(i, o)) * np.sqrt(2 / i)), jnp.zeros(o))
        for i, o in zip(widths[:-1], widths[1:], strict=True)
    ]

    def forward(params, x, key):
        for weights, bias in params[:-1]:
            key, own = jax.random.split(key)
            kept = jax.random.bernoulli(own, 1 - rate, x.shape) / (1 - rate)
            x = jax.nn.relu((x * kept) @ weights + bias)
        key, own = jax.random.split(key)
        kept = jax.random.bernoulli(own, 1 - rate, x.shape) / (1 - rate)
        return ((x * kept) @ params[-1][0] + params[-1][1])[:, 0]

    def loss(params, x, y, key):
        return ((forward(params, x, key) - y) ** 2).mean()

    def step(state, inputs):
        params, m, v, t = state
        chosen, key = inputs
        gradient = jax.grad(loss)(params, train_x[chosen], train_y[chosen], key)
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

    train_x, train_y = jnp.asarray(x[rows]), jnp.asarray(y[rows])
    zeros = jax.tree.map(jnp.zeros_like, params)
    batches = len(rows) // batch
    chosen = np.stack(
        [rng.permutation(len(rows))[: batches * batch].reshape(batches, batch) for _ in range(epochs)]
    )
    chosen = jnp.asarray(chosen.reshape(-1, batch))
    keys = jax.random.split(jax.random.key(seed), len(chosen))
    (params, *_), _ = jax.lax.scan(step, (params, zeros, zeros, 0.0), (chosen, keys))
    keys = jax.random.split(jax.random.key(seed + 1), draws)
    predict = jax.jit(jax.vmap(lambda key, x: forward(params, x, key), in_axes=(0, None)))
    residual = np.asarray(predict(keys, jnp.asarray(x[held]))) - y[held]
    noise = np.sqrt((residual**2).mean())
    means = np.asarray(predict(keys, jnp.asarray(x_test)))
    return means, np.full_like(means, noise)


PROGRAMS = {"ngboost": (ngboost, "ngboost"), "gp": (gp, "sklearn"), "mc_dropout": (mc_dropout, "jax")}


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
    """Scores in original units of standardised predictions."""
    z = (y - mean) / std
    log = -0.5 * z * z - np.log(std) - 0.5 * np.log(2 * np.pi)
    lpd = (np.logaddexp.reduce(log, axis=0) - np.log(len(mean))).mean()
    inside = (quantile(mean, std, 0.05) < y) & (y < quantile(mean, std, 0.95))
    return {
        "rmse": np.sqrt(((mean.mean(0) - y) ** 2).mean()) * scale,
        "lpd": lpd,
        "ll": lpd - np.log(scale),
        "crps": crps(mean, std, y) * scale,
        "coverage_90": inside.mean(),
    }


def main():
    """Run what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("BAYESPC_DATA"))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    args = parser.parse_args()
    if args.data is None:
        raise SystemExit("where are the tables? Give --data FOLDER or set BAYESPC_DATA")
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "benchmark-peers.csv"
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
        if not done:
            writer.writerow(COLUMNS)
        for name in TABLES:
            folder = args.data / "uci" / name
            table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)
            splits = (folder / "splits.csv").read_text().split()[: args.splits]
            for k, line in enumerate(splits):
                test = np.zeros(len(table), bool)
                test[[int(row) for row in line.split(",")]] = True
                mean, scale = table[~test].mean(0), table[~test].std(0)
                scaled = (table - mean) / np.where(scale > 0, scale, 1)
                x, y, x_test, y_test = (
                    scaled[~test, :-1],
                    scaled[~test, -1],
                    scaled[test, :-1],
                    scaled[test, -1],
                )
                for learner in args.only.split(","):
                    program, package = PROGRAMS[learner]
                    if (name, learner, k) in done or importlib.util.find_spec(package) is None:
                        continue
                    start = time.perf_counter()
                    predicted = program(x, y, x_test, k)
                    values = scores(*predicted, y_test, scale[-1])
                    values["seconds_fit"] = time.perf_counter() - start
                    for metric, value in values.items():
                        writer.writerow(["benchmark", name, learner, k, 0, "", metric, float(value)])
                    writer.writerow(
                        ["benchmark", name, learner, k, 0, "", "unit_records", float(len(values))]
                    )
                    file.flush()
                    print(
                        f"{name} {learner} split {k}: RMSE {values['rmse']:.3f}, LL {values['ll']:.3f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
