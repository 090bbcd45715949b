// The page: one point of the log, and everything that is shown of it. Events from the gateway ring; what is shown is
// then asked for anew, so that live and past are one and the same code, and a flood of events costs a few questions.

import { Again } from "./again.js";
import { Away, Locked, ask, follow, key } from "./api.js";
import { element, moment, replace } from "./dom.js";
import { Exchanges } from "./exchanges.js";
import { showOverview } from "./overview.js";
import { Reset } from "./reset.js";
import { explained } from "./why.js";

const RUNG_MS = 200; // between two looks at what has changed
const LOOK_MS = 5_000; // a look without a ring: alerts go quiet, stages come and go
const AGAIN_MS = 3_000; // after a look that failed
const PAGE = 100;
const MOST = 500;

const at = (name) => document.getElementById(name);
const slider = at("slider");
const sequence = at("sequence");
const filters = at("filters");

const state = { point: 0, head: 0, rung: 0, limit: PAGE, opened: "", told: null, toldAt: -1, asked: true };
const exchanges = new Exchanges((exchange) => open(exchange));
const again = new Again();
const reset = new Reset(() => look());
let following = null;
let waiting = 0;
let due = Infinity;
let looking = null;

// Looks. There is one at a time; a new point cuts off the one under way.

function look(afterMs = 0) {
  const when = performance.now() + afterMs;
  if (when >= due) return;
  due = when;
  clearTimeout(waiting);
  waiting = setTimeout(take, afterMs);
}

function lookNow() {
  state.asked = true;
  looking?.abort();
  looking = null;
  look();
}

async function take() {
  due = Infinity;
  if (looking) return look(RUNG_MS);
  const cut = new AbortController();
  looking = cut;
  const point = state.point;
  try {
    const [page, seen] = await Promise.all([
      ask("/api/exchanges", { ...wanted(), at: point, limit: state.limit }, cut.signal),
      ask("/api/overview", { at: point }, cut.signal),
    ]);
    if (cut.signal.aborted) return;
    // In one frame: where no graphics card paints, each frame that changes something costs more than all the making.
    requestAnimationFrame(() => show(page, seen, point));
    loaded = true;
    works("looks");
    looking = null;
    if (!point) look(page.head < state.rung ? RUNG_MS : LOOK_MS);
  } catch (wrong) {
    if (cut.signal.aborted) return;
    looking = null;
    failed("looks", wrong);
    if (!(wrong instanceof Locked)) look(AGAIN_MS);
  }
}

function wanted() {
  return Object.fromEntries([...new FormData(filters)].map(([name, value]) => [name, value.trim()]));
}

function show(page, seen, point) {
  if (point !== state.point) return;
  const { recorded } = seen;
  state.head = Math.max(recorded.head, state.head);
  const filtered = Object.values(wanted()).some(Boolean);
  exchanges.show(page.exchanges, { filtered, past: point > 0, asked: state.asked });
  state.asked = false;
  exchanges.mark(state.opened);
  at("more").hidden = !page.before || state.limit >= MOST;
  showOverview(seen, page.exchanges, narrow, (breaker) => reset.open(breaker));
  showPoint(recorded);
  at("page").setAttribute("aria-busy", "false");
  refreshDecision();
}

function showPoint(recorded) {
  const last = Math.max(state.head, 1);
  slider.max = sequence.max = last;
  if (!state.point) {
    slider.value = last;
    if (document.activeElement !== sequence) sequence.value = last;
  }
  at("live").setAttribute("aria-pressed", String(!state.point));
  document.body.toggleAttribute("data-past", state.point > 0);
  const told = recorded.at ? `event ${recorded.at.toLocaleString("en")} of ${state.head.toLocaleString("en")}, ${moment(recorded.time)}` : "an empty log";
  const text = state.point ? `As it was at ${told}.` : `As it is: ${told}.`;
  if (at("point-told").textContent !== text) at("point-told").textContent = text;
  slider.setAttribute("aria-valuetext", told);
}

// The point.

function goTo(point) {
  const last = Math.max(state.head, 1);
  state.point = Math.min(Math.max(1, Math.round(point)), last);
  slider.value = sequence.value = state.point;
  at("live").setAttribute("aria-pressed", "false");
  say();
  lookNow();
}

function goLive() {
  state.point = 0;
  say();
  lookNow();
}

slider.addEventListener("input", () => goTo(Number(slider.value)));
sequence.addEventListener("change", () => (sequence.value ? goTo(Number(sequence.value)) : goLive()));
at("live").addEventListener("click", goLive);

// The list.

