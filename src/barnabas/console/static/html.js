/** Gathers what every module needs to draw: htm's templates, bound to preact, and preact's hooks. */

import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";

export { Fragment, render } from "./vendor/preact.js";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";

/** What a template draws is text or elements, never markup: a name such as "<img>" stays a name. */
export const html = htm.bind(h);
