"""What learning at the exact equilibrium costs, beside the limit of weak feedback (docs/depth.md).

    python scripts/equilibrium.py [--data FOLDER] [--table concrete] [--splits 3] [--epochs 100]

FOLDER, by default BAYESPC_DATA, holds `uci/<name>/data.csv` and `splits.csv`. A network 50-50 with one output
learns by the feedback rule, written out here in NumPy. The precisions are self-consistent: of the output
p = 1/E[e e], of a hidden layer A_l = E[g g'] with a ridge, g = p e J_l, J_l the slope of the output in the
layer. Then p drops out: with B_l = E[e e J_l' J_l] / E[e e] the error of a layer is e B_l^-1 J_l'.

  weak      in the limit of weak feedback e is what is left of the target at the forward pass, r
  rest      at rest of the network linearised there it is r / (1 + h), h = sum_l J_l B_l^-1 J_l' the leverage
  mean      every sample of a batch is shrunk alike: r times the batch's mean of 1 / (1 + h)
  unequal   as at rest, but not smaller on the whole: r / (1 + h) over that mean

Nothing else differs. Printed: test RMSE of each split and their mean; the mean leverage in the last epoch,
and the spread of 1 / (1 + h) relative to its mean.
"""

import argparse
import itertools
import os
import pathlib

import numpy as np

DAMPING, TRUST, MEMORY, PRIOR_VAR, BATCH = 0.3, 0.2, 0.05, 10.0, 32


class Network:
    """Two hidden layers of 50 rectified units and one output; weights with the precision of their columns."""

    def __init__(self, width, way, rng):
        widths = (width, 50, 50, 1)
        self.way = way
        self.weights = [
            rng.uniform(-1, 1, size=(d, below + 1)) / np.sqrt(below)
            for below, d in itertools.pairwise(widths)
        ]
        self.precisions = [np.eye(weight.shape[1]) / PRIOR_VAR for weight in self.weights]
        self.feedback = [np.eye(len(weight)) for weight in self.weights[:-1]]
        self.noise = 1.0
        self.leverages = []

    def forward(self, x):
        """Return what each layer sees and what it gives."""
        seen, given = [with_bias(x)], []
        for weight in self.weights:
            given.append(seen[-1] @ weight.T)
            seen.append(with_bias(np.maximum(given[-1], 0.0)))
        return seen[:-1], given

    def slopes(self, given):
        """Return the derivative of the output in each hidden activity, a row for each sample."""
        row, found = np.ones_like(given[-1]), []
        for weight, z in zip(self.weights[:0:-1], given[-2::-1], strict=True):
            row = (row @ weight[:, :-1]) * (z > 0)
            found.insert(0, row)
        return found

    def learn(self, x, y, rate, n):
        """Learn from a batch."""
        seen, given = self.forward(x)
        residual, slopes = y - given[-1], self.slopes(given)
        metrics = [damped(memory / self.noise) for memory in self.feedback]
        solved = [np.linalg.solve(b, j.T).T for b, j in zip(metrics, slopes, strict=True)]
        pairs = zip(slopes, solved, strict=True)
        leverage = sum(np.sum(j * a, axis=1, keepdims=True) for j, a in pairs)
        self.leverages.append(leverage)
        factor = 1.0 / (1.0 + leverage)
        mean = factor.mean()
        left = residual * {"weak": 1.0, "rest": factor, "mean": mean, "unequal": factor / mean}[self.way]
        for layer, own in enumerate(solved):
            error = left * own
            error *= min(1.0, TRUST / (np.sqrt(np.mean(error**2)) + 1e-30))
            self.blend(layer, seen[layer], given[layer] + error, rate, n)
        self.blend(len(solved), seen[-1], y, rate, n)
        self.noise += MEMORY * (np.mean(left**2) - self.noise)
        for memory, slope in zip(self.feedback, slopes, strict=True):
            memory += MEMORY * ((left * slope).T @ (left * slope) / len(x) - memory)

    def blend(self, layer, seen, wanted, rate, n):
        """Blend the conjugate update of one layer in."""
        weight, old = self.weights[layer], self.precisions[layer]
        new = (1 - rate) * old + rate * (np.eye(len(old)) / PRIOR_VAR + n / len(seen) * seen.T @ seen)
        target = (1 - rate) * weight @ old + rate * n / len(seen) * wanted.T @ seen
        self.weights[layer], self.precisions[layer] = np.linalg.solve(new, target.T).T, new


def with_bias(x):
    """Return samples with a column of ones."""
    return np.hstack([x, np.ones((len(x), 1))])


def damped(covariance):
    """Return B with its ridge."""
    ridge = DAMPING * np.trace(covariance) / len(covariance) + 1e-12
    return covariance + ridge * np.eye(len(covariance))


def rmse(train, test, way, epochs, seed):
    """Return the test error in original units, the mean leverage and the spread of 1/(1 + h) at the end."""
    offset, scale = train.mean(0), train.std(0)
    scale[scale == 0] = 1.0
    x, y = np.split((train - offset) / scale, [-1], axis=1)
    rng = np.random.default_rng(seed)
    network, n = Network(x.shape[1], way, rng), len(x)
    total = epochs * -(-n // BATCH)
    step = 0
    for _ in range(epochs):
        network.leverages.clear()
        order = rng.permutation(n)
        for start in range(0, n, BATCH):
            rows = order[start : start + BATCH]
            rate = 0.005 + 0.5 * (0.3 - 0.005) * (1 + np.cos(np.pi * step / total))
            network.learn(x[rows], y[rows], rate, n)
            step += 1
    held_out = (test - offset) / scale
    error = network.forward(held_out[:, :-1])[1][-1][:, 0] - held_out[:, -1]
    leverage = np.concatenate(network.leverages)
    factor = 1.0 / (1.0 + leverage)
    return scale[-1] * np.sqrt(np.mean(error**2)), leverage.mean(), factor.std() / factor.mean()


def main():
    """Print a line for each way to learn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("BAYESPC_DATA"))
    parser.add_argument("--table", default="concrete")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    args = parser.parse_args()
    if args.data is None:
        raise SystemExit("where are the tables? Give --data FOLDER or set BAYESPC_DATA")
    folder = pathlib.Path(args.data) / "uci" / args.table
    table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)
    splits = (folder / "splits.csv").read_text().split()[: args.splits]
    for way in ("weak", "rest", "mean", "unequal"):
        found = []
        for seed, line in enumerate(splits):
            test = [int(i) for i in line.split(",")]
            found.append(rmse(np.delete(table, test, axis=0), table[test], way, args.epochs, seed))
        errors, leverage, spread = np.array(found).T
        each = " ".join(f"{error:.2f}" for error in errors)
        print(f"{way}: RMSE {errors.mean():.2f} ({each})", end=", ")
        print(f"leverage {leverage.mean():.1f}, spread {spread.mean():.2f}")


if __name__ == "__main__":
    main()
