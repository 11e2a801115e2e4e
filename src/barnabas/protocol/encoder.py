"""Compiles an encoder for a message in a certain version: code without lookups and version checks.

For example, this is the code for DescribeConfigsRequest version 4:

    def encode(m, out):
        parts = []
        a_1 = m.resources
        n_2 = len(a_1) + 1
        if n_2 < 128: out.append(n_2)
        else: append_uvarint(out, n_2)
        for m_3 in a_1:
            s_4 = m_3.resource_name.encode()
            out += pack_b(m_3.resource_type)
            ...
        out += pack_qqx(m.include_synonyms, m.include_documentation)

Consecutive fields of fixed size are packed with a single `struct.Struct.pack`, together with
lengths, counts or empty sets of tagged fields that follow them, if their size is known. Records are
never copied, because their bytes are separate parts between the other parts.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from barnabas.protocol.message import Field, Message, WireType
from barnabas.protocol.source import Source
from barnabas.protocol.wire import (
    BYTES,
    RECORDS,
    STRING,
    UUID,
    Array,
    Primitive,
    append_string_length,
    append_uvarint,
)

_RUNTIME: Final = {
    "SEVERAL": (list, tuple),
    "append_string_length": append_string_length,
    "append_uvarint": append_uvarint,
    "pack": struct.pack,
}


def compile_encoder(cls: type[Message], version: int) -> Any:
    """Compile `encode(message, out: bytearray) -> list[Part]`.

    The first part is `out`, to which bytes were appended.

    If a value cannot be encoded, the function raises ValueError, struct.error, TypeError or
    AttributeError.
    """
    return _Encoder(cls, version).compile()


class _Encoder:
    """Writes the source code. `_run` contains fixed-size values that have not been packed yet."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self._cls = cls
        self._version = version
        self._flexible = version in cls.flexible
        self._source = Source(dict(_RUNTIME))
        self._line = self._source.line
        self._out = "out"
        self._run: list[tuple[str, str]] = []  # (struct letter, expression; "" for padding)

    def compile(self) -> Any:
        with self._source.block("def encode(m, out):"):
            self._line("parts = []")
            self._struct(self._cls, "m")
            self._flush()
            with self._source.block("if out:"):
                self._line("parts.append(out)")
            self._line("return parts")
        name = f"<encode {self._cls.__name__} v{self._version}>"
        return self._source.compile("encode", name)

    def _flush(self) -> None:
        """Emit code for the values in the run, if any.

        Call this before code that branches or changes the output.
        """
        if self._run:
            letters = "".join(letter for letter, _ in self._run)
            function = f"pack_{letters}".replace("?", "t")  # "?" is not valid in a name
            if letters == "x":
                self._line(f"{self._out}.append(0)")
            else:
                self._source.constants.setdefault(function, struct.Struct(">" + letters).pack)
                values = ", ".join(value for letter, value in self._run if letter != "x")
                self._line(f"{self._out} += {function}({values})")
            self._run = []

    def _struct(self, cls: type[Message], variable: str) -> None:
        tagged = []
        for made in cls.fields:
            if self._version not in made.versions:
                self._absent(cls, made, variable)
            elif made.tag is None:
                nullable = self._version in made.nullable
                self._value(made.type, f"{variable}.{made.name}", nullable)
            else:
                tagged.append(made)
        if not self._flexible:
            assert not tagged, f"{cls.__name__} has tagged fields in an inflexible version"
        elif tagged:
            self._tagged_fields(sorted(tagged, key=_tag), variable)
        else:
            self._run.append(("x", ""))

    def _absent(self, cls: type[Message], made: Field, variable: str) -> None:
        """Emit code for a field that this version does not have.

        Any value except the default is rejected.
        """
        if not made.ignorable:
            value = f"{variable}.{made.name}"
            with self._source.block(f"if not ({self._is_default(made, value)}):"):
                what = f"{cls.__name__}.{made.name} cannot be sent in version {self._version}"
                self._line(f"raise ValueError({what!r})")

    def _is_default(self, made: Field, value: str) -> str:
        """Return an expression that is true if `value` is the default of an absent field."""
        default = made.default
        if isinstance(default, list):
            return f"{value} is not None and not {value}"
        if default is None:
            return f"{value} is None"
        if isinstance(default, bool | int | float | str | bytes):
            return f"{value} == {default!r}"
        name = self._source.constant(f"default_{type(default).__name__}", default)
        return f"({value} is {name} or {value} == {name})"

    # There is a method for each kind of type. It adds to the run or emits lines.

    def _value(self, wire_type: WireType, value: str, nullable: bool) -> None:
        if isinstance(wire_type, Array):
            self._array(wire_type, value, nullable)
        elif not isinstance(wire_type, Primitive):
            self._nested(wire_type, value, nullable)
        elif wire_type is STRING:
            self._string(value, nullable)
        elif wire_type is BYTES:
            self._bytes(value, nullable)
        elif wire_type is RECORDS:
            self._records(value, nullable)
        else:
            if wire_type is UUID:  # struct would silently pad or truncate it
                with self._source.block(f"if len({value}) != 16:"):
                    self._line("raise ValueError('a UUID has 16 bytes')")
            self._run.append((wire_type.format, value))

    def _length(self, letter: str, length: str, append: str = "append_uvarint") -> None:
        """Emit code that writes a length or a count. `length` is an expression; -1 is null."""
        if not self._flexible:
            self._run.append((letter, length))
            return
        self._flush()
        plus_one = self._source.name("n")
        self._line(f"{plus_one} = {length} + 1")
        with self._source.block(f"if {plus_one} < 128:"):
            self._line(f"{self._out}.append({plus_one})")
        with self._source.block("else:"):
            self._line(f"{append}({self._out}, {plus_one})")

    def _string(self, value: str, nullable: bool) -> None:
        text = self._source.name("s")
        if nullable:
            length = self._source.name("n")
            self._line(f"{text} = {value}")
            with self._source.block(f"if {text} is None:"):
                self._line(f"{text} = b''")
                self._line(f"{length} = -1")
            with self._source.block("else:"):
                self._line(f"{text} = {text}.encode()")
                self._line(f"{length} = len({text})")
        else:
            length = f"len({text})"
            self._line(f"{text} = {value}.encode()")
        self._length("h", length, "append_string_length")
        self._flush()
        self._line(f"{self._out} += {text}")

    def _bytes(self, value: str, nullable: bool) -> None:
        blob = self._source.name("b")
        self._line(f"{blob} = {value}")
        length = f"len({blob})"
        if nullable:
            length = self._source.name("n")
            with self._source.block(f"if {blob} is None:"):
                self._line(f"{blob} = b''")
                self._line(f"{length} = -1")
            with self._source.block("else:"):
                self._line(f"{length} = len({blob})")
        self._length("i", length)
        self._flush()
        self._line(f"{self._out} += {blob}")

    def _records(self, value: str, nullable: bool) -> None:
        assert self._out == "out", "records in a tagged field would have to be copied"
        records, size = self._source.name("r"), self._source.name("n")
        self._line(f"{records} = {value}")
        if nullable:
            with self._source.block(f"if {records} is None:"):
                self._line(f"{size} = -1")
        with self._source.block(f"{'elif' if nullable else 'if'} isinstance({records}, SEVERAL):"):
            self._line(f"{size} = sum(map(len, {records}))")
        with self._source.block("else:"):
            self._line(f"{size} = len({records})")
        self._length("i", size)
        self._flush()
        with self._source.block(f"if {size} > 0:"):
            self._line("parts.append(out)")
            with self._source.block(f"if isinstance({records}, SEVERAL):"):
                self._line(f"parts += {records}")
            with self._source.block("else:"):
                self._line(f"parts.append({records})")
            self._line("out = bytearray()")

    def _array(self, array: Array, value: str, nullable: bool) -> None:
        items = self._source.name("a")
        self._line(f"{items} = {value}")
        count = f"len({items})"
        if nullable:
            count = self._source.name("n")
            self._line(f"{count} = -1 if {items} is None else len({items})")
        self._length("i", count)
        self._flush()
        element = array.element
        if isinstance(element, Primitive) and len(element.format) == 1:
            with self._source.block(f"if {items}:"):
                self._line(f"{self._out} += pack(f'>{{len({items})}}{element.format}', *{items})")
            return
        item = self._source.name("m")
        with self._source.block(f"for {item} in {items}{' or ()' if nullable else ''}:"):
            if isinstance(element, Primitive):
                self._value(element, item, nullable=False)
            else:
                self._struct(element, item)
            self._flush()

    def _nested(self, cls: type[Message], value: str, nullable: bool) -> None:
        nested = self._source.name("m")
        self._line(f"{nested} = {value}")
        if not nullable:
            self._struct(cls, nested)
            return
        self._flush()
        with self._source.block(f"if {nested} is None:"):
            self._line(f"{self._out}.append(0xFF)")  # an INT8: -1 for null, 1 for a value
        with self._source.block("else:"):
            self._line(f"{self._out}.append(1)")
            self._struct(cls, nested)
            self._flush()

    def _tagged_fields(self, fields: list[Field], variable: str) -> None:
        """Emit code for the tagged fields.

        Usually, all of them have their defaults, so one byte is written without a loop.
        """
        self._flush()
        values = [(made, self._source.name("t")) for made in fields]
        for made, value in values:
            self._line(f"{value} = {variable}.{made.name}")
        unset = " and ".join(self._is_default(made, value) for made, value in values)
        with self._source.block(f"if {unset}:"):
            self._line(f"{self._out}.append(0)")
        with self._source.block("else:"):
            count, section = self._source.name("n"), self._source.name("tags")
            self._line(f"{count} = 0")
            self._line(f"{section} = bytearray()")
            for made, value in values:
                with self._source.block(f"if not ({self._is_default(made, value)}):"):
                    self._line(f"{count} += 1")
                    self._tagged_field(made, value, section)
            self._line(f"append_uvarint({self._out}, {count})")
            self._line(f"{self._out} += {section}")

    def _tagged_field(self, made: Field, value: str, section: str) -> None:
        """Emit code for a tagged field.

        Its size comes first, so the field is written to a buffer before it is appended.
        """
        outer, self._out = self._out, self._source.name("tagged")
        self._line(f"{self._out} = bytearray()")
        self._value(made.type, value, self._version in made.nullable)
        self._flush()
        self._line(f"append_uvarint({section}, {made.tag})")
        self._line(f"append_uvarint({section}, len({self._out}))")
        self._line(f"{section} += {self._out}")
        self._out = outer


def _tag(made: Field) -> int:
    assert made.tag is not None
    return made.tag
