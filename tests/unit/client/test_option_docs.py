"""Each option has its sentence."""

from __future__ import annotations

import inspect

import pytest

from barnabas.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from barnabas.client.option_docs import OPTION_DOCS
from barnabas.client.security.config import SecurityConfig

OPTIONS = {
    name
    for each in (ClientConfig, SecurityConfig, ProducerConfig, ConsumerConfig)
    for name in inspect.signature(each).parameters
    if name != "security"  # stands for those of SecurityConfig
}


def test_every_option_has_a_sentence_and_nothing_else() -> None:
    assert OPTIONS - set(OPTION_DOCS) == set(), "without a sentence"
    assert set(OPTION_DOCS) - OPTIONS == set(), "no option of a client"


@pytest.mark.parametrize("name", OPTION_DOCS)
def test_units_stand_in_the_names(name: str) -> None:
    unit, sentence = OPTION_DOCS[name]
    assert (unit == "ms") == name.endswith("_ms")
    assert sentence.endswith(".")
