"""The classifier."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
)

from ._arrow import apart, has_own_targets
from ._base import BPCEstimator, Ready
from ._distribution import Decomposition, PredictiveDistribution
from ._explain import ENTROPIES, Explanation, class_number, explained
from ._validation import Array, ArrayLike, checked_classification, labels_of


class BPCClassifier(ClassifierMixin, BPCEstimator):
    """Bayesian predictive coding classifier: a neural network that knows its uncertainty.

    Classes are learned as one-hot codes with Gaussian noise, and the probability of a class is the predictive
    density at its code, among all codes; or they are learned as logits.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or "auto", default="auto"
        Widths of the hidden layers; ``"auto"`` tries (50, 50), from 500
        samples on also twice as wide, and networks without hidden layers.
    activation : {"relu", "identity", "leaky_relu", "tanh", "sigmoid", "softplus", "gelu", "silu", "auto"}, \
            default="auto"
        Nonlinearity of the hidden layers; ``"auto"`` chooses between relu and silu.
    prior_var : float or "auto", default="auto"
        Prior variance of the weights, relative to the noise of their layer. Too wide overfits, too narrow
        underfits: the setting that matters most. ``"auto"`` chooses it by the likelihood of held-out
        samples, together with
        the temperature of the probabilities, for each network of the ensemble so that they do best together.
    bins : int or "auto", default="auto"
        Bins of the piecewise-linear code that networks see beside each column: a number per bin between two
        quantiles that says how far the column is through it. 0 is columns as they are. ``"auto"`` chooses
        among 0, 8 and 20.
    likelihood : {"one_hot", "categorical", "auto"}, default="auto"
        Whether classes are learned as one-hot codes with Gaussian noise, or as logits; ``"auto"`` chooses
        for each network.
    search : bool or dict, default=True
        Whether what is ``"auto"`` is chosen from the data, at the cost of some forty short fits. A mapping
        changes settings of the search by their names in the core, such as ``{"max_rows": 1000}``. Where
        nothing is searched, with False and in `partial_fit`, ``"auto"`` stands for (50, 50), relu, 10 and
        one-hot codes.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply those of the samples: ``{label: weight}`` with 1 for labels not
        named, or ``"balanced"`` for weights that make all classes count the same.
    rule : {"feedback", "relaxation"} or dict, default="feedback"
        How activities are inferred: by one backward sweep, or by descent on the energy. A mapping gives all
        settings of a rule, as in `bayespc.presets`.
    max_iter : int, default=100
        Passes over the data at most. At the default a search trains for 50 passes over 1000 samples, fewer
        over more; another number is kept.
    batch_size : int or "full", default=32
        Samples per batch. At the default a search takes larger batches of more samples, up to 512; another
        number is kept.
    n_members : int, default=5
        Networks in the ensemble, where nothing is searched. A search keeps so many of each of up to four
        kinds: one for each fold of the samples, trained on the others; twice as many below 600 samples. Fewer
        than five are trained on all samples.
    method : {"linearised", "mean", "monte_carlo", "moments"}, default="linearised"
        How to predict; may be changed after fitting.
    n_draws : int, default=20
        Networks drawn by ``method="monte_carlo"``.
    early_stopping : bool, default=False
        Stop when the density of held-out samples no longer improves, and keep the best network.
    validation_fraction : float, default=0.1
        Share of the samples held out for early stopping.
    n_iter_no_change : int, default=5
        Validations (one every five epochs) without improvement before stopping.
    calibration : {"none", "holdout"}, default="none"
        Whether to hold a tenth of the samples out for the temperature of the probabilities.
        "holdout" does not go with `partial_fit` or a warm start, which hold nothing out.
    precision : {"float64", "float32"}, default="float64"
        Working precision of activities; posteriors are always float64.
    wide_layers : {"auto", "dense"} or dict, default="auto"
        How much is kept of the precisions of wide layers: ``"dense"`` all of it, at a memory of width²;
        ``{"blocks": b}`` blocks of b units, ``{"sketch": k}`` k directions, both at a memory that is linear
        in the width. ``"auto"`` keeps all of layers up to 2048 units, and directions of tables with many
        columns or far more than rows. Not for `partial_fit`, which wants ``"dense"`` after such a fit.
    time_limit : float or None, default=None
        Seconds that `fit` may take: the best that can be trained in them is kept, and a warning tells when
        they are over. The model then depends on how fast the machine is.
    columns : dict or None, default=None
        What to take columns for, by name (x0, x1, … of an array): ``"number"``, ``"category"``
        (``"category:50"`` keeps the 50 most frequent values), ``"bool"``, ``"time"``, ``"text"`` (its words
        are hashed; ``"text:32"`` into 32 inputs) or ``"ignore"``. Others are understood from their cells: see
        `columns_`.
    missing : {"encode", "error", "drop"}, default="encode"
        What to do about missing cells of X. They get the mean or a category of their own, and an input that
        tells so where training had any; or they are an error; or `fit` leaves their rows out.
    random_state : int, RandomState instance or None, default=None
        Source of initial weights, shuffles and draws.
    verbose : int, default=0
        Whether to show a progress bar: what is done, how much of it, the loss and the held-out log density.
    warm_start : bool, default=False
        Whether `fit` goes on from the last fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.
    columns_ : list of dict
        What was understood of each column: name, understood, values, missing, inputs, remark. Prints as a
        table.
    encoding_ : bayespc._core.Encoding or None
        How columns become inputs; None if X were plain numbers.
    n_iter_ : int
        Epochs run.
    loss_curve_ : list of float
        Mean squared error of each epoch on the codes, measured before each batch is learned.
    validation_scores_ : list of float
        Held-out log densities, mean over members, if `early_stopping`.
    plans_ : list of dict
        Network settings, epochs and temperature of each member: what was chosen.
    held_out_ : dict or None
        Scores of samples, each predicted by networks that had not learned from it: log_density, and rmse (one
        per target) and coverage_90, or accuracy. None where nothing was searched.
    candidates_ : list of dict
        What the search tried and the mean log density of the held-out samples by each; empty without a
        search.
    far_features_ : list of int
        Features that `partial_fit` has warned of: far from the first data, by which inputs are scaled.
    model_ : bayespc._core.Model
        The fitted model.

    See Also
    --------
    BPCRegressor : For real-valued targets.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayespc import BPCClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BPCClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    classes_: npt.NDArray[Any]
    class_weight: Any

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        activation: str = "auto",
        prior_var: float | Literal["auto"] = "auto",
        bins: int | Literal["auto"] = "auto",
        likelihood: Literal["one_hot", "categorical", "auto"] = "auto",
        search: Any = True,
        class_weight: Any = None,
        rule: Any = "feedback",
        max_iter: int = 100,
        batch_size: int | Literal["full"] = 32,
        n_members: int = 5,
        method: str = "linearised",
        n_draws: int = 20,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        calibration: Literal["none", "holdout"] = "none",
        precision: Literal["float64", "float32"] = "float64",
        wide_layers: Any = "auto",
        time_limit: float | None = None,
        columns: Any = None,
        missing: Literal["encode", "error", "drop"] = "encode",
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior_var = prior_var
        self.bins = bins
        self.likelihood = likelihood
        self.search = search
        self.class_weight = class_weight
        self.rule = rule
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.n_members = n_members
        self.method = method
        self.n_draws = n_draws
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.calibration = calibration
        self.precision = precision
        self.wide_layers = wide_layers
        self.time_limit = time_limit
        self.columns = columns
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def _n_classes(self) -> int:
        return len(self.classes_)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to training data.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples. A frame is anything with named columns: of pandas, polars or pyarrow, or an Arrow stream.
        y : array-like of shape (n_samples,) or str
            Labels, of any type that sorts, or the name of their column in X.
        sample_weight : array-like of shape (n_samples,) or str, default=None
            Weight 2 counts a sample twice, weight 0 leaves it out. A text names a column of X.

        Returns
        -------
        self : BPCClassifier
        """
        return self._fit_model(*self._ready(X, y, sample_weight))

    def _ready(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Ready:
        settings = self._settings()
        continued = self.warm_start and self._is_fitted()
        name = y if has_own_targets(X, y, several=False) else None
        if name is not None:
            X, y, sample_weight = apart(X, name, sample_weight)
        X, y, weights = checked_classification(self, X, y, sample_weight, reset=not continued)
        classes = labels_of(y)
        if continued and not np.array_equal(classes, self.classes_):
            raise ValueError(
                "warm_start can only be used where `y` has the same classes as in the previous "
                f"call to fit. Previously got {self.classes_}, `y` has {classes}"
            )
        self.classes_ = classes
        if name is not None and not continued:
            self._y_names = [name]
        return X, self._encoded(y), self._weighted(y, weights), settings

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more data of a stream, in one pass.

        The scaling of the inputs follows all samples so far. The posterior represents all samples
        of all calls, and of an earlier `fit`.

        A stream holds no samples out. So nothing is chosen: what is ``"auto"`` is taken as `search` says,
        with a warning; and with `calibration` other than "none" this is a ValueError. A model that `fit` has
        chosen goes on as it is. Inputs far from the first ones are warned of, once.

        Where y names a column of X, X is read in slices of 65 536 rows, and each is learned as by a call of
        its own: an Arrow stream may be longer than memory, and its batches do not matter.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples. A frame is anything with named columns: of pandas, polars or pyarrow, or an Arrow stream.
        y : array-like of shape (n_samples,) or str
            Labels, or the name of their column in X.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; required in the first call.
        sample_weight : array-like of shape (n_samples,) or str, default=None
            Weights of the samples. A text names a column of X.

        Returns
        -------
        self : BPCClassifier
        """
        if has_own_targets(X, y, several=False):
            return self._partial_fit_slices(partial(self.partial_fit, classes=classes), X, y, sample_weight)
        first = not self._is_fitted()
        X, y, weights = checked_classification(self, X, y, sample_weight, reset=first)
        _check_partial_fit_first_call(self, classes)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight {self.class_weight!r} is not supported for partial_fit, which does not know "
                "how frequent the classes will be. Give their weights as a dict."
            )
        return self._partial_fit_model(X, self._encoded(y), self._weighted(y, weights))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        samples = self._samples(X)
        return self.model_.probabilities(samples, self._method(), self._draws())

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> npt.NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_dist(self, X: ArrayLike) -> PredictiveDistribution:
        """Predict the distribution of the one-hot codes, from which the probabilities come.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        PredictiveDistribution
        """
        return PredictiveDistribution(self._predictive(X), one_dimensional=False)

    def decompose(self, X: ArrayLike) -> Decomposition:
        """Split the entropy of the prediction into aleatoric and epistemic parts, in nats.

        With p the class probabilities of a network whose weights were known,

            aleatoric = mean of H(p) ,   epistemic = H(mean of p) − mean of H(p) ,

        the second being the mutual information of label and weights (Houlsby et al. 2011). The mean is over
        the networks of the ensemble, or the draws of ``method="monte_carlo"``, and over 64 draws from the
        posterior of each network, the same for all samples. The server's entropies and those of `explain` are
        these.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        aleatoric, epistemic : ndarray of shape (n_samples,)
        """
        predictive = self._predictive(X, self._uncertain_method())
        _, aleatoric, epistemic = predictive.class_decomposition(self.model_.temperature)
        return Decomposition(aleatoric, epistemic)

    def explain(
        self, X: ArrayLike, of: str = "mean", *, target: Any = None, baseline: ArrayLike | None = None
    ) -> Explanation:
        """Tell what each column of a sample has to do with the probability of a class, or with its doubt.

        Integrated gradients of the linearised predictor, along the straight line from a baseline to the
        sample, exactly: ``values.sum(axis=1) + base`` is the probability, or the part of the entropy as
        `decompose` has it. (Where `decompose` cuts an epistemic part at 0 that draws made negative, the sum
        is not cut.)

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Samples.
        of : {"mean", "aleatoric", "epistemic"}, default="mean"
            The probability of a class, or a part of the entropy of all classes, in nats.
        target : label, default=None
            The class; if not given, all of them, and of two the second. The entropies are of no one class.
        baseline : array-like or frame of shape (n_baselines, n_features), default=None
            Rows to start from; values and base are means over them. If not given, the row that is average in
            every input.

        Returns
        -------
        Explanation
            With an axis for the classes at the end if `of` is ``"mean"``, there are more than two and
            `target` is None.
        """
        self._check_fitted()
        if of in ENTROPIES:
            if target is not None:
                raise ValueError(f"target = {target!r}: of={of!r} is of all classes together; leave it out")
            return explained(self, X, of, [0], None, baseline)
        if target is not None or len(self.classes_) == 2:
            place = 1 if target is None else class_number(self, target)
            return explained(self, X, of, [place], None, baseline)
        names = [str(label) for label in self.classes_]
        return explained(self, X, of, range(len(names)), names, baseline)

    def free_energy(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> list[Array]:
        """Compute the variational free energy of the layers of each member, at their forward activities.

        Summed over the layer of a model without hidden layers (``hidden_layer_sizes=()``,
        ``likelihood="one_hot"``) it is the negative log evidence of the codes it was fitted to: lower is
        better between such models of the same data. With hidden layers or logits it compares nothing: each
        layer is scored by activities or working targets of the network's own making.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        list of ndarray of shape (n_layers, 2)
            For each member complexity and expected log-likelihood of its layers, in nats; the free energy is
            the first column minus the second.
        """
        self._check_fitted()
        X, y, weights = checked_classification(self, X, y, sample_weight, reset=False)
        return self._free_energy(X, self._encoded(y), self._weighted(y, weights))

    def _weighted(self, y: npt.NDArray[Any], weights: Array | None) -> Array | None:
        """Return the weights of the samples times those of their classes."""
        if self.class_weight is None:
            return weights
        of_class = compute_sample_weight(self.class_weight, y)
        return of_class if weights is None else weights * of_class

    def _remember(self, notes: dict[str, Any]) -> None:
        kept: Any = notes.get("class_weight")
        self.class_weight = kept if kept is None or isinstance(kept, str) else dict(kept)

    def _encoded(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the number of each label's class."""
        numbers = np.searchsorted(self.classes_, y)
        known = numbers < len(self.classes_)
        known[known] = self.classes_[numbers[known]] == y[known]
        if not known.all():
            unseen = labels_of(y[~known])
            raise ValueError(f"y contains labels that are not in classes: {unseen}")
        return numbers.astype(np.int64)

    def _notes(self) -> dict[str, Any]:
        weight = self.class_weight
        # The keys of JSON are texts; labels need not be.
        pairs: Any = list(weight.items()) if hasattr(weight, "items") else weight
        return super()._notes() | {
            "classes": self.classes_.tolist(),
            "dtype": self.classes_.dtype.str,
            "class_weight": pairs,
        }

    def _target_encoding(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        kind = "text"
        if all(isinstance(label, bool) for label in classes):
            kind = "bool"
        elif all(isinstance(label, (int, float)) for label in classes):
            kind = "number"
        names = [str(label).lower() if kind == "bool" else f"{label}" for label in classes]
        column = self._y_names[0] if self._y_names else "y"
        return {"task": "classification", "column": column, "kind": kind, "classes": names}
