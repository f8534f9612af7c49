"""What a call costs beyond the fit itself: memory and time, measured on 10⁵ × 20 arrays and larger."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from quick import quick_classifier, quick_regressor

from bayespc import _base, _core
from bayespc._validation import checked_regression, checked_samples

PEAK = """
import re
import numpy as np
from bayespc import BPCRegressor, presets

def memory(what):
    # Not getrusage, whose peak is inherited from the process that started this one.
    with open("/proc/self/status") as status:
        return 1024 * int(re.search(what + r":\\s+(\\d+) kB", status.read())[1])

def estimator():
    quick = presets.fast()
    return BPCRegressor((4,), max_iter=1, batch_size=512, precision="{precision}", random_state=0, **quick)

n, d = 400_000, 20
X = np.empty((n, d))
for column in range(d):
    X[:, column] = np.arange(n) % (column + 2)
y = X[:, 3].copy()
# Whatever is loaded or allocated once does not count.
model = estimator().fit(X[:2000], y[:2000])
model.predict(X[:2000])
before = memory("VmRSS")
{action}
print((memory("VmHWM") - before) / X.nbytes)
"""


def copies_of_samples(action, precision="float64"):
    """Return by how many times the size of X `action` raises the peak of a fresh process's memory."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory is read from /proc, which is not here")
    script = PEAK.format(action=action, precision=precision)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_fitting_holds_one_working_copy_of_the_samples():
    # Standardised samples, 1; targets, their standardised copy and the order of samples, 1/20 each.
    assert copies_of_samples("estimator().fit(X, y)") < 1.25


def test_fitting_in_single_precision_holds_half_a_copy():
    assert copies_of_samples("estimator().fit(X, y)", "float32") < 0.75


def test_c_order_arrays_of_floats_reach_the_core_as_they_are():
    for dtype in (np.float64, np.float32):
        X = np.ones((10, 3), dtype=dtype)
        X[0] = 2.0
        model = quick_regressor((2,), max_iter=1).fit(X, X[:, 0])
        assert checked_regression(model, X, X[:, 0], None, reset=False)[0] is X
        assert checked_samples(model, X) is X


@pytest.mark.parametrize("kind", [quick_regressor, quick_classifier])
def test_a_call_of_fit_costs_little_more_than_the_core_s_fit(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 20))
    y = X[:, 0] + X[:, 1] ** 2
    inside = []

    def timed(call):
        def run(*arguments):
            started = time.perf_counter()
            result = call(*arguments)
            inside.append(time.perf_counter() - started)
            return result

        return run

    core = SimpleNamespace(Model=SimpleNamespace(fit=timed(_core.Model.fit)))
    monkeypatch.setattr(_base, "_core", core)
    started = time.perf_counter()
    kind(max_iter=3, random_state=0).fit(X, y if kind is quick_regressor else y > 1.0)
    total = time.perf_counter() - started
    # The rest is validation and labels: at three epochs of the hundred that are the default.
    assert total - sum(inside) < 0.05 * total, f"{sum(inside):.2f} s of {total:.2f} s"


def test_a_row_is_predicted_with_little_beside_the_core():
    X = np.random.default_rng(0).normal(size=(200, 8))
    model = quick_regressor((4,), max_iter=1, random_state=0).fit(X, X[:, 0])
    bounds = np.zeros((2, 1, 1))
    model.model_ = SimpleNamespace(predict=lambda *_: SimpleNamespace(interval=lambda _: bounds))
    row = X[:1].copy()

    def seconds():
        started = time.process_time()
        for _ in range(100):
            model.predict_interval(row)
        return (time.process_time() - started) / 100

    # Checks of X, the object that is returned, two views: a tenth of a millisecond at most.
    assert min(seconds() for _ in range(10)) < 1e-4
