// Making elements. Text goes in as text nodes alone: what people wrote is never read as markup.

/** Return an element. Attributes with the value null, undefined or false are left out; true gives an empty attribute. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Return an element of an SVG picture. */
export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/**
 * Put other children into an element, unless they are the same as those there. What had the focus keeps it, and what was
 * unfolded stays so: both are found again by their data-key.
 */
export function replace(place, made) {
  const fresh = element("div", {}, made);
  if (place.dataset.filled && [...place.childNodes].length === fresh.childNodes.length &&
      [...place.childNodes].every((node, index) => node.isEqualNode(fresh.childNodes[index]))) return;
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : "";
  const open = new Set([...place.querySelectorAll("details[open][data-key]")].map((each) => each.dataset.key));
  place.replaceChildren(...fresh.childNodes);
  place.dataset.filled = "yes";
  for (const each of place.querySelectorAll("details[data-key]")) each.open ||= open.has(each.dataset.key);
  if (key) [...place.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus();
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** Return a time of day, with the day where that is not today. */
export function moment(text) {
  const when = new Date(text);
  if (Number.isNaN(when.getTime())) return "";
  const time = clock.format(when);
  return when.toDateString() === new Date().toDateString() ? time : `${day.format(when)}, ${time}`;
}

/** Return a duration in milliseconds as people read it. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms >= 1_000) return `${Number((ms / 1000).toPrecision(3))} s`;
  return ms >= 100 ? `${Math.round(ms)} ms` : `${Number(ms.toPrecision(3))} ms`;
}

/** Return a share as a percentage. */
export function percent(share) {
  return `${Number((share * 100).toFixed(1))} %`;
}

/** Return a number of things. */
export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
