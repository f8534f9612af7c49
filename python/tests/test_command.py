"""The package and the command share one model file: what one fits, the other predicts to 1e-12."""

import csv
import subprocess

import built
import numpy as np
import pytest
from quick import quick_classifier, quick_regressor

import bayespc
from bayespc import BPCClassifier, BPCRegressor

TOLERANCE = 1e-12

# Models of the command know their columns' names; the arrays here have none.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture(scope="module")
def command():
    """Return a function that runs the command and gives what it printed."""
    found = built.command()

    def run(*arguments):
        done = subprocess.run([found, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)) * [1.0, 1e3, 1e-3] + [0.0, 1e4, 0.0]
    y = np.sin(X[:, 0]) + X[:, 1] / 1e4 + 0.1 * rng.normal(size=150)
    return X, y


def write_table(path, names, *columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        # repr of a float reads back as the same number.
        writer.writerows(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
    return path


def predicted(command, model, table, *flags):
    """Return the columns of the command's predictions by name."""
    rows = list(csv.DictReader(command("predict", model, table, "--digits", 17, *flags).splitlines()))
    return {name: [row[name] for row in rows] for name in rows[0]}


def assert_same(ours, theirs, scale=1.0):
    np.testing.assert_allclose(np.asarray(theirs, dtype=float), ours, rtol=TOLERANCE, atol=TOLERANCE * scale)


def assert_same_values(model, X, columns, prefix=""):
    """Compare everything the command says of one target with what the estimator says."""
    dist = model.predict_dist(X)
    # Before the first underscore: the target's number.
    k = (slice(None), int(prefix[1:-1])) if prefix else slice(None)
    lower, upper = dist.interval(0.9)
    expected = {
        "mean": dist.mean,
        "std": dist.std,
        "aleatoric_std": np.sqrt(dist.aleatoric),
        "epistemic_std": np.sqrt(dist.epistemic),
        "lower": lower,
        "upper": upper,
    }
    for name, values in expected.items():
        assert_same(values[k], columns[prefix + name], scale=float(np.abs(dist.mean).max()))


@pytest.mark.parametrize("method", ["linearised", "mean", "monte_carlo", "moments"])
@pytest.mark.parametrize(
    "keywords",
    [{}, {"noise": "variance", "n_members": 2}, {"precision": "float32"}, {"rule": "relaxation"}],
    ids=["plain", "variance and members", "single precision", "relaxation"],
)
def test_the_command_predicts_a_saved_regressor(command, data, tmp_path, keywords, method):
    X, y = data
    model = quick_regressor((8,), max_iter=5, method=method, n_draws=7, random_state=3, **keywords).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    table = write_table(tmp_path / "x.csv", ["x2", "x0", "x1"], X[:, 2], X[:, 0], X[:, 1])
    columns = predicted(command, tmp_path / "m.safetensors", table)
    assert_same_values(model, X, columns)
    assert_same(model.predict(X), columns["mean"], scale=float(np.abs(y).max()))


def test_the_command_finds_columns_by_the_names_of_a_data_frame(command, data, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=["rooms", "area in m²", 'the "age", in years'])
    model = quick_regressor((8,), max_iter=5, random_state=0).fit(frame, np.column_stack([y, -y * 2]))
    model.save(tmp_path / "m")
    frame.iloc[:, ::-1].to_csv(tmp_path / "x.csv", index=False)
    columns = predicted(command, tmp_path / "m", tmp_path / "x.csv")
    assert_same_values(model, frame, columns, prefix="y0_")
    assert_same_values(model, frame, columns, prefix="y1_")


@pytest.mark.parametrize(
    "labels",
    [["blue", "green", "red"], [1, 5, 10], [1.0, 2.0, 30.0], [False, True]],
    ids=["texts", "integers", "floats", "booleans"],
)
def test_the_command_predicts_a_saved_classifier(command, data, tmp_path, labels):
    X, y = data
    codes = np.digitize(y, np.quantile(y, np.arange(1, len(labels)) / len(labels)))
    model = quick_classifier((8,), max_iter=5, random_state=0).fit(X, np.array(labels)[codes])
    model.save(tmp_path / "m")
    table = write_table(tmp_path / "x.csv", ["x0", "x1", "x2"], *X.T)
    columns = predicted(command, tmp_path / "m", table)
    probabilities = np.column_stack([columns[f"probability_{_text(label)}"] for label in model.classes_])
    assert_same(model.predict_proba(X), probabilities)
    assert columns["class"] == [_text(label) for label in model.predict(X)]


def _text(label):
    return str(label).lower() if isinstance(label, np.bool_) else str(label)


def test_a_method_chosen_after_fitting_is_the_command_s_too(command, data, tmp_path):
    X, y = data
    model = quick_regressor((8,), max_iter=5, random_state=3).fit(X, y)
    model.set_params(method="monte_carlo", n_draws=5).save(tmp_path / "m")
    table = write_table(tmp_path / "x.csv", ["x0", "x1", "x2"], *X.T)
    assert_same_values(model, X, predicted(command, tmp_path / "m", table))
    assert bayespc.load(tmp_path / "m").get_params() == model.get_params()


FIT = ("--test-fraction", 0, "--set", "training.epochs=5", "--set", "network.hidden_layer_sizes=[8]")


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--search", "off", "--seed", 7, "--preset", "paper"),
        ("--set", 'precision="f32"', "--set", "members=2"),
        ("--set", 'network.head.kind="variance_node"'),
    ],
    ids=["defaults", "the paper", "single precision, two members", "variance node"],
)
def test_the_package_predicts_a_regression_of_the_command(command, data, tmp_path, flags):
    X, y = data
    table = write_table(tmp_path / "table.csv", ["a", "b", "c", "height"], *X.T, y)
    command("fit", table, "--target", "height", *FIT, *flags, "--out", tmp_path / "m")
    model = bayespc.load(tmp_path / "m")
    assert isinstance(model, BPCRegressor)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert_same_values(model, X, predicted(command, tmp_path / "m", table))


