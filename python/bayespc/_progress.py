"""A progress bar: tqdm where it is installed, a plain line on standard error where it is not."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

_PARTS = 1000
"""What tqdm counts the share of the work in."""


class ProgressBar:
    """Shows what is being done and how far it is; call it with (stage, share, loss, held-out density)."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._bar: Any = None
        self._last = ""
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
        elif self._last:
            sys.stderr.write("\n")

    def __call__(self, stage: str, share: float, loss: float | None, held_out: float | None) -> None:
        title = f"{self._title}: {stage}"
        numbers = {"loss": loss, "held-out density": held_out}
        known = {name: f"{value:.4g}" for name, value in numbers.items() if value is not None}
        if self._make is None:
            self._write([f"{title} {100 * share:3.0f} %", *map(" ".join, known.items())])
            return
        if self._bar is None:
            shown = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
            self._bar = self._make(total=_PARTS, bar_format=shown, desc=title)
        self._bar.set_description_str(title, refresh=False)
        self._bar.set_postfix(known, refresh=False)
        self._bar.n = round(_PARTS * share)
        self._bar.refresh()

    def _write(self, parts: list[str]) -> None:
        line = ", ".join(parts)
        if line != self._last:
            # What is left of a longer line is blanked out.
            sys.stderr.write("\r" + line.ljust(len(self._last)))
            sys.stderr.flush()
            self._last = line
