"""The one thing that pyproject.toml cannot say: on an index, the README's links are absolute."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = f"{PROJECT['urls']['Source']}/blob/v{PROJECT['version']}"
PICTURES = FILES.replace("/blob/", "/raw/")

readme = Path("README.md").read_text(encoding="utf-8")
readme = re.sub(r"(!\[[^]]*\]\()(?!\w+:|#)", rf"\g<1>{PICTURES}/", readme)
readme = re.sub(r"(\]\()(?!\w+:|#)", rf"\g<1>{FILES}/", readme)

setup(long_description=readme, long_description_content_type="text/markdown")
