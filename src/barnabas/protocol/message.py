"""Defines the notation for Kafka's messages: one annotated class per message.

    class FetchPartition(Message):
        partition: int = field(INT32)
        current_leader_epoch: int = field(INT32, versions="9+", ignorable=True, default=-1)
    class FetchRequest(Message, flexible="12+"): ...

A class covers all versions of its message. Versions, nullability, tags and defaults come from
Kafka's published schemas. The codec is compiled from `fields` (see `codec`).

Invariant: an instance's attributes are exactly its class's fields. Values are checked when they are
encoded, not when they are set.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, dataclass_transform

from barnabas.named_tuple import NamedTuple
from barnabas.protocol.wire import Array, Primitive

WireType = Primitive | Array | type["Message"]

_UNSET: Final = object()


class Versions(NamedTuple):
    """An inclusive range of versions, written like "3+", "8-10", "0" or "none"."""

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
    """One message field, as in its schema."""

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
    """Declare a field of `wire_type` in these versions. The class body determines the field order.

    `nullable` contains the versions in which None may be sent. `default` is the value in a new
    instance, and in one decoded from a version without the field; by default, it is 0, False, "",
    [], or a struct of defaults. If `ignorable`, versions without the field silently drop any other
    value instead of raising ValueError. In all its versions, a field with a `tag` is sent as a
    tagged field (KIP-482), and only if it differs from the default.
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


# Without `field_specifiers`, type checkers assume a default for every field, which matches Kafka's
# schemas.
@dataclass_transform(kw_only_default=True, eq_default=True)
class Message:
    """A message or a struct inside a message.

    Create it with keyword arguments; all other fields have their defaults.
    """

    fields: ClassVar[tuple[Field, ...]]
    flexible: ClassVar[Versions]
    """The versions with compact lengths and tagged fields.

    They are set on messages; a struct uses those of its message.
    """
    codecs: ClassVar[dict[tuple[str, int], Any]]
    """The compiled functions by ("encode" | "decode", version), which `codec` adds."""

    def __init_subclass__(cls, *, flexible: str | None = None) -> None:
        own = []
        for name, made in list(vars(cls).items()):
            if isinstance(made, Field):
                made.name = name
                own.append(made)
                delattr(cls, name)  # it would mask a missing instance attribute
        cls.fields = tuple(own)
        cls.flexible = Versions.parse(flexible)
        cls.codecs = {}

    def __init__(self, **values: Any) -> None:
        # Compile this for the first instance: most processes never use most messages.
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
    """Return the shared, immutable instance that represents absent structs.

    A fetch response has three structs per partition that are nearly always absent. Creating them
    would cost more than the rest of the decoding; and by its identity, the encoder recognises that
    there is nothing to send.
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
    """Compile `__init__(self, *, <field>=<default>, ...)`. It creates new lists for each
    instance."""
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
