"""An abstaining classifier: leave to people what the model is unsure of.

Rows are sorted by how unsure the model is; the curve of risk against coverage says how many errors are left
among those it still answers. A classifier that knows what it does not know errs less the fewer it answers.

Run with ``python examples/abstaining_classifier.py``; BAYESPC_QUICK=1 cuts it short, to try the script only.
"""

import os

import numpy as np
from sklearn.model_selection import train_test_split

from bayespc import BPCClassifier, datasets, presets


def main():
    """Print the curve of risk and coverage, and set a threshold for a risk that is allowed."""
    quick = bool(os.environ.get("BAYESPC_QUICK"))
    X, y = datasets.make_moons(600 if quick else 3000, noise=0.35, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.4, random_state=0)
    model = BPCClassifier(**presets.fast(), random_state=0).fit(X, y)

    def doubt(X):
        return 1.0 - model.predict_proba(X).max(axis=1)

    unsure, wrong = doubt(X_test), model.predict(X_test) != y_test
    order = np.argsort(unsure)
    print("answered  errors among them")
    for share in (1.0, 0.9, 0.75, 0.5, 0.25):
        answered = order[: int(share * len(order))]
        print(f"  {100 * share:5.0f} %  {100 * wrong[answered].mean():6.1f} %")

    # The largest doubt at which held-out rows still keep to the risk that is allowed.
    allowed = 0.05
    held, held_wrong = doubt(X_held), model.predict(X_held) != y_held
    ranked = np.argsort(held)
    risks = held_wrong[ranked].cumsum() / np.arange(1, len(ranked) + 1)
    kept = np.flatnonzero(risks <= allowed)
    threshold = held[ranked[kept[-1]]] if len(kept) else 0.0
    answered = unsure <= threshold
    risk = wrong[answered].mean() if answered.any() else 0.0
    shares = f"answers {100 * answered.mean():.0f} % of new rows, {100 * risk:.1f} % of these wrong"
    print(f"{100 * allowed:.0f} % errors allowed: {shares}")


if __name__ == "__main__":
    main()
