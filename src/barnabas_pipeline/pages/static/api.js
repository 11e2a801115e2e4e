/** Asks the server, and keeps the last answer until the next one arrives. */

import { useEffect, useRef, useState } from "../console/html.js";

const SITE_MS = 10_000;
const TIMEOUT_MS = 120_000;

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} Throws an error with the server's text. */
export async function ask(path, signal) {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response;
  let text;
  try {
    response = await fetch(path, { signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error("The server does not answer.");
  }
  let answer = null;
  try {
    answer = JSON.parse(text);
  } catch {
    // The response is not JSON, perhaps because it comes from a proxy.
  }
  if (response.ok && answer !== null) return answer;
  throw new Error(answer?.error || `The server answered ${response.status} to ${path.slice(0, 100)}.`);
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
