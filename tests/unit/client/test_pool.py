"""How long a client waits before it tries again."""

from __future__ import annotations

from barnabas.client.pool import backoff_ms


class Fixed:
    """Always the lowest, or the highest, of what could be drawn."""

    def __init__(self, highest: bool) -> None:
        self._highest = highest

    def below(self, limit: int) -> int:
        return limit - 1 if self._highest else 0

    def uuid(self) -> bytes:
        return bytes(16)


def test_it_doubles_up_to_the_most_with_a_fifth_of_jitter() -> None:
    """KIP-144, KIP-580."""
    plain = [0, 50, 100, 200, 400, 800, 1_000, 1_000]
    for failures, expected in enumerate(plain):
        assert backoff_ms(failures, 50, 1_000, Fixed(False)) == expected - expected // 5
        assert backoff_ms(failures, 50, 1_000, Fixed(True)) == expected + expected // 5
    assert backoff_ms(10_000, 50, 1_000, Fixed(True)) == 1_200
    assert backoff_ms(3, 0, 1_000, Fixed(True)) == 0
