// The panels beside the list: how the set is, or was, at the point.

import { counted, drawn, duration, element, moment, percent, replace } from "./dom.js";

const ROOT = "forged_id."; // how the name of every event begins; it is not shown
const FEW = 8; // entries of a panel that are shown unfolded
const byId = (id) => document.getElementById(id);
const quiet = (text) => element("p", { class: "quiet" }, text);
const tag = (kind, text) => element("span", { class: `tag ${kind}` }, text);

/**
 * Show how the set was. `recorded` is what the log says up to the point, `now` who serves which actor; null in the past.
 * `filterBySession` is called with a session that a person picks, `reset` with one whose breaker is to be reset, which
 * acts on the present alone.
 */
export function showOverview({ recorded, now }, exchanges, filterBySession, reset) {
  const { alerts_firing: firingCount, ended, modes: shares, modes_by_agent: agents, breakers_open: openCount } = recorded;
  const latencies = exchanges.map((each) => each.latency_ms);
  const endsData = [
    recorded.exchanges, recorded.open, recorded.ended_unread, ended, recorded.p50_ms, recorded.p99_ms, latencies];
  // What another release wrote, and this one cannot read, is in no panel: each says how much it leaves out.
  const panelWithOmissions = (place, owner, data, make) => {
    const omitted = leftOut(recorded, owner);
    panel(place, [data, omitted], () => [make(), omitted ? quiet(omitted) : null].flat());
  };
  panel("alerts-text", [recorded.alerts, firingCount, leftOut(recorded, "alert")], () => [firing(recorded)]);
  panelWithOmissions("alerts", "alert", [recorded.alerts, firingCount], () => alerts(recorded));
  panel("ends", endsData, () => ends(recorded, exchanges));
  panelWithOmissions("modes", "router", [recorded.decisions, shares, agents], () => modes(recorded));
  const breakersData = [recorded.breakers, openCount, Boolean(now)];
  panelWithOmissions("breakers", "breaker", breakersData, () => breakers(recorded, Boolean(now)));
  panelWithOmissions("regulator", "regulator", recorded.adjustments, () => adjustments(recorded.adjustments));
  panelWithOmissions("reviews", "self_review", recorded.reviews, () => reviews(recorded.reviews));
  panel("stages", [now, recorded.head], () => stages(now, recorded.head));
  // Buttons that were built anew have no listeners yet.
  for (const button of byId("breakers").querySelectorAll("button[data-session]")) {
    button.onclick = () => filterBySession(button.dataset.session);
  }
  for (const button of byId("breakers").querySelectorAll("button[data-reset]")) {
    button.onclick = () => reset(recorded.breakers.find((each) => keyOf(each) === button.dataset.reset), button);
  }
}

const shown = new Map(); // panel -> the data it was built from, as JSON

// A panel is built anew when its data has changed, and each day: times of another day are shown with their date.
function panel(place, data, make) {
  const key = JSON.stringify([data, new Date().toDateString()]);
  if (shown.get(place) === key) return;
  shown.set(place, key);
  replace(byId(place), make());
}

function leftOut({ unread = [] }, owner) {
  const count = unread.filter((each) => each.topic.startsWith(`${ROOT}${owner}.`)).reduce((sum, each) => sum + each.count, 0);
  return count ? `${counted(count, "event")} that this release cannot read ${count === 1 ? "is" : "are"} left out.` : "";
}

// The first ones as a list; the others can be unfolded, as far as the gateway names them.
function listed(key, lines, all) {
  const left = lines.length - FEW;
  return [
    element("ul", { class: "plain" }, lines.slice(0, FEW)),
    left > 0 ? element("details", { "data-key": key },
      element("summary", {}, `${all - FEW} more`),
      element("ul", { class: "plain" }, lines.slice(FEW)),
      all > lines.length ? quiet(`And ${all - lines.length} that are not named here.`) : null) : null,
  ];
}

function firing({ alerts: named, alerts_firing: all, unread }) {
  const critical = named.filter((each) => each.severity === "critical").length;
  return all ? `${counted(all, "alert")} ${all === 1 ? "fires" : "fire"}${critical ? `, ${critical} critical` : ""}.` :
    leftOut({ unread }, "alert") ? "None that can be read fires." : "None fires.";
}

