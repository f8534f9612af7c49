"""What the estimators on Dask share: the client, ways to fit, lazy answers, the local estimator inside."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from numbers import Integral
from typing import Any, Self

from sklearn.base import clone

from .._base import BPCEstimator
from .._classifier import BPCClassifier
from .._frames import is_frame
from .._progress import ProgressBar
from .._regressor import BPCRegressor
from .._settings import choice, integer, model_settings
from .._tables import MISSING, _choices
from ._checkpoint import Checkpoint, Verdict
from ._choice import choose
from ._columns import sample_table, telling_rows, understand
from ._lazy import Question, ask
from ._parts import Part, is_lazy, parts_of
from ._reader import Table, count
from ._rounds import check_settings, fit_rounds
from ._score import Moments
from ._score import together as all_moments
from ._stream import learn_in_order
from ._survey import Survey, look, together
from ._tasks import Job, grouped, run
from ._whole import fit_whole, fits_one_worker

_distributed: Any = import_module("distributed")

Local = BPCRegressor | BPCClassifier


class DaskEstimator(BPCEstimator):
    """Base of `DaskBPCRegressor` and `DaskBPCClassifier`."""

    client: Any
    passes_: list[dict[str, Any]]

    def _local_class(self) -> type[Local]:
        raise NotImplementedError

    # Whoever copies or stores an estimator wants what it has learned, not the way to a cluster.

    def __getstate__(self) -> Any:
        state: dict[str, Any] = dict(super().__getstate__())  # pyright: ignore
        return state | {"client": None}

    def __sklearn_clone__(self) -> Self:
        params = self.get_params(deep=False)
        client = params.pop("client")
        kind: Any = type(self)
        return kind(**{name: clone(value, safe=False) for name, value in params.items()}, client=client)

    def to_local(self) -> Any:
        """Return the same model as an estimator for arrays and frames in memory.

        Returns
        -------
        BPCRegressor or BPCClassifier
            With the same parameters, fitted if this one is. It shares the model, which never changes.
        """
        params = self.get_params(deep=False)
        del params["client"]
        kind: Any = self._local_class()
        local: Any = kind(**params)
        for name, value in vars(self).items():
            if name not in params and name != "client":
                setattr(local, name, value)
        return local

    def _adopt(self, local: Any) -> Self:
        """Take over what a local estimator has learned."""
        params = self.get_params(deep=False)
        for name in [name for name in vars(self) if name not in params]:
            # What an earlier fit has left.
            delattr(self, name)
        learned: dict[str, Any] = dict(vars(local))  # pyright: ignore
        for name, value in learned.items():
            if name not in params:
                setattr(self, name, value)
        return self

    def _fresh(self, seed: int) -> Any:
        """Return a local estimator that has learned nothing, and whose chance is this seed."""
        params = self.get_params(deep=False)
        del params["client"]
        params |= {"random_state": seed, "verbose": 0, "warm_start": False}
        kind: Any = self._local_class()
        return kind(**params)

    def _connected(self) -> Any:
        """Return the client that was given, or else the current one."""
        if self.client is not None:
            return self.client
        try:
            return _distributed.get_client()
        except ValueError:
            raise ValueError(
                "there is no dask client: make one first, client = dask.distributed.Client(), "
                "or give one, client=…"
            ) from None

    def _sync(self, function: Any, *args: Any) -> Any:
        """Run a coroutine function by the client: await its result if the client is asynchronous."""
        client = self._connected()
        with _outside_of_tasks():
            return client.sync(function, client, *args)

    def _say(self, words: str) -> None:
        if self.verbose:
            sys.stderr.write(f"{type(self).__name__}: {words}\n")

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        rounds: bool | None,
        checkpoint: str | os.PathLike[str] | None,
        checkpoint_every: int,
    ) -> Any:
        # What is wrong with the parameters is said before anything is sent anywhere.
        seed: int = json.loads(self._settings())["training"]["seed"]
        choice("missing", self.missing, MISSING)
        integer("checkpoint_every", checkpoint_every, 1)
        if checkpoint is not None and rounds is False:
            raise ValueError("checkpoint: only rounds have checkpoints; leave out rounds=False")
        if self.warm_start:
            raise ValueError("warm_start is not for dask: partial_fit goes on from what was learned")
        parts = parts_of(X, y, sample_weight)
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, checkpoint_every)
            if not isinstance(self.random_state, Integral):
                # Chance goes on where it was.
                seed = kept.seed(seed)
        return self._sync(self._fit_on, parts, seed, rounds, kept)

    async def _fit_on(
        self, client: Any, parts: list[Part], seed: int, rounds: bool | None, checkpoint: Checkpoint | None
    ) -> Self:
        local = self._fresh(seed)
        survey = await self._survey(client, parts)
        if survey.left_out:
            warnings.warn(_left_out(survey.left_out, "without a target"), stacklevel=2)
        if rounds is None:
            rounds = checkpoint is not None or not await fits_one_worker(client, survey.n_bytes)
        said = f"{survey.n_rows} rows in {len(parts)} partitions"
        if not rounds:
            self._say(f"{said} fit one worker: the table is put together there, and networks are tasks")
            return self._adopt(await fit_whole(client, local, parts))
        self._say(f"{said}: rounds over partitions")
        self._prepare(local, survey)
        check_settings(local, seed)
        await self._understand(client, local, parts, survey)
        table = await self._numbered(client, local, parts, survey)
        # The sample is drawn from all rows that have a target, whatever else is left out of them.
        parameters = local.get_params(deep=False)
        asked = {"settings": model_settings(parameters, seed), "rows": survey.n_rows}
        verdict = None if checkpoint is None else checkpoint.verdict(asked)
        if verdict is None:
            found = await choose(client, self._fresh(seed), Table.of(parts, survey.rows))
            verdict = Verdict(asked, *found)
        settings = model_settings(parameters | verdict.found, seed)
        with ProgressBar(type(self).__name__) as bar:
            watch = bar if self.verbose else None
            local = await fit_rounds(client, local, table, settings, checkpoint, verdict, watch)
        local.candidates_ = verdict.candidates
        return self._adopt(local)

    async def _numbered(self, client: Any, local: Any, parts: list[Part], survey: Survey) -> Table:
        """Return all parts with the numbers of their rows; rows that are left out are not counted."""
        rows = survey.rows
        if self.missing == "drop" and not survey.plain:
            groups = [[Job(i, parts[i]) for i in group] for group in grouped(rows)]
            rows = [n for group in await run(client, count, groups, local) for n in group]
            left_out = survey.n_rows - sum(rows)
            if left_out:
                warnings.warn(_left_out(left_out, "with missing cells"), stacklevel=2)
        return Table.of(parts, rows)

    async def _survey(self, client: Any, parts: list[Part]) -> Survey:
        classes = issubclass(self._local_class(), BPCClassifier)
        groups = [[Job(number, part)] for number, part in enumerate(parts)]
        seen = await run(client, look, groups, classes, self.columns, self.missing)
        return together([part for group in seen for part in group])

    def _prepare(self, local: Any, survey: Survey) -> None:
        """Tell a local estimator what is known of the targets of all parts."""
        raise NotImplementedError

    async def _understand(self, client: Any, local: Any, parts: list[Part], survey: Survey) -> None:
        """Let a local estimator know what columns there are and how they become inputs."""
        X, y = survey.head
        if not survey.plain:
            table = Table.of(parts, survey.rows)
            jobs = [Job(i, part, table.first_rows[i]) for i, part in enumerate(parts)]
            groups = [[jobs[i] for i in group] for group in grouped(survey.rows)]
            choices = _choices(self.columns, is_frame(X))
            wanted = [name for name, kind in choices.items() if kind.startswith("category")]
            found = await run(client, telling_rows, groups, survey.n_rows, wanted)
            X = sample_table([part for group in found for part in group], survey.n_rows)
        with warnings.catch_warnings():
            # What it has to say is of a sample.
            warnings.simplefilter("ignore")
            understand(local, X, y)

    def _partial_fit(self, parts: list[Part], classes: Any) -> Any:
        return self._sync(self._partial_fit_on, parts, classes)

    async def _partial_fit_on(self, client: Any, parts: list[Part], classes: Any) -> Self:
        local = self.to_local()
        local.verbose = 0
        return self._adopt(await learn_in_order(client, local, parts, classes))

    def ood_score(self, X: Any) -> Any:
        """Score how unlike the training samples others are, as the local estimators do.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.

        Returns
        -------
        As lazy as X, of shape (n_samples,).
        """
        return self._ask(X, Question("ood_score", {})) if is_lazy(X) else super().ood_score(X)

    def _ask(self, X: Any, question: Question) -> Any:
        self._check_fitted()
        return ask(self.to_local(), X, question)

    def _score(self, parts: list[Part], sums: Callable[..., Any], score: Callable[[Moments], float]) -> Any:
        self._check_fitted()
        return self._sync(self._score_on, parts, sums, score)

    async def _score_on(
        self, client: Any, parts: list[Part], sums: Callable[..., Any], score: Callable[[Moments], float]
    ) -> float:
        groups = [[Job(number, part)] for number, part in enumerate(parts)]
        found = await run(client, sums, groups, self.to_local())
        return score(all_moments([part for group in found for part in group]))

    def _samples(self, X: Any) -> Any:
        if is_lazy(X):
            raise TypeError(
                "this takes arrays in memory: what is lazy would be computed at once; "
                "map a method of to_local() over the partitions instead"
            )
        return super()._samples(X)


def _left_out(n: int, which: str) -> str:
    return f"{n} {'row' if n == 1 else 'rows'} {which} left out"


@contextmanager
def _outside_of_tasks() -> Generator[None]:
    """Give the thread of a task back to its worker while it waits for other tasks."""
    try:
        _distributed.get_worker()
        _distributed.secede()
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        _distributed.rejoin()
