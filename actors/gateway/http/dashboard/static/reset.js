// Resetting a breaker: asked for once more, with who orders it and why, since the log keeps both for good.

import { tell } from "./api.js";

const at = (name) => document.getElementById(name);

/** The dialog. `done` is called once a breaker was reset. */
export class Reset {
  #dialog = at("reset");
  #form = at("reset-form");
  #breaker = null;
  #asking = null;
  #done;

  constructor(done) {
    this.#done = done;
    this.#form.addEventListener("submit", (submit) => {
      submit.preventDefault();
      this.#order();
    });
    at("reset-cancel").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => this.#asking?.abort());
  }

  /** Ask whether a breaker is to be reset. */
  open(breaker) {
    if (!breaker) return;
    this.#breaker = breaker;
    at("reset-what").textContent = `Session ${breaker.session} of agent ${breaker.agent} is in ${breaker.state} with trust ` +
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
    this.#asking?.abort();
    const asking = new AbortController();
    this.#asking = asking;
    at("reset-now").disabled = true;
    this.#say("");
    try {
      await tell("/api/breaker/reset", { session, agent, by: by.value.trim(), why: why.value.trim() }, asking.signal);
      this.#dialog.close();
      this.#done();
    } catch (wrong) {
      if (asking.signal.aborted) return;
      this.#say(wrong.status === 403 ? `It was not reset: the key that you gave may look, and not operate (${wrong.message}).` :
        `It was not reset: ${wrong.message}.`);
    } finally {
      at("reset-now").disabled = false;
    }
  }

  #say(text) {
    at("reset-told").textContent = text;
    at("reset-told").className = text ? "bad" : "";
  }
}
