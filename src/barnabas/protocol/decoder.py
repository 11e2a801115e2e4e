"""Compiles a decoder for a message in a certain version: code without lookups and version checks.

For example, this is the code for a list of FetchPartition in version 12:

    for _ in range(n_8):
        m_9 = new(FetchPartition)
        m_9.replica_directory_id = ...                    the defaults of what version 12 lacks
        m_9.partition, m_9.current_leader_epoch, ..., t_10 = unpack_iiqiqiB(data, position)
        position += 33
        if t_10: position = skip_tagged_fields(data, position, t_10)
        append_7(m_9)

Consecutive fields of fixed size are read with a single `struct.Struct.unpack_from`, together with
the first byte of the length that follows them. Byte fields remain views of the frame. The input is
not trusted: a read past the end raises struct.error or IndexError, which the caller converts to
CorruptData; a slice, which Python would silently truncate, is compared with the size; and a count
is compared with the number of bytes that are left.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from barnabas.errors import CorruptData
from barnabas.protocol.message import Field, Message, WireType
from barnabas.protocol.source import Source
from barnabas.protocol.wire import (
    BYTES,
    RECORDS,
    STRING,
    Array,
    Primitive,
    TooManyEntries,
    rest_of_string_length,
    rest_of_uvarint,
    skip_tagged_fields,
)

_RUNTIME: Final = {
    "CorruptData": CorruptData,
    "TooManyEntries": TooManyEntries,
    "new": object.__new__,
    "rest_of_string_length": rest_of_string_length,
    "rest_of_uvarint": rest_of_uvarint,
    "skip_tagged_fields": skip_tagged_fields,
    "unpack_from": struct.unpack_from,
}


def compile_decoder(cls: type[Message], version: int) -> Any:
    """Compile `decode(data: memoryview, left: int) -> (message, end)`, where `left` is the maximum
    total number of entries in all arrays and of unknown tagged fields.

    If the number is exceeded, the function raises TooManyEntries. If the bytes are not such a
    message, it raises CorruptData, struct.error, IndexError or UnicodeDecodeError.
    """
    return _Decoder(cls, version).compile()


def least_bytes(wire_type: WireType, version: int, flexible: bool) -> int:
    """Return the minimum size of a value of this type. It limits the length of an array."""
    if isinstance(wire_type, Primitive):
        if wire_type.size:
            return wire_type.size
        # This is the size of the length of an empty or null value.
        return 1 if flexible else 2 if wire_type is STRING else 4
    if isinstance(wire_type, Array):
        return 1 if flexible else 4
    least = 1 if flexible else 0
    for made in wire_type.fields:
        if version in made.versions and made.tag is None:
            is_struct = not isinstance(made.type, Primitive | Array)
            nullable_struct = is_struct and version in made.nullable
            least += 1 if nullable_struct else least_bytes(made.type, version, flexible)
    return least


class _Decoder:
    """Writes the source code. `_run` contains fixed-size fields that have not been unpacked yet."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self._cls = cls
        self._version = version
        self._flexible = version in cls.flexible
        self._source = Source(dict(_RUNTIME))
        self._line = self._source.line
        self._run: list[tuple[str, str]] = []  # (struct letter, target)

    def compile(self) -> Any:
        with self._source.block("def decode(data, left):"):
            self._line("size = len(data)")
            self._line("position = 0")
            self._struct(self._cls, "m")
            self._flush()
            self._line("return m, position")
        name = f"<decode {self._cls.__name__} v{self._version}>"
        return self._source.compile("decode", name)

    def _flush(self) -> None:
        """Emit code for the fields in the run, if any.

        Call this before code that branches or needs the position.
        """
        if self._run:
            letters = "".join(letter for letter, _ in self._run)
            function = f"unpack_{letters}".replace("?", "t")  # "?" is not valid in a name
            targets = ", ".join(target for _, target in self._run)
            if letters == "B":
                self._line(f"{targets} = data[position]")
            else:
                layout = struct.Struct(">" + letters)
                self._source.constants.setdefault(function, layout.unpack_from)
                comma = "," if len(self._run) == 1 else ""
                self._line(f"{targets}{comma} = {function}(data, position)")
            self._line(f"position += {struct.calcsize('>' + letters)}")
            self._run = []

    def _struct(self, cls: type[Message], variable: str) -> None:
        self._new(cls, variable)
        tagged = []
        for made in cls.fields:
            if self._version not in made.versions:
                continue
            if made.tag is not None:
                tagged.append(made)
                continue
            self._value(made.type, f"{variable}.{made.name}", self._version in made.nullable)
        if self._flexible:
            self._tagged_fields(tagged, variable)

    def _new(self, cls: type[Message], variable: str) -> None:
        """Emit code that creates an instance.

        Fields that this version does not have, or has only as tagged fields, get their defaults.
        """
        name = self._source.constant(cls.__name__, cls)
        self._line(f"{variable} = new({name})")
        for made in cls.fields:
            if self._version not in made.versions or made.tag is not None:
                self._line(f"{variable}.{made.name} = {self._default(made)}")

    def _default(self, made: Field) -> str:
        default = made.default
        if default is None or isinstance(default, bool | int | float | str | bytes):
            return repr(default)
        if isinstance(default, list):
            return "[]"
        return self._source.constant(f"default_{type(default).__name__}", default)

    # There is a method for each kind of type. It adds to the run or emits the lines that set
    # `target`.

    def _value(self, wire_type: WireType, target: str, nullable: bool) -> None:
        if isinstance(wire_type, Array):
            self._array(wire_type, target, nullable)
        elif not isinstance(wire_type, Primitive):
            self._nested(wire_type, target, nullable)
        elif wire_type is STRING:
            end = self._delimited("h", "rest_of_string_length", target, nullable)
            self._slice(f"str(data[position:{end}], 'utf-8')", target, end, nullable)
        elif wire_type is BYTES or wire_type is RECORDS:
            end = self._delimited("i", "rest_of_uvarint", target, nullable)
            self._slice(f"data[position:{end}]", target, end, nullable)
        else:
            self._run.append((wire_type.format, target))

    def _length(self, letter: str, rest: str) -> str:
        """Emit code that reads a length or a count, which is negative for null.

        Return the name of the variable.
        """
        length = self._source.name("n")
        if self._flexible:
            self._run.append(("B", length))
            self._flush()
            with self._source.block(f"if {length} > 127:"):
                self._line(f"{length}, position = {rest}(data, position, {length})")
            self._line(f"{length} -= 1")
        else:
            self._run.append((letter, length))
            self._flush()
        return length

    def _delimited(self, letter: str, rest: str, target: str, nullable: bool) -> str:
        length = self._length(letter, rest)
        end = self._source.name("end")
        self._line(f"{end} = position + {length}")
        refused = f"{end} > size" if nullable else f"{end} > size or {length} < 0"
        with self._source.block(f"if {refused}:"):
            self._refuse(target, length, nullable)
        return end

    def _refuse(self, target: str, length: str, nullable: bool) -> None:
        what = target.rpartition(".")[2]
        null = "" if nullable else " (negative: null is not allowed)"
        self._line(
            f"raise CorruptData(f'{what}: length {{{length}}}{null}, {{size - position}} left')"
        )

    def _slice(self, value: str, target: str, end: str, nullable: bool) -> None:
        if not nullable:
            self._line(f"{target} = {value}")
            self._line(f"position = {end}")
            return
        with self._source.block(f"if {end} < position:"):
            self._line(f"{target} = None")
        with self._source.block("else:"):
            self._line(f"{target} = {value}")
            self._line(f"position = {end}")

    def _array(self, array: Array, target: str, nullable: bool) -> None:
        count = self._length("i", "rest_of_uvarint")
        element = array.element
        least = least_bytes(element, self._version, self._flexible)
        assert least > 0, f"{element} takes no bytes: its count has no bound"
        # The count must be checked before the loop, because a tiny frame can claim to contain two
        # billion entries.
        too_many = f"{count} * {least} > size - position"
        with self._source.block(
            f"if {too_many}:" if nullable else f"if {count} < 0 or {too_many}:"
        ):
            self._refuse(target, count, nullable)
        if not nullable:
            self._elements(element, target, count)
            return
        with self._source.block(f"if {count} < 0:"):
            self._line(f"{target} = None")
        with self._source.block("else:"):
            self._elements(element, target, count)

    def _count(self, count: str) -> None:
        """Emit code that subtracts the count from the number of remaining entries.

        It runs before any entry is created.
        """
        self._line(f"left -= {count}")
        with self._source.block("if left < 0:"):
            self._line("raise TooManyEntries")

    def _elements(self, element: Primitive | type[Message], target: str, count: str) -> None:
        self._count(count)
        if isinstance(element, Primitive) and len(element.format) == 1:
            # Read all elements with one call. They may be partitions or replicas, for example.
            layout = f"f'>{{{count}}}{element.format}'"
            self._line(f"{target} = list(unpack_from({layout}, data, position))")
            self._line(f"position += {count} * {element.size}")
            return
        items, item = self._source.name("a"), self._source.name("m")
        self._line(f"{target} = {items} = []")
        self._line(f"append_{items} = {items}.append")
        with self._source.block(f"for _ in range({count}):"):
            if isinstance(element, Primitive):
                self._value(element, item, nullable=False)
            else:
                self._struct(element, item)
            self._flush()
            self._line(f"append_{items}({item})")

    def _nested(self, cls: type[Message], target: str, nullable: bool) -> None:
        nested = self._source.name("m")
        if not nullable:
            self._struct(cls, nested)
            self._line(f"{target} = {nested}")
            return
        there = self._source.name("n")
        self._run.append(("b", there))
        self._flush()
        with self._source.block(f"if {there} < 0:"):
            self._line(f"{target} = None")
        with self._source.block("else:"):
            self._struct(cls, nested)
            self._flush()
            self._line(f"{target} = {nested}")

    def _tagged_fields(self, fields: list[Field], variable: str) -> None:
        count = self._source.name("n")
        self._run.append(("B", count))
        self._flush()
        with self._source.block(f"if {count}:"):
            with self._source.block(f"if {count} > 127:"):
                self._line(f"{count}, position = rest_of_uvarint(data, position, {count})")
            self._count(count)
            # KIP-482: skip unknown tags, because later versions may add tagged fields.
            if not fields:
                self._line(f"position = skip_tagged_fields(data, position, {count})")
                return
            with self._source.block(f"for _ in range({count}):"):
                tag, length = self._source.name("tag"), self._source.name("n")
                for number in (tag, length):
                    self._line(f"{number} = data[position]")
                    self._line("position += 1")
                    with self._source.block(f"if {number} > 127:"):
                        rest = f"rest_of_uvarint(data, position, {number})"
                        self._line(f"{number}, position = {rest}")
                self._one_of(fields, variable, tag, length)

    def _one_of(self, fields: list[Field], variable: str, tag: str, length: str) -> None:
        """Emit a branch for each known tag. All other tags are skipped."""
        end = self._source.name("end")
        self._line(f"{end} = position + {length}")
        with self._source.block(f"if {end} > size:"):
            self._refuse(f"tagged field {{{tag}}}", length, nullable=True)
        for made in fields:
            with self._source.block(f"if {tag} == {made.tag}:"):
                target = f"{variable}.{made.name}"
                self._value(made.type, target, self._version in made.nullable)
                self._flush()
                with self._source.block(f"if position != {end}:"):
                    what = f"tagged field {made.name} has another size than declared"
                    self._line(f"raise CorruptData({what!r})")
                self._line("continue")
        self._line(f"position = {end}")
