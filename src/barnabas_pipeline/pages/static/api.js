/** Asks the server, and keeps the last answer until the next one arrives. */

import { fetchText } from "../console/fetch-text.js";
import { useEffect, useRef, useState } from "../console/html.js";

const SITE_MS = 10_000;
const TIMEOUT_MS = 120_000;

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} Throws an error with the server's text. */
export async function ask(path, signal) {
  const text = await fetchText(path, signal, TIMEOUT_MS);
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`The answer to ${path.slice(0, 100)} is not JSON; perhaps a proxy has sent it.`);
  }
}

/**
 * Asks for `path`, and again if it or `batch` changes. An answer to an earlier path is discarded.
 * @param {string} path if "", nothing is requested
 * @param {number | string} [batch] changes when the server has new figures
 * @returns {{data: any, of: string, error: Error | null, isLoading: boolean, retry: () => void}}
 *     `of`: the path of the data
 */
export function useAnswer(path, batch = "") {
  const [state, setState] = useState({ data: null, of: "", error: null, asked: "" });
  const [attempt, setAttempt] = useState(0);
  const asked = `${batch} ${attempt} ${path}`;
  useEffect(() => {
    if (!path) return undefined;
    const abort = new AbortController();
    ask(path, abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, of: path, error: null, asked }),
      (error) => !abort.signal.aborted && setState((last) => ({ ...last, error, asked })),
    );
    return () => abort.abort();
  }, [asked]);
  const isLoading = Boolean(path) && state.asked !== asked;
  const retry = () => setAttempt((last) => last + 1);
  return { ...state, error: isLoading ? null : state.error, isLoading, retry };
}

/**
 * Asks what the tables contain, every ten seconds while the page is visible.
 * @returns {{site: any, error: Error | null, look: () => void}}
 */
export function useSite() {
  const [state, setState] = useState({ site: null, error: null });
  const again = useRef(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let isBusy = false;
    async function look() {
      clearTimeout(timer);
      if (document.hidden || isBusy) return;
      isBusy = true;
      try {
        const site = await ask("api/site", abort.signal);
        setState((last) =>
          JSON.stringify(site) === JSON.stringify(last.site) && !last.error ? last : { site, error: null },
        );
      } catch (error) {
        if (abort.signal.aborted) return;
        setState((last) => ({ ...last, error }));
      } finally {
        isBusy = false;
      }
      timer = setTimeout(look, SITE_MS);
    }
    again.current = look;
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return { ...state, look: () => again.current() };
}
