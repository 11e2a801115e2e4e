"""Maps Spark's column types to Arrow types, and checks that they are compatible with Delta and with
an existing table.

Nested types are also checked. Every error contains the full path, such as `items.element.price` or
`prices.value.currency`, with Delta's own names for the parts of an array or map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

_TYPES: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_date32,
)
# Types with an unambiguous form in a partition's directory name and in the log.
_OF_PARTITIONS: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_date32,
    pa.types.is_timestamp,
)
# Marks of the Spark types that are structs in Arrow.
_MARKS: Final = (b"variant", b"geometry", b"geography")

Path = tuple[str, ...]  # from a column to a field within it


class Difference(NamedTuple):
    """A column or nested field that exists only in the rows or only in the table."""

    path: Path
    is_new: bool
    may_be_null: bool

    def __str__(self) -> str:
        return ".".join(self.path)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema for Spark's columns.

    Raises `ConfigError` if a column has no Arrow type.
    """
    for field in schema:
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except (PySparkException, ValueError) as error:
            raise _no_such_type(field.name, field.dataType.simpleString()) from error
    return to_arrow_schema(schema, timezone="UTC")


def check_types(schema: pa.Schema) -> None:
    """Raise `ConfigError` for duplicate names and for types that Delta does not support."""
    _check_fields("", list(schema))


def _check_fields(path: str, fields: Sequence[pa.Field]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        name = f"{path}{field.name}"
        if name.lower() in seen:
            raise ConfigError(
                f"columns {seen[name.lower()]} and {name} have the same name in Delta, which "
                "ignores case"
            )
        seen[name.lower()] = name
        _check_type(name, field.type)


def _check_type(path: str, kind: pa.DataType) -> None:
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        if any(mark in (field.metadata or {}) for field in fields for mark in _MARKS):
            raise _no_such_type(path, "a variant, geometry or geography")
        _check_fields(f"{path}.", fields)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _check_type(f"{path}.element", kind.value_type)
    elif pa.types.is_map(kind):
        _check_type(f"{path}.key", kind.key_type)
        _check_type(f"{path}.value", kind.item_type)
    elif pa.types.is_timestamp(kind):
        if kind.unit != "us":
            raise _no_such_type(path, kind)
    elif not any(is_kind(kind) for is_kind in _TYPES):
        raise _no_such_type(path, kind)


def _no_such_type(path: str, kind: object) -> ConfigError:
    return ConfigError(f"column {path} is {kind}, which is not a type of Delta tables: cast it")


def check_partitioning(schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Raise `ConfigError` for columns that cannot be partition columns."""
    for name in partition_by:
        if name not in schema.names:
            raise ConfigError(f"there is no column {name!r} to partition by")
        kind = schema.field(name).type
        if not any(is_kind(kind) for is_kind in _OF_PARTITIONS):
            raise ConfigError(f"column {name} is {kind}, which this sink cannot partition by")
    if partition_by and len(partition_by) == len(schema):
        raise ConfigError("all columns are partition columns: none is left for the files")


def nullable_schema(schema: pa.Schema) -> Schema:
    """Return the schema of a new table, in which everything is nullable, as in tables created by
    Delta's own writer.
    """
    from deltalake import Schema

    return Schema.from_arrow(nullable(schema))


def nullable(schema: pa.Schema) -> pa.Schema:
    """Make the columns and everything in them nullable."""
    return pa.schema([_nullable(field) for field in schema])


def is_strict(kind: pa.DataType) -> bool:
    """Return whether any field within this type may not be null."""
    inner = [kind.field(at) for at in range(kind.num_fields)]
    if pa.types.is_map(kind):  # Arrow's key field may never be null
        inner = [kind.key_field.with_nullable(True), kind.item_field]
    return any(not field.nullable or is_strict(field.type) for field in inner)


def _nullable(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _nullable_type(field.type))


def _nullable_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_nullable(kind.field(at)) for at in range(kind.num_fields)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _nullable_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_nullable_type(kind.key_type), _nullable_type(kind.item_type))
    return kind


def new_fields(table: DeltaTable, schema: pa.Schema, *, merge: bool) -> list[Any]:
    """Return the columns that are missing from the table, entirely or in part, as arguments for
    `add_columns`.

    Raises `ConfigError` if the rows do not match the table: a type differs, a column or field is
    new but `merge` is not set, or a required column is missing or nullable.
    """
    from deltalake import Schema

    given = Schema.from_arrow(schema).fields
    differences = list(_in_fields((), table.schema().fields, given))
    new = [each for each in differences if each.is_new]
    missing = [str(each) for each in differences if not each.is_new and not each.may_be_null]
    if missing:
        raise ConfigError(f"column {', '.join(missing)} is missing, but may not be null")
    if new and not merge:
        raise ConfigError(
            f"the table has no column {', '.join(map(str, new))}: drop it, or add it to the table "
            "with mergeSchema=true"
        )
    # `add_columns` merges the fields of a struct, including a struct in an array or a map.
    changed = {each.path[0] for each in new}
    return [field for field in nullable_schema(schema).fields if field.name in changed]


def _in_fields(path: Path, own: Sequence[Any], given: Sequence[Any]) -> Iterator[Difference]:
    there = {field.name: field for field in own}
    in_any_case = {field.name.lower(): field.name for field in own}
    for field in given:
        inner = (*path, field.name)
        name = ".".join(inner)
        if field.name in there:
            mine = there[field.name]
            if path:  # for whole columns, the rows themselves are checked
                _check_nullable(inner, mine.nullable, field.nullable)
            yield from _in_type(inner, mine.type, field.type)
        elif field.name.lower() in in_any_case:
            raise ConfigError(
                f"column {name} is {in_any_case[field.name.lower()]} in the table, and Delta "
                "ignores case: rename it"
            )
        else:
            yield Difference(inner, True, field.nullable)
    names = {field.name for field in given}
    for field in own:
        if field.name not in names:
            yield Difference((*path, field.name), False, field.nullable)


def _in_type(path: Path, own: Any, given: Any) -> Iterator[Difference]:
    from deltalake.schema import ArrayType, MapType, PrimitiveType
    from deltalake.schema import StructType as DeltaStruct

    if type(own) is not type(given) or (isinstance(own, PrimitiveType) and own != given):
        raise ConfigError(
            f"column {'.'.join(path)} is {_name(given)}, but {_name(own)} in the table"
        )
    if isinstance(own, DeltaStruct):
        yield from _in_fields(path, own.fields, given.fields)
    elif isinstance(own, ArrayType):
        inner = (*path, "element")
        _check_nullable(inner, own.contains_null, given.contains_null)
        yield from _in_type(inner, own.element_type, given.element_type)
    elif isinstance(own, MapType):
        inner = (*path, "value")
        _check_nullable(inner, own.value_contains_null, given.value_contains_null)
        yield from _in_type((*path, "key"), own.key_type, given.key_type)
        yield from _in_type(inner, own.value_type, given.value_type)


def _check_nullable(path: Path, own: bool, given: bool) -> None:
    if given and not own:
        raise ConfigError(f"column {'.'.join(path)} may be null, but may not be null in the table")


def _name(kind: Any) -> str:
    name: str = kind.type
    return name
