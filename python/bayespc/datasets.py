"""Synthetic tasks, the UCI benchmark, MNIST and Fashion-MNIST.

Examples
--------
>>> from bayespc import datasets
>>> X, y = datasets.make_moons(200, noise=0.1, random_state=0)
>>> X.shape, y.shape
((200, 2), (200,))
>>> sorted(datasets.uci_names())[:2]
['concrete', 'energy']
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from . import _core
from ._validation import Array, seed_of

__all__ = [
    "load_images",
    "load_uci",
    "make_aleatoric",
    "make_epistemic",
    "make_moons",
    "standard_splits",
    "uci_names",
]


def make_moons(
    n_samples: int = 200, *, noise: float = 0.1, random_state: Any = None
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Make two interleaved half circles.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points.
    noise : float, default=0.1
        Standard deviation of both coordinates.
    random_state : int, RandomState instance or None, default=None
        Source of chance.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,)
        0 for the outer moon, 1 for the inner.
    """
    return _core.two_moons(n_samples, float(noise), seed_of(random_state))


def make_aleatoric(n_samples: int = 200, *, random_state: Any = None) -> tuple[Array, Array]:
    """Make a curve whose noise grows with x: y = −(x + ½) sin(3πx) + N(0, (0.45 (x + ½))²).

    Parameters
    ----------
    n_samples : int, default=200
        Number of points.
    random_state : int, RandomState instance or None, default=None
        Source of chance.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
    y : ndarray of shape (n_samples,)
    """
    X, y = _core.aleatoric(n_samples, seed_of(random_state))
    return X, y[:, 0]


def make_epistemic(n_samples: int = 100, *, random_state: Any = None) -> tuple[Array, Array]:
    """Make a cubic seen on both sides of a gap: y = x³ + N(0, 9), x in ±[3, 5].

    Parameters
    ----------
    n_samples : int, default=100
        Number of points.
    random_state : int, RandomState instance or None, default=None
        Source of chance.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
    y : ndarray of shape (n_samples,)
    """
    X, y = _core.epistemic(n_samples, seed_of(random_state))
    return X, y[:, 0]


def uci_names() -> list[str]:
    """Return the names that `load_uci` knows.

    Returns
    -------
    list of str
    """
    return _core.uci_names()


def load_uci(name: str, *, folder: str | os.PathLike[str] | None = None, download: bool = True) -> Any:
    """Load a regression data set of the UCI benchmark.

    It is looked for in `folder` (or the folder that the variable ``BAYESPC_DATA`` names), then in the user's
    cache, then on the network; every file is checked against its published digest.

    Parameters
    ----------
    name : str
        One of `uci_names`.
    folder : str or path-like, default=None
        A folder that holds data sets.
    download : bool, default=True
        Whether to download what no folder holds.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data``, ``target``, ``feature_names`` and ``target_name``.
    """
    where = None if folder is None else os.fspath(folder)
    X, y, feature_names, target_name = _core.uci(name, where, download)
    return Bunch(data=X, target=y[:, 0], feature_names=feature_names, target_name=target_name)


def load_images(name: str, *, folder: str | os.PathLike[str] | None = None, download: bool = True) -> Any:
    """Load MNIST or Fashion-MNIST: 60 000 images of 28 × 28 pixels to learn from and 10 000 to test on.

    They are looked for in the folder of that name in `folder` (or in the folder that the variable
    ``BAYESPC_DATA`` names), then in the user's cache, then on the network; every file is checked against its
    published digest.

    Parameters
    ----------
    name : {"mnist", "fashion-mnist"}
        Which images.
    folder : str or path-like, default=None
        A folder that holds data sets.
    download : bool, default=True
        Whether to download what no folder holds.

    Returns
    -------
    sklearn.utils.Bunch
        With ``data`` and ``test_data``, float32 of shape (n_images, 784) from 0 to 1, ``target`` and
        ``test_target``, numbers of classes, and ``target_names``.
    """
    where = None if folder is None else os.fspath(folder)
    data, target, test_data, test_target, names = _core.images(name, where, download)
    return Bunch(data=data, target=target, test_data=test_data, test_target=test_target, target_names=names)


def standard_splits(
    n_samples: int, n_splits: int = 20
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return the benchmark's standard splits of a table (Hernández-Lobato & Adams 2015).

    Parameters
    ----------
    n_samples : int
        Rows of the table.
    n_splits : int, default=20
        Number of splits.

    Returns
    -------
    list of (train, test)
        Row numbers; fit for the ``cv`` of scikit-learn.
    """
    return _core.standard_splits(n_samples, n_splits)