function alerts({ alerts: named, alerts_firing: all }) {
  return listed("alerts", named.map((each) =>
    element("li", { "data-severity": each.severity },
      tag(each.severity, each.severity), " ",
      element("strong", {}, each.event.replace(ROOT, "")), " ",
      [each.detail, each.session && `session ${each.session}`, each.agent && !each.session && `agent ${each.agent}`]
        .filter(Boolean).join(", "),
      element("span", { class: "quiet" },
        ` since ${moment(each.since)}${each.count > 1 ? `, ${counted(each.count, "event")}` : ""}`))), all);
}

function ends(recorded, exchanges) {
  if (!recorded.exchanges) return quiet("None yet.");
  const most = Math.max(...recorded.ended.map((each) => each.count), 1);
  return [
    quiet(`Of the latest ${counted(recorded.exchanges, "exchange")}${recorded.open ? `, ${recorded.open} open` : ""}${recorded.ended_unread ? `, ${recorded.ended_unread} ended as this release cannot read` : ""}:`),
    element("ul", { class: "bars" }, recorded.ended.map((each) =>
      element("li", { "data-action": each.action },
        element("span", { class: "bar-name" }, `${each.stage} ${each.action.toLowerCase()}`),
        element("span", { class: "bar-value" }, each.count.toLocaleString("en")),
        bar(each.count / most)))),
    recorded.p50_ms === null ? null : element("p", {},
      `Latency: half within ${duration(recorded.p50_ms)}, 99 % within ${duration(recorded.p99_ms)}.`),
    curve(exchanges.filter((each) => each.latency_ms !== null).map((each) => each.latency_ms).reverse()),
  ];
}

function bar(share, low = null, high = null) {
  // A picture, so that widths are attributes: styles of elements would need a laxer policy.
  const width = (value) => (Math.min(Math.max(value, 0), 1) * 100).toFixed(2);
  return drawn("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { class: "track", width: 100, height: 8 }),
    low === null ? null : drawn("rect", { class: "band", x: width(low), width: width(high - low), height: 8 }),
    drawn("rect", { class: "fill", y: low === null ? 0 : 2, width: width(share), height: low === null ? 8 : 4 }));
}

function curve(latencies) {
  if (latencies.length < 2) return null;
  const top = Math.max(...latencies);
  const points = latencies.map((ms, index) =>
    `${((index / (latencies.length - 1)) * 100).toFixed(1)},${(38 - (ms / top) * 36).toFixed(1)}`);
  return element("figure", {},
    drawn("svg", { class: "curve", viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img",
      "aria-label": `Latency of the ${latencies.length} exchanges in the list, the oldest first; at most ${duration(top)}` },
      drawn("polyline", { points: points.join(" ") })),
    element("figcaption", { class: "quiet" }, `The list's latencies, the oldest first; up to ${duration(top)}.`));
}

function modes({ modes: shares, decisions, modes_by_agent: agents }) {
  if (!decisions) return quiet("No routing decision yet.");
  const judged = (each) => (each.share > each.high ? "above" : each.share < each.low ? "below" : "healthy");
  return [
    quiet(`Shares of the latest ${counted(decisions, "routing decision")}; the band is what is healthy.`),
    element("ul", { class: "bars" }, shares.map((each) =>
      element("li", { "data-health": judged(each) },
        element("span", { class: "bar-name" }, each.mode),
        element("span", { class: "bar-value" },
          `${percent(each.share)}, ${judged(each)} ${judged(each) === "healthy" ? "at" : ""} `.replace("  ", " "),
          `${percent(each.low)} to ${percent(each.high)}`),
        bar(each.share, each.low, each.high)))),
    agents.length > 1 ? element("details", { "data-key": "mode agents" }, element("summary", {}, "By agent"),
      element("ul", { class: "plain" }, agents.map(ofAgent))) : null,
  ];
}

function ofAgent({ agent, decisions, modes: counts }) {
  const shares = Object.entries(counts).map(([mode, count]) => `${mode} ${percent(count / decisions)}`);
  return element("li", {}, element("strong", {}, agent), ` ${shares.join(", ")}`,
    element("span", { class: "quiet" }, ` of ${counted(decisions, "decision")}`));
}

