"""The documentation as a site: its pages, gathered in `build/docs`, and `build/site` made of them.

python -m tests.tidy.site      does both; any warning is an error

The pages of `docs/` are taken as they are. Added are those that are written from the sources: the
map of the files, the list of the decisions, and a page for each example.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.kit.foreign import CHECKOUT
from tests.tidy.file_map import file_map

DOCS: Final = CHECKOUT / "docs"
EXAMPLES: Final = CHECKOUT / "examples"
CONFIG: Final = CHECKOUT / "zensical.toml"
GATHERED: Final = CHECKOUT / "build" / "docs"
"""`docs_dir` of the config."""

_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_TO_EXAMPLE = re.compile(r"\]\(\.\./examples/(\w+)\.(?:py|md)\)")
_FENCE_OPTIONS = re.compile(r"^( *```\w+) [^\n`]+$", re.MULTILINE)
"""What a test reads behind a fence's language; the renderer takes such a fence for text."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_DECISIONS = "decisions/README.md"


def gather(target: Path) -> None:
    """Write all pages into a folder, which is created; links to examples lead to their pages."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target)
    (target / "file-map.md").write_text(file_map(), encoding="utf-8")
    with (target / _DECISIONS).open("a", encoding="utf-8") as page:
        page.write("\n" + "".join(f"- [{title}]({name})\n" for name, title in decisions()))
    (target / "examples").mkdir()
    for example in sorted(EXAMPLES.glob("*.py")):
        text = f"# {example.name}\n\n```python\n{example.read_text(encoding='utf-8')}```\n"
        (target / "examples" / f"{example.stem}.md").write_text(text, encoding="utf-8")
    _write_examples(target / "examples" / "README.md")
    for path in sorted(target.glob("*.md")):
        text = _TO_EXAMPLE.sub(r"](examples/\1.md)", path.read_text(encoding="utf-8"))
        path.write_text(_FENCE_OPTIONS.sub(r"\1", text), encoding="utf-8")


def decisions() -> list[tuple[str, str]]:
    """The file and the title of each decision, in their order."""
    return [
        (path.name, title.group(1))
        for path in sorted((DOCS / _DECISIONS).parent.glob("[0-9]*.md"))
        if (title := _TITLE.search(path.read_text(encoding="utf-8")))
    ]


def _write_examples(page: Path) -> None:
    """The list of the examples, each a link to its page."""
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8").replace("../docs/", "../")
    linked = re.sub(r"`(\w+)\.py`", r"[`\1.py`](\1.md)", text)
    page.write_text(linked, encoding="utf-8")


def main() -> int:
    gather(GATHERED)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(CONFIG)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    if done.returncode:
        # Its last lines are a traceback of its own; the warnings stand above them.
        sys.stderr.write(_COLOUR.sub("", done.stdout + done.stderr.partition("Traceback")[0]))
        print("build/docs has the pages as they were gathered from docs/", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
