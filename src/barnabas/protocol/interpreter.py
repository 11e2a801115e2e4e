"""Implements a second codec for tests.

It is slow, because it examines the fields of each message again.

It shares only the message classes with the compiled codec, so if both give the same results, they
interpret the notation correctly. If a value is invalid, both raise the same type of error
(CorruptData, or ValueError if the value cannot be sent).
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

from barnabas.errors import CorruptData
from barnabas.protocol.message import Field, Message, WireType
from barnabas.protocol.wire import BYTES, MAX_STRING_BYTES, RECORDS, STRING, UUID, Array, Primitive
from barnabas.types import FileSlice

M = TypeVar("M", bound=Message)


def encode(message: Message, version: int) -> bytes:
    """Encode the message as a single piece, which includes the bytes from files.

    Raises ValueError if the message cannot be sent in this version.
    """
    writer = _Writer(version, version in message.flexible)
    writer.struct(message)
    return bytes(writer.out)


def decode(cls: type[M], data: bytes | memoryview, version: int) -> M:
    """Decode a message that occupies all of `data`. Raises CorruptData if this is not possible."""
    reader = _Reader(bytes(data), version, version in cls.flexible)
    message = reader.struct(cls)
    if reader.left():
        raise CorruptData(f"{reader.left()} bytes follow the message")
    return message


class _Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self.out = bytearray()
        self._version = version
        self._flexible = flexible

    def struct(self, message: Message) -> None:
        tagged = {}
        for made in message.fields:
            value = getattr(message, made.name)
            if self._version not in made.versions:
                if not made.ignorable and value != made.default:
                    raise ValueError(f"{made.name} cannot be sent in version {self._version}")
            elif made.tag is None:
                self._field(made, value)
            elif value != made.default:
                aside = _Writer(self._version, self._flexible)
                aside._field(made, value)
                tagged[made.tag] = aside.out
        if self._flexible:
            self._uvarint(len(tagged))
            for tag in sorted(tagged):
                self._uvarint(tag)
                self._uvarint(len(tagged[tag]))
                self.out += tagged[tag]

    def _field(self, made: Field, value: Any) -> None:
        is_struct = not isinstance(made.type, Primitive | Array)
        nullable = self._version in made.nullable
        if value is None and not nullable:
            raise ValueError(f"{made.name} cannot be null in version {self._version}")
        if is_struct and nullable:
            self.out.append(0xFF if value is None else 1)
            if value is None:
                return
        self._value(made.type, value)

    def _value(self, wire_type: WireType, value: Any) -> None:
        if isinstance(wire_type, Array):
            self._length("i", value)
            for item in value or ():
                self._value(wire_type.element, item)
        elif not isinstance(wire_type, Primitive):
            self.struct(value)
        elif wire_type is STRING:
            text = None if value is None else value.encode()
            if text is not None and len(text) > MAX_STRING_BYTES:
                raise ValueError(f"a string of {len(text)} bytes")
            self._length("h", text)
            self.out += text or b""
        elif wire_type is BYTES or wire_type is RECORDS:
            blob = None if value is None else _one_piece(value)
            self._length("i", blob)
            self.out += blob or b""
        elif wire_type is UUID:
            if len(value) != 16:
                raise ValueError("a UUID has 16 bytes")
            self.out += value
        else:
            try:
                self.out += struct.pack(">" + wire_type.format, value)
            except struct.error as error:
                raise ValueError(str(error)) from error

    def _length(self, letter: str, value: Any) -> None:
        if self._flexible:
            self._uvarint(0 if value is None else len(value) + 1)
        else:
            self.out += struct.pack(">" + letter, -1 if value is None else len(value))

    def _uvarint(self, value: int) -> None:
        while value >= 0x80:
            self.out.append(0x80 | value % 0x80)
            value //= 0x80
        self.out.append(value)


def _one_piece(value: Any) -> bytes:
    if isinstance(value, FileSlice):
        return value.read()
    if isinstance(value, list | tuple):
        return b"".join(map(_one_piece, value))
    return bytes(value)


class _Reader:
    def __init__(self, data: bytes, version: int, flexible: bool) -> None:
        self._data = data
        self._position = 0
        self._version = version
        self._flexible = flexible

    def left(self) -> int:
        return len(self._data) - self._position

    def struct(self, cls: type[M]) -> M:
        values: dict[str, Any] = {}
        tagged = {}
        for made in cls.fields:
            if self._version in made.versions:
                if made.tag is None:
                    values[made.name] = self._field(made)
                else:
                    tagged[made.tag] = made
        for _ in range(self._uvarint() if self._flexible else 0):
            tag, size = self._uvarint(), self._uvarint()
            if tag not in tagged:
                self._take(size)
                continue
            if size > self.left():
                raise CorruptData(f"tagged field {tag} has {size} bytes, {self.left()} are left")
            end = self._position + size
            values[tagged[tag].name] = self._field(tagged[tag])
            if self._position != end:
                raise CorruptData(f"tagged field {tag} has another size than declared")
        return cls(**values)

    def _field(self, made: Field) -> Any:
        is_struct = not isinstance(made.type, Primitive | Array)
        nullable = self._version in made.nullable
        if is_struct and nullable and self._fixed("b") < 0:
            return None
        value = self._value(made.type)
        if value is None and not nullable:
            raise CorruptData(f"{made.name} cannot be null in version {self._version}")
        return value

    def _value(self, wire_type: WireType) -> Any:
        if isinstance(wire_type, Array):
            return self._array(wire_type)
        if not isinstance(wire_type, Primitive):
            return self.struct(wire_type)
        if wire_type is STRING:
            size = self._length("h")
            if size > MAX_STRING_BYTES:
                raise CorruptData(f"a string of {size} bytes")
            return None if size < 0 else self._text(size)
        if wire_type is BYTES or wire_type is RECORDS:
            size = self._length("i")
            return None if size < 0 else self._take(size)
        return self._fixed(wire_type.format)

    def _array(self, array: Array) -> list[Any] | None:
        count = self._length("i")
        if count < 0:
            return None
        items = []
        for _ in range(count):  # the data limits this, because each element has at least one byte
            items.append(self._value(array.element))
            if items[-1] is None:
                raise CorruptData("an element cannot be null")
        return items

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise CorruptData(str(error)) from error

    def _length(self, letter: str) -> int:
        if self._flexible:
            return self._uvarint() - 1
        length: int = self._fixed(letter)
        return length

    def _uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            value += (byte & 0x7F) << shift
            if byte < 0x80:
                if value >= 1 << 32:
                    break
                return value
        raise CorruptData("a varint exceeds 32 bits")

    def _fixed(self, letter: str) -> Any:
        return struct.unpack(">" + letter, self._take(struct.calcsize(">" + letter)))[0]

    def _take(self, size: int) -> bytes:
        if size > self.left():
            raise CorruptData(f"{size} bytes wanted, {self.left()} left")
        self._position += size
        return self._data[self._position - size : self._position]
