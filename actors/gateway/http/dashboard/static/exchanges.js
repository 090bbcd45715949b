// The list of exchanges: rows are kept and changed in place, so that nothing flickers and the focus stays.

import { counted, duration, element, moment } from "./dom.js";

/** The list in the page. `chosen` is called with the exchange of a row that is opened. */
export class Exchanges {
  #rows = new Map();
  #body = document.getElementById("rows");
  #status = document.getElementById("listed");
  #lastStatusMs = -Infinity; // when the status last changed, in milliseconds of performance.now()
  #statusTimer = 0;

  constructor(chosen) {
    this.#body.addEventListener("click", (click) => {
      const row = click.target.closest("tr[data-exchange]");
      // Selecting text in a row does not open it.
      if (row && (click.target.closest("button") || !String(getSelection()))) chosen(row.dataset.exchange);
    });
  }

  /**
   * Show a page of exchanges. `filtered`: the filters of the page left some out; `past`: it is how the list was at an
   * earlier point of the log; `older`: there are older ones; `byUser`: a person asked for it, so that their number is
   * announced at once.
   */
  show(exchanges, { filtered, past, older, byUser }) {
    const left = new Set(this.#rows.keys());
    let next = this.#body.firstElementChild;
    for (const each of exchanges) {
      left.delete(each.exchange);
      const row = this.#row(each);
      if (row === next) next = next.nextElementSibling;
      else this.#body.insertBefore(row, next);
    }
    for (const gone of left) {
      this.#rows.get(gone).row.remove();
      this.#rows.delete(gone);
    }
    const none = filtered ? "No exchange is like that." : past ? "Nobody had asked anything by then." :
      "Nobody has asked anything yet. Try: neuraxis ask \"What is the capital of Peru?\"";
    const rest = older ? " There are older ones: filters and the slider lead to them." : "";
    this.#showStatus(exchanges.length ? `${counted(exchanges.length, "exchange")}, the latest first.${rest}` : none, byUser);
  }

  /** Mark the row of the exchange whose decision is open; none where it is empty. */
  mark(exchange) {
    for (const [name, { row }] of this.#rows) row.toggleAttribute("data-open", name === exchange);
  }

  /** Put the focus on the button of a row, if the row is there. */
  focus(exchange) {
    (this.#rows.get(exchange)?.row.querySelector("button") ?? document.getElementById("exchanges")).focus();
  }

  // A screen reader reads each change of the status: it changes every few seconds at most.
  #showStatus(text, atOnce) {
    clearTimeout(this.#statusTimer);
    const wait = this.#lastStatusMs + 3_000 - performance.now();
    const say = () => {
      this.#lastStatusMs = performance.now();
      if (this.#status.textContent !== text) this.#status.textContent = text;
    };
    if (wait > 0 && !atOnce) this.#statusTimer = setTimeout(say, wait);
    else say();
  }

  #row(each) {
    const known = this.#rows.get(each.exchange);
    const hasEnded = Boolean(each.ended_seq);
    // Nothing else of an exchange changes: it ends, once.
    if (known && known.ended === each.ended_seq) return known.row;
    const row = known?.row ?? element("tr", { role: "row", "data-exchange": each.exchange });
    if (known) row.replaceChildren();
    // Another release may have ended it in a way that this one cannot read.
    row.dataset.action = hasEnded ? each.action || "UNREAD" : "OPEN";
    const end = hasEnded ? each.action.toLowerCase() || "ended, unreadable" : "open";
    row.append(
      cell("Began", "", element("button",
        { type: "button", class: "plain", "aria-label": `Decision of ${moment(each.started)}, ${end}` },
        moment(each.started))),
      cell("End", "", element("span", { class: "end" }, end), reason(each)),
      cell("Stage", "", each.stage),
      cell("Mode", "", each.mode),
      cell("Agent", "name", each.agent),
      cell("Session", "name", each.session),
      cell("Latency", "number", duration(each.latency_ms)),
    );
    this.#rows.set(each.exchange, { row, ended: each.ended_seq });
    return row;
  }
}

// Roles are explicit: the layout for phones changes `display`, and browsers then no longer treat this as a table.
function cell(label, kind, ...children) {
  return element("td", { role: "cell", "data-label": label, class: kind || null },
    children.filter((child) => child !== ""));
}

function reason(each) {
  return each.reason && each.reason !== each.mode ? element("span", { class: "reason" }, each.reason) : null;
}
