/** Exports what every module needs for drawing: htm's templates, bound to preact, and preact's hooks. */

import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export { Fragment, render } from "./vendor/preact.js";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";

/** A template inserts values as text or elements, never as markup, so a name such as "<img>" stays a name. */
export const html = htm.bind(h);
