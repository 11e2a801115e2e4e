/** Keeps named views in this browser. A view is an address, so that it can be sent to others, too. */

import { html, useEffect, useRef, useState } from "../../console/html.js";

const KEY = `barnabas-pages ${location.pathname}`;
const MOST_CHARACTERS = 100;

function load() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(({ name, hash }) => name && typeof hash === "string") : [];
  } catch {
    return []; // the browser keeps nothing, or something else wrote there
  }
}

/** Draws the button that opens the saved views. */
export function SavedViews() {
  const [isOpen, setIsOpen] = useState(false);
  const [views, setViews] = useState(load);
  const [problem, setProblem] = useState("");
  const box = useRef(null);
  const opener = useRef(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    setViews(load());
    box.current?.querySelector("input")?.focus();
    const onKey = (event) => {
      if (event.key !== "Escape") return;
      setIsOpen(false);
      opener.current?.focus();
    };
    const onClick = (event) => !box.current?.parentElement.contains(event.target) && setIsOpen(false);
    addEventListener("keydown", onKey);
    addEventListener("pointerdown", onClick);
    return () => {
      removeEventListener("keydown", onKey);
      removeEventListener("pointerdown", onClick);
    };
  }, [isOpen]);
  const keep = (next) => {
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
      setProblem("");
    } catch {
      setProblem("This browser does not keep views. Copy the address instead.");
    }
    setViews(next);
  };
  const save = (event) => {
    event.preventDefault();
    const name = event.target.elements.name.value.trim();
    if (!name) return;
    keep([...views.filter((each) => each.name !== name), { name, hash: location.hash || "#/" }]);
    event.target.reset();
  };
  return html`<div class="saved">
    <button type="button" ref=${opener} aria-expanded=${isOpen ? "true" : "false"} onClick=${() => setIsOpen(!isOpen)}>
      Views
    </button>
    <${CopyAddress} />
    ${isOpen &&
    html`<section class="panel card" ref=${box} aria-label="Saved views">
      <h2>Saved views</h2>
      <form class="filters" onSubmit=${save}>
        <input type="text" name="name" aria-label="Name of this view" placeholder="name of this view" maxlength=${MOST_CHARACTERS} autocomplete="off" />
        <button type="submit">Save</button>
      </form>
      ${problem && html`<p class="alarm" role="alert">${problem}</p>`}
      ${views.length
        ? html`<ul class="plain">
            ${views.map((view) => html`<${View} key=${view.name} view=${view} views=${views} keep=${keep} close=${() => setIsOpen(false)} />`)}
          </ul>`
        : html`<p class="note">None yet. A view keeps the filters, the period and the steps of the funnel.</p>`}
    </section>`}
  </div>`;
}

function View({ view, views, keep, close }) {
  const [isNaming, setIsNaming] = useState(false);
  const rename = (event) => {
    event.preventDefault();
    const name = event.target.elements.name.value.trim();
    if (name && (name === view.name || !views.some((each) => each.name === name))) {
      keep(views.map((each) => (each === view ? { ...each, name } : each)));
    }
    setIsNaming(false);
  };
  if (isNaming) {
    return html`<li>
      <form class="filters" onSubmit=${rename}>
        <input type="text" name="name" aria-label=${`New name of ${view.name}`} value=${view.name} maxlength=${MOST_CHARACTERS} />
        <button type="submit">Rename</button>
      </form>
    </li>`;
  }
  return html`<li>
    <a href=${view.hash} onClick=${close}><bdi>${view.name}</bdi></a>
    <button type="button" class="small" aria-label=${`Rename ${view.name}`} onClick=${() => setIsNaming(true)}>Rename</button>
    <button
      type="button"
      class="small"
      aria-label=${`Delete ${view.name}`}
      onClick=${() => keep(views.filter((each) => each !== view))}
    >
      Delete
    </button>
  </li>`;
}

function CopyAddress() {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      setSaid("Copied");
    } catch {
      // Browsers allow it only on secure origins, so that the user has to copy by hand.
      prompt("Copy this address:", location.href);
    }
    setTimeout(() => setSaid(""), 2_000);
  };
  return html`<button type="button" onClick=${copy}><span role="status">${said || "Copy address"}</span></button>`;
}
