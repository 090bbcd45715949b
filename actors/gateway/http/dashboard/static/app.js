// The page: one point of the log, and everything that is shown of it. An event from the gateway only says that
// something is new: what is shown is then asked for anew, so that live and past are one and the same code, and a flood
// of events costs a few requests.

import { Again } from "./again.js";
import { KeyNeeded, Refused, Unreachable, follow, getJson, key, notReady } from "./api.js";
import { element, moment, replace } from "./dom.js";
import { Exchanges } from "./exchanges.js";
import { showOverview } from "./overview.js";
import { Reset } from "./reset.js";
import { explained } from "./why.js";

const AFTER_EVENT_MS = 200; // from an event to the refresh that shows it
const REFRESH_MS = 5_000; // between refreshes without an event: alerts go quiet, stages come and go
const RETRY_MS = 3_000; // after a refresh that failed
const PAGE = 100; // rows of the list at first, and more with each "Show more"
const MOST = 500; // rows of the list at most

const byId = (id) => document.getElementById(id);
const slider = byId("slider");
const sequence = byId("sequence");
const filters = byId("filters");

// point: the event of the log whose moment is shown, 0 the latest; head: the last event known; lastEvent: the last one
// that the stream of events announced; limit: rows of the list; opened: the exchange whose decision is shown; decision:
// what was recorded of it; shownAt: the point that it is shown for; byUser: a person asked for the next refresh.
const state = { point: 0, head: 0, lastEvent: 0, limit: PAGE, opened: "", decision: null, shownAt: -1, byUser: true };
const exchanges = new Exchanges((exchange) => openDecision(exchange));
const again = new Again();
const reset = new Reset(() => refresh());
let following = null; // the AbortController of the stream of events
let waiting = 0; // the timer of the next refresh
let due = Infinity; // when that is, in milliseconds of performance.now()
let refreshing = null; // the AbortController of the refresh under way

// A refresh asks for all that is shown, and shows it. There is one at a time; a new point cuts off the one under way.

function refresh(afterMs = 0) {
  const when = performance.now() + afterMs;
  if (when >= due) return;
  due = when;
  clearTimeout(waiting);
  waiting = setTimeout(load, afterMs);
}

function refreshNow() {
  state.byUser = true;
  refreshing?.abort();
  refreshing = null;
  refresh();
}

async function load() {
  due = Infinity;
  if (refreshing) return refresh(AFTER_EVENT_MS);
  const aborting = new AbortController();
  refreshing = aborting;
  const point = state.point;
  try {
    const [page, seen] = await Promise.all([
      getJson("/api/exchanges", { ...filterValues(), at: point, limit: state.limit }, aborting.signal),
      getJson("/api/overview", { at: point }, aborting.signal),
    ]);
    if (aborting.signal.aborted) return;
    // In one frame: without a graphics card, painting a frame costs more than building all elements.
    requestAnimationFrame(() => show(page, seen, point));
    loaded = true;
    works("refresh");
    refreshing = null;
    if (!point) {
      refresh(page.head < state.lastEvent ? AFTER_EVENT_MS : REFRESH_MS);
      lookAtReadiness();
    }
  } catch (wrong) {
    if (aborting.signal.aborted) return;
    refreshing = null;
    failed("refresh", wrong);
    if (!(wrong instanceof KeyNeeded)) refresh(RETRY_MS);
  }
}

function filterValues() {
  return Object.fromEntries([...new FormData(filters)].map(([name, value]) => [name, value.trim()]));
}

function show(page, seen, point) {
  if (point !== state.point) return;
  const { recorded } = seen;
  // A log that lost its end has fewer events than before: what was announced beyond it will never come.
  if (recorded.head < state.head) state.lastEvent = Math.min(state.lastEvent, recorded.head);
  state.head = recorded.head;
  const filtered = Object.values(filterValues()).some(Boolean);
  exchanges.show(page.exchanges, { filtered, past: point > 0, older: page.before > 0, byUser: state.byUser });
  state.byUser = false;
  exchanges.mark(state.opened);
  byId("more").hidden = !page.before || state.limit >= MOST;
  showOverview(seen, page.exchanges, filterBySession, (breaker) => reset.open(breaker));
  showPoint(recorded);
  byId("page").setAttribute("aria-busy", "false");
  refreshDecision();
}

