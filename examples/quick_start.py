"""Quick start: fit, predict with uncertainty, save and load.

Run with ``python examples/quick_start.py``; BAYESPC_QUICK=1 cuts training short, to try the script only.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import train_test_split

import bayespc
from bayespc import BPCClassifier, BPCRegressor

epochs = 3 if os.environ.get("BAYESPC_QUICK") else 100

# A regressor, like any of scikit-learn's. Its five networks and their priors are chosen from the data.
X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = BPCRegressor(max_iter=epochs, random_state=0).fit(X_train, y_train)
chosen = [plan["network"]["prior"]["var"] for plan in model.plans_]
print(f"diabetes: {len(model.candidates_)} candidates tried, prior variances {chosen} chosen")
print(f"R² = {model.score(X_test, y_test):.2f}")

# Every prediction is a distribution.
mean, std = model.predict(X_test, return_std=True)
lower, upper = model.predict_interval(X_test, coverage=0.9)
inside = np.mean((lower < y_test) & (y_test < upper))
print(
    f"first prediction {mean[0]:.0f} ± {std[0]:.0f}; 90 % intervals hold {100 * inside:.0f} % of the test set"
)

# Inside the data uncertainty is mostly aleatoric, which is noise; far outside it is epistemic: not known.
aleatoric, epistemic = model.decompose(X_test)
far = X_test.iloc[:1] * 20
print(
    f"epistemic share of the variance: {np.mean(epistemic / (aleatoric + epistemic)):.2f} in the test set, ",
    end="",
)
print(f"{model.ood_score(far)[0]:.2f} far outside it")

# A classifier, with labels of any type.
iris = load_iris()
labels = iris.target_names[iris.target]
X_train, X_test, y_train, y_test = train_test_split(iris.data, labels, random_state=0, stratify=labels)
classifier = BPCClassifier(max_iter=epochs, random_state=0).fit(X_train, y_train)
print(f"iris: accuracy {classifier.score(X_test, y_test):.2f}; first flower:", end=" ")
probabilities = classifier.predict_proba(X_test[:1])[0].round(3)
print(dict(zip(classifier.classes_.tolist(), probabilities.tolist(), strict=True)))

# One file, which the command `bayespc` reads as well.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "iris.safetensors"
    classifier.save(file)
    again = bayespc.load(file)
    assert (again.predict(X_test) == classifier.predict(X_test)).all()
    print(f"saved and loaded: {file.stat().st_size / 1024:.0f} KiB")
