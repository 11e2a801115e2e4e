"""BT-2: what the server leaves out of the script for pages."""

from __future__ import annotations

from barnabas_track.page_script import compact


def test_comments_indentation_and_spaces_are_left_out() -> None:
    source = b"// a;\n\n  // b\n  one(\n\t2);\n  // c\n  const url = 'https://x'\n  three();\n"
    assert compact(source) == b"one(2);const url='https://x'\nthree();"
