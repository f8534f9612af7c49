"""A progress bar: tqdm where it is installed, a plain line on standard error where it is not."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class ProgressBar:
    """Shows how many batches are done; call it with (done, planned)."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._bar: Any = None
        self._last = -1
        try:
            from tqdm.auto import tqdm  # pyright: ignore

            self._make: Any = tqdm
        except ImportError:
            self._make = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._make is None and self._last >= 0:
            sys.stderr.write("\n")

    def __call__(self, done: int, planned: int) -> None:
        if planned == 0:
            return
        if self._make is None:
            percent = 100 * done // planned
            if percent != self._last:
                sys.stderr.write(f"\r{self._title}: {percent:3d} %")
                sys.stderr.flush()
                self._last = percent
            return
        if self._bar is None:
            self._bar = self._make(total=planned, desc=self._title, unit="batch")
        self._bar.n = done
        self._bar.refresh()
