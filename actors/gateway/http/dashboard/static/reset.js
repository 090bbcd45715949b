// Resetting a breaker: asked for once more, with who orders it and why, since the log keeps both for good.

import { postJson } from "./api.js";

const byId = (id) => document.getElementById(id);

/** The dialog. `done` is called once a breaker was reset. */
export class Reset {
  #dialog = byId("reset");
  #form = byId("reset-form");
  #breaker = null; // its session, agent, state and trust
  #aborting = null; // the AbortController of the request under way
  #done;

  constructor(done) {
    this.#done = done;
    this.#form.addEventListener("submit", (submit) => {
      submit.preventDefault();
      this.#order();
    });
    byId("reset-cancel").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => this.#aborting?.abort());
  }

  /** Ask whether a breaker is to be reset. */
  open(breaker) {
    if (!breaker) return;
    this.#breaker = breaker;
    byId("reset-what").textContent = `Session ${breaker.session} of agent ${breaker.agent} is in ${breaker.state} with trust ` +
      `${breaker.trust}. It begins anew, and what it sends next is answered.`;
    this.#say("");
    this.#form.elements.why.value = "";
    this.#dialog.showModal();
  }

  /** Close it: what it is about is not shown any more. */
  close() {
    this.#dialog.close();
  }

  async #order() {
    const { by, why } = this.#form.elements;
    const { session, agent } = this.#breaker;
    this.#aborting?.abort();
    const aborting = new AbortController();
    this.#aborting = aborting;
    byId("reset-now").disabled = true;
    this.#say("");
    try {
      await postJson("/api/breaker/reset", { session, agent, by: by.value.trim(), why: why.value.trim() }, aborting.signal);
      this.#dialog.close();
      this.#done();
    } catch (wrong) {
      if (aborting.signal.aborted) return;
      this.#say(wrong.status === 403 ? `It was not reset: the key that you gave may look, and not operate (${wrong.message}).` :
        `It was not reset: ${wrong.message}.`);
    } finally {
      byId("reset-now").disabled = false;
    }
  }

  #say(text) {
    byId("reset-text").textContent = text;
    byId("reset-text").className = text ? "bad" : "";
  }
}
