// Asking the gateway: its answers as JSON, and its events as they come. The key goes into a header, never an address.

const KEY = "neuraxis-operator-key";
const QUIET_MS = 40_000; // the gateway says something every 15 seconds: without it the connection is dead
const WAITS_MS = [500, 1_000, 2_000, 4_000];

/** The gateway cannot be reached. */
export class Away extends Error {}

/** A key is needed, or another one. */
export class Locked extends Error {}

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

async function opened(path, { headers = {}, signal, method = "GET", body } = {}) {
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
    throw new Away("The gateway does not answer");
  }
  if (answer.ok) return answer;
  const told = await answer.json().then((body) => String(body.message), () => answer.statusText);
  // What may be looked at need not be changed: a key that opens the page stays where an act is refused.
  if (answer.status === 401 || (answer.status === 403 && method === "GET")) throw new Locked(told);
  throw new Refused(answer.status, told);
}

/** Return the JSON at a path; parameters that are empty are left out. */
export async function ask(path, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== 0 && value !== null);
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const answer = await opened(query ? `${path}?${query}` : path, { signal });
  try {
    return await answer.json();
  } catch (wrong) {
    if (signal?.aborted) throw wrong;
    throw new Away("The gateway's answer ended in the middle");
  }
}

/** Send a body as JSON to a path, and return the JSON of the answer. */
export async function tell(path, body, signal = undefined) {
  const headers = { "Content-Type": "application/json" };
  const answer = await opened(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  try {
    return await answer.json();
  } catch (wrong) {
    if (signal?.aborted) throw wrong;
    throw new Away("The gateway's answer ended in the middle");
  }
}

/** Feed server-sent events from pieces of text, as the standard has them; `tell` is called with each. */
export function parser(tell) {
  let rest = "";
  let event = { id: "", name: "", data: [] };
  return (piece) => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (!line) {
        if (event.data.length) tell({ id: event.id, name: event.name, data: event.data.join("\n") });
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
 * Follow the events of a subject until `signal` aborts, over connections that end and begin again behind the last event.
 * `heard` is called with each event, `changed` with whether the connection is there, and the error if not.
 */
export async function follow(topic, { heard, changed, signal }) {
  let last = "";
  let failures = 0;
  while (!signal.aborted) {
    try {
      const cut = new AbortController();
      const quiet = { timer: 0 };
      const alive = () => {
        clearTimeout(quiet.timer);
        quiet.timer = setTimeout(() => cut.abort(new DOMException("quiet", "TimeoutError")), QUIET_MS);
      };
      alive();
      try {
        const headers = last ? { "Last-Event-ID": last } : {};
        const both = AbortSignal.any([signal, cut.signal]);
        const answer = await opened(`/api/events?topic=${encodeURIComponent(topic)}`, { headers, signal: both });
        changed(true);
        failures = 0;
        const take = parser((event) => {
          last = event.id || last;
          heard(event);
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
      throw new Away("The stream of events broke off");
    } catch (wrong) {
      if (signal.aborted) return;
      // A connection that breaks in the middle of a reading is the browser's own error.
      changed(false, wrong instanceof Locked || wrong instanceof Refused ? wrong : new Away("The stream of events broke off"));
      if (wrong instanceof Locked) return;
      if (wrong instanceof Refused) last = ""; // the log is another one: it does not hold what came last
    }
    const wait = WAITS_MS[Math.min(failures, WAITS_MS.length - 1)];
    failures += 1;
    await new Promise((done) => {
      setTimeout(done, wait);
      signal.addEventListener("abort", done, { once: true });
    });
  }
}
