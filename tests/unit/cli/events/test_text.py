"""The lines of `barnabas events`, and which events it shows (IN-2)."""

from __future__ import annotations

import pytest

from barnabas.cli.events.text import Selection, event_lines, event_values
from barnabas.events import Event

SHRINK = Event(
    "isr-shrink",
    "[Partition t-3 broker=1] ISR updated to 1,2 and version updated to 7",
    "broker 3 is 523 records behind",
    topic="t",
    partition=3,
    broker=3,
    is_harmless=True,
    advice="check whether broker 3 is running",
    at_ms=1_700_000_000_123,
    sequence=8,
)
GROUP = Event("group-generation", "group g: generation 1 -> 2", "m joined", group="g", at_ms=5)
LEADER = Event("leader", "[Broker id=1] Leader u-0 ...", "controller 1 decided it", topic="u")


def test_an_event_is_shown_with_its_cause_and_what_to_do() -> None:
    """IN-2: also whether it is harmless."""
    assert list(event_lines(1, SHRINK)) == [
        "2023-11-14T22:13:20.123Z broker 1 isr-shrink t-3: "
        "[Partition t-3 broker=1] ISR updated to 1,2 and version updated to 7",
        "    cause: broker 3 is 523 records behind",
        "    clients are not affected",
        "    what to do: check whether broker 3 is running",
    ]


def test_unknown_fields_are_left_out() -> None:
    """IN-2: nothing is said about harm that no machine knew."""
    assert list(event_lines(2, GROUP._replace(is_warning=True))) == [
        "1970-01-01T00:00:00.005Z broker 2 group-generation g WARNING: group g: generation 1 -> 2",
        "    cause: m joined",
    ]
    assert list(event_lines(2, SHRINK._replace(is_harmless=False)))[2] == (
        "    clients are affected"
    )


def test_json_has_null_where_a_field_does_not_apply() -> None:
    """IN-2: so that a script can tell an unknown broker from broker 0."""
    values = event_values(2, GROUP)
    assert (values["reported_by"], values["group"], values["cause"]) == (2, "g", "m joined")
    assert {name for name, value in values.items() if value is None} == {
        *("topic", "partition", "broker", "harmless", "advice")
    }
    assert event_values(1, SHRINK)["severity"] == "INFO"


@pytest.mark.parametrize(
    ("selection", "shown"),
    [
        (Selection(), [SHRINK, GROUP]),
        (Selection(topics=("t", "u")), [SHRINK]),
        (Selection(groups=("g",)), [GROUP]),
        (Selection(kinds=("isr-shrink",)), [SHRINK]),
        (Selection(brokers=(3,)), [SHRINK]),  # it is about broker 3
        (Selection(brokers=(1,)), [SHRINK, GROUP]),  # broker 1 reports them
        (Selection(since_ms=6), [SHRINK]),
        (Selection(topics=("t",), groups=("g",)), []),
        (Selection(with_routine=True), [SHRINK, GROUP, LEADER]),
        (Selection(kinds=("leader",)), [LEADER]),
    ],
)
def test_options_select_events(selection: Selection, shown: list[Event]) -> None:
    """IN-2: options of different names all have to hold."""
    assert [each for each in (SHRINK, GROUP, LEADER) if selection.has(1, each)] == shown
