"""Columns of data frames, by kind, as the compiled encoder takes them.

pandas, polars and pyarrow are never imported here unless the user's own frame needs them.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NO_TIME = np.iinfo(np.int64).min
"""A missing point in time; NumPy's NaT is the same number."""

DAY = 86_400e6
"""Microseconds of a day."""


class Coded:
    """Texts by a dictionary: Python need not make a string of every cell."""

    def __init__(self, codes: npt.NDArray[np.int32], values: list[str | None]) -> None:
        self.codes = codes
        """Place of each cell's text; −1 is missing."""
        self.values = values

    def __len__(self) -> int:
        return len(self.codes)


Cells = npt.NDArray[Any] | list[str | None] | Coded | str
"""float64, int8 (−1 is missing), int64 microseconds, texts, or the name of a type that cannot be used."""


class Column(NamedTuple):
    """A named column; `category` if the frame itself says that it is one."""

    name: str
    cells: Cells
    category: bool = False

    @property
    def is_plain(self) -> bool:
        """Return whether these are numbers without holes."""
        cells = self.cells
        return isinstance(cells, np.ndarray) and cells.dtype == np.float64 and not bool(np.isnan(cells).any())


def is_frame(X: Any) -> bool:
    """Return whether X has named columns of its own kinds."""
    if isinstance(X, (np.ndarray, list, tuple)) or hasattr(X, "toarray"):
        return False
    if hasattr(X, "__dataframe__") or hasattr(X, "collect_schema"):
        return True
    # A single column has the stream too, but a type of its own; a relation of DuckDB has both.
    single = hasattr(X, "dtype") or (hasattr(X, "type") and not hasattr(X, "columns"))
    return hasattr(X, "__arrow_c_stream__") and not single


def whole(frame: Any) -> Any:
    """Return a frame of pandas, polars or pyarrow that can be read more than once."""
    match type(frame).__module__.split(".")[0]:
        case "pandas":
            return frame
        case "polars":
            return frame.collect() if hasattr(frame, "collect") else frame
        case "pyarrow":
            return frame.read_all() if hasattr(frame, "read_all") else frame
        case _:
            return _adopted(frame)


def columns_of(frame: Any) -> list[Column]:
    """Return the columns of any frame."""
    frame = whole(frame)
    match type(frame).__module__.split(".")[0]:
        case "pandas":
            return [_of_pandas(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)]
        case "polars":
            return [_of_polars(series) for series in frame.get_columns()]
        case _:
            return [_of_arrow(name, frame.column(i)) for i, name in enumerate(frame.schema.names)]


def has_text_names(frame: Any) -> bool:
    """Return whether all columns have names that are texts."""
    if type(frame).__module__.split(".")[0] != "pandas":
        return True
    return all(isinstance(name, str) for name in frame.columns)


def columns_of_array(array: npt.NDArray[Any], names: Sequence[str]) -> list[Column]:
    """Return the columns of a two-dimensional array."""
    if array.dtype.kind in "fiu":
        numbers = np.asarray(array, dtype=np.float64)
        return [Column(name, np.ascontiguousarray(numbers[:, i])) for i, name in enumerate(names)]
    return [_of_objects(name, array[:, i].tolist()) for i, name in enumerate(names)]


def _adopted(frame: Any) -> Any:
    """Return a frame of another library as one that is known here, through an interchange protocol."""
    ways = (
        ("pyarrow", "__arrow_c_stream__", "table"),
        ("polars", "__arrow_c_stream__", "DataFrame"),
        ("pandas.api.interchange", "__dataframe__", "from_dataframe"),
        ("polars", "__dataframe__", "from_dataframe"),
    )
    for library, protocol, function in ways:
        if hasattr(frame, protocol):
            try:
                module: Any = import_module(library)
            except ImportError:
                continue
            return getattr(module, function)(frame)
    raise TypeError(
        f"a frame of type {type(frame).__qualname__} needs pyarrow, polars or pandas to be read: install one"
    )


