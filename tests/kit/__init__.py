"""What tests of several folders share: builders, fixtures, clients and processes."""

from pathlib import Path

import pytest

# Pytest explains failed assertions of test modules alone; those below fail on behalf of tests.
_MODULES = [path.stem for path in Path(__file__).parent.iterdir() if path.stem != "__init__"]
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in _MODULES))