let typing = 0;
filters.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(lookNow, 150);
});
filters.addEventListener("reset", () => setTimeout(lookNow));
filters.addEventListener("submit", (submit) => {
  submit.preventDefault();
  lookNow();
});
at("more").addEventListener("click", () => {
  state.limit = Math.min(MOST, state.limit + PAGE);
  lookNow();
});

function narrow(session) {
  filters.reset();
  filters.elements.session.value = session;
  lookNow();
}

// A decision.

async function open(exchange) {
  state.opened = exchange;
  state.told = null;
  state.toldAt = -1;
  exchanges.mark(exchange);
  at("decision").hidden = false;
  again.about(exchange);
  replace(at("decision-told"), element("p", { class: "quiet" }, "Loading"));
  at("decision-title").focus();
  at("decision").scrollIntoView({ block: "nearest" });
  await tell(exchange);
}

async function tell(exchange) {
  let made;
  try {
    const told = await ask(`/api/exchanges/${encodeURIComponent(exchange)}/why`);
    if (state.opened !== exchange) return;
    state.told = told;
    made = explained(told, state.point);
    state.toldAt = state.point;
  } catch (wrong) {
    if (state.opened !== exchange) return;
    if (wrong instanceof Away || wrong instanceof Locked) failed("looks", wrong);
    made = element("p", { class: "bad" }, `It cannot be shown: ${wrong.message}`);
  }
  replace(at("decision-told"), made);
}

function refreshDecision() {
  if (!state.opened || !state.told) return;
  // One that had no end may have one now; another point shows another part of the tree.
  if (!state.told.critical_path.length && !state.point) tell(state.opened);
  else if (state.toldAt !== state.point) {
    replace(at("decision-told"), explained(state.told, state.point));
    state.toldAt = state.point;
  }
}

function close() {
  if (at("decision").hidden) return;
  const closed = state.opened;
  again.about("");
  state.opened = "";
  at("decision").hidden = true;
  exchanges.mark("");
  exchanges.focus(closed);
}

at("close").addEventListener("click", close);
document.addEventListener("keydown", (press) => {
  // Of an open dialog it closes that alone.
  if (press.key === "Escape" && !press.target.closest("dialog")) close();
});

// The connection, and the key.

// What is wrong with the looks and with the stream of events, each until it works again.
const trouble = { looks: null, events: null };
let loaded = false;

function works(what) {
  trouble[what] = null;
  say();
}

function failed(what, wrong) {
  if (wrong instanceof Locked) return lock(wrong);
  trouble[what] = wrong;
  say();
}

function say() {
  const wrong = trouble.looks ?? trouble.events;
  const [kind, text] = wrong instanceof Away ? ["away", "Disconnected"] : wrong ? ["wrong", "Trouble"] :
    !loaded ? ["loading", "Loading"] : state.point ? ["past", "Past"] : ["live", "Live"];
  if (at("connection").dataset.state !== kind) {
    at("connection").dataset.state = kind;
    at("connection").textContent = text;
  }
  const then = trouble.looks ? "What is shown may be old; this page tries again by itself." :
    `Events do not come; this page looks every ${LOOK_MS / 1000} seconds.`;
  const told = wrong ? `${sentence(wrong.message)} ${then}` : "";
  at("trouble").hidden = !told;
  if (at("trouble").textContent !== told) at("trouble").textContent = told;
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

function lock(wrong) {
  following?.abort();
  following = null;
  looking?.abort();
  looking = null;
  clearTimeout(waiting);
  due = Infinity;
  state.opened = "";
  again.about("");
  reset.close();
  at("decision").hidden = true;
  at("page").hidden = at("time").hidden = true;
  at("forget-key").hidden = true;
  at("trouble").hidden = true;
  at("connection").dataset.state = "locked";
  at("connection").textContent = "Locked";
  at("key-reason").textContent = key.get() ? `That key does not open it: ${sentence(wrong.message)}` : sentence(wrong.message);
  key.forget();
  at("key").hidden = false;
  at("key-field").focus();
}

at("key").addEventListener("submit", (submit) => {
  submit.preventDefault();
  key.set(at("key-field").value.trim());
  at("key-field").value = "";
  start();
});
at("forget-key").addEventListener("click", () => {
  key.forget();
  location.reload();
});

function start() {
  at("key").hidden = true;
  at("page").hidden = at("time").hidden = false;
  at("forget-key").hidden = !key.get();
  loaded = false;
  trouble.looks = trouble.events = null;
  say();
  following?.abort();
  following = new AbortController();
  follow("forged_id.response.emitted", {
    signal: following.signal,
    heard: (event) => {
      state.rung = Math.max(state.rung, Number(event.id) || 0);
      if (!state.point) look(RUNG_MS);
    },
    changed: (there, wrong) => {
      if (!there) return failed("events", wrong);
      works("events");
      look();
    },
  });
  lookNow();
}

start();
