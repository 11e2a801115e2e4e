"""The file of rules, and what is wrong with one (LG-4, UX-4)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_pipeline.alerts.rules import Rules, read_rules

SINK = '[sink.team]\nkind = "webhook"\nurl = "http://127.0.0.1/"\n'
RATE = '[[alert]]\nname = "errors"\nkind = "rate"\nlevel = "ERROR"\nthreshold = 5\n'
FUNNEL = """
[[alert]]
name = "shop"
kind = "funnel"
steps = ["/cart", "/thanks/*"]
below = 0.2
"""


def rules(text: str, directory: Path) -> Rules:
    path = directory / "rules.toml"
    path.write_text(text, "utf-8")
    return read_rules(path)


def test_lg_4_defaults(tmp_path: Path) -> None:
    """LG-4: an alert without sinks goes to all of them."""
    found = rules(RATE + '[[alert]]\nname = "quiet"\nkind = "silence"\n' + SINK, tmp_path)
    errors, quiet = found.alerts
    assert (errors.levels, errors.threshold, errors.sinks) == (("ERROR",), 5, ("team",))
    assert errors.window == timedelta(minutes=5) and not errors.hold
    assert quiet.hold == timedelta(minutes=10)
    assert found.lookback == timedelta(days=1)
    assert found.sinks[0].options == {"url": "http://127.0.0.1/"}


def test_lg_4_keys_of_an_alert(tmp_path: Path) -> None:
    text = f'lookback = "2h"\n{RATE}window = "1h"\nfor = "3m"\nformat = "log4j"\nsinks = ["team"]\n'
    found = rules(text + SINK, tmp_path)
    (errors,) = found.alerts
    assert (errors.window, errors.hold) == (timedelta(hours=1), timedelta(minutes=3))
    assert (errors.format, found.lookback) == ("log4j", timedelta(hours=2))


def test_lg_4_keys_of_a_funnel(tmp_path: Path) -> None:
    (short,) = rules(FUNNEL, tmp_path).alerts
    assert (short.steps, short.share, short.minimum) == (("/cart", "/thanks/*"), 0.2, 20)
    assert (short.window, short.within) == (timedelta(hours=1), timedelta(minutes=30))
    more = 'min_visitors = 5\nwithin = "5m"\nwindow = "2h"\nfor = "3m"\n'
    (full,) = rules(FUNNEL + more, tmp_path).alerts
    assert (full.minimum, full.within) == (5, timedelta(minutes=5))
    assert (full.window, full.hold) == (timedelta(hours=2), timedelta(minutes=3))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ('["/cart"]', "a list of 2 to 20 paths is expected"),
        ('"/cart"', "a list of 2 to 20 paths is expected"),
        (str(["/a"] * 21), "a list of 2 to 20 paths is expected"),
        ('["/cart", 5]', "text is expected"),
        ('["/cart", ""]', "text is expected"),
        ('["/cart", "thanks"]', "'thanks' is not a path: a path begins with /"),
        ('["/a/*/b", "/thanks"]', "'/a/*/b' is not a path: a path begins with /, and may have"),
        ('["/cart", "/thanks?a=1"]', "'/thanks?a=1' has a query or a fragment"),
    ],
)
def test_ux_4_wrong_steps(steps: str, message: str, tmp_path: Path) -> None:
    """UX-4: the alert, the key, and what is expected."""
    with pytest.raises(ConfigError) as caught:
        rules(FUNNEL.replace('["/cart", "/thanks/*"]', steps), tmp_path)
    assert f"alert 'shop': steps: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [", "rules.toml: "),
        ("", "rules.toml: it must have a list of [[alert]] tables, of at most 1,000"),
        ("alert = [1]", "rules.toml: it must have a list of [[alert]]"),
        (RATE + "[[sink]]\n", "rules.toml: a sink is a table with a name, such as [sink.team]"),
        (f'lookbak = "1d"\n{RATE}', "'lookbak' is unknown; did you mean lookback?"),
        (f"lookback = 5\n{RATE}", "rules.toml: lookback: minutes, hours or days are expected"),
        ('[[alert]]\nname = "a"\nkind = "rates"\n', "alert 'a': kind: 'rates' is unknown; did you"),
        (
            '[[alert]]\nkind = "zzz"\n',
            "alert 1: kind: 'zzz' is unknown; the kinds are rate, new",
        ),
        (RATE + 'windw = "5m"\n', "alert 'errors': 'windw' is unknown; did you mean window?"),
        (RATE + 'window = "5"\n', "alert 'errors': window: minutes, hours or days are expected"),
        (RATE + 'window = "0m"\n', "alert 'errors': window: minutes, hours or days are expected"),
        (RATE + 'window = "9999d"\n', "alert 'errors': window: the longest duration is a year"),
        (RATE + 'sinks = ["taem"]\n' + SINK, "'taem' is unknown; did you mean team?"),
        (RATE + 'sinks = ["team"]\n', "sinks: 'team' is unknown; there is no [sink.NAME]"),
        (RATE + 'template = "x"\n', "alert 'errors': a rate has either a level or a template"),
        (RATE + RATE, "two alerts have the name 'errors'"),
        (
            RATE.replace("5", "0"),
            "alert 'errors': threshold: it must be a whole number",
        ),
        (
            RATE.replace("5", "true"),
            "alert 'errors': threshold: it must be a whole number",
        ),
        (RATE.replace("threshold = 5\n", ""), "alert 'errors': threshold is missing"),
        (RATE.replace("ERROR", "EROR"), "level: 'EROR' is unknown; did you mean ERROR?"),
        (
            '[[alert]]\nname = "e"\nkind = "error_share"\nshare = 5\n',
            "a share must be above 0",
        ),
        (
            FUNNEL.replace("0.2", "1.5"),
            "alert 'shop': below: a share must be above 0",
        ),
        (FUNNEL.replace("0.2", "0"), "alert 'shop': below: a share must be above 0"),
        (FUNNEL.replace("below = 0.2", ""), "alert 'shop': below is missing"),
        (FUNNEL.replace("steps", "step"), "alert 'shop': 'step' is unknown; did you mean steps?"),
        ('[[alert]]\nname = "f"\nkind = "funnel"\nbelow = 0.2\n', "alert 'f': steps is missing"),
        (FUNNEL + "min_visitors = 0\n", "min_visitors: it must be a whole number"),
        (FUNNEL + "within = 5\n", "within: minutes, hours or days are expected"),
        (RATE + '[sink.team]\nkind = "webhok"\n', "sink 'team': kind: 'webhok' is unknown; did"),
        (RATE + '[sink.team]\nkind = "webhook"\n', "sink 'team': url is missing"),
        (RATE + SINK + 'tokn_env = "X"\n', "'tokn_env' is unknown; did you mean token_env?"),
        (
            RATE + '[sink.m]\nkind = "mail"\nhost = "h"\nfrom = "f"\nto = "t"\nport = 99999\n',
            "sink 'm': port: a port must be between 1 and 65535",
        ),
        (
            RATE + '[sink.m]\nkind = "mail"\nhost = "h"\nfrom = "f"\nto = []\n',
            "sink 'm': to: it is empty",
        ),
        (
            RATE + '[sink.m]\nkind = "mail"\nhost = "a\\nb"\nfrom = "f"\nto = "t"\n',
            "sink 'm': host: text is expected",
        ),
    ],
)
def test_ux_4_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    """UX-4: the file, the alert, the key, and the nearest name."""
    with pytest.raises(ConfigError) as caught:
        rules(text, tmp_path)
    assert str(tmp_path / "rules.toml") in str(caught.value)
    assert message in str(caught.value)
