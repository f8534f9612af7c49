"""Tables with holes: imputing, densities and new rows."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_swiss_roll
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayespc
from bayespc import BPCDensity, BPCImputer


@parametrize_with_checks([BPCImputer(random_state=0), BPCDensity(random_state=0), BPCImputer(2, 2)])
def test_scikit_learn_has_nothing_to_object_to(estimator, check):
    check(estimator)


def correlated(n=300, holes=0.2, seed=0):
    """Return a table of two latents in five columns, and the same with holes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + 0.2 * rng.normal(size=(n, 5))
    X = X * [1, 10, 100, 1, 1] + 5
    return X, np.where(rng.random(X.shape) < holes, np.nan, X)


def test_holes_are_filled_with_honest_deviations():
    X, holed = correlated()
    missing = np.isnan(holed)
    imputer = BPCImputer(random_state=0).fit(holed)
    filled, std = imputer.transform(holed, return_std=True)
    assert (filled[~missing] == X[~missing]).all() and (std[~missing] == 0).all()
    z = ((filled - X) / np.where(missing, std, 1))[missing]
    # About 300 cells: their root mean square is 1 with a standard error of 0.04.
    assert 0.85 < np.sqrt(np.mean(z**2)) < 1.15
    scaled = ((filled - X) / X.std(axis=0))[missing]
    assert np.sqrt(np.mean(scaled**2)) < 0.5
    assert (imputer.n_latents_, imputer.n_parts_) == (2, 1)
    assert {"latents", "parts", "log_density"} == set(imputer.candidates_[0])


def standardised(table, n, rng):
    """Return rows of a table, its columns with mean 0 and variance 1, constant ones 0."""
    if table == "digits":
        X = load_digits().data
    else:
        X = make_swiss_roll(n, noise=0.1, random_state=int(rng.integers(1000)))[0]
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    return X[rng.permutation(len(X))[:n]]


@pytest.mark.parametrize(
    ("table", "n", "seeds", "most"),
    # Digits: pixels at the rim are constant but for a few rows. Roll: there is next to nothing to know.
    [("digits", 200, range(4), 1.0), ("digits", 150, [0, 4, 5], 1.0), ("roll", 900, range(5), 1.006)],
)
def test_imputing_is_not_worse_than_column_means(table, n, seeds, most):
    ratios = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = standardised(table, n, rng)
        missing = rng.random(X.shape) < 0.3
        holed = np.where(missing, np.nan, X)
        filled, std = BPCImputer(max_iter=30, random_state=seed).fit(holed).transform(holed, return_std=True)
        assert np.isfinite(filled).all() and (std[missing] > 0).all()
        means = np.broadcast_to(np.nanmean(holed, axis=0), X.shape)
        own, by_means = (np.sqrt(np.mean((guess - X)[missing] ** 2)) for guess in (filled, means))
        ratios.append(own / by_means)
    assert np.mean(ratios) < most and np.max(ratios) < 1.03, ratios


def test_draws_have_the_spread_that_is_said():
    _, holed = correlated(100)
    imputer = BPCImputer(2, 1, random_state=0).fit(holed)
    filled, std = imputer.transform(holed, return_std=True)
    draws = imputer.draw(holed, 400, random_state=1)
    missing = np.isnan(holed)
    z = ((draws - filled) / np.where(missing, std, 1))[:, missing]
    assert abs(z.mean()) < 0.05 and abs(z.std() - 1) < 0.05
    assert (draws[:, ~missing] == holed[~missing]).all()
    assert (imputer.draw(holed, 2, random_state=1) == draws[:2]).all()
    one = clone(imputer).set_params(sample_posterior=True).fit(holed).transform(holed)
    assert not np.isnan(one).any() and (one[missing] != filled[missing]).all()


def test_frames_come_back_as_frames_and_names_are_kept():
    _, holed = correlated(60)
    frame = pd.DataFrame(holed, columns=list("abcde"), index=range(100, 160))
    imputer = BPCImputer(1, 1).set_output(transform="pandas").fit(frame)
    filled, std = imputer.transform(frame, return_std=True)
    assert isinstance(filled, pd.DataFrame) and not filled.isna().any().any()
    assert list(filled.columns) == list("abcde") and (filled.index == frame.index).all()
    assert std.shape == holed.shape
    assert list(imputer.get_feature_names_out()) == list("abcde")
    names = BPCDensity(2, 1).fit(frame).get_feature_names_out()
    assert list(names) == ["bpcdensity0", "bpcdensity1"]


