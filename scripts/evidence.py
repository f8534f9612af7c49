"""Would the evidence choose the prior's variance? Beside held-out densities, on training rows alone.

    python scripts/evidence.py [--data FOLDER] [--splits 5] [--tables yacht,housing,energy,concrete]

FOLDER, by default BAYESPC_DATA, holds `uci/<name>/data.csv` and `splits.csv`. Of each training part a fifth
is held out; one network (50-50, constant noise) learns from the rest with each V0. Printed per table, as
means over splits: the held-out log density, and minus the free energy per sample of all layers and of the
output layer alone; after a conjugate update that is the log evidence of a layer's data. Below it what is
lost in held-out density where every split takes the V0 of largest evidence instead of the best one.
"""

import argparse
import os
import pathlib

import numpy as np

from bayespc import BPCRegressor, presets

PRIOR_VARS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def scores(x, y, held_out, prior_var):
    """Return held-out log density, and the evidences of all layers and of the last one, per sample."""
    model = BPCRegressor(**presets.fast(), prior_var=prior_var, random_state=0).fit(
        x[~held_out], y[~held_out]
    )
    density = model.predict_dist(x[held_out]).logpdf(y[held_out]).mean()
    parts = model.free_energy(x[~held_out], y[~held_out])[0]
    evidence = (parts[:, 1] - parts[:, 0]) / (~held_out).sum()
    return density, evidence.sum(), evidence[-1]


def main():
    """Print a table per data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("BAYESPC_DATA"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tables", default="yacht,housing,energy,concrete")
    args = parser.parse_args()
    if args.data is None:
        raise SystemExit("where are the tables? Give --data FOLDER or set BAYESPC_DATA")
    for name in args.tables.split(","):
        folder = pathlib.Path(args.data) / "uci" / name
        table = np.loadtxt(folder / "data.csv", delimiter=",", skiprows=1)
        found = []
        for k, line in enumerate((folder / "splits.csv").read_text().split()[: args.splits]):
            train = np.delete(table, [int(i) for i in line.split(",")], axis=0)
            held_out = np.random.default_rng(k).permutation(len(train)) < len(train) // 5
            x, y = train[:, :-1], train[:, -1]
            found.append([scores(x, y, held_out, var) for var in PRIOR_VARS])
        found = np.array(found)
        print(f"{name}: V0, held-out log density, evidence of all layers, of the output layer")
        for var, (density, everything, output) in zip(PRIOR_VARS, found.mean(0), strict=True):
            print(f"  {var:6.1f} {density:9.3f} {everything:12.2f} {output:9.3f}")
        best = found[:, :, 0].max(1)
        for criterion, label in ((1, "all layers"), (2, "output layer")):
            picked = found[:, :, criterion].argmax(1)
            lost = (best - found[np.arange(len(found)), picked, 0]).mean()
            print(f"  lost by the evidence of {label:12s} {lost:.3f}")


if __name__ == "__main__":
    main()
