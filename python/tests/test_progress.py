import os
import signal
import threading
import time

import numpy as np
import pytest

from bayespc import BPCRegressor


@pytest.fixture(scope="module")
def much():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    return X, X[:, 0] + 0.1 * rng.normal(size=20_000)


def interrupt_after(seconds):
    pressed = []

    def press():
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(seconds, press).start()
    return pressed


@pytest.mark.parametrize("n_members", [1, 3])
def test_an_interrupt_stops_within_a_second_and_leaves_a_model(much, n_members):
    """Measured in processor time of all threads, which other programs cannot stretch."""
    X, y = much
    model = BPCRegressor(max_iter=100_000, n_members=n_members, random_state=0)
    pressed = interrupt_after(1.0)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(X, y)
    assert time.process_time() - pressed[0] < 1.0
    assert np.isnan(model.free_energy_)
    assert model.n_iter_ < 100_000
    assert model.score(X[:500], y[:500]) > 0.5


def test_another_exception_of_a_signal_handler_is_raised(much):
    class Alarm(Exception):
        pass

    def ring(number, frame):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(Alarm):
            BPCRegressor(max_iter=100_000, random_state=0).fit(*much)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_while_a_model_is_fitted(much):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    BPCRegressor(max_iter=2, random_state=0).fit(*much)
    took = time.monotonic() - started
    done.set()
    thread.join()
    assert len(ticks) > 10 * took


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_verbose_shows_a_bar_that_ends_full(much, capfd, monkeypatch, with_tqdm):
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    X, y = much
    BPCRegressor(hidden_layer_sizes=(4,), max_iter=1, verbose=1, random_state=0).fit(X, y)
    shown = capfd.readouterr().err
    assert "BPCRegressor" in shown and "100" in shown
