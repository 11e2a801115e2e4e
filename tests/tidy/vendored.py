"""Makes `src/barnabas/console/static/vendor` from npm: `python -m tests.tidy.vendored`.

The page of the console has no build step and loads nothing from elsewhere. It needs three small
libraries, which lie in that folder as npm publishes them, with two changes: modules import each
other by a relative path, since the page's policy allows no import map, and what is published
minified only as a script gets an export. Run it after changing a version below, and read the
difference.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[2] / "src/barnabas/console/static/vendor"


class Copy(NamedTuple):
    """A file of a package and its name in the folder."""

    package: str
    source: str
    target: str


VERSIONS = {"preact": "11.2.0", "htm": "3.1.1", "uplot": "1.6.32"}
COPIES = [
    Copy("preact", "dist/preact.mjs", "preact.js"),
    Copy("preact", "hooks/dist/hooks.mjs", "preact-hooks.js"),
    Copy("preact", "LICENSE", "preact-LICENSE.txt"),
    Copy("htm", "dist/htm.module.js", "htm.js"),
    Copy("htm", "LICENSE", "htm-LICENSE.txt"),
    Copy("uplot", "dist/uPlot.iife.min.js", "uplot.js"),
    Copy("uplot", "dist/uPlot.min.css", "uplot.css"),
    Copy("uplot", "LICENSE", "uplot-LICENSE.txt"),
]


def adapt(target: str, text: str) -> str:
    """Return the text as the page can load it."""
    lines = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")]
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    if target.endswith(".js"):
        text = text.replace('from"preact"', 'from"./preact.js"')
    if target == "uplot.js":
        text += "export default uPlot;\n"
    return text


def main() -> None:
    """Fetch the packages and write the folder's files."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("no npm on the PATH: apt-get install npm")
    with tempfile.TemporaryDirectory() as directory:
        for package, version in VERSIONS.items():
            command = [npm, "pack", "--silent", f"{package}@{version}"]
            subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
        for package, source, target in COPIES:
            path = Path(directory) / f"{package}-{VERSIONS[package]}.tgz"
            with tarfile.open(path) as archive:
                file = archive.extractfile(f"package/{source}")
                assert file is not None, f"{path.name} has no {source}"
                (FOLDER / target).write_text(adapt(target, file.read().decode()), "utf-8")


if __name__ == "__main__":
    main()
