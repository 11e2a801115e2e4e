"""Draws what a page in the browser shows as an SVG: text that can be read, reviewed and searched.

A picture has neither scripts nor fonts nor links of its own, so that a README can show it. Each
line of text is as long as it was on the page, whatever font draws it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.kit.processes.chromium import opened
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Locator, Page

Shape = Mapping[str, Any]

LARGEST_BYTES: Final = 60 * 1024
WIDTH: Final = 1040
_MARGIN: Final = 18.0
SCRIPT: Final = Path(__file__).parent / "walk.js"
_SANS: Final = '"Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans Condensed", sans-serif'
_SERIF: Final = 'Charter, Georgia, "DejaVu Serif Condensed", serif'
_MONOSPACE: Final = 'Menlo, Consolas, "DejaVu Sans Mono", monospace'
_EDGE: Final = "#d8d0bf"
_SHADOW: Final = ".s{filter:drop-shadow(0 2px 5px rgb(60 50 30/.09))}"
_NOTHING: Final = ("none", 1.0)


@contextmanager
def tab(browser: Browser) -> Iterator[Page]:
    """Open a tab whose pages can be drawn."""
    with opened(browser, WIDTH) as page:
        page.add_init_script(path=SCRIPT)
        yield page


def end_of(page: Page, selector: str, margin: float = _MARGIN) -> float:
    """Return the height at which a picture ends that shows the elements, with a margin."""
    box = _box_of(page.locator(selector).last)
    return box["y"] + box["height"] + margin


def start_of(element: Locator) -> float:
    """Return the height at which a picture starts that begins with an element, with a margin."""
    return _box_of(element)["y"] - _MARGIN


def _box_of(element: Locator) -> FloatRect:
    """Return where an element is. The page may replace it between two steps, so try again."""
    found: list[FloatRect] = []

    def is_there() -> bool:
        box = element.bounding_box()
        found.extend([] if box is None else [box])
        return bool(found)

    wait_until(is_there)
    return found[0]


class Part(NamedTuple):
    """The part of a page between two heights, in pixels, and what it shows."""

    top: float
    bottom: float
    title: str


def draw(page: Page, part: Part) -> str:
    """Return a part of a page that is open in a `tab`."""
    shown = page.evaluate("([top, bottom]) => picturedShapes(top, bottom)", part[:2])
    picture = _Drawing(shown["width"], part).draw(shown["ground"], shown["shapes"])
    size = len(picture.encode())
    assert size <= LARGEST_BYTES, f"{part.title}: {size} bytes are too many; draw less of the page"
    return picture


class _Drawing:
    """An SVG in the making, whose texts share the styles that several of them have."""

    def __init__(self, width: float, part: Part) -> None:
        self._width = width
        self._part = part
        self._styles: dict[str, str] = {}

    def draw(self, ground: str, shapes: list[Shape]) -> str:
        parts = [line for shape in shapes for line in self._shape(shape)]
        styles = "".join(f"\n.{name}{{{style}}}" for style, name in self._styles.items())
        top, height = self._part.top, self._part.bottom - self._part.top
        view = f"0 {_number(top)} {_number(self._width)} {_number(height)}"
        around = f'{_area(0.5, top + 0.5, self._width - 1, height - 1)} rx="12"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{view}" '
                f'width="{_number(self._width)}" height="{_number(height)}" role="img">',
                f"<title>{_words(self._part.title)}</title>",
                f"<style>text{{white-space:pre}}{_SHADOW}{styles}\n</style>",
                f'<clipPath id="frame"><rect {around}/></clipPath>',
                f'<g clip-path="url(#frame)"><rect {around} fill="{_colour(ground)[0]}"/>',
                *parts,
                "</g>",
                f'<rect {around} fill="none" stroke="{_EDGE}"/>',
                "</svg>\n",
            ]
        )

    def _shape(self, shape: Shape) -> Iterator[str]:
        if shape["kind"] == "box":
            yield from _box(shape)
        elif shape["kind"] == "path":
            yield from _path(shape)
        elif shape["kind"] == "label":
            yield self._label(shape)
        elif self._part.top < shape["y"] < self._part.bottom + shape["size"]:
            yield self._text(shape)

    def _text(self, shape: Shape) -> str:
        style = _style(shape["family"], shape["size"], shape["weight"], shape["fill"])
        style += f";letter-spacing:{_number(shape['spacing'])}px" if shape["spacing"] else ""
        style += ";text-decoration:underline" if shape.get("underline") else ""
        length = _number(shape["length"])
        # A single letter has no room to be stretched in.
        fit = f' textLength="{length}" lengthAdjust="spacingAndGlyphs"' if shape["length"] else ""
        place = f'x="{_number(shape["x"])}" y="{_number(shape["y"])}"'
        return f'<text class="{self._name(style)}" {place}{fit}>{_words(shape["text"])}</text>'

    def _label(self, shape: Shape) -> str:
        """Return a label of a chart, which is aligned to a point."""
        size = float(re.findall(r"([\d.]+)px", shape["font"])[0])
        anchor = {"center": "middle", "right": "end", "end": "end"}.get(shape["textAlign"], "start")
        rise = {"top": 0.8, "middle": 0.35}.get(shape["textBaseline"], 0.0) * size
        x, y = shape["x"] + shape["at"][0], shape["y"] + shape["at"][1] + rise
        style = _style("sans-serif", size, "400", shape["fill"]) + f";text-anchor:{anchor}"
        place = f'x="{_number(x)}" y="{_number(y)}"'
        return f'<text class="{self._name(style)}" {place}>{_words(shape["text"])}</text>'

    def _name(self, style: str) -> str:
        return self._styles.setdefault(style, f"t{len(self._styles)}")


def _style(family: str, size: float, weight: str, colour: str) -> str:
    words = family.lower()
    is_serif = "serif" in words.replace("sans-serif", "")
    fonts = _MONOSPACE if "mono" in words else _SERIF if is_serif else _SANS
    return f"font:{weight} {_number(size)}px {fonts};fill:{_colour(colour)[0]}"


def _box(shape: Shape) -> Iterator[str]:
    x, y, width, height = (shape[name] for name in ("x", "y", "width", "height"))
    colour, opacity = _colour(shape["fill"])
    borders = [(size, *_colour(shade)) for size, shade in shape["borders"]]
    is_framed = len({*borders}) == 1 and borders[0][0] > 0 and borders[0][2] > 0
    radius = shape["radius"]
    if opacity > 0 or is_framed:
        half = borders[0][0] / 2 if is_framed else 0.0
        rounded = f' rx="{_number(radius)}"' if radius else ""
        paint = f'fill="{colour}"' if opacity > 0 else 'fill="none"'
        paint += f' fill-opacity="{_number(opacity, 2)}"' if 0 < opacity < 1 else ""
        if is_framed:
            paint += f' stroke="{borders[0][1]}"'
            paint += f' stroke-width="{_number(2 * half)}"' if half != 0.5 else ""
            paint += f' stroke-opacity="{_number(borders[0][2], 2)}"' if borders[0][2] < 1 else ""
        shadow = ' class="s"' if shape.get("hasShadow") else ""
        area = _area(x + half, y + half, width - 2 * half, height - 2 * half)
        yield f"<rect{shadow} {area}{rounded} {paint}/>"
    if is_framed or not borders:
        return
    (top, *_), (right, *_), (bottom, *_), (left, *_) = borders
    places = [
        (x, y, width, top),
        (x + width - right, y, right, height),
        (x, y + height - bottom, width, bottom),
        (x, y, left, height),
    ]
    for (size, shade, strength), place in zip(borders, places, strict=True):
        if size <= 0 or strength <= 0:
            continue
        if radius > size:  # the only border of a rounded card follows its corners
            yield (
                f'<path d="M{_number(x + radius)} {_number(y)}a{_number(radius)} {_number(radius)} '
                f"0 0 0 -{_number(radius)} {_number(radius)}v{_number(height - 2 * radius)}"
                f"a{_number(radius)} {_number(radius)} 0 0 0 {_number(radius)} {_number(radius)}"
                f"a{_number(radius - size)} {_number(radius)} 0 0 1 -{_number(radius - size)} "
                f"-{_number(radius)}v-{_number(height - 2 * radius)}"
                f"a{_number(radius - size)} {_number(radius)} 0 0 1 {_number(radius - size)} "
                f'-{_number(radius)}" fill="{shade}"/>'
            )
        else:
            yield f'<rect {_area(*place)} fill="{shade}"/>'


def _path(shape: Shape) -> Iterator[str]:
    if len(shape["steps"]) < 2:
        return
    x, y = shape["x"], shape["y"]
    drawn = "".join(
        f"{letter}{_number(right + x)} {_number(down + y)}"
        for letter, (right, down) in shape["steps"]
    )
    fill, strength = _colour(shape["fill"]) if "fill" in shape else _NOTHING
    paint = f'fill="{fill}"' + (f' fill-opacity="{_number(strength, 2)}"' if strength < 1 else "")
    if "stroke" in shape:
        paint += f' stroke="{_colour(shape["stroke"])[0]}" stroke-width="{_number(shape["width"])}"'
    yield f'<path d="{drawn}" {paint}/>'


def _area(x: float, y: float, width: float, height: float) -> str:
    return (
        f'x="{_number(x)}" y="{_number(y)}" '
        f'width="{_number(max(width, 0))}" height="{_number(max(height, 0))}"'
    )


def _colour(said: str) -> tuple[str, float]:
    """Return a colour of CSS as hexadecimal digits, and its opacity."""
    if said.startswith("#"):
        digits = said[1:] if len(said) > 4 else "".join(2 * each for each in said[1:])
        return f"#{digits[:6]}", int(digits[6:] or "ff", 16) / 255
    numbers = [float(each) for each in re.findall(r"[\d.]+(?:e-\d+)?", said.replace("srgb", ""))]
    if len(numbers) < 3:
        return _NOTHING
    scale = 255 if said.startswith("color(") else 1
    red, green, blue = (round(each * scale) for each in numbers[:3])
    return f"#{red:02x}{green:02x}{blue:02x}", numbers[3] if len(numbers) > 3 else 1.0


def _words(text: str) -> str:
    return escape(text, quote=False)


def _number(value: float, digits: int = 1) -> str:
    """Return a number with as few digits as it needs."""
    return (
        f"{round(value, digits) + 0.0:.{digits}f}".rstrip("0").rstrip(".").replace("-0.", "-.")
        or "0"
    )
