// Sends events from a page to `barnabas track serve`. docs/tracking.md describes how to use it.
//
// The server omits comments and most spaces when it serves this file, so each comment must be on a
// line of its own.
(() => {
  const script = document.currentScript;
  if (window.barnabas || !script || !/^http/.test(location.protocol)) return;
  const endpoint = new URL("v1/events", script.src);
  const isPrivate = navigator.doNotTrack == 1 || navigator.globalPrivacyControl;

  const makeId = () => crypto.getRandomValues(new Uint32Array(4)).join("-");
  // The server rejects longer texts, control characters and halves of surrogate pairs.
  const clean = (text, most = 1024) =>
    String(text).slice(0, most).replace(/[\0-\x1f\x7f\p{Cs}]/gu, " ");

  // ---- Storage: data that must not be stored, or does not fit, stays in memory ----

  // Even reading these properties throws if the browser forbids storage.
  const storage = (name) => {
    try {
      return window[name];
    } catch {}
  };
  const local = storage("localStorage");
  const disk = isPrivate ? null : local;
  const tab = storage("sessionStorage");
  const memory = {};
  const write = (where, key, value) => {
    try {
      where.setItem(key, value);
      return true;
    } catch {}
  };
  const read = (key) => memory[key] || disk?.getItem(key);
  const remove = (key) => {
    delete memory[key];
    disk?.removeItem(key);
    own.delete(key);
  };
  // Returns undefined if the id cannot be stored, because the next page would then use another id.
  const keptId = (where, key) => {
    const id = where?.getItem(key) || makeId();
    return write(where, key, id) ? id : undefined;
  };

  // ---- Queue: each event has a key of its own, so tabs cannot overwrite each other's events ----

  // The keys that this page added.
  const own = new Set();
  let sending = [];
  let timer;
  let failures = 0;

  const queued = () => {
    // `Object.keys` would ask the browser about each key of the storage once more.
    const keys = [memory, disk || []]
      .flatMap(Reflect.ownKeys)
      .filter((key) => /^barnabas.event/.test(key))
      .sort();
    // If the queue is too long, drop the oldest events.
    keys.splice(0, keys.length - 2000).map(remove);
    return keys;
  };
  const pack = (keys) => {
    // A string is sent as text/plain, for which browsers send no preflight request.
    const body = `{"events":[${keys.map(read).filter(Boolean)}]}`;
    // Browsers send at most 64 KiB while a page closes.
    return new TextEncoder().encode(body).length > 6e4 ? pack(keys.slice(0, keys.length / 2)) : [keys, body];
  };
  const schedule = (ms) => {
    timer ||= setTimeout(flush, ms);
  };
  const flush = async () => {
    clearTimeout(timer);
    timer = 0;
    if (sending[0]) return;
    try {
      // Only one tab sends at a time. Pages without TLS have no locks; if two of their tabs send
      // the same event, the server recognises its id.
      await (disk && navigator.locks
        ? navigator.locks.request("barnabas", { ifAvailable: true }, (lock) =>
            lock ? send() : schedule(2e3))
        : send());
    } catch {
      sending = [];
      schedule((1e3 << Math.min(failures++, 6)) * (1 - Math.random() / 2));
    }
  };
  // Listing a full queue takes several milliseconds, so it is not listed again for each batch, and
  // each batch is sent in a task of its own. A hidden page may never run another task.
  const send = async (found = queued()) => {
    if (!document.hidden) await new Promise(setTimeout);
    const [keys, body] = pack(found.slice(0, 100));
    sending = keys;
    if (!keys[0]) return;
    const response = await fetch(endpoint, {
      method: "POST",
      body,
      keepalive: true,
      credentials: "omit",
      signal: AbortSignal.timeout?.(2e4),
    });
    // This fails if something other than the server has answered.
    if (response.ok) await response.json();
    else if (![400, 413, 415].includes(response.status)) throw 0;
    keys.map(remove);
    failures = 0;
    const rest = found.slice(keys.length);
    // List the queue again at the end, because events were added meanwhile, and after a withdrawn
    // consent, which deleted the events.
    await send(rest[0] && isAllowed ? rest : queued());
  };
  // The page is closing, so it cannot wait for the answer. The next page sends these events again,
  // and the server recognises their ids.
  const sendLast = () => {
    const [keys, body] = pack([...own].filter((key) => !sending.includes(key)).slice(-100));
    if (keys[0] && navigator.sendBeacon(endpoint, body)) keys.map((key) => delete memory[key]);
  };

  // ---- Events ----

  const consent = local?.getItem("barnabas.consent");
  let isAllowed = script.dataset.consent == "required" ? consent == 1 : consent != 0;

  const add = (name, properties, more) => {
    if (!isAllowed) return;
    const id = makeId();
    const time = Date.now();
    const text = JSON.stringify({
      id,
      time,
      name: clean(name, 64),
      url: url?.slice(0, 2048),
      visitor: keptId(disk, "barnabas.visitor"),
      session: keptId(disk && tab, "barnabas.session"),
      properties,
      ...more,
    });
    if (text.length > 16384) throw RangeError("event too large");
    const key = "barnabas.event." + time + id;
    if (!write(disk, key, text)) memory[key] = text;
    own.add(key);
    schedule(1e3);
    return id;
  };

  // ---- Page views, and how long and how far each was read ----

  let url;
  let view;
  let beaten;
  let depth;
  let visibleMs;
  // When the page became visible, or 0 while it is hidden.
  let visibleAt;

  const look = () => {
    // A fragment belongs to the address only if the page uses it for its views.
    const address = location.href.replace(/#(?![!/]).*/, "");
    if (address == url) return;
    beat();
    const referrer = url || document.referrer;
    url = address;
    depth = visibleMs = beaten = 0;
    show();
    const campaign = new URLSearchParams(location.search).get("utm_campaign");
    view = add("pageview", undefined, {
      referrer: /^http/.test(referrer) ? referrer.slice(0, 2048) : "",
      campaign: campaign ? clean(campaign) : undefined,
      screen: `${screen.width}x${screen.height}`,
      language: navigator.language || undefined,
    });
    // Measure once the page has been laid out, because reading the layout is then cheap.
    setTimeout(measure);
  };
  const show = () => {
    visibleAt = document.hidden ? 0 : performance.now();
  };
  const measure = () => {
    const share = (scrollY + innerHeight) / document.documentElement.scrollHeight;
    depth = Math.max(depth, Math.min(100, Math.round(share * 100)));
  };
  const beat = () => {
    if (visibleAt) visibleMs += performance.now() - visibleAt;
    show();
    const seconds = Math.round(visibleMs / 1e3);
    if (view && seconds + depth > beaten) add("heartbeat", { view, seconds, scroll: depth });
    beaten = seconds + depth;
  };

  // ---- Clicks and errors ----

  const click = ({ target, button }) => {
    const marked = target.closest?.("[data-track]");
    if (!marked || button > 1) return;
    // After a click on a label, browsers also generate a click on its input.
    const control = target.closest("label")?.control;
    if (control != target && marked.contains(control)) return;
    const properties = {};
    for (const key in marked.dataset)
      if (/^track./.test(key))
        properties[key[5].toLowerCase() + key.slice(6)] = clean(marked.dataset[key]);
    add(marked.dataset.track || "click", properties);
  };
  let errors = 0;
  const fail = (message, source) => {
    if (errors++ < 10) add("error", { view, message: clean(message), source });
  };

  // ---- Web Vitals ----

  const vitals = {};
  // The duration of each interaction, by its id.
  const durations = {};
  // A page in the background is not painted, so the times of later paints are meaningless.
  let hiddenAt = document.hidden ? 0 : Infinity;
  let burst = 0;
  let burstAt = 0;
  let shiftAt = 0;
  let reported;

  const observe = (type, use) => {
    try {
      new PerformanceObserver((list) => list.getEntries().map(use)).observe({
        type,
        buffered: true,
        durationThreshold: 16,
      });
    } catch {}
  };
  const [loading] = performance.getEntriesByType("navigation");
  const paint = (key, startTime) => {
    // The time of a prerendered page starts when the page is activated.
    const ms = startTime - (loading?.activationStart || 0);
    if (startTime < hiddenAt) vitals[key] = Math.max(0, Math.round(ms));
  };
  const watch = () => {
    paint("ttfb", loading?.responseStart);
    observe("paint", ({ name, startTime }) => /-c/.test(name) && paint("fcp", startTime));
    observe("largest-contentful-paint", ({ startTime }) => paint("lcp", startTime));
    observe("layout-shift", ({ hadRecentInput, startTime, value }) => {
      if (hadRecentInput) return;
      if (startTime - shiftAt > 1e3 || startTime - burstAt > 5e3) {
        burst = 0;
        burstAt = startTime;
      }
      shiftAt = startTime;
      burst += value;
      vitals.cls = Math.max(vitals.cls || 0, burst);
    });
    observe("event", ({ interactionId, duration }) => {
      if (interactionId)
        durations[interactionId] = Math.max(durations[interactionId] || 0, duration);
    });
  };
  const report = () => {
    // For every 50 interactions, the slowest one is ignored.
    const sorted = Object.values(durations).sort((a, b) => b - a);
    const rank = Math.floor((performance.interactionCount || 0) / 50);
    vitals.inp = sorted[Math.min(rank, sorted.length - 1)];
    const text = JSON.stringify(vitals);
    if (text != reported) add("vitals", { view, ...vitals });
    reported = text;
  };

  // ---- Start ----

  const start = () => {
    for (const name of ["pushState", "replaceState"]) {
      const original = history[name];
      history[name] = (...given) => {
        original.apply(history, given);
        look();
      };
    }
    addEventListener("popstate", look);
    addEventListener("scroll", measure);
    addEventListener("click", click, true);
    addEventListener("auxclick", click, true);
    addEventListener("error", (event) =>
      fail(event.message, clean(`${event.filename}:${event.lineno}`)));
    addEventListener("unhandledrejection", ({ reason }) => fail(reason?.message || reason));
    addEventListener("online", () => flush((failures = 0)));
    addEventListener("visibilitychange", () => {
      beat();
      if (!document.hidden) return;
      hiddenAt = Math.min(hiddenAt, performance.now());
      report();
      flush();
    });
    addEventListener("pagehide", () => {
      beat();
      report();
      sendLast();
    });
    addEventListener("pageshow", ({ persisted }) => persisted && look((url = undefined)));
    setInterval(beat, 15e3);
    look();
    // Run this in a separate task, so that each task is short.
    setTimeout(watch);
  };
  if (document.prerendering) document.addEventListener("prerenderingchange", start);
  else start();

  window.barnabas = {
    track: (name, properties) => add(name, properties),
    consent: (isGiven) => {
      const isNew = isGiven && !isAllowed;
      isAllowed = isGiven;
      write(local, "barnabas.consent", +isGiven);
      if (isNew) look((url = undefined));
      if (!isGiven) {
        queued().map(remove);
        remove("barnabas.visitor");
        tab?.removeItem("barnabas.session");
      }
    },
  };
})();
