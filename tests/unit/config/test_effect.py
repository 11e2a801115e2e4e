"""UX-3: a key that no code reads says so when it is set, and a key that is read does not.

A change that begins to read a key moves its row from the inert tables to `broker_keys.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import barnabas
from barnabas.config import BROKER_KEYS, TOPIC_KEYS
from barnabas.security.tls_settings import CLIENTS_CRL_LOCATION, TlsSettings

PACKAGE = Path(barnabas.__file__).parent
BROKER_SIDE = (
    "broker",
    "cluster",
    "controller",
    "coordinator",
    "net",
    "replication",
    "security",
    "storage",
)


def _code() -> str:
    """All code that could obey a broker's setting; what the tables say does not count."""
    files = [path for folder in BROKER_SIDE for path in (PACKAGE / folder).rglob("*.py")]
    own = [PACKAGE / "config" / name for name in ("broker.py", "kraft.py")]
    return "".join(path.read_text() for path in [*files, *own])


def _keys_that_are_read() -> set[str]:
    code = _code()
    # What is given to a new topic ("name": value) is written, not read.
    read = {name for name in BROKER_KEYS if re.search(f'"{re.escape(name)}"(?!:)', code)}
    for key in TOPIC_KEYS.values():
        if f"config.{key.name.replace('.', '_')}" in code:
            read.update(key.synonyms)
    # Those of TLS are read together, by the names of their tuple.
    read.update(f"ssl.{field.replace('_', '.')}" for field in TlsSettings._fields)
    read -= {CLIENTS_CRL_LOCATION}
    # The old timestamp bound is read under the names of the two that it became.
    return read | {"log.message.timestamp.difference.max.ms"}


def test_a_topic_key_is_without_effect_exactly_if_no_code_reads_it() -> None:
    """UX-3. The old timestamp bound is read under the names of the two that it became."""
    code = _code()
    read = {
        name
        for name in TOPIC_KEYS
        if f"onfig.{name.replace('.', '_')}" in code or f'topic.config.get("{name}")' in code
    }
    read.add("message.timestamp.difference.max.ms")
    with_effect = {key.name for key in TOPIC_KEYS.values() if not key.inert}
    assert with_effect - read == set(), "no code reads these: give the reason in topic_keys.py"
    assert read - with_effect == set(), "these are read: take the reason out of topic_keys.py"


def test_a_key_is_without_effect_exactly_if_no_code_reads_it() -> None:
    """UX-3"""
    with_effect = {key.name for key in BROKER_KEYS.values() if not key.inert}
    read = _keys_that_are_read()
    assert with_effect - read == set(), "no code reads these: move their rows to the inert tables"
    assert read - with_effect == set(), "these are read: move their rows to broker_keys.py"
