"""Deep networks: errors as variables of relaxation, and residual layers."""

import numpy as np
import pytest

from bayespc import BPCRegressor, Network

ERRORS = {"variables": "errors", "optimiser": {"gradient": {}}}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.sin(2 * X[:, :1]) + 0.5 * X[:, 1:2] + 0.1 * rng.normal(size=(200, 1))
    return X, y


def test_errors_come_to_rest_where_activities_do_and_sooner(table):
    X, y = table
    network = Network(
        3, 1, hidden_layer_sizes=(8, 8, 8), activation="tanh", rule="relaxation", random_state=0
    )
    network.learn(X, y)
    settings = {"hidden_precision": {"tied": 1.0}, "weight_uncertainty": 0.0, "tolerance": 1e-12}
    careful = {"sweep": "sequential", "halve_steps": True, "optimiser": {"gradient": {}}}
    slow = network.relax(X, y, settings | careful | {"steps": 5000})
    fast = network.relax(X, y, settings | ERRORS | {"steps": 200})
    assert slow.stop == fast.stop == "converged"
    assert len(fast.energy) < len(slow.energy) / 3
    for a, b in zip(fast.activities, slow.activities, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_the_first_step_of_errors_moves_every_layer(table):
    X, y = table
    network = Network(
        3, 1, hidden_layer_sizes=[6] * 20, rule="relaxation", settings={"residual": True}, random_state=0
    )
    forward = network.activities(X)
    for variables, first in (("activities", 19), ("errors", 0)):
        settings = {"steps": 1, "optimiser": {"gradient": {"rate": 0.01}}, "weight_uncertainty": 0.0}
        z = network.relax(X, y, settings | {"variables": variables}).activities[1:-1]
        moved = [not np.array_equal(a, b) for a, b in zip(z, forward[:-1], strict=True)]
        assert moved == [layer >= first for layer in range(20)]


def test_a_residual_network_begins_at_the_identity_and_learns(table):
    X, y = table
    rule = {"kind": "relaxation", **ERRORS, "hidden_precision": {"tied": 1.0}, "presynaptic": "forward"}
    rule |= {"weight_uncertainty": 0.0, "scale_batches": True, "schedule": {"constant": {"rate": 0.2}}}
    network = Network(
        3, 1, hidden_layer_sizes=[10] * 12, rule=rule, settings={"residual": True}, random_state=0
    )
    np.testing.assert_allclose(network.priors[5].mean, np.eye(10, 11), atol=1e-12)
    losses = [network.learn(X, y, n_total=400) for _ in range(40)]
    inputs = np.hstack([X, np.ones((200, 1))])
    linear = np.mean((y - inputs @ np.linalg.lstsq(inputs, y)[0]) ** 2)
    assert losses[-1] < 0.8 * linear < losses[0]


def test_estimators_take_errors_by_their_rule(table):
    X, y = table
    rule = {"kind": "relaxation", **ERRORS, "hidden_precision": {"tied": 1.0}, "presynaptic": "forward"}
    rule |= {
        "weight_uncertainty": 0.0,
        "scale_batches": True,
        "schedule": {"cosine": {"first": 0.6, "last": 0.01}},
    }
    model = BPCRegressor(
        rule=rule, search=False, n_members=1, hidden_layer_sizes=(20, 20), max_iter=20, random_state=0
    )
    assert model.fit(X, y[:, 0]).score(X, y[:, 0]) > 0.8
    with pytest.raises(ValueError, match="variables = errors"):
        BPCRegressor(rule=rule | {"sweep": "sequential"}).fit(X, y[:, 0])
