# SPDX-License-Identifier: Apache-2.0
"""Rows of Parquet files as JSON objects, of which `quired build` reads fields."""
from __future__ import annotations

import datetime
import decimal
import functools
import json
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import pyarrow
import pyarrow.parquet
from pyarrow import types

# Rows that are decoded at once.
_BATCH_ROWS = 64
_EPOCH = datetime.datetime(1970, 1, 1)
# Microseconds of units of timestamps; nanoseconds are cast.
_UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
# Fault of a time outside the years 1 to 9999.
_OUT_OF_RANGE = "date value out of range"


class Row(NamedTuple):
    """A row as JSON. `fault`: why there is none."""

    # Where it comes from, for messages.
    origin: str
    members: str
    fault: str = ""


def find_columns(schema: Any, names: Sequence[str]) -> List[str]:
    """The columns of names; a name may be a path, whose first part is the column. Raises
    ValueError for a name of none."""
    found: List[str] = []
    for name in names:
        column = name if name in schema.names else name.split(".")[0]
        if column not in schema.names:
            raise ValueError(f"{name}: must be one of its columns, {', '.join(schema.names)}")
        if schema.names.count(column) > 1:
            raise ValueError(f"{name}: several columns have this name")
        if column not in found:
            found.append(column)
    return found


def _plain(value: Any) -> Any:
    """What JSON has for a value in an object or array. Raises ValueError if it has nothing."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime.datetime):
        return _rfc3339(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    raise ValueError(f"it holds a {type(value).__name__}, for which JSON has nothing")


def _rfc3339(time: datetime.datetime) -> str:
    if time.tzinfo is not None:
        time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return time.isoformat() + "Z"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _time_of(unit_us: int, value: int) -> str:
    try:
        return _dumps(_rfc3339(_EPOCH + datetime.timedelta(microseconds=value * unit_us)))
    except OverflowError:
        raise OverflowError(_OUT_OF_RANGE) from None


def _text_of(value: bytes) -> str:
    return _dumps(value.decode())


def _converter(kind: Any) -> Tuple[Any, Callable[[Any], str]]:
    """The type that a column of a type is read as, and the JSON of its values."""
    if types.is_dictionary(kind):
        return _converter(kind.value_type)
    if types.is_timestamp(kind):
        if kind.unit == "ns":
            # Microseconds, as archives have. Arrow would wrap large seconds and milliseconds
            # around, so that only this unit is cast.
            kind = pyarrow.timestamp("us", kind.tz)
        return kind, functools.partial(_time_of, _UNITS_US[kind.unit])
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return kind, _text_of
    if types.is_time(kind) or types.is_duration(kind):
        raise ValueError(f"is of type {kind}, which has no JSON; convert it to a number or a "
                         "timestamp")
    return kind, _dumps


def _values(column: Any, kind: Any) -> List[Any]:
    if column.type != kind:
        column = column.cast(kind, safe=False)
    if types.is_timestamp(kind):
        column = column.cast(pyarrow.int64())
    try:
        found: List[Any] = column.to_pylist()
    except OverflowError:
        found = list(map(_value_of, column))
    return found


def _value_of(scalar: Any) -> Any:
    """The value; an OverflowError for a date or a nested time that Python cannot hold."""
    try:
        return scalar.as_py()
    except OverflowError:
        return OverflowError(_OUT_OF_RANGE)


def read_rows(path: str, names: Optional[Sequence[str]]) -> Iterator[Row]:
    """The rows of a file, in order, with the columns that names are of, or all. Raises
    ValueError if a column is not usable."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            columns = find_columns(schema, schema.names if names is None else names)
            converters = []
            for name in columns:
                try:
                    converters.append(_converter(schema.field(name).type))
                except ValueError as error:
                    raise ValueError(f"column {name} {error}") from None
            heads = [_dumps(name) + ":" for name in columns]
            row = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                try:
                    values = [_values(batch.column(batch.schema.get_field_index(name)), kind)
                              for name, (kind, _) in zip(columns, converters)]
                except UnicodeDecodeError as error:
                    raise ValueError(f"{path}: rows {row} to {row + batch.num_rows - 1}: a "
                                     f"string is not UTF-8: {error}") from None
                for found in zip(*values):
                    yield _row(f"{path}: row {row}", columns, heads, converters, found)
                    row += 1
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: is not a Parquet file, or damaged: {error}") from None


def _row(origin: str, columns: Sequence[str], heads: Sequence[str], converters: Sequence[Any],
         values: Sequence[Any]) -> Row:
    members: List[str] = []
    for name, head, (_, convert), value in zip(columns, heads, converters, values):
        try:
            if isinstance(value, OverflowError):
                raise value
            members.append(head + ("null" if value is None else convert(value)))
        except UnicodeDecodeError:
            return Row(origin, "", f"its {name} is not UTF-8")
        except (ValueError, OverflowError) as error:
            return Row(origin, "", f"its {name} cannot be written: {error}")
    return Row(origin, ",".join(members))
