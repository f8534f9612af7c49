"""Processes, threads and panics at the border to the compiled core."""

import os
import subprocess
import sys

import pytest

from bayespc import _core

LIMIT = 60
"""Seconds after which a process has hung."""

FORK = """
import multiprocessing as mp
import numpy as np
from bayespc import BPCRegressor, Network, datasets, presets

X = np.random.default_rng(0).normal(size=(500, 5))
y = X[:, 0]

def fit(seed):
    return BPCRegressor(**presets.fast(), max_iter=5, random_state=seed).fit(X, y).score(X, y)

def predict(_):
    return model.predict_interval(X)[0].sum()

def look(seed):
    network = Network.from_estimator(model)
    datasets.make_moons(100, random_state=seed)
    return network.predict(X).crps(X[:, :1]).sum() + network.posteriors[0].entropy()

before = [fit(0), fit(1)]
model = BPCRegressor(n_members=2, search=False, max_iter=5, random_state=0).fit(X, y)
here = predict(0)
# Enough rows to wake every thread.
model.predict_interval(np.tile(X, (20, 1)))
with mp.get_context("fork").Pool(2) as pool:
    assert pool.map_async(fit, range(2)).get({limit}) == before
    assert pool.map_async(predict, range(2)).get({limit}) == [here, here]
    assert pool.map_async(look, range(2)).get({limit}) == [look(0), look(1)]
print("returned")
"""


def output(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_children_fit_and_predict_the_same_bits():
    assert output(FORK.replace("{limit}", str(LIMIT))) == "returned\n"


def test_the_number_of_threads_is_set_by_the_environment_and_changes_no_bit():
    script = """
import os
import numpy as np
from bayespc import BPCRegressor
X = np.random.default_rng(0).normal(size=(200, 5))
model = BPCRegressor((8,), n_members=2, max_iter=5, random_state=0).fit(X, X[:, 0])
threads = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0
print(threads, model.predict(X).tobytes().hex())
"""
    # NumPy's own threads are left out.
    own = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    (one, ours), (four, theirs) = (output(script, RAYON_NUM_THREADS=n, **own).split() for n in "14")
    assert ours == theirs
    assert int(four) == int(one) + 3 or int(one) == 0


def test_a_panic_is_an_exception_like_any_other(capfd):
    with pytest.raises(RuntimeError, match="a defect in bayespc, please report it: on purpose"):
        _core._panic_for_tests()
    # And the next call works.
    assert len(_core.standard_splits(20, 1)) == 1
