// Tells what a page shows as shapes that can be drawn elsewhere: it runs before the page's own scripts.
//
// `picturedShapes(top, bottom)` returns those between two heights, in the order in which they are
// painted. What is drawn on a canvas is recorded call by call, because a canvas keeps only pixels.
(() => {
  const drawn = new WeakMap(); // canvas -> what was drawn on it since it was last cleared
  const commands = { moveTo: "M", lineTo: "L" };

  function remember(type) {
    for (const [name, letter] of Object.entries(commands)) {
      const original = type[name];
      type[name] = function (...values) {
        this.steps ??= [];
        // Where nothing has been drawn yet, a line only moves to its end.
        this.steps.push([this.steps.length ? letter : "M", values]);
        return original.apply(this, values);
      };
    }
  }

  function record(context, shape) {
    const { e: x, f: y } = context.getTransform();
    if (!drawn.has(context.canvas)) drawn.set(context.canvas, []);
    drawn.get(context.canvas).push({ ...shape, x, y });
  }

  // A copy of a path begins with the steps of the original.
  globalThis.Path2D = class extends Path2D {
    constructor(...from) {
      super(...from);
      this.steps = [...(from[0]?.steps ?? [])];
    }
  };
  const canvas = CanvasRenderingContext2D.prototype;
  remember(Path2D.prototype);
  remember(canvas);
  const { beginPath, clearRect, fill, fillText, stroke } = canvas;
  canvas.beginPath = function () {
    this.steps = [];
    beginPath.call(this);
  };
  canvas.clearRect = function (...values) {
    drawn.set(this.canvas, []);
    clearRect.apply(this, values);
  };
  canvas.fill = function (path, ...more) {
    record(this, { kind: "path", steps: (path ?? this).steps ?? [], fill: this.fillStyle });
    path ? fill.call(this, path, ...more) : fill.call(this);
  };
  canvas.stroke = function (path) {
    record(this, { kind: "path", steps: (path ?? this).steps ?? [], stroke: this.strokeStyle, width: this.lineWidth });
    path ? stroke.call(this, path) : stroke.call(this);
  };
  canvas.fillText = function (text, x, y, ...more) {
    const { font, fillStyle, textAlign, textBaseline } = this;
    record(this, { kind: "label", text, at: [x, y], font, fill: fillStyle, textAlign, textBaseline });
    fillText.call(this, text, x, y, ...more);
  };

  const ruler = document.createElement("canvas").getContext("2d");
  function ascent(style) {
    ruler.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    return ruler.measureText("x").fontBoundingBoxAscent;
  }

  const styled = (style) => ({
    family: style.fontFamily,
    size: parseFloat(style.fontSize),
    weight: style.fontWeight,
    spacing: parseFloat(style.letterSpacing) || 0,
    fill: style.color,
  });

  /** The text of one line, with its place. */
  function line(text, box, style, underline) {
    const shown = style.textTransform === "uppercase" ? text.toUpperCase() : text;
    return { kind: "text", text: shown, x: box.left, y: box.top + ascent(style), length: box.width, underline, ...styled(style) };
  }

  /** Whether a link underlines its text, and not only faintly. */
  function isUnderlined(element) {
    const link = element.closest("a");
    const style = link && getComputedStyle(link);
    return Boolean(link) && style.textDecorationLine === "underline" && style.textDecorationColor === style.color;
  }

  function measured(node, from, to) {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getBoundingClientRect();
  }

  /** The lines of a text node: a word that begins further down begins a line. */
  function* linesOf(node) {
    const style = getComputedStyle(node.parentElement);
    const underline = isUnderlined(node.parentElement);
    const cutting = node.parentElement.closest("[data-cut]");
    const edge = cutting ? cutting.getBoundingClientRect().right : Infinity;
    let start = null;
    let end = 0;
    let top = 0;
    const finish = () => {
      const text = node.data.slice(start, end).replace(/\s+/g, " ");
      return line(text, measured(node, start, end), style, underline);
    };
    for (const piece of node.data.matchAll(/[^\s,-]+[,-]*|[,-]+/g)) {
      const last = piece.index + piece[0].length;
      const box = measured(node, piece.index, last);
      if (!box.width) continue;
      if (box.right > edge + 1) {
        if (start === null) start = piece.index;
        let cut = last;
        while (cut > start && measured(node, start, cut).right > edge - 10) cut -= 1;
        const kept = measured(node, start, cut);
        yield { ...line(`${node.data.slice(start, cut)}…`, kept, style, underline), length: kept.width + 9 };
        return;
      }
      if (start !== null && box.top > top + 2) {
        yield finish();
        start = null;
      }
      if (start === null) [start, top] = [piece.index, box.top];
      end = last;
    }
    if (start !== null) yield finish();
  }

  const SIDES = ["Top", "Right", "Bottom", "Left"];
  /** The ground and the borders of an element. */
  function boxOf(element, box, style) {
    const borders = SIDES.map((side) => [parseFloat(style[`border${side}Width`]), style[`border${side}Color`]]);
    return {
      kind: "box", x: box.left, y: box.top, width: box.width, height: box.height,
      radius: Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.height / 2),
      fill: style.backgroundColor, borders, hasShadow: style.boxShadow !== "none",
    };
  }

  /** What the browser itself draws in a field. */
  function* fieldOf(element, box, style) {
    if (element.type === "checkbox") {
      yield { kind: "box", x: box.left, y: box.top, width: 13, height: 13, radius: 2, fill: element.checked ? style.accentColor : "#fff", borders: SIDES.map(() => [1, "#767676"]) };
      return;
    }
    const text = element.matches("select") ? element.selectedOptions[0]?.textContent : element.value || element.placeholder;
    const left = box.left + parseFloat(style.borderLeftWidth) + parseFloat(style.paddingLeft);
    const shade = element.value || element.matches("select") ? style : getComputedStyle(element, "::placeholder");
    ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down, width } = ruler.measureText(text);
    const y = box.top + (box.height + up - down) / 2;
    yield { kind: "text", text, x: left, y, length: width, ...styled(style), fill: shade.color };
    if (element.matches("select")) {
      const [x, middle] = [box.right - 18, box.top + box.height / 2];
      yield { kind: "path", x, y: middle, steps: [["M", [0, -2]], ["L", [4, 2]], ["L", [8, -2]]], stroke: style.color, width: 1.5 };
    }
  }

  /** A dot before the text, which has no element of its own. */
  function* dotOf(element, style) {
    const dot = getComputedStyle(element, "::before");
    const size = parseFloat(dot.width);
    if (dot.content !== '""' || !size || !element.firstChild) return;
    const text = measured(element, 0, 1);
    const y = text.top + (text.height - size) / 2 + 0.5;
    const x = text.left - parseFloat(dot.marginRight) - size;
    yield { kind: "box", x, y, width: size, height: size, radius: size / 2, fill: dot.backgroundColor, borders: [] };
  }

  function* copied(svg) {
    for (const part of svg.querySelectorAll("rect")) {
      const box = part.getBoundingClientRect();
      yield { kind: "box", x: box.left, y: box.top, width: box.width, height: box.height, radius: 0, fill: getComputedStyle(part).fill, borders: [] };
    }
  }

  function* canvasOf(element, box) {
    for (const shape of drawn.get(element) ?? []) yield { ...shape, x: shape.x + box.left, y: shape.y + box.top };
  }

  function* walk(element, top, bottom) {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
    const box = element.getBoundingClientRect();
    if (box.bottom <= top || box.top >= bottom || style.clipPath !== "none") return;
    if (element !== document.body) yield boxOf(element, box, style);
    if (element.matches("svg")) yield* copied(element);
    else if (element.matches("canvas")) yield* canvasOf(element, box);
    else if (element.matches("select, input")) yield* fieldOf(element, box, style);
    else {
      yield* dotOf(element, style);
      if (element.matches("summary")) {
        yield { kind: "text", text: element.parentElement.open ? "▾" : "▸", x: box.left, y: box.top + ascent(style), length: 0, ...styled(style) };
      }
      for (const child of element.childNodes) {
        if (child.nodeType === Node.TEXT_NODE) yield* linesOf(child);
        else if (child.nodeType === Node.ELEMENT_NODE) yield* walk(child, top, bottom);
      }
    }
  }

  /** Addresses differ from run to run: the picture has those of Kafka's documentation. */
  function tame() {
    const names = new Map();
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (nodes.nextNode()) {
      nodes.currentNode.data = nodes.currentNode.data.replace(/\b(?:127\.0\.0\.1|localhost):\d+/g, (address) => {
        if (!names.has(address)) names.set(address, `localhost:${9092 + names.size}`);
        return names.get(address);
      });
    }
  }

  globalThis.picturedShapes = (top, bottom) => {
    tame();
    for (const each of document.querySelectorAll("body *")) {
      if (getComputedStyle(each).textOverflow === "ellipsis" && each.scrollWidth > each.clientWidth) each.dataset.cut = "";
    }
    const ground = getComputedStyle(document.body).backgroundColor;
    return { ground, width: innerWidth, shapes: [...walk(document.body, top, bottom)] };
  };

  // Fonts as wide as those that most readers have, so that each text fits into its place.
  const fonts = new CSSStyleSheet();
  fonts.replaceSync(`
    body, .brand span, button, input, select, textarea { font-family: "Liberation Sans", Arial, "DejaVu Sans Condensed", sans-serif !important; }
    h1, h2, .brand, .key b { font-family: Gelasio, Georgia, "DejaVu Serif Condensed", serif !important; }
    html { scrollbar-gutter: auto !important; overflow: hidden; }
    .bar { position: static !important; }
    :focus-visible { outline: none !important; }
  `);
  document.adoptedStyleSheets = [fonts];
})();
