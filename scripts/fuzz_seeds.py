"""Parquet files as pyarrow writes them, for the fuzzer to begin with: all codecs, encodings, types, versions.

    python scripts/fuzz_seeds.py FOLDER

`scripts/fuzz.py` runs it where the project's environment is there; its own seeds are what we write ourselves.
"""

import datetime
import decimal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DAYS = [datetime.date(2020, 1, day) for day in range(1, 7)]
SMALL = pa.table(
    {
        "real": pa.array([0.1, None, 0.3, -0.5, 0.9, 7.0]),
        "short": pa.array([1, 2, 3, 4, None, 6], pa.int32()),
        "long": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "bit": pa.array([True, False, None, True, True, False]),
        "day": pa.array(DAYS),
        "time": pa.array([datetime.datetime.combine(day, datetime.time()) for day in DAYS]),
        "decimal": pa.array([decimal.Decimal("1.25")] * 6, pa.decimal128(20, 2)),
        "bytes": pa.array([b"abcd"] * 6, pa.binary(4)),
        "text": pa.array(["red", "blue", None, "red", "redder", "blue"]),
    }
)
NESTED = pa.table({"list": [[1, 2], [3], None], "real": [1.0, 2.0, 3.0]})
LONG = pa.table({"real": [float(i % 7) for i in range(3000)], "text": [f"v{i % 11}" for i in range(3000)]})
PACKED = {"text": "DELTA_BYTE_ARRAY", "short": "DELTA_BINARY_PACKED", "real": "BYTE_STREAM_SPLIT"}
LENGTHS = {"text": "DELTA_LENGTH_BYTE_ARRAY", "long": "DELTA_BINARY_PACKED"}


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)

    def write(name: str, table: pa.Table, **options: object) -> None:
        pq.write_table(table, folder / f"pyarrow-{name}.parquet", **options)

    for version in ("1.0", "2.0"):
        for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
            write(f"{codec}-{version}", SMALL, compression=codec, data_page_version=version)
        for name, encoding in (("packed", PACKED), ("lengths", LENGTHS)):
            options = {"use_dictionary": False, "column_encoding": encoding, "data_page_version": version}
            write(f"{name}-{version}", SMALL.select(list(encoding)), compression="none", **options)
    for name in SMALL.column_names:
        write(name, SMALL.select([name]), compression="none", write_statistics=False, store_schema=False)
    write("plain", SMALL, compression="none", use_dictionary=False)
    write("groups", SMALL.select(["real", "text"]), compression="none", row_group_size=2)
    write("nested", NESTED)
    write("pages", LONG, data_page_size=1000)
    write("packed-pages", LONG, use_dictionary=False, compression="zstd", data_page_size=2000)


if __name__ == "__main__":
    main()