function keyOf({ agent, session }) {
  return `${agent}\n${session}`;
}

function breakers({ breakers: open, breakers_open: all, unread }, present) {
  if (!open.length) return quiet(leftOut({ unread }, "breaker") ? "None that can be read is open." : "Every session's is closed.");
  return listed("breakers", open.map((each) =>
    element("li", {},
      tag(each.state === "TERMINATED" ? "critical" : "warning", each.state.toLowerCase()), " ",
      element("button", { type: "button", class: "plain", "data-key": `session ${each.session}`,
        "data-session": each.session, title: "Show its exchanges" }, each.session),
      element("span", { class: "quiet" },
        ` trust ${each.trust}, ${counted(each.violations, "violation")}, since ${moment(each.time)} `),
      present ? element("button", { type: "button", "data-key": `reset ${keyOf(each)}`, "data-reset": keyOf(each),
        "aria-label": `Reset the breaker of ${each.session}` }, "Reset") : null)), all);
}

function adjustments(changes) {
  if (!changes.length) return quiet("No weight was moved.");
  return element("ul", { class: "plain" }, changes.map(({ figures, topic, agent, time }) =>
    element("li", {},
      tag("info", topic.replace(`${ROOT}regulator.`, "")), " ", element("strong", {}, figures.parameter), " ",
      figures.before === undefined ? `by ${figures.delta}` : `${figures.before} → ${figures.after}`,
      element("span", { class: "quiet" }, ` because of ${figures.pressure.replaceAll("_", " ")}, agent ${agent}, ${moment(time)}`))));
}

function reviews(changes) {
  if (!changes.length) return quiet("None yet: no signal has risen above its highest value so far.");
  return element("ul", { class: "plain" }, changes.map(({ figures, agent, time, seq }) =>
    element("li", {},
      element("strong", {}, figures.reasons.map((each) => each.replaceAll("_", " ")).join(", ")),
      element("span", { class: "quiet" }, ` agent ${agent}, tick ${figures.tick}, ${moment(time)}`),
      element("details", { "data-key": `review ${seq}` },
        element("summary", {}, "Signals"),
        element("dl", {}, Object.entries(figures.metrics).map(([name, value]) =>
          element("div", {}, element("dt", {}, name.replaceAll("_", " ")), element("dd", {}, String(value)))))))));
}

// `lack` is why a stage is not served; `needed`, whether every set needs it. `ledgerHead` is the last event in the ledger.
function stages(now, ledgerHead) {
  if (!now) return quiet("Who serves what is known of the present alone: go back to live.");
  const lackTexts = { no_owner: "nobody serves it", stalled: "stalled: what waits does not move", recovering: "reads its past" };
  const behind = Math.max(0, now.head - ledgerHead);
  const unserved = now.stages.filter((each) => each.lack);
  const late = now.stages.filter((each) => each.waiting);
  const line = (each) => element("li", {},
    tag(each.lack ? (each.needed ? "critical" : "warning") : "good", each.lack ? lackTexts[each.lack] : "serves"), " ",
    element("strong", {}, each.stage),
    element("span", { class: "quiet" }, each.partitions > 1 ? ` ${each.served} of ${each.partitions} partitions` : "",
      each.waiting ? `, ${counted(each.waiting, "message")} behind` : "",
      each.slow ? `, ${counted(each.slow, "decision")} over budget, up to ${duration(each.worst_ms)}` : ""));
  return [
    element("p", {}, unserved.length ? `${counted(unserved.length, "stage")} of ${now.stages.length} not served.` :
      `All ${now.stages.length} are served.`,
      late.length ? ` Behind: ${late.map((each) => `${each.stage} by ${counted(each.waiting, "message")}`).join(", ")}.` :
        " None is behind.",
      behind ? ` The ledger is ${counted(behind, "event")} behind the log.` : " The ledger is up to the log's end."),
    unserved.length ? element("ul", { class: "plain" }, unserved.map(line)) : null,
    element("details", { "data-key": "stages" }, element("summary", {}, "Each of them"),
      element("ul", { class: "plain" }, now.stages.filter((each) => !each.lack).map(line))),
  ];
}
