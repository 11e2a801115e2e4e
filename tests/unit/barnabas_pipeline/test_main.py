from __future__ import annotations

import sys
from pathlib import Path

import pytest

from barnabas_pipeline.__main__ import _essence, main


@pytest.mark.parametrize(
    "arguments",
    [[], ["walk"], ["run", "--lines", "0"], ["run", "--port", "x"], ["run", "--encoding", "raw"]],
)
def test_a_wrong_command_line_is_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m barnabas_pipeline" in capsys.readouterr().err


def test_a_report_of_nothing_says_what_to_do_ux_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"barnabas: no tables in {tmp_path}: run `python -m barnabas_pipeline run` first\n"
    )


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (None, "rules.toml: No such file or directory"),
        ("[[alert]]\n", "rules.toml, alert 1: kind is missing"),
        (
            '[[alert]]\nname = "a"\nkind = "break_in"\n',
            "alert 'a': break_in is for system logs",
        ),
    ],
)
def test_rules_of_alerts_are_checked_before_anything_starts_ux_4(
    rules: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rules.toml"
    if rules is not None:
        path.write_text(rules, "utf-8")
    assert main(["run", "--out", str(tmp_path / "out"), "--alerts", str(path)]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "broker").exists()


def test_an_encoding_is_for_system_logs_and_needs_its_packages_ux_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LG-2: what is missing is said before a broker and Spark are started for nothing."""
    run = ["run", "--out", str(tmp_path / "out"), "--encoding"]
    assert main([*run, "otlp_json"]) == 1
    assert "--encoding is for --pipeline logs" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.logs.v1.logs_pb2", None)
    for encoding in ("auto", "otlp_proto"):
        assert main([*run, encoding, "--pipeline", "logs"]) == 1
        assert "to decode otlp_proto: pip install" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_of_a_stack_trace_the_root_is_printed() -> None:
    trace = (
        "[STREAM_FAILED] Query failed: Traceback (most recent call last):\n"
        '  File "reader.py", line 3, in read\n'
        "pyspark_barnabas.loss.DataLoss: web-access-0: offsets 3 to 7 are gone\n"
        "\tat org.apache.spark.X(Y.scala:1)\n"
    )
    assert _essence(trace) == "web-access-0: offsets 3 to 7 are gone"
    assert _essence("no trace\nat all") == "no trace"
