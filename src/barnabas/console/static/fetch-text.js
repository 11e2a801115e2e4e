/** Requests texts from the server that has sent the page. */

const TIMEOUT_MS = 20000;

/** A request that failed. `status` is 0 if there was no answer at all. */
export class Trouble extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path such as "api/topics" @param {AbortSignal} [signal] @param {number} [timeoutMs]
 * @returns {Promise<string>} Throws a `Trouble` with the server's text.
 */
export async function fetchText(path, signal, timeoutMs = TIMEOUT_MS) {
  const timeout = AbortSignal.timeout(timeoutMs);
  let response;
  let text;
  try {
    response = await fetch(path, { signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble("The server does not answer.", 0);
  }
  if (response.ok) return text;
  let said = "";
  try {
    said = JSON.parse(text).error;
  } catch {
    // The response is not JSON, perhaps because it comes from a proxy.
  }
  if (response.status === 401) dispatchEvent(new Event("barnabas-signed-out"));
  throw new Trouble(said || `The server answered ${response.status} to ${path.slice(0, 100)}.`, response.status);
}
