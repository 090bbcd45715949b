// A decision as its causal tree: the plain sentence first, then each event under the one that led to it.

import { duration, element } from "./dom.js";

const ROOT = "forged_id.";
const SHORT = 60;
const FEW = 5;

/** Return a decision as elements; `at` is the point of the log behind which nothing has happened, 0 its end. */
export function explained(told, at) {
  const way = new Set(told.critical_path);
  const roots = told.roots.map((root) => until(root, at)).filter(Boolean);
  const over = !at || told.critical_path.length === 0 || Math.max(...told.critical_path) <= at;
  const every = element("button", { type: "button", "data-key": "every", "aria-pressed": "false" }, "Show every number");
  const tree = element("ul", { class: "tree" }, roots.map((root) => branch(root, way)));
  every.addEventListener("click", () => {
    const open = every.getAttribute("aria-pressed") !== "true";
    every.setAttribute("aria-pressed", String(open));
    every.textContent = open ? "Hide the numbers" : "Show every number";
    for (const each of tree.querySelectorAll("details.fields")) each.open = open;
  });
  return [
    element("p", { class: "sentence" }, over ? told.sentence : "Open at this point: it ended later."),
    element("dl", { class: "facts" },
      fact("Exchange", told.exchange), fact("Agent", told.agent), fact("Session", told.session),
      over && told.total_ms ? fact("Took in all", duration(told.total_ms)) : null,
      over && told.unreached.length ? fact("Never reached", told.unreached.join(", ")) : null,
      Object.entries(told.absent).map(([owner, why]) => fact(`${owner} was not asked`, why)),
      told.missing.length ? fact("Lost of the log", told.missing.map(([first, last]) => `${first} to ${last}`).join(", ")) : null,
      told.unreadable.length ? fact("Not readable", told.unreadable.join(", ")) : null),
    every,
    tree,
  ];
}

function until(node, at) {
  if (at && node.seq > at) return null;
  return { ...node, led_to: node.led_to.map((each) => until(each, at)).filter(Boolean) };
}

function fact(name, value) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, value));
}

function branch(node, way) {
  const late = node.budget_us !== null && node.decided_us !== null && node.decided_us > node.budget_us;
  const fields = Object.entries(node.body).filter(([name]) => name !== "topic");
  return element("li", { "data-way": way.has(node.seq) },
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
      node.led_to.length ? element("ul", {}, node.led_to.map((each) => branch(each, way))) : null));
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