function showPoint(recorded) {
  const last = Math.max(state.head, 1);
  slider.max = sequence.max = last;
  if (!state.point) {
    slider.value = last;
    if (document.activeElement !== sequence) sequence.value = last;
  }
  byId("live").setAttribute("aria-pressed", String(!state.point));
  document.body.toggleAttribute("data-past", state.point > 0);
  const pointText = recorded.at ? `event ${recorded.at.toLocaleString("en")} of ${state.head.toLocaleString("en")}, ${moment(recorded.time)}` : "an empty log";
  const text = state.point ? `As it was at ${pointText}.` : `As it is: ${pointText}.`;
  if (byId("point-text").textContent !== text) byId("point-text").textContent = text;
  slider.setAttribute("aria-valuetext", pointText);
}

// The point.

function goTo(point) {
  const last = Math.max(state.head, 1);
  state.point = Math.min(Math.max(1, Math.round(point)), last);
  slider.value = sequence.value = state.point;
  byId("live").setAttribute("aria-pressed", "false");
  showConnection();
  refreshNow();
}

function goLive() {
  state.point = 0;
  showConnection();
  refreshNow();
}

slider.addEventListener("input", () => goTo(Number(slider.value)));
sequence.addEventListener("change", () => (sequence.value ? goTo(Number(sequence.value)) : goLive()));
byId("live").addEventListener("click", goLive);

// The list.

let typing = 0;
filters.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(refreshNow, 150);
});
filters.addEventListener("reset", () => setTimeout(refreshNow));
filters.addEventListener("submit", (submit) => {
  submit.preventDefault();
  refreshNow();
});
byId("more").addEventListener("click", () => {
  state.limit = Math.min(MOST, state.limit + PAGE);
  refreshNow();
});

function filterBySession(session) {
  filters.reset();
  filters.elements.session.value = session;
  refreshNow();
}

// A decision.

async function openDecision(exchange) {
  state.opened = exchange;
  state.decision = null;
  state.shownAt = -1;
  exchanges.mark(exchange);
  byId("decision").hidden = false;
  again.about(exchange);
  replace(byId("decision-text"), element("p", { class: "quiet" }, "Loading"));
  byId("decision-title").focus();
  byId("decision").scrollIntoView({ block: "nearest" });
  await loadDecision(exchange);
}

async function loadDecision(exchange) {
  let made;
  try {
    const decision = await getJson(`/api/exchanges/${encodeURIComponent(exchange)}/why`);
    if (state.opened !== exchange) return;
    state.decision = decision;
    made = explained(decision, state.point);
    state.shownAt = state.point;
  } catch (wrong) {
    if (state.opened !== exchange) return;
    if (wrong instanceof Unreachable || wrong instanceof KeyNeeded) failed("refresh", wrong);
    made = element("p", { class: "bad" }, `It cannot be shown: ${wrong.message}`);
  }
  replace(byId("decision-text"), made);
}

function refreshDecision() {
  if (!state.opened || !state.decision) return;
  // A decision that had no end may have one now; another point shows another part of the tree.
  if (!state.decision.critical_path.length && !state.point) loadDecision(state.opened);
  else if (state.shownAt !== state.point) {
    replace(byId("decision-text"), explained(state.decision, state.point));
    state.shownAt = state.point;
  }
}

function closeDecision() {
  if (byId("decision").hidden) return;
  const closed = state.opened;
  again.about("");
  state.opened = "";
  byId("decision").hidden = true;
  exchanges.mark("");
  exchanges.focus(closed);
}

