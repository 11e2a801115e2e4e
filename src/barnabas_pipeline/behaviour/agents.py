"""Parses user agents into browser, system and device, or into the name of a robot. Pure.

The names come from ua-parser, whose patterns are maintained by many projects. ua-parser recognises
models of devices but not types of devices, so this module determines the type. An unknown robot is
listed under the name that it gives itself.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import polars as pl
from ua_parser import parse

NO_AGENT: Final = "No user agent"

_COMPUTERS: Final = frozenset(
    ("Windows", "macOS", "Linux", "Ubuntu", "Fedora", "Debian", "Chrome OS", "FreeBSD", "OpenBSD")
)
_TABLET: Final = re.compile(r"iPad|Tablet(?! PC)|Kindle|Silk/|PlayBook|Android(?!.*Mobile)")
_PHONE: Final = re.compile(r"iPhone|iPod|Mobi|Windows Phone|BlackBerry|Opera Mini|Symbian|J2ME")
_OTHER: Final = re.compile(
    r"SmartTV|SMART-TV|Tizen|Web0S|AppleTV|GoogleTV|CrKey|PlayStation|Xbox|Nintendo"
)
# The prefix before the actual name, in every browser and in robots that imitate one.
_DISGUISE: Final = re.compile(r"^(?:Mozilla/\S+\s*)?(?:\(compatible;\s*)?")
_NAME: Final = re.compile(r"[^/;(),+]*[^/;(),+\s]")
_LONGEST_NAME: Final = 40
_RENAMED: Final = {"Mac OS X": "macOS", "IE": "Internet Explorer"}

_SCHEMA: Final = pl.Schema(
    {
        "agent": pl.String,
        "robot": pl.Boolean,
        "name": pl.String,
        "system": pl.String,
        "device": pl.String,
    }
)


class Agent(NamedTuple):
    """A parsed user agent. Unknown parts are None, and so are the system and device of a robot."""

    name: str | None
    system: str | None = None
    device: str | None = None


def agent_of(text: str | None, *, is_robot: bool) -> Agent:
    """Return the parsed user agent; `text` is None if the log contains no user agent."""
    if text is None:
        return Agent(NO_AGENT)
    known = parse(text)
    name = known.user_agent.family if known.user_agent else None
    if is_robot:
        return Agent(_robot_name(text, name, is_spider=_is_spider(known.device)))
    system = known.os.family if known.os else None
    system = _RENAMED.get(system or "", system)
    return Agent(_RENAMED.get(name or "", name), system, _device(text, system))


def parse_agents(agents: pl.DataFrame) -> pl.DataFrame:
    """Add `name`, `system` and `device` to the columns `agent` and `robot`."""
    rows = [(text, robot, *agent_of(text, is_robot=robot)) for text, robot in agents.iter_rows()]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _is_spider(device: object) -> bool:
    return getattr(device, "family", None) == "Spider"


def _robot_name(text: str, known: str | None, *, is_spider: bool) -> str:
    """Return the robot's known name, unless this is the name of the browser that the robot
    imitates.
    """
    if known and (is_spider or not text.startswith("Mozilla/")):
        return known
    match = _NAME.match(text, _end_of(_DISGUISE, text))
    own = match[0].strip() if match else ""
    return own[:_LONGEST_NAME] or known or text[:_LONGEST_NAME]


def _end_of(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _device(text: str, system: str | None) -> str | None:
    # Agents of televisions and tablets also contain Mobile or Android, so the narrower patterns
    # come first.
    if _OTHER.search(text):
        return "TV or console"
    if _TABLET.search(text):
        return "Tablet"
    if _PHONE.search(text):
        return "Phone"
    return "Computer" if system in _COMPUTERS else None
