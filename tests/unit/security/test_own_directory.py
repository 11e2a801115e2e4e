"""SE-6: in whose directories no secret is written or believed."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas.security.own_directory import check_secrets, own_directory


def act_as_another(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Be another user than the owner of the path, and not root, who is trusted."""
    owner = path.stat().st_uid
    if owner == 0:
        os.chown(path, 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)


def test_se_6_a_new_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    own_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    own_directory(tmp_path / "a" / "b")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_se_6_a_directory_to_which_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secure"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"{path}: other users can write to .* chmod go-w"):
        own_directory(path)
    path.chmod(0o755)  # names may be seen
    own_directory(path)


def test_se_6_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secure"
    path.mkdir(mode=0o700)
    act_as_another(monkeypatch, path)
    with pytest.raises(ConfigError, match=f"{path} belongs to the user with id"):
        own_directory(path)


def test_se_6_a_directory_that_all_users_could_replace_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(ConfigError, match=f"all users can write to {shared}"):
        own_directory(shared / "secure")
    shared.chmod(0o1777)  # as /tmp
    own_directory(shared / "secure")


def test_se_6_a_link_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads to a directory of ours, and whoever made it chose that one."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a link to another user: run this test as root")
    own_directory(tmp_path / "mine")
    link = tmp_path / "secure"
    link.symlink_to(tmp_path / "mine")
    own_directory(link)
    os.chown(link, 12_345, -1, follow_symlinks=False)
    with pytest.raises(ConfigError, match=f"{link} belongs to the user with id 12345"):
        own_directory(link)


def test_se_6_files_with_secrets_are_for_their_owner_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "users.json"
    path.write_text("{}")
    path.chmod(0o600)
    with caplog.at_level(logging.WARNING):
        check_secrets([path, tmp_path / "missing"])
        assert caplog.messages == []
        path.chmod(0o644)
        check_secrets([path])
    assert caplog.messages == [f"{path} is readable by other users; run chmod 600 {path}"]
    path.chmod(0o620)
    with pytest.raises(
        ConfigError, match="other users can write to this file; if you trust it, run chmod 600"
    ):
        check_secrets([path])
    path.chmod(0o600)
    act_as_another(monkeypatch, path)
    with pytest.raises(ConfigError, match=f"{path} belongs to the user"):
        check_secrets([path])
