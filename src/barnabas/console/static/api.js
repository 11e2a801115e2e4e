/** Polls the server while the page is visible, and reports when the server does not answer. */

import { useEffect, useRef, useState } from "./html.js";

const POLL_MS = 2000;
const LONGEST_MS = 30000;
const TIMEOUT_MS = 20000;

/** A request that failed. `status` is 0 if there was no answer at all. */
export class Trouble extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** @param {string} path such as "api/topics" @param {AbortSignal} [signal] @returns {Promise<string>} */
async function ask(path, signal) {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response;
  let text;
  try {
    const options = { signal: signal ? AbortSignal.any([signal, timeout]) : timeout };
    response = await fetch(path, options);
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble("The console's server does not answer.", 0);
  }
  if (response.ok) return text;
  let said = "";
  try {
    said = JSON.parse(text).error;
  } catch {
    // The response is not JSON, perhaps because it comes from a proxy.
  }
  if (response.status === 401) dispatchEvent(new Event("barnabas-signed-out"));
  throw new Trouble(said || `The server answered ${response.status} to ${path}.`, response.status);
}

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  return JSON.parse(await ask(path));
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
        const text = await ask(path, abort.signal);
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