def test_the_package_predicts_a_classification_of_the_command(command, data, tmp_path):
    X, y = data
    kind = np.array(["low", "high"])[(y > np.median(y)).astype(int)]
    hue = np.array(["red", "green", "blue"])[np.arange(len(X)) % 3]
    table = write_table(tmp_path / "table.csv", ["a", "hue", "b", "kind"], X[:, 0], hue, X[:, 1], kind)
    command("fit", table, "--target", "kind", *FIT, "--out", tmp_path / "m")
    model = bayespc.load(tmp_path / "m")
    assert isinstance(model, BPCClassifier)
    assert list(model.feature_names_in_) == ["a", "hue", "b"]
    assert model.encoding_.feature_names == ["a", "hue=blue", "hue=green", "hue=red", "b"]
    assert list(model.classes_) == ["high", "low"]
    codes = [(hue == value).astype(float) for value in ("blue", "green", "red")]
    encoded = np.column_stack([X[:, 0], *codes, X[:, 1]])
    columns = predicted(command, tmp_path / "m", table)
    probabilities = np.column_stack([columns["probability_high"], columns["probability_low"]])
    assert_same(model.predict_proba(encoded), probabilities)
    assert columns["class"] == model.predict(encoded).tolist()


def test_a_model_goes_from_the_command_to_the_package_and_back(command, data, tmp_path):
    X, y = data
    table = write_table(tmp_path / "table.csv", ["a", "b", "c", "height"], *X.T, y)
    command("fit", table, "--target", "height", *FIT, "--out", tmp_path / "first")
    bayespc.load(tmp_path / "first").save(tmp_path / "second")
    first, second = (
        command("predict", tmp_path / name, table, "--digits", 17) for name in ("first", "second")
    )
    assert first == second
