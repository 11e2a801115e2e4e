/** Polls the server while the page is visible, and reports when the server does not answer. */

import { Trouble, fetchText } from "./fetch-text.js";
import { useEffect, useRef, useState } from "./html.js";

export { Trouble };

const POLL_MS = 2000;
const LONGEST_MS = 30000;

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  return JSON.parse(await fetchText(path));
}

/** Sends the waiting requests immediately. */
export function retryNow() {
  dispatchEvent(new Event("barnabas-retry"));
}

/**
 * Requests `path` every two seconds while the tab is visible, and less often after failures.
 *
 * The last data is kept until new data arrives, even if the path changes, to avoid flickering.
 * @param {string} path if "", nothing is requested
 * @returns {{data: any, error: Trouble | null, at: number, nextAt: number, isLoading: boolean}}
 */
export function usePoll(path, every = POLL_MS) {
  const [state, setState] = useState({ data: null, error: null, at: 0, nextAt: 0, path: "" });
  const last = useRef({ text: "", path: "" });
  useEffect(() => {
    if (!path) return undefined;
    const abort = new AbortController();
    let timer = 0;
    let failures = 0;
    let isBusy = false;
    const again = (pause) => {
      timer = setTimeout(look, pause);
      return Date.now() + pause;
    };
    async function look() {
      clearTimeout(timer);
      if (document.hidden || isBusy) return;
      isBusy = true;
      try {
        const text = await fetchText(path, abort.signal);
        failures = 0;
        const at = Date.now();
        if (text === last.current.text && path === last.current.path) {
          setState((before) => ({ ...before, error: null, at }));
        } else {
          last.current = { text, path };
          setState({ data: JSON.parse(text), error: null, at, nextAt: 0, path });
        }
        again(every);
      } catch (error) {
        if (abort.signal.aborted) return;
        failures += 1;
        const nextAt = again(Math.min(LONGEST_MS, every * 2 ** (failures - 1)));
        const trouble = error instanceof Trouble ? error : new Trouble(String(error), 0);
        setState((before) => ({ ...before, error: trouble, nextAt }));
      } finally {
        isBusy = false;
      }
    }
    look();
    document.addEventListener("visibilitychange", look);
    addEventListener("barnabas-retry", look);
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
      removeEventListener("barnabas-retry", look);
    };
  }, [path, every]);
  return { ...state, isLoading: state.path !== path && !state.error };
}

/**
 * Passes each item of a stream to `take`. The browser reconnects automatically.
 * @param {string} path if "", no connection is made
 * @param {(item: any) => void} take
 * @returns {"off" | "connecting" | "open"}
 */
export function useStream(path, take) {
  const [state, setState] = useState("off");
  const taker = useRef(take);
  taker.current = take;
  useEffect(() => {
    if (!path) {
      setState("off");
      return undefined;
    }
    setState("connecting");
    const source = new EventSource(path);
    source.onopen = () => setState("open");
    source.onerror = () => setState("connecting");
    source.onmessage = (event) => taker.current(JSON.parse(event.data));
    // The server ends the stream after this event, and the browser reconnects.
    source.addEventListener("problem", () => setState("connecting"));
    return () => source.close();
  }, [path]);
  return state;
}
