"""BT-2: what the server leaves out of the script for pages."""

from __future__ import annotations

from barnabas_track.page_script import compact


def test_comments_and_indentation_are_left_out() -> None:
    source = b"// a\n\n  // b\n  // c\n  one(); // d\n\tconst url = 'https://x';\n"
    assert compact(source) == b"one(); // d\nconst url = 'https://x';\n"
