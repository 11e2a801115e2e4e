"""The versions that the suite passes with: `constraints.txt`, written from what is installed.

    python -m tests.tidy.constraints

It lists what the extra `dev` installs, directly or not, and says nothing of where it comes from.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.kit.foreign import CHECKOUT

PATH = CHECKOUT / "constraints.txt"
_PROJECT = "barnabas"
_HEADING = "# Versions that the suite passes with. Written by: python -m tests.tidy.constraints\n"


def installed(extra: str = "dev") -> dict[str, Distribution]:
    """What an extra of ours brings here, with all that this needs in turn; missing ones left out.

    A package that one asks for and that is not installed belongs to another Python or system, or
    pip has never run since it was added: `make` runs pip when pyproject.toml changes.
    """
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [(_PROJECT, extra), (_PROJECT, "")]
    while left:
        name, wanted = left.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for line in found[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": wanted}):
                other = canonicalize_name(needed.name)
                left += [(other, ""), *((other, each) for each in needed.extras)]
    del found[_PROJECT]
    return found


def text() -> str:
    """The content of the file for what is installed here."""
    lines = [f"{name}=={each.version}\n" for name, each in sorted(installed().items())]
    return _HEADING + "".join(lines)


if __name__ == "__main__":
    PATH.write_text(text())
    print(f"wrote {PATH.name}")
