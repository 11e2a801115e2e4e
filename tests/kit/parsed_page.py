"""A page of a pipeline as a browser has it, for tests that look into one."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "br", "img", "input", "link"}


class Page(HTMLParser):
    """A page as it was parsed; fails where a tag is not closed, or another one is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))
        # A link into the page leads to one of its ids.
        inner = {each.removeprefix("#") for each in self.links if each.startswith("#")}
        assert inner <= set(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def files(self) -> list[str]:
        """Addresses of other files, which the page links to."""
        return [each for each in self.links if each and not each.startswith("#")]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())
