// Deciding the opened exchange again with other settings: what is tried, and what comes of it, before and after.

import { ask, tell } from "./api.js";
import { element, replace } from "./dom.js";

const ROOT = "forged_id.";
const FEW = 12;
const at = (name) => document.getElementById(name);
const SAYS = {
  changed: "It ends otherwise.",
  reworded: "It ends the same, in other words.",
  same: "It ends the same.",
  open: "It has no end on record, so that there is nothing to compare.",
  held: "It cannot be told how it would end.",
};

/** The form below a decision. */
export class Again {
  #form = at("what-if");
  #exchange = "";
  #asking = null;
  #known = null;
  #chosen = new Map();

  constructor() {
    at("again").addEventListener("toggle", () => at("again").open && this.#learn());
    this.#form.elements.setting.addEventListener("input", () => this.#describe());
    at("add-setting").addEventListener("click", () => {
      if (this.#form.reportValidity()) this.#choose();
    });
    at("stop-again").addEventListener("click", () => this.#asking?.abort());
    this.#form.addEventListener("submit", (submit) => {
      submit.preventDefault();
      this.#choose();
      this.#decide();
    });
  }

  /** Be about another exchange; what is under way of the one before is ended. */
  about(exchange) {
    if (exchange === this.#exchange) return;
    this.#asking?.abort();
    this.#asking = null;
    at("stop-again").hidden = true;
    this.#exchange = exchange;
    this.#say("");
    replace(at("again-told"), []);
  }

  #say(text, wrong = false) {
    at("again-said").textContent = text;
    at("again-said").className = wrong ? "bad" : "sentence";
  }

  async #learn() {
    if (this.#known) return;
    try {
      this.#known = new Map((await ask("/api/settings")).map((each) => [each.key, each]));
    } catch (wrong) {
      at("setting-told").textContent = `The known settings cannot be listed: ${wrong.message}.`;
      return;
    }
    at("settings").replaceChildren(...[...this.#known.keys()].map((key) => element("option", { value: key })));
    this.#describe();
  }

  #describe() {
    const known = this.#known?.get(this.#form.elements.setting.value.trim());
    at("setting-told").textContent = !known ? "" :
      `Takes ${known.takes}${known.default === null ? "" : `; ${JSON.stringify(known.default)} unless set`}.`;
  }

  #choose() {
    const { setting, value } = this.#form.elements;
    this.#chosen.set(setting.value.trim(), value.value.trim());
    setting.value = value.value = "";
    setting.required = value.required = false;
    this.#describe();
    this.#list();
    setting.focus();
  }

  #list() {
    this.#chosen.delete("");
    const { setting, value } = this.#form.elements;
    setting.required = value.required = this.#chosen.size === 0;
    at("chosen").replaceChildren(...[...this.#chosen].map(([key, text]) => {
      const button = element("button", { type: "button", "aria-label": `Leave out ${key}` }, "Leave out");
      button.addEventListener("click", () => {
        this.#chosen.delete(key);
        this.#list();
        setting.focus();
      });
      return element("li", {}, element("strong", {}, key), ` = ${text} `, button);
    }));
  }

  async #decide() {
    this.#asking?.abort();
    const asking = new AbortController();
    this.#asking = asking;
    at("stop-again").hidden = false;
    this.#say("Deciding again");
    replace(at("again-told"), []);
    let told = null;
    let wrong = null;
    try {
      told = await tell("/api/what-if", { exchange: this.#exchange, settings: Object.fromEntries(this.#chosen) }, asking.signal);
    } catch (failure) {
      wrong = failure;
    }
    if (this.#asking !== asking) return;
    at("stop-again").hidden = true;
    if (asking.signal.aborted) this.#say("Stopped.");
    else if (wrong) this.#say(`It was not decided again: ${wrong.message}.`, true);
    else {
      this.#say(SAYS[told.fate] ?? told.fate);
      replace(at("again-told"), compared(told));
    }
  }
}

function compared({ before, after, decisions, changed, compared: all, notes }) {
  return [
    element("dl", {}, differing("End", ending(before), ending(after))),
    ...notes.map((each) => element("p", { class: "warn" }, each)),
    decisions.length ? null : element("p", {}, "No decision of it is otherwise."),
    ...decisions.map(decision),
    element("p", { class: "quiet" }, `Of ${all.toLocaleString("en")} exchanges up to this one, ${changed.toLocaleString("en")} end otherwise.`),
  ];
}

function ending({ stage, action, reason, mode, how }) {
  return how ? how.replaceAll("_", " ") : [stage, action.toLowerCase(), reason, mode !== reason && mode].filter(Boolean).join(", ");
}

function decision({ seq, topic, fields, there_before: before, there_after: after }) {
  const lines = Object.entries(fields).map(([name, [was, now]]) => differing(name, text(was), text(now)));
  return element("section", { "aria-label": topic.replace(ROOT, "") },
    element("h3", {}, topic.replace(ROOT, ""), element("span", { class: "quiet" }, ` event ${seq}`)),
    before ? null : element("p", {}, element("ins", {}, "It comes only under these settings.")),
    after ? null : element("p", {}, element("del", {}, "It does not come under these settings.")),
    element("dl", {}, lines.slice(0, FEW)),
    lines.length > FEW ? element("details", {}, element("summary", {}, `${lines.length - FEW} more`),
      element("dl", {}, lines.slice(FEW))) : null);
}

function differing(name, was, now) {
  return element("div", {}, element("dt", {}, name),
    element("dd", {}, was === now ? was : [element("del", {}, was), " → ", element("ins", {}, now)]));
}

function text(value) {
  return typeof value === "string" ? value || "empty" : value === null || value === undefined ? "none" : JSON.stringify(value);
}
