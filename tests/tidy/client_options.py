"""`docs/client-options.md`: every option of the clients, from their own tables.

python -m tests.tidy.client_options      writes the page
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

from barnabas.client import config
from barnabas.client.option_docs import BOOTSTRAP_SERVERS, OPTION_DOCS, OptionDoc
from barnabas.client.security.config import SecurityConfig, SecurityOptions
from tests.kit.foreign import CHECKOUT

DOCUMENT = CHECKOUT / "docs" / "client-options.md"
COMMAND = "python -m tests.tidy.client_options"

INTRODUCTION = f"""\
# Client options

Written by `{COMMAND}` from `client/config.py` and `client/option_docs.py`.

Options have Kafka's names and defaults. Pass them as keyword arguments with underscores, or as a
mapping with Kafka's own spelling, such as a properties file read into a dictionary. If you pass
both, the keywords take precedence:

```python
SyncProducer("localhost:9092", linger_ms=5, compression_type="lz4")
SyncProducer({{"bootstrap.servers": "localhost:9092", "linger.ms": "5", "compression.type": "lz4"}})
```

Text is converted to the option's type. An unknown option, or a value that cannot be converted,
raises a ConfigError that names the valid ones. An option of Kafka's Java clients that only tunes
something that our clients do differently is accepted with a warning. An option for a security
feature that our clients lack is refused. For older defaults, see [Kafka 2.3](kafka-2.3.md).
"""

SECTIONS = (
    ("Every client", config.ClientConfig, config.ClientOptions),
    ("Security of every client", SecurityConfig, SecurityOptions),
    ("The producer", config.ProducerConfig, config.ProducerOptions),
    ("The consumer", config.ConsumerConfig, config.ConsumerOptions),
)


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(line for section in SECTIONS for line in _section(*section))])


def _section(title: str, values: type, options: type) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| Option | Type | Default | Unit | |"
    yield "|---|---|---|---|---|"
    if values is config.ClientConfig:
        yield _row("bootstrap_servers", "str or list of str", "required", BOOTSTRAP_SERVERS)
    types: Mapping[str, Any] = get_type_hints(options)
    for name, parameter in inspect.signature(values).parameters.items():
        if name == "security":  # has a section of its own
            continue
        yield _row(name, _type(types[name]), _default(name, parameter.default), OPTION_DOCS[name])
    yield ""


def _row(name: str, kind: str, default: str, doc: OptionDoc) -> str:
    option = f"`{name.replace('_', '.')}`"
    return f"| {option} | {kind} | {default} | {doc.unit} | {doc.sentence} |"


def _type(hint: Any) -> str:
    """In a word or three."""
    names = [_type_name(each) for each in getattr(hint, "__args__", None) or [hint]]
    is_union = "|" in str(hint) or "Union" in str(hint)
    shown = dict.fromkeys(names if is_union else [_type_name(hint)])
    return " or ".join(name for name in shown if name != "nonetype")


def _type_name(hint: Any) -> str:
    text = hint.__name__ if isinstance(hint, type) else str(hint)
    if "Callable" in text:
        return "callable"
    return "list of str" if "Sequence" in text else text.removeprefix("typing.").lower()


def _default(name: str, value: Any) -> str:
    if name == "acks":
        return "all"
    if value is None or value == "":
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    DOCUMENT.write_text(page(), encoding="utf-8")
