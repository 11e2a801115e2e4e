"""Defines the notation for Kafka's messages. For each message, there is a class with annotations.

    class FetchPartition(Message):
        partition: int = field(INT32)
        current_leader_epoch: int = field(INT32, versions="9+", ignorable=True, default=-1)
    class FetchRequest(Message, flexible="12+"): ...

A class describes all versions of its message. The versions, nullability, tags and defaults are
taken from Kafka's published schemas. The codec is compiled from `fields` (see `codec`).

Invariant: the attributes of an instance are exactly the fields of its class. Values are checked
when they are encoded, and not when they are set.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, dataclass_transform

from barnabas.named_tuple import NamedTuple
from barnabas.protocol.wire import Array, Primitive

WireType = Primitive | Array | type["Message"]

_UNSET: Final = object()


class Versions(NamedTuple):
    """A range of versions, including both ends. It is written like "3+", "8-10", "0" or "none"."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        if text is None or text == "none":
            return cls(1, 0)
        first, dash, last = text.partition("-")
        if dash:
            return cls(int(first), int(last))
        if text.endswith("+"):
            return cls(int(text[:-1]), 0x7FFF)
        return cls(int(text), int(text))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


class Field:
    """A field of a message, as described in Kafka's schema."""

    __slots__ = ("default", "ignorable", "name", "nullable", "tag", "type", "versions")

    def __init__(self, wire_type: WireType) -> None:
        self.name = ""  # set when the class is created
        self.type = wire_type
        self.versions = Versions.parse("0+")
        self.nullable = Versions.parse(None)
        self.tag: int | None = None
        self.ignorable = False
        self.default: Any = None

    def __repr__(self) -> str:
        return f"Field({self.name}: {self.type})"


def field(
    wire_type: WireType,
    *,
    versions: str = "0+",
    nullable: str | None = None,
    default: Any = _UNSET,
    ignorable: bool = False,
    tag: int | None = None,
) -> Any:
    """Declare a field of `wire_type` in these versions.

    The fields are sent in the order in which the class declares them.

    `nullable` contains the versions in which None can be sent. `default` is the value in a new
    instance, and in a decoded one if its version does not have the field; if it is not given, it is
    0, False, "", [], or a struct of defaults. If the field is `ignorable`, any other value is
    silently dropped in versions without the field; otherwise, it raises ValueError. A field with a
    `tag` is a tagged field (KIP-482) in all of its versions, and is sent only if its value is not
    the default.
    """
    made = Field(wire_type)
    made.versions = Versions.parse(versions)
    made.nullable = Versions.parse(nullable)
    made.ignorable = ignorable
    if default is not _UNSET:
        made.default = default
    elif isinstance(wire_type, Primitive):
        made.default = wire_type.default
    elif isinstance(wire_type, Array):
        made.default = []
    else:
        made.default = _shared_default(wire_type)
    made.tag = tag
    return made


# Without `field_specifiers`, type checkers assume that every field has a default, which is true for
# Kafka's schemas.
@dataclass_transform(kw_only_default=True, eq_default=True)
class Message:
    """A message, or a struct within a message.

    Instances are created with keyword arguments. Fields that are not given have their defaults.
    """

    fields: ClassVar[tuple[Field, ...]]
    flexible: ClassVar[Versions]
    """The versions that have compact lengths and tagged fields.

    They are set on a message. A struct has the same flexible versions as the message that contains
    it.
    """
    codecs: ClassVar[dict[tuple[str, int], Any]]
    """The compiled functions, which are added by `codec`.

    The keys are ("encode" | "decode", version).
    """

    def __init_subclass__(cls, *, flexible: str | None = None) -> None:
        own = []
        for name, made in list(vars(cls).items()):
            if isinstance(made, Field):
                made.name = name
                own.append(made)
                delattr(cls, name)  # it would hide that an attribute is missing
        cls.fields = tuple(own)
        cls.flexible = Versions.parse(flexible)
        cls.codecs = {}

    def __init__(self, **values: Any) -> None:
        # Compile this when the first instance is created, because a process never uses most of the
        # messages.
        cls = type(self)
        compiled = _compile_init(cls)
        cls.__init__ = compiled  # type: ignore[method-assign]
        compiled(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or self.fields is not other.fields:
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{f.name}={_shown(getattr(self, f.name))}" for f in self.fields)
        return f"{type(self).__name__}({', '.join(shown)})"


def _shown(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview) and len(value) > 16:
        return f"<{len(value)} bytes>"
    return repr(bytes(value)) if isinstance(value, memoryview | bytearray) else repr(value)


def _refuse_change(instance: Message, name: str, value: Any) -> None:
    raise AttributeError(
        f"{name} belongs to a default value that all messages share; set a new struct"
    )


def _shared_default(cls: type[Message]) -> Message:
    """Return the shared, immutable instance that is used for a struct that is absent.

    A partition in a fetch response has three structs that are nearly always absent. Creating them
    would cost more than all other decoding. In addition, the encoder recognises the instance by its
    identity, and knows that there is nothing to send.
    """
    default = cls.__new__(cls)
    for made in cls.fields:
        assert not isinstance(made.default, list), f"{cls.__name__}.{made.name} could be changed"
        setattr(default, made.name, made.default)
    frozen: type[Message] = type(
        cls.__name__, (cls,), {"__slots__": (), "__setattr__": _refuse_change}
    )
    frozen.fields = cls.fields
    default.__class__ = frozen
    return default


def _compile_init(cls: type[Message]) -> Any:
    """Compile `__init__(self, *, <field>=<default>, ...)`. Each instance gets new lists."""
    constants: dict[str, Any] = {"UNSET": _UNSET}
    signature, body = ["self"], []
    if cls.fields:
        signature.append("*")
    for made in cls.fields:
        name = made.name
        if isinstance(made.default, list):
            signature.append(f"{name}=UNSET")
            body.append(f" self.{name} = [] if {name} is UNSET else {name}")
        else:
            constants[f"default_{name}"] = made.default
            signature.append(f"{name}=default_{name}")
            body.append(f" self.{name} = {name}")
    exec(f"def __init__({', '.join(signature)}):\n" + "\n".join(body or [" pass"]), constants)
    return constants["__init__"]
