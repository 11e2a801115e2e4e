"""A Debian with nothing but the packages that the README names, to run its commands in.

The root is a directory; a command sees it and processes of its own, as an ordinary user, and the
network of this machine. Where packages come from is what `apt` and `pip` are set to here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.kit.foreign import CHECKOUT, missing

RELEASES = ("bookworm", "trixie")
NAMED_BY_THE_README = ("python3", "python3-venv", "make")

_USER = 1000
_HOME = Path("home/you")
_TREE = _HOME / "barnabas"
_OF_THIS_MACHINE = ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt")
_SETTINGS = re.compile(r"(PIP_\w+|\w+_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE)", re.IGNORECASE)
_BUILD_TIMEOUT_S = 1800
_ENTER = """
set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
root=$0
user=$1
shift
exec /usr/sbin/chroot --userspec="$user:$user" "$root" "$@"
"""


class BareDebian:
    """A root directory with a copy of the checkout in the home of a user `you`."""

    def __init__(self, root: Path, release: str) -> None:
        self.root = root
        self.release = release

    def build(self) -> None:
        """Install the release, which takes minutes. Skips where that cannot be."""
        program = shutil.which("debootstrap") or "/usr/sbin/debootstrap"
        if not Path(program).exists():
            missing("no debootstrap", "apt-get install debootstrap")
        if os.geteuid() != 0:
            missing("only root can enter another root directory", "run this test as root")
        mirror = _mirror()
        packages = ",".join(NAMED_BY_THE_README)
        command = [program, "--variant=minbase", f"--include={packages}"]
        done = subprocess.run(
            [*command, self.release, str(self.root), mirror],
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    def settle(self) -> None:
        """Bring the checkout, its owner, and how this machine finds others."""
        for name in _OF_THIS_MACHINE:
            if (Path("/") / name).exists():
                shutil.copyfile(Path("/") / name, self.root / name)
        for path in _checkout_files():
            copy = self.root / _TREE / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / path, copy)
        subprocess.run(["chown", "-R", f"{_USER}:{_USER}", self.root / _HOME], check=True)
        with (self.root / "etc/passwd").open("a") as users:
            users.write(f"you:x:{_USER}:{_USER}::/{_HOME}:/bin/sh\n")

    def run(self, command: str, log: Path, *, timeout_s: float) -> int:
        """The exit status of a shell's command in the checkout; what it writes goes to `log`."""
        settings = {name: value for name, value in os.environ.items() if _SETTINGS.fullmatch(name)}
        environment = {
            **settings,
            "HOME": f"/{_HOME}",
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "USER": "you",
        }
        inside = ["sh", "-c", f"cd /{_TREE} && {command}"]
        alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        with log.open("wb") as output:
            return subprocess.run(
                [*alone, "/bin/sh", "-c", _ENTER, self.root, str(_USER), *inside],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
            ).returncode

    def has(self, program: str) -> bool:
        """Whether a program is installed there."""
        return any((self.root / path / program).exists() for path in ("usr/bin", "usr/local/bin"))

    def remove(self) -> None:
        """Delete the root: several gigabytes once the tests' packages are in it."""
        shutil.rmtree(self.root, ignore_errors=True)


def _mirror() -> str:
    """Where `apt` gets Debian's packages, in either form of its lists of sources."""
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.*"))]
    pattern = re.compile(r"^(?:URIs:|deb)\s+(?:\[.*?\]\s+)?(\S+/debian/?)(?=\s)", re.MULTILINE)
    texts = [path.read_text() for path in lists if path.exists()]
    found = [line[1] for line in map(pattern.search, texts) if line]
    if not found:
        missing("apt lists no Debian mirror", "name one in /etc/apt/sources.list")
    return found[0]


def _checkout_files() -> list[str]:
    """The files that a clone would have, with what is not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    if listed.returncode != 0:
        missing("this is not a git checkout", "run this test in a clone")
    return [name for name in listed.stdout.split("\0") if name and (CHECKOUT / name).is_file()]
