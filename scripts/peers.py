r"""Seconds per MNIST epoch of other programs on the network 784-128-128-128-10, as JSON on standard output.

    python scripts/peers.py [--data FOLDER] [--epochs 3] [--rows N] [--oracle FOLDER] > peers.json
    cargo run --release -p bayespc-bench -- mnist --learner bpc,backprop,pc --rule feedback,relaxation \
        --peers peers.json

The programs: JAX backpropagation with Adam, JAX predictive coding (T = 10 steps of the activities at rate
0.01 with momentum 0.65, AdamW on the weights), and scikit-learn's MLPClassifier where it is installed. All
are in single precision, in batches of 128, on a squared error but for scikit-learn's; JAX is compiled before
the clock starts. The medians over epochs are printed, with the test accuracy after the last one.

With `--oracle FOLDER`, which holds `bpc_reference.py`, also the NumPy reference of the feedback rule: in
double precision, with exact factors of all layers at every batch, its epoch scaled from a few batches.

The data FOLDER, by default BAYESPC_DATA, holds `mnist/*.gz` or the `.gz` files themselves. `make peers` runs
all of this.
"""

import argparse
import gzip
import itertools
import json
import os
import pathlib
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

WIDTHS = [784, 128, 128, 128, 10]
BATCH = 128
# Published moments of the training pixels.
MEAN, SCALE = 0.130660, 0.308108
STEPS, ACTIVITY_RATE, MOMENTUM = 10, 0.01, 0.65
# Batches the NumPy reference is timed for, after one to warm up.
ORACLE_BATCHES = 10


def read(folder: pathlib.Path, name: str, header: int) -> np.ndarray:
    """Content of an idx file after its header."""
    for path in (folder / "mnist" / f"{name}.gz", folder / f"{name}.gz"):
        if path.is_file():
            return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)
    raise SystemExit(f"{folder} holds no mnist/{name}.gz; `bayespc data fetch mnist` says where it keeps it")


