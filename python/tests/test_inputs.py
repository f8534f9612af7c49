"""What comes in: tables with names, both float types, and wrong input as scikit-learn words it."""

import tracemalloc

import numpy as np
import pytest
from quick import quick_classifier, quick_regressor


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=120)


def small(**keywords):
    return quick_regressor(hidden_layer_sizes=(8,), max_iter=10, random_state=0, **keywords)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_a_table_are_kept_and_checked(data, library):
    frames = pytest.importorskip(library)
    X, y = data
    table = frames.DataFrame({name: X[:, i] for i, name in enumerate("abc")})
    model = small().fit(table, frames.Series(y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(table), small().fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[["c", "b", "a"]])


def test_single_precision_is_read_as_it_is(data):
    X, y = data
    single = small(precision="float32").fit(X.astype(np.float32), y)
    double = small().fit(X, y)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), double.predict(X), atol=0.02)


def test_other_layouts_give_the_same_bits(data):
    X, y = data
    expected = small().fit(X, y).predict(X)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        np.testing.assert_array_equal(small().fit(other, y).predict(other), expected)


def test_arrays_are_not_copied_on_the_way_in(data):
    """NumPy reports its memory to tracemalloc; a copy of X would be 16 MB."""
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        X = rng.normal(size=(100_000, 20)).astype(dtype)
        y = X[:, 0].astype(np.float64)
        model = quick_regressor(hidden_layer_sizes=(), batch_size=1_000_000, max_iter=1, random_state=0)
        tracemalloc.start()
        model.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < X.nbytes / 2


def test_wrong_input_is_refused_in_the_words_of_scikit_learn(data):
    X, y = data
    model = small().fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        small(missing="error").fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.predict(np.full((2, 3), np.inf))
    with pytest.raises(ValueError, match="X has 2 features, but BPCRegressor is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.predict(X[0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small().fit(X, y[:-1])
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        small().fit(X, y, sample_weight=-np.ones(120))
    with pytest.raises(ValueError, match="Unknown label type"):
        quick_classifier().fit(X, y)


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"activation": "cubic"}, ValueError, "activation must be one of identity, relu"),
        ({"prior_var": -1.0}, ValueError, "prior_var must be greater than 0"),
        ({"prior_var": "Auto"}, TypeError, 'prior_var must be a number or "auto"'),
        ({"hidden_layer_sizes": "wide"}, TypeError, 'a sequence of integers or "auto"'),
        ({"search": "off"}, TypeError, "search must be True, False or a mapping"),
        ({"search": {"round": 2}}, ValueError, "unknown field `round`"),
        ({"hidden_layer_sizes": (5, 0)}, ValueError, "hidden_layer_sizes must be at least 1; got 0"),
        ({"hidden_layer_sizes": 2.5}, TypeError, "hidden_layer_sizes must be an integer, a sequence"),
        ({"noise": "loud"}, ValueError, "noise must be one of constant, variance, auto"),
        ({"rule": "magic"}, ValueError, "rule must be one of feedback, relaxation"),
        ({"rule": {"kind": "feedback", "gian": 1}}, ValueError, "unknown field `gian`"),
        ({"rule": "relaxation", "noise": "variance"}, ValueError, "hidden_precision = tied"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"batch_size": 2.0}, TypeError, "batch_size must be an integer"),
        ({"n_members": 0}, ValueError, "n_members must be at least 1"),
        ({"method": "guess"}, ValueError, "method must be one of linearised"),
        ({"method": "monte_carlo", "n_draws": 0}, ValueError, "n_draws must be at least 1"),
        ({"validation_fraction": 1.5}, ValueError, "validation_fraction must be"),
        ({"precision": "float16"}, ValueError, "precision must be one of float64, float32"),
        ({"time_limit": -1}, ValueError, "time_limit must be greater than 0"),
        ({"time_limit": "long"}, TypeError, "time_limit must be a number"),
        ({"missing": "guess"}, ValueError, "missing must be one of encode, error, drop"),
        ({"columns": "number"}, TypeError, "columns must be None or a mapping"),
        ({"columns": {"x7": "number"}}, ValueError, "X has no column 'x7'"),
        ({"columns": {"x0": "numbr"}}, ValueError, "`numbr` is none of number, category"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
    ],
)
def test_a_wrong_parameter_is_named(data, keywords, error, words):
    with pytest.raises(error, match=words):
        quick_regressor(**keywords).fit(*data)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, np.nan])
def test_impossible_coverage_is_refused(data, coverage):
    X, y = data
    with pytest.raises(ValueError, match="coverage"):
        small().fit(X, y).predict_interval(X, coverage=coverage)


def test_numbers_that_are_not_aligned_are_taken_all_the_same():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(40, 2)), rng.normal(size=40), rng.uniform(1, 2, 40)

    def shifted(array):
        """Return the same array one byte further, as a part of a received message may be."""
        room = np.empty(array.nbytes + 1, dtype=np.uint8)
        moved = room[1:].view(np.uint8)
        moved[:] = np.frombuffer(array.tobytes(), dtype=np.uint8)
        return np.frombuffer(moved, dtype=array.dtype).reshape(array.shape)

    assert not shifted(X).flags.aligned
    expected = quick_regressor(max_iter=2, random_state=0).fit(X, y, w)
    model = quick_regressor(max_iter=2, random_state=0).fit(shifted(X), shifted(y), shifted(w))
    assert model.model_.to_bytes() == expected.model_.to_bytes()
    np.testing.assert_array_equal(model.predict(shifted(X)), expected.predict(X))
    np.testing.assert_array_equal(
        model.predict_dist(X).logpdf(shifted(y)), expected.predict_dist(X).logpdf(y)
    )
