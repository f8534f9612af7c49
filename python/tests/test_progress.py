"""Interrupts and progress bars. What could wait for ever runs in a process of its own, with a time limit."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from quick import quick_regressor

LIMIT = 60
"""Seconds after which a process has hung."""

PRELUDE = """
import os, signal, threading, time, warnings
import numpy as np
from bayespc import BPCRegressor, presets

# A background job ignores SIGINT, and so does what it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 10))
y = X[:, 0] + 0.1 * rng.normal(size=20_000)
pressed = []

def press(after):
    def now():
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(after, now)
    timer.daemon = True
    timer.start()

class Press:
    # Presses once `when` says so of the progress.
    def __init__(self, when):
        self.when = when
    def __call__(self, stage, share, loss, held_out):
        if not pressed and self.when(stage, share):
            press(0.0)
"""


@pytest.fixture(scope="module")
def much():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    return X, X[:, 0] + 0.1 * rng.normal(size=20_000)


def output(script):
    """Run a script in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_interrupt_of_the_search_is_raised_within_a_second():
    """Measured in processor time of all threads, which other programs cannot stretch."""
    printed = output("""
press(1.0)
model = BPCRegressor(random_state=0)
try:
    model.fit(X[:5000], y[:5000])
except KeyboardInterrupt:
    print(hasattr(model, "model_"), time.process_time() - pressed[0])
""")
    fitted, took = printed.split()
    assert fitted == "False"
    assert float(took) < 1.0


def test_an_interrupt_before_anything_useful_is_raised():
    printed = output("""
press(0.5)
try:
    BPCRegressor(**presets.fast(), max_iter=100_000, random_state=0).fit(X, y)
except KeyboardInterrupt:
    print(time.process_time() - pressed[0])
""")
    assert float(printed) < 1.0


@pytest.mark.parametrize("n_members", [1, 3])
def test_an_interrupt_of_the_training_keeps_what_is_useful(n_members):
    printed = output(f"""
import bayespc._base
from unittest import mock

class Bar(Press):
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass

bar = Bar(lambda stage, share: stage == "training" and share > 0.3)
model = BPCRegressor((10,), search=False, n_members={n_members}, max_iter=40, verbose=1, random_state=0)
with mock.patch.object(bayespc._base, "ProgressBar", lambda title: bar):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
print(time.process_time() - pressed[0])
print(*(str(warning.message) for warning in caught))
print(model.n_iter_, model.model_.interrupted, model.score(X, y) > 0.5)
""")
    took, warning, result = printed.splitlines()
    # The kept networks are settled on all the data, which takes about an epoch each.
    assert float(took) < 3.0
    kept = model_count(warning, n_members)
    assert 1 <= kept <= n_members
    epochs, interrupted, learned = result.split()
    assert int(epochs) < 40 and interrupted == "True" and learned == "True"


def model_count(warning, n_members):
    begin, end = "Training interrupted: ", f" of {n_members} networks are kept."
    assert warning.startswith(begin) and warning.endswith(end), warning
    return int(warning[len(begin) : -len(end)])


def test_another_exception_of_a_signal_handler_is_raised():
    printed = output("""
class Alarm(Exception):
    pass

def ring(number, frame):
    raise Alarm

signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    BPCRegressor(**presets.fast(), max_iter=100_000, random_state=0).fit(X, y)
except Alarm:
    print("rung")
""")
    assert printed == "rung\n"


def test_other_threads_run_while_a_model_is_fitted(much):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    started = time.monotonic()
    try:
        quick_regressor(max_iter=2, random_state=0).fit(*much)
        took = time.monotonic() - started
    finally:
        done.set()
        thread.join(LIMIT)
    assert len(ticks) > 10 * took


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_verbose_shows_stage_share_and_scores(much, capfd, monkeypatch, with_tqdm):
    from bayespc import BPCRegressor

    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    X, y = (part[:300] for part in much)
    BPCRegressor((8,), max_iter=30, n_members=2, verbose=1, random_state=0).fit(X, y)
    shown = capfd.readouterr().err
    assert "BPCRegressor: choosing settings" in shown
    assert "BPCRegressor: training" in shown and "100" in shown
    assert "loss" in shown and "held-out density" in shown
