// A decision as its causal tree: the plain sentence first, then each event under the one that led to it.

import { duration, element } from "./dom.js";

const ROOT = "forged_id."; // how the name of every event begins; it is not shown
const SHORT = 60; // characters of a text in the line that sums an event up
const FEW = 5; // fields in that line

/** Return a decision as elements; `point` is the sequence up to which its events are shown, 0 for all of them. */
export function explained(decision, point) {
  const criticalPath = new Set(decision.critical_path);
  const roots = decision.roots.map((root) => until(root, point)).filter(Boolean);
  const hasEnded = !point || decision.critical_path.length === 0 || Math.max(...decision.critical_path) <= point;
  const every = element("button", { type: "button", "data-key": "every", "aria-pressed": "false" }, "Show every number");
  const tree = element("ul", { class: "tree" }, roots.map((root) => branch(root, criticalPath)));
  every.addEventListener("click", () => {
    const unfold = every.getAttribute("aria-pressed") !== "true";
    every.setAttribute("aria-pressed", String(unfold));
    every.textContent = unfold ? "Hide the numbers" : "Show every number";
    for (const each of tree.querySelectorAll("details.fields")) each.open = unfold;
  });
  return [
    element("p", { class: "sentence" }, hasEnded ? decision.sentence : "Open at this point: it ended later."),
    element("dl", { class: "facts" },
      fact("Exchange", decision.exchange), fact("Agent", decision.agent), fact("Session", decision.session),
      hasEnded && decision.total_ms ? fact("Took in all", duration(decision.total_ms)) : null,
      hasEnded && decision.unreached.length ? fact("Never reached", decision.unreached.join(", ")) : null,
      Object.entries(decision.absent).map(([owner, why]) => fact(`${owner} was not asked`, why)),
      decision.missing.length ? fact("Lost of the log", decision.missing.map(([first, last]) => `${first} to ${last}`).join(", ")) : null,
      decision.unreadable.length ? fact("Not readable", decision.unreadable.join(", ")) : null),
    every,
    tree,
  ];
}

function until(node, point) {
  if (point && node.seq > point) return null;
  return { ...node, led_to: node.led_to.map((each) => until(each, point)).filter(Boolean) };
}

function fact(name, value) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, value));
}

function branch(node, criticalPath) {
  const late = node.budget_us !== null && node.decided_us !== null && node.decided_us > node.budget_us;
  const fields = Object.entries(node.body).filter(([name]) => name !== "topic");
  return element("li", { "data-critical-path": criticalPath.has(node.seq) },
    element("details", { open: true },
      element("summary", {},
        element("strong", {}, node.topic.replace(ROOT, "")), " ",
        element("span", { class: "quiet" }, `+${duration(node.since_start_ms) || "0 ms"}`),
        late ? element("span", { class: "warn" }, " over its budget") : null),
      element("p", { class: "brief" }, brief(fields)),
      element("details", { class: "fields" },
        element("summary", {}, `All of event ${node.seq}`),
        element("dl", {},
          field("decided by", node.by),
          field("build", node.build),
          field("decided in", node.decided_us === null ? "not measured" : duration(node.decided_us / 1000)),
          node.budget_us === null ? null : field("budget", duration(node.budget_us / 1000)),
          field("after its cause", duration(node.since_cause_ms) || "0 ms"),
          fields.map(([name, value]) => field(name, value)))),
      node.led_to.length ? element("ul", {}, node.led_to.map((each) => branch(each, criticalPath))) : null));
}

function brief(fields) {
  const plain = fields.filter(([, value]) => typeof value === "number" || (typeof value === "string" && value));
  const some = plain.slice(0, FEW).map(([name, value]) => {
    const text = String(value);
    return `${name} ${text.length > SHORT ? `${text.slice(0, SHORT - 1)}…` : text}`;
  });
  return some.join(" · ");
}

function field(name, value) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, shown(value)));
}

function shown(value) {
  if (value === null) return "none";
  if (typeof value !== "object") return value === "" ? "empty" : String(value);
  const parts = Array.isArray(value) ? value.map((each, index) => [String(index + 1), each]) : Object.entries(value);
  if (!parts.length) return "none";
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.join(", ");
  return element("dl", {}, parts.map(([name, inner]) => field(name, inner)));
}