def _of_pandas(name: str, series: Any) -> Column:
    pandas: Any = import_module("pandas")
    dtype = series.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        values = series.astype(dtype.categories.dtype) if not series.isna().any() else series.astype(object)
        return _of_pandas(name, values)._replace(category=True)
    if isinstance(dtype, pandas.ArrowDtype) or str(getattr(dtype, "storage", "")).startswith("pyarrow"):
        return _of_arrow(name, series.array.__arrow_array__())
    if pandas.api.types.is_bool_dtype(dtype):
        return Column(name, _bits(series.to_numpy(dtype=object, na_value=None).tolist()))
    if dtype.kind in "iuf":
        return Column(name, _numbers(series.to_numpy(dtype=np.float64, na_value=np.nan)))
    if dtype.kind == "M":
        if getattr(dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return Column(name, _times(series.to_numpy()))
    if dtype.kind == "m":
        return Column(name, _days(series.to_numpy()))
    if isinstance(dtype, pandas.PeriodDtype):
        return Column(name, _times(series.dt.to_timestamp().to_numpy()))
    missing = series.isna().to_numpy()
    if dtype.kind == "O" or isinstance(dtype, pandas.StringDtype):
        cells = series.to_numpy(dtype=object)
        return _of_objects(name, [None if hole else cell for cell, hole in zip(cells, missing, strict=True)])
    return Column(name, str(dtype))


def _of_polars(series: Any) -> Column:
    polars: Any = import_module("polars")
    name, dtype = series.name, series.dtype
    if dtype == polars.Boolean:
        return Column(name, _bits(series.to_list()))
    if dtype.is_numeric():
        return Column(name, _numbers(series.cast(polars.Float64).to_numpy()))
    if dtype in (polars.Date, polars.Datetime):
        # A time zone only changes what is shown: the number counts from 1970 in UTC.
        micros = (
            series.cast(polars.Datetime("us")) if dtype == polars.Date else series.dt.cast_time_unit("us")
        )
        return Column(name, _integers(micros.to_physical(), NO_TIME))
    if dtype == polars.Time:
        return Column(name, _integers(series.to_physical() // 1000, NO_TIME))
    if dtype == polars.Duration:
        return Column(name, _numbers(series.dt.total_microseconds().cast(polars.Float64).to_numpy() / DAY))
    if dtype in (polars.Categorical, polars.Enum):
        return Column(name, series.cast(polars.String).to_list(), category=True)
    if dtype == polars.String:
        return Column(name, series.to_list())
    if dtype == polars.Null:
        return Column(name, np.full(len(series), np.nan))
    if dtype == polars.Object:
        return _of_objects(name, series.to_list())
    return Column(name, str(dtype))


def _integers(series: Any, missing: int) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(series.fill_null(missing).to_numpy(), dtype=np.int64)


def _of_arrow(name: str, column: Any) -> Column:
    arrow: Any = import_module("pyarrow")
    kinds: Any = import_module("pyarrow.types")
    kind = column.type
    if kinds.is_dictionary(kind):
        texts = _is_text(kinds, kind.value_type)
        cells = _coded(column) if texts else _of_arrow(name, column.cast(kind.value_type)).cells
        return Column(name, cells, category=True)
    if kinds.is_boolean(kind):
        return Column(name, _bits(column.to_pylist()))
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        numbers = column.cast(arrow.float64(), safe=False)
        return Column(name, _numbers(numbers.fill_null(np.nan).to_numpy()))
    if kinds.is_timestamp(kind) or kinds.is_date(kind):
        zone = kind.tz if kinds.is_timestamp(kind) else None
        micros = column.cast(arrow.timestamp("us", tz=zone), safe=False).cast(arrow.int64())
        return Column(name, np.ascontiguousarray(micros.fill_null(NO_TIME).to_numpy()))
    if kinds.is_time(kind):
        micros = column.cast(arrow.time64("us"), safe=False).cast(arrow.int64())
        return Column(name, np.ascontiguousarray(micros.fill_null(NO_TIME).to_numpy()))
    if kinds.is_duration(kind):
        micros = column.cast(arrow.duration("us"), safe=False).cast(arrow.int64()).cast(arrow.float64())
        return Column(name, _numbers(micros.fill_null(np.nan).to_numpy() / DAY))
    if _is_text(kinds, kind):
        return Column(name, _coded(column.cast(arrow.large_string()).dictionary_encode()))
    if kinds.is_null(kind):
        return Column(name, np.full(len(column), np.nan))
    return Column(name, str(kind))


def _is_text(kinds: Any, kind: Any) -> bool:
    return kinds.is_string(kind) or kinds.is_large_string(kind) or str(kind) == "string_view"


def _coded(column: Any) -> Coded:
    """Return a column of dictionaries, one for each of its chunks, as one."""
    chunked = hasattr(column, "num_chunks")
    array = column.unify_dictionaries().combine_chunks() if chunked else column
    if hasattr(array, "num_chunks"):
        # Without a chunk there is nothing to combine.
        return Coded(np.empty(0, dtype=np.int32), [])
    codes = array.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(np.ascontiguousarray(codes, dtype=np.int32), array.dictionary.to_pylist())


def _of_objects(name: str, cells: list[Any]) -> Column:
    """Return a column of Python objects, by what all of them are; a mixture is texts."""
    cells = [None if _is_missing(cell) else cell for cell in cells]
    kinds: set[type[Any]] = {type(cell) for cell in cells if cell is not None}
    if all(issubclass(kind, str) for kind in kinds):
        # Without a single value: nothing but holes.
        return Column(name, cells if kinds else np.full(len(cells), np.nan))
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return Column(name, _bits(cells))
    if all(issubclass(kind, (int, float, Decimal, np.number, np.bool_)) for kind in kinds):
        return Column(name, np.array([np.nan if cell is None else float(cell) for cell in cells]))
    if all(issubclass(kind, (datetime.date, np.datetime64)) for kind in kinds):
        return Column(name, np.array([_microseconds(cell) for cell in cells], dtype=np.int64))
    if all(issubclass(kind, datetime.time) for kind in kinds):
        return Column(name, np.array([_of_clock(cell) for cell in cells], dtype=np.int64))
    if all(issubclass(kind, datetime.timedelta) for kind in kinds):
        days = [np.nan if cell is None else cell.total_seconds() / 86_400 for cell in cells]
        return Column(name, np.array(days))
    nested: tuple[Any, ...] = (bytes, list, tuple, dict, set, np.ndarray)
    for kind in kinds:
        if issubclass(kind, nested):
            return Column(name, kind.__name__)
    return Column(name, [None if cell is None else str(cell) for cell in cells])


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is None, NaN, NaT or pandas' NA."""
    if cell is None:
        return True
    if isinstance(cell, (float, np.floating, Decimal)):
        return cell != cell
    return type(cell).__name__ in ("NAType", "NaTType") or str(cell) == "NaT"


def _microseconds(cell: Any) -> int:
    if cell is None:
        return int(NO_TIME)
    if isinstance(cell, np.datetime64):
        return int(cell.astype("datetime64[us]").astype(np.int64))
    if not isinstance(cell, datetime.datetime):
        cell = datetime.datetime(cell.year, cell.month, cell.day)
    if cell.tzinfo is None:
        cell = cell.replace(tzinfo=datetime.UTC)
    return (cell - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(microseconds=1)


def _of_clock(cell: Any) -> int:
    if cell is None:
        return int(NO_TIME)
    return ((cell.hour * 60 + cell.minute) * 60 + cell.second) * 1_000_000 + cell.microsecond


def _bits(cells: list[Any]) -> npt.NDArray[np.int8]:
    return np.array([-1 if cell is None else int(cell) for cell in cells], dtype=np.int8)


def _numbers(cells: Any) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(cells, dtype=np.float64)


def _times(cells: Any) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(cells.astype("datetime64[us]").astype(np.int64))


def _days(cells: Any) -> npt.NDArray[np.float64]:
    days = cells.astype("timedelta64[us]").astype(np.float64) / DAY
    days[np.isnat(cells)] = np.nan
    return np.ascontiguousarray(days)
