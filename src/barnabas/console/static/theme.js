/** Follows whether the browser asks for dark colours, because charts are drawn with the colours of their time. */

import { useEffect, useState } from "./html.js";

/** @returns {boolean} */
export function useIsDark() {
  const [isDark, setIsDark] = useState(matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const update = () => setIsDark(query.matches);
    query.addEventListener("change", update);
    return () => query.removeEventListener("change", update);
  }, []);
  return isDark;
}
