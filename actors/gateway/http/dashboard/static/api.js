// Asking the gateway: its answers as JSON, and its events as they come. The key goes into a header, never an address.

const KEY = "neuraxis-operator-key"; // the name under which the session storage of the browser keeps the key
const QUIET_MS = 40_000; // the gateway says something every 15 seconds: without it the connection is dead
const RETRY_MS = [500, 1_000, 2_000, 4_000]; // pauses between attempts to follow the events; the last one is repeated

/** The gateway cannot be reached. */
export class Unreachable extends Error {}

/** A key is needed, or another one. */
export class KeyNeeded extends Error {}

/** The gateway refused, and said why. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

async function request(path, { headers = {}, signal, method = "GET", body } = {}) {
  const given = key.get();
  let answer;
  try {
    answer = await fetch(path, {
      method,
      body,
      headers: given ? { ...headers, Authorization: `Bearer ${given}` } : headers,
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (wrong) {
    if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw wrong;
    throw new Unreachable("The gateway does not answer");
  }
  if (answer.ok) return answer;
  const message = await answer.json().then((body) => String(body.message), () => answer.statusText);
  // A key that may read need not be one that may change things: it is kept when only a change is refused.
  if (answer.status === 401 || (answer.status === 403 && method === "GET")) throw new KeyNeeded(message);
  throw new Refused(answer.status, message);
}

/** Return the JSON at a path; parameters that are empty are left out. */
export async function getJson(path, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== 0 && value !== null);
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const answer = await request(query ? `${path}?${query}` : path, { signal });
  try {
    return await answer.json();
  } catch (wrong) {
    if (signal?.aborted) throw wrong;
    throw new Unreachable("The gateway's answer ended in the middle");
  }
}

/** Return which readiness checks fail, in words; empty if none does, or if that cannot be found out. */
export async function notReady() {
  try {
    const answer = await fetch("/readyz", { cache: "no-store", credentials: "omit", redirect: "error" });
    if (answer.ok) return "";
    const failing = Object.entries((await answer.json()).checks).filter(([, found]) => !["ok", "n/a"].includes(found));
    return failing.map(([name, found]) => `${name}: ${found}`).join("; ");
  } catch {
    return "";
  }
}

/** Send a body as JSON to a path, and return the JSON of the answer. */
export async function postJson(path, body, signal = undefined) {
  const headers = { "Content-Type": "application/json" };
  const answer = await request(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  try {
    return await answer.json();
  } catch (wrong) {
    if (signal?.aborted) throw wrong;
    throw new Unreachable("The gateway's answer ended in the middle");
  }
}

/** Return a function that parses server-sent events from pieces of text; `onEvent` is called with each event. */
export function eventParser(onEvent) {
  let rest = "";
  let event = { id: "", name: "", data: [] };
  return (piece) => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (!line) {
        if (event.data.length) onEvent({ id: event.id, name: event.name, data: event.data.join("\n") });
        event = { id: event.id, name: "", data: [] };
        continue;
      }
      const [, name, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (name === "id") event.id = value ?? "";
      else if (name === "event") event.name = value ?? "";
      else if (name === "data") event.data.push(value ?? "");
    }
  };
}

/**
 * Follow the events of a subject until `signal` aborts. A connection that ends is made anew, from the last event on.
 * `onEvent` is called with each event, `onConnection` with whether the connection is there, and the error if not.
 */
export async function follow(topic, { onEvent, onConnection, signal }) {
  let last = "";
  let failures = 0;
  while (!signal.aborted) {
    try {
      const timeout = new AbortController();
      const quiet = { timer: 0 };
      const alive = () => {
        clearTimeout(quiet.timer);
        quiet.timer = setTimeout(() => timeout.abort(new DOMException("quiet", "TimeoutError")), QUIET_MS);
      };
      alive();
      try {
        const headers = last ? { "Last-Event-ID": last } : {};
        const both = AbortSignal.any([signal, timeout.signal]);
        const answer = await request(`/api/events?topic=${encodeURIComponent(topic)}`, { headers, signal: both });
        onConnection(true);
        failures = 0;
        const take = eventParser((event) => {
          last = event.id || last;
          onEvent(event);
        });
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          alive();
          take(value);
        }
      } finally {
        clearTimeout(quiet.timer);
      }
      throw new Unreachable("The stream of events broke off");
    } catch (wrong) {
      if (signal.aborted) return;
      // For a connection that breaks while it is read, browsers throw errors of their own.
      onConnection(false, wrong instanceof KeyNeeded || wrong instanceof Refused ? wrong : new Unreachable("The stream of events broke off"));
      if (wrong instanceof KeyNeeded) return;
      if (wrong instanceof Refused) last = ""; // the log was replaced: it does not hold the last event
    }
    const wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
    failures += 1;
    await new Promise((done) => {
      setTimeout(done, wait);
      signal.addEventListener("abort", done, { once: true });
    });
  }
}