def test_an_imputer_works_in_a_pipeline_and_a_search():
    X, y = load_iris(return_X_y=True)
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    pipeline = make_pipeline(BPCImputer(1, 1), LogisticRegression(max_iter=1000))
    search = GridSearchCV(pipeline, {"bpcimputer__n_parts": [1, 3]}, cv=3).fit(holed, y)
    assert search.best_score_ > 0.8


def circle(n=400, seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, size=n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2))


def test_a_bent_table_has_a_bent_density():
    X, new = circle(), circle(seed=1)
    density = BPCDensity(random_state=0).fit(X)
    assert density.n_parts_ >= 4
    assert density.score(new) > BPCDensity(1, 1).fit(X).score(new) + 0.8
    drawn = density.sample(500, random_state=0)
    assert abs(np.linalg.norm(drawn, axis=1) - 1).mean() < 0.12
    shares = density.parts(new)
    assert shares.shape == (400, density.n_parts_) and np.allclose(shares.sum(axis=1), 1)
    assert density.transform(new).shape == (400, density.n_latents_)
    half = np.array([[0.6, np.nan]])
    # The circle has 0.8 and -0.8 there: the mean is between, and the deviation says so.
    filled, std = BPCImputer(random_state=0).fit(X).transform(half, return_std=True)
    assert abs(filled[0, 1]) < 0.4 and 0.6 < std[0, 1] < 1.0
    assert density.score_samples(half)[0] > density.score_samples([[3.0, np.nan]])[0]


@pytest.mark.parametrize("kind", [BPCImputer, BPCDensity])
def test_models_are_pickled_saved_and_loaded(kind, tmp_path):
    _, holed = correlated(60)
    frame = pd.DataFrame(holed, columns=list("abcde"))
    model = kind(2, 2, random_state=3).fit(frame)
    expected = model.transform(frame)
    assert (pickle.loads(pickle.dumps(model)).transform(frame) == expected).all()
    model.save(tmp_path / "m.safetensors")
    again = kind.load(tmp_path / "m.safetensors")
    assert (again.transform(frame) == expected).all()
    assert list(again.feature_names_in_) == list("abcde")
    assert [file.name for file in tmp_path.iterdir()] == ["m.safetensors"]
    with pytest.raises(ValueError, match=r"BPCImputer\.load or BPCDensity\.load"):
        bayespc.load(tmp_path / "m.safetensors")
    damaged = bytearray((tmp_path / "m.safetensors").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "m.safetensors").write_bytes(damaged)
    for read in (kind.load, bayespc.load):
        with pytest.raises(ValueError, match=r"model file.*checksum"):
            read(tmp_path / "m.safetensors")


def test_the_seed_decides():
    _, holed = correlated(80)
    a, b = (BPCImputer(2, 3, random_state=5).fit(holed) for _ in range(2))
    assert (a.transform(holed) == b.transform(holed)).all()
    assert pickle.dumps(a.model_) == pickle.dumps(b.model_)


def test_what_is_wrong_is_said():
    _, holed = correlated(30)
    with pytest.raises(NotFittedError):
        BPCImputer().transform(holed)
    for keywords, words in [
        ({"n_latents": "many"}, "n_latents"),
        ({"n_latents": -1}, "n_latents"),
        ({"n_parts": 0}, "n_parts"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
    ]:
        with pytest.raises(ValueError, match=words):
            BPCImputer(**keywords).fit(holed)
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]})
    with pytest.raises(ValueError, match="'b'"):
        BPCImputer().fit(frame)
    with pytest.raises(ValueError, match=r"[Ii]nfin"):
        BPCImputer().fit([[np.inf, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="n_draws"):
        BPCImputer(1, 1).fit(holed).draw(holed, 0)


def test_progress_is_told(capsys):
    _, holed = correlated(30)
    BPCImputer(verbose=1).fit(holed)
    assert "BPCImputer" in capsys.readouterr().err


def test_the_names_are_exported():
    assert {"BPCImputer", "BPCDensity"} <= set(bayespc.__all__)
    assert json.loads(BPCImputer(1, 1).fit([[0.0, 1.0], [1.0, 3.0]]).model_.notes) == {}