byId("close").addEventListener("click", closeDecision);
document.addEventListener("keydown", (press) => {
  // If a dialog is open, Escape closes only the dialog.
  if (press.key === "Escape" && !press.target.closest("dialog")) closeDecision();
});

// The connection, and the key.

// What is wrong with refreshing, with the stream of events and with the set itself, each until it works again.
const trouble = { refresh: null, events: null, ready: null };
let loaded = false;
let lookedAt = -Infinity; // when readiness was last asked for, in milliseconds of performance.now()

// The recorded exchanges can be shown although new ones are not served: only the readiness checks tell.
async function lookAtReadiness() {
  if (performance.now() - lookedAt < REFRESH_MS / 2) return;
  lookedAt = performance.now();
  const failing = await notReady();
  if (byId("page").hidden) return;
  trouble.ready = failing ? new Error(`The set is not ready: ${failing}`) : null;
  showConnection();
}

function works(what) {
  trouble[what] = null;
  showConnection();
}

function failed(what, wrong) {
  if (wrong instanceof KeyNeeded) return lock(wrong);
  trouble[what] = wrong;
  showConnection();
}

function showConnection() {
  const wrong = trouble.refresh ?? trouble.events ?? (state.point ? null : trouble.ready);
  const [kind, text] = wrong instanceof Unreachable ? ["away", "Disconnected"] : wrong ? ["wrong", "Trouble"] :
    !loaded ? ["loading", "Loading"] : state.point ? ["past", "Past"] : ["live", "Live"];
  if (byId("connection").dataset.state !== kind) {
    byId("connection").dataset.state = kind;
    byId("connection").textContent = text;
  }
  const then = trouble.refresh ? "What is shown may be old; this page tries again by itself." :
    trouble.events ? `Events do not come; this page looks every ${REFRESH_MS / 1000} seconds.` :
    "What is shown is what was recorded.";
  const message = wrong ? `${sentence(wrong.message)} ${then}` : "";
  byId("trouble").hidden = !message;
  if (byId("trouble").textContent !== message) byId("trouble").textContent = message;
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

function lock(wrong) {
  following?.abort();
  following = null;
  refreshing?.abort();
  refreshing = null;
  clearTimeout(waiting);
  due = Infinity;
  state.opened = "";
  again.about("");
  reset.close();
  byId("decision").hidden = true;
  byId("page").hidden = byId("time").hidden = true;
  byId("forget-key").hidden = true;
  byId("trouble").hidden = true;
  byId("connection").dataset.state = "locked";
  byId("connection").textContent = "Locked";
  byId("key-reason").textContent = key.get() ? `That key does not open it: ${sentence(wrong.message)}` : sentence(wrong.message);
  key.forget();
  byId("key").hidden = false;
  byId("key-field").focus();
}

byId("key").addEventListener("submit", (submit) => {
  submit.preventDefault();
  key.set(byId("key-field").value.trim());
  byId("key-field").value = "";
  start();
});
byId("forget-key").addEventListener("click", () => {
  key.forget();
  location.reload();
});

function start() {
  byId("key").hidden = true;
  byId("page").hidden = byId("time").hidden = false;
  byId("forget-key").hidden = !key.get();
  loaded = false;
  trouble.refresh = trouble.events = trouble.ready = null;
  showConnection();
  following?.abort();
  following = new AbortController();
  follow("forged_id.response.emitted", {
    signal: following.signal,
    onEvent: (event) => {
      state.lastEvent = Math.max(state.lastEvent, Number(event.id) || 0);
      if (!state.point) refresh(AFTER_EVENT_MS);
    },
    onConnection: (there, wrong) => {
      if (!there) {
        // A log that was restored may be shorter: it would never reach the sequences of the log before.
        if (wrong instanceof Refused) state.lastEvent = state.head = 0;
        return failed("events", wrong);
      }
      works("events");
      refresh();
    },
  });
  refreshNow();
}

start();
