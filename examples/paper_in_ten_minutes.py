"""The paper in ten minutes: one layer, two layers, its two kinds of uncertainty, and where its rule stalls.

Run with ``python examples/paper_in_ten_minutes.py``; BAYESPC_QUICK=1 cuts training short, to try the script
only.
"""

import os

import numpy as np

from bayespc import BPCClassifier, BPCRegressor, Network, datasets, presets

quick = bool(os.environ.get("BAYESPC_QUICK"))
epochs = 5 if quick else 100

# 1. A layer z = Wφ + noise has a conjugate posterior over W and the noise: learning is one addition.
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2))
Y = X @ [[1.5], [-0.5]] + 0.2 * rng.normal(size=(300, 1))
layer = Network(2, 1, hidden_layer_sizes=(), rule="relaxation", random_state=0)
layer.learn(X, Y)
noise = np.sqrt(layer.posteriors[0].expected_covariance()[0, 0])
print("1. one layer, one step: weights", layer.weights[0].round(2).tolist(), f"noise {noise:.2f}")

# 2. With hidden layers, the activities between are inferred: they descend the energy with both ends clamped.
network = Network(2, 1, hidden_layer_sizes=(8,), rule=presets.paper()["rule"], random_state=0)
network.learn(X, Y, n_total=len(X))
relaxed = network.relax(X, Y, {"optimiser": {"gradient": {"rate": None}}, "halve_steps": True})
print(f"2. relaxation lowers the energy from {relaxed.energy[0]:.0f} to {relaxed.energy[-1]:.0f}")

# 3. Two moons: few passes are enough (paper, Fig. 1).
X, y = datasets.make_moons(500, noise=0.1, random_state=0)
X_test, y_test = datasets.make_moons(2000, noise=0.1, random_state=1)
for passes in (1, 5) if quick else (1, 5, 20):
    model = BPCClassifier(**presets.fast(), max_iter=passes, random_state=0).fit(X, y)
    print(f"3. two moons after {passes:2d} epochs: accuracy {model.score(X_test, y_test):.3f}")

# 4. Aleatoric uncertainty: noise that grows with x is found as such by the variance node (paper, Fig. 2).
X, y = datasets.make_aleatoric(500, random_state=0)
model = BPCRegressor(**presets.fast(), noise="variance", max_iter=epochs, random_state=0).fit(X, y)
at = np.array([[-0.25], [0.0], [0.25]])
found, true = np.sqrt(model.decompose(at).aleatoric), 0.45 * (at[:, 0] + 0.5)
print("4. noise found", found.round(2).tolist(), "true", true.round(2).tolist())

# 5. Epistemic uncertainty: in the gap between the data it grows (paper, Fig. 2).
X, y = datasets.make_epistemic(100, random_state=0)
model = BPCRegressor(search=False, max_iter=epochs, random_state=0).fit(X, y)
gap, data = np.sqrt(model.decompose([[0.0], [4.0]]).epistemic)
print(f"5. epistemic std {gap:.1f} in the gap, {data:.1f} at the data")

# 6. The rule as printed stalls on deeper tasks; one backward sweep at its fixed point does not.
X = rng.uniform(-2, 2, size=(800, 3))
y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
X, X_test, y, y_test = X[:600], X[600:], y[:600], y[600:]
for name, settings in {
    "as printed": presets.paper() | {"method": "mean", "batch_size": 32},
    "relaxation, tied": presets.fast() | {"rule": "relaxation", "batch_size": 64},
    "feedback": presets.fast(),
}.items():
    model = BPCRegressor(**(settings | {"max_iter": min(40, epochs), "random_state": 0})).fit(X, y)
    print(f"6. {name:17s} R² = {model.score(X_test, y_test):.3f}")
