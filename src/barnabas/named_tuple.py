"""Provides a NamedTuple like the one in `typing`, except that creating a class takes a tenth of the
time.

typing compiles every annotation and a constructor for each class, which takes a tenth of a
millisecond, and a broker's start creates about a hundred such classes. Here annotations are not
compiled, and the constructor is compiled when a class gets its first instance, so instances are
created and read as fast as typing's. Type checkers see typing's own class.

All modules loaded at the start of a broker use it (decision 35).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter

    class NamedTuple(tuple):
        """A tuple whose items are also attributes. The items are the annotated names of the class,
        in order.
        """

        __slots__ = ()

        def __init_subclass__(cls) -> None:
            # A class derived from a named tuple adds only methods.
            if NamedTuple not in cls.__bases__:
                return
            cls._fields = cls.__match_args__ = tuple(cls.__annotations__)
            namespace = vars(cls)
            cls._field_defaults = {
                name: namespace[name] for name in cls._fields if name in namespace
            }
            for place, name in enumerate(cls._fields):
                setattr(cls, name, _tuplegetter(place, None))

        def __new__(cls, *values, **named):
            """Compile the constructor of the class. From then on, it is called directly."""
            owner = next(each for each in cls.__mro__ if "_fields" in vars(each))
            names = "".join(f"{name}, " for name in owner._fields)
            make = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", {"_new": tuple.__new__})
            make.__defaults__ = tuple(owner._field_defaults.values())
            make.__name__ = "__new__"
            make.__qualname__ = f"{owner.__qualname__}.__new__"
            owner.__new__ = staticmethod(make)
            return make(cls, *values, **named)

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **named):
            made = self._make(map(named.pop, self._fields, self))
            if named:
                raise ValueError(f"Got unexpected field names: {list(named)!r}")
            return made

        __replace__ = _replace

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            pairs = zip(self._fields, self, strict=True)
            return (
                f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"
            )

        def __getnewargs__(self):
            return tuple(self)

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be set")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be deleted")
