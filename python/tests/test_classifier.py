import numpy as np
import pytest
from quick import quick_classifier
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split

from bayespc import datasets


@pytest.fixture(scope="module")
def moons():
    return datasets.make_moons(300, noise=0.15, random_state=0)


@pytest.fixture(scope="module")
def fitted(moons):
    return quick_classifier(random_state=0).fit(*moons)


@pytest.mark.parametrize(
    ("load", "least"), [(load_iris, 0.93), (load_breast_cancer, 0.94), (load_digits, 0.95)]
)
def test_one_network_classifies_well(load, least):
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    assert quick_classifier(max_iter=40, random_state=0).fit(X, y).score(X_test, y_test) > least


def test_two_moons_are_told_apart(moons, fitted):
    X, y = datasets.make_moons(1000, noise=0.15, random_state=1)
    assert fitted.score(X, y) > 0.95


def test_probabilities_add_to_one_and_the_class_is_the_most_probable(moons, fitted):
    probabilities = fitted.predict_proba(moons[0])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.classes_[probabilities.argmax(axis=1)], fitted.predict(moons[0]))
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(moons[0])), probabilities)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["yes", "no"]),
        np.array([True, False]),
        np.array([-3, 700]),
        np.array([1.0, 4.0]),
        np.array(["a", "b"], dtype=object),
    ],
)
def test_labels_of_any_type_come_back_as_they_were(moons, labels):
    X, y = moons
    model = quick_classifier(max_iter=20, random_state=0).fit(X, labels[y])
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert (predicted == labels[y]).mean() > 0.8


def test_decomposition_is_the_entropy_in_two_parts(moons, fitted):
    X, _ = moons
    parts = fitted.decompose(X)
    assert (parts.aleatoric >= 0).all() and (parts.epistemic >= 0).all()
    assert (parts.aleatoric + parts.epistemic <= np.log(2) + 1e-9).all()
    assert fitted.ood_score([[30.0, -40.0]])[0] > fitted.ood_score(X).max()


def test_more_data_takes_away_the_epistemic_part():
    grid = np.stack(np.meshgrid(np.linspace(-1, 2, 20), np.linspace(-0.5, 1, 20)), axis=-1).reshape(-1, 2)
    few, many = (
        quick_classifier(max_iter=40, random_state=0).fit(*datasets.make_moons(n, noise=0.3, random_state=0))
        for n in (40, 4000)
    )
    assert few.decompose(grid).epistemic.mean() > 5 * many.decompose(grid).epistemic.mean()


def test_decomposition_over_members_and_draws(moons):
    X, y = moons
    pair = quick_classifier(n_members=3, max_iter=20, random_state=0).fit(X, y)
    parts = pair.decompose(X)
    total = -(pair.predict_proba(X) * pair.predict_log_proba(X)).sum(axis=1)
    np.testing.assert_allclose(parts.aleatoric + parts.epistemic, total, atol=1e-9)
    pair.set_params(method="monte_carlo", n_draws=5)
    total = -(pair.predict_proba(X) * pair.predict_log_proba(X)).sum(axis=1)
    np.testing.assert_allclose(sum(pair.decompose(X)), total, atol=1e-9)


def test_a_stream_of_classes_needs_to_know_them_all_at_first(moons):
    X, y = moons
    model = quick_classifier(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    for _ in range(20):
        model.partial_fit(X, y, classes=[0, 1])
    assert model.score(X, y) > 0.85
    with pytest.raises(ValueError, match=r"not in classes: \[7\]"):
        model.partial_fit(X, np.full(len(X), 7))


def test_a_class_may_be_missing_from_the_first_part_of_a_stream(moons):
    X, y = moons
    model = quick_classifier(random_state=0)
    model.partial_fit(X[y == 0], y[y == 0], classes=[0, 1, 2])
    assert model.predict_proba(X).shape == (300, 3)
    assert (model.predict(X) == 0).all()


def test_weights_move_the_boundary(moons):
    X, y = moons
    heavy = quick_classifier(hidden_layer_sizes=(), random_state=0).fit(X, y, np.where(y == 1, 20.0, 1.0))
    even = quick_classifier(hidden_layer_sizes=(), random_state=0).fit(X, y)
    assert heavy.predict(X).sum() > even.predict(X).sum()
