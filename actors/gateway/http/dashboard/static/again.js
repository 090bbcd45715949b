// Deciding the opened exchange again with other settings: what is tried, and what comes of it, before and after.

import { getJson, postJson } from "./api.js";
import { element, replace } from "./dom.js";

const ROOT = "forged_id."; // how the name of every event begins; it is not shown
const FEW = 12; // fields of a decision that are shown unfolded
const byId = (id) => document.getElementById(id);
// What comes of an exchange under other settings, as the gateway names it -> the sentence that says so.
const FATES = {
  changed: "It ends otherwise.",
  reworded: "It ends the same, in other words.",
  same: "It ends the same.",
  open: "It has no end on record, so that there is nothing to compare.",
  held: "It cannot be told how it would end.",
};

/** The form below a decision that decides its exchange again. */
export class Again {
  #form = byId("what-if");
  #exchange = "";
  #aborting = null; // the AbortController of the request under way
  #known = null; // setting -> what the gateway says of it
  #chosen = new Map(); // setting -> the value to try

  constructor() {
    byId("again").addEventListener("toggle", () => byId("again").open && this.#loadSettings());
    this.#form.elements.setting.addEventListener("input", () => this.#describeSetting());
    byId("add-setting").addEventListener("click", () => {
      if (this.#form.reportValidity()) this.#addSetting();
    });
    byId("stop-again").addEventListener("click", () => this.#aborting?.abort());
    this.#form.addEventListener("submit", (submit) => {
      submit.preventDefault();
      this.#addSetting();
      this.#decide();
    });
  }

  /** Show the form for another exchange; a request about the one before is aborted. */
  about(exchange) {
    if (exchange === this.#exchange) return;
    this.#aborting?.abort();
    this.#aborting = null;
    byId("stop-again").hidden = true;
    this.#exchange = exchange;
    this.#say("");
    replace(byId("again-text"), []);
  }

  #say(text, wrong = false) {
    byId("again-status").textContent = text;
    byId("again-status").className = wrong ? "bad" : "sentence";
  }

  async #loadSettings() {
    if (this.#known) return;
    try {
      this.#known = new Map((await getJson("/api/settings")).map((each) => [each.key, each]));
    } catch (wrong) {
      byId("setting-text").textContent = `The known settings cannot be listed: ${wrong.message}.`;
      return;
    }
    byId("settings").replaceChildren(...[...this.#known.keys()].map((key) => element("option", { value: key })));
    this.#describeSetting();
  }

  #describeSetting() {
    const known = this.#known?.get(this.#form.elements.setting.value.trim());
    byId("setting-text").textContent = !known ? "" :
      `Takes ${known.takes}${known.default === null ? "" : `; ${JSON.stringify(known.default)} unless set`}.`;
  }

  #addSetting() {
    const { setting, value } = this.#form.elements;
    this.#chosen.set(setting.value.trim(), value.value.trim());
    setting.value = value.value = "";
    setting.required = value.required = false;
    this.#describeSetting();
    this.#listChosen();
    setting.focus();
  }

  #listChosen() {
    this.#chosen.delete("");
    const { setting, value } = this.#form.elements;
    setting.required = value.required = this.#chosen.size === 0;
    byId("chosen").replaceChildren(...[...this.#chosen].map(([key, text]) => {
      const button = element("button", { type: "button", "aria-label": `Leave out ${key}` }, "Leave out");
      button.addEventListener("click", () => {
        this.#chosen.delete(key);
        this.#listChosen();
        setting.focus();
      });
      return element("li", {}, element("strong", {}, key), ` = ${text} `, button);
    }));
  }

  async #decide() {
    this.#aborting?.abort();
    const aborting = new AbortController();
    this.#aborting = aborting;
    byId("stop-again").hidden = false;
    this.#say("Deciding again");
    replace(byId("again-text"), []);
    let result = null;
    let wrong = null;
    try {
      result = await postJson("/api/what-if", { exchange: this.#exchange, settings: Object.fromEntries(this.#chosen) }, aborting.signal);
    } catch (failure) {
      wrong = failure;
    }
    if (this.#aborting !== aborting) return;
    byId("stop-again").hidden = true;
    if (aborting.signal.aborted) this.#say("Stopped.");
    else if (wrong) this.#say(`It was not decided again: ${wrong.message}.`, true);
    else {
      this.#say(FATES[result.fate] ?? result.fate);
      replace(byId("again-text"), compared(result));
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