def load(folder: pathlib.Path, rows: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and digits, test images and digits."""

    def part(prefix: str) -> tuple[np.ndarray, np.ndarray]:
        pixels = read(folder, f"{prefix}-images-idx3-ubyte", 16).reshape(-1, 784)
        images = ((pixels / np.float32(255) - MEAN) / SCALE).astype(np.float32)
        return images, read(folder, f"{prefix}-labels-idx1-ubyte", 8)

    images, digits = part("train")
    return images[:rows], digits[:rows], *part("t10k")


def start(seed: int) -> list[tuple[jax.Array, jax.Array]]:
    """Weights and biases uniform within 1/√fan-in, as they start here."""
    rng = np.random.default_rng(seed)

    def draw(fan_in: int, shape) -> jax.Array:
        return jnp.asarray(rng.uniform(-1, 1, shape) / np.sqrt(fan_in), jnp.float32)

    return [(draw(i, (i, o)), draw(i, o)) for i, o in itertools.pairwise(WIDTHS)]


def layer(weights, below, first: bool):
    """W f(z) + b; the input is not passed through f."""
    matrix, bias = weights
    return (below if first else jax.nn.relu(below)) @ matrix + bias


def forward(params, x):
    """Activities of every layer above the input."""
    activities = []
    below = x
    for k, weights in enumerate(params):
        below = layer(weights, below, k == 0)
        activities.append(below)
    return activities


def adam(params, gradients, state, rate: float, decay: float):
    """One step of AdamW; of Adam where nothing decays."""
    t, first, second = state
    t = t + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

    def move(p, m, v):
        step = (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return p - rate * (step + decay * p)

    return jax.tree.map(move, params, first, second), (t, first, second)


def backprop_step(carry, batch):
    """Adam at 0.001 on the squared error."""
    params, state = carry
    x, y = batch

    def loss(params):
        return 0.5 * jnp.sum((y - forward(params, x)[-1]) ** 2) / BATCH

    return adam(params, jax.grad(loss)(params), state, 1e-3, 0.0), None


def predictive_coding_step(carry, batch):
    """Relax the activities from the forward pass, then AdamW at 0.0002 on the energy there."""
    params, state = carry
    x, y = batch
    start_at = forward(params, x)

    def energy(params, hidden, first):
        # The prediction of the first layer does not change while activities relax.
        total = 0.5 * jnp.sum((hidden[0] - first) ** 2)
        for weights, below, z in zip(params[1:], hidden, [*hidden[1:], y], strict=True):
            total += 0.5 * jnp.sum((z - layer(weights, below, False)) ** 2)
        return total

    def relax(_, moving):
        hidden, speed = moving
        slope = jax.grad(energy, argnums=1)(params, hidden, start_at[0])
        speed = [MOMENTUM * v + g for v, g in zip(speed, slope, strict=True)]
        return [z - ACTIVITY_RATE * v for z, v in zip(hidden, speed, strict=True)], speed

    hidden = start_at[:-1]
    hidden, _ = jax.lax.fori_loop(0, STEPS, relax, (hidden, [jnp.zeros_like(z) for z in hidden]))

    def mean_energy(params):
        return energy(params, hidden, layer(params[0], x, True)) / BATCH

    return adam(params, jax.grad(mean_energy)(params), state, 2e-4, 3.6e-4), None


def time_jax(step, data, epochs: int) -> dict[str, float]:
    """Median seconds of an epoch, gathered and trained on device in one compiled loop."""
    images, digits, test_images, test_digits = data
    x, y = jnp.asarray(images), jax.nn.one_hot(digits, 10, dtype=jnp.float32)
    batches = len(images) // BATCH

    @jax.jit
    def epoch(carry, order):
        return jax.lax.scan(lambda carry, rows: step(carry, (x[rows], y[rows])), carry, order)[0]

    params = start(0)
    zeros = jax.tree.map(jnp.zeros_like, params)
    carry = (params, (jnp.float32(0), zeros, zeros))
    rng = np.random.default_rng(0)

    def order():
        return jnp.asarray(rng.permutation(len(images))[: batches * BATCH].reshape(batches, BATCH))

    compiled = epoch.lower(carry, order()).compile()
    seconds = []
    for _ in range(epochs):
        begin = time.perf_counter()
        carry = jax.block_until_ready(compiled(carry, order()))
        seconds.append(time.perf_counter() - begin)
    guesses = np.argmax(np.asarray(forward(carry[0], jnp.asarray(test_images))[-1]), axis=1)
    return {
        "seconds_per_epoch": statistics.median(seconds),
        "test_accuracy": float(np.mean(guesses == test_digits)),
    }


def time_sklearn(data, epochs: int) -> dict[str, float]:
    """Median seconds of an epoch of MLPClassifier with Adam."""
    from sklearn.neural_network import MLPClassifier

    images, digits, test_images, test_digits = data
    model = MLPClassifier(WIDTHS[1:-1], batch_size=BATCH, alpha=0.0, random_state=0)
    seconds = []
    for _ in range(epochs):
        begin = time.perf_counter()
        model.partial_fit(images, digits, classes=np.arange(10))
        seconds.append(time.perf_counter() - begin)
    accuracy = float(np.mean(model.predict(test_images) == test_digits))
    return {"seconds_per_epoch": statistics.median(seconds), "test_accuracy": accuracy}


def time_oracle(folder: pathlib.Path, data) -> dict[str, float]:
    """Seconds of an epoch of the NumPy reference, from the median of some of its batches."""
    sys.path.insert(0, str(folder.resolve()))
    import bpc_reference

    images, digits = data[:2]
    x, y = images.astype(float), np.eye(10)[digits]
    network = bpc_reference.Network(WIDTHS, seed=0, v0=0.003)
    seconds = []
    for k in range(1 + ORACLE_BATCHES):
        rows = slice(k * BATCH, (k + 1) * BATCH)
        begin = time.perf_counter()
        network.step_feedback(x[rows], y[rows], 0.1, len(x) / BATCH, gain=0.3)
        seconds.append(time.perf_counter() - begin)
    return {"seconds_per_epoch": statistics.median(seconds[1:]) * (len(x) // BATCH)}


def main() -> int:
    """Time every program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("BAYESPC_DATA"))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rows", type=int, help="training images")
    parser.add_argument("--oracle", type=pathlib.Path, help="folder of bpc_reference.py")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data FOLDER, or set BAYESPC_DATA")
    if arguments.epochs < 1 or (arguments.rows is not None and arguments.rows < BATCH):
        parser.error(f"give at least one epoch and {BATCH} rows")
    if arguments.oracle is not None and not (arguments.oracle / "bpc_reference.py").is_file():
        parser.error(f"{arguments.oracle} holds no bpc_reference.py")
    data = load(pathlib.Path(arguments.data), arguments.rows)
    peers = {
        "jax backprop": time_jax(backprop_step, data, arguments.epochs),
        "jax predictive coding": time_jax(predictive_coding_step, data, arguments.epochs),
    }
    try:
        peers["scikit-learn mlp"] = time_sklearn(data, arguments.epochs)
    except ImportError:
        print("scikit-learn is not installed: left out", file=sys.stderr)
    if arguments.oracle is not None:
        peers["numpy reference"] = time_oracle(arguments.oracle, data)
    print(json.dumps({"jax": jax.__version__, "cores": os.cpu_count(), "peers": peers}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
