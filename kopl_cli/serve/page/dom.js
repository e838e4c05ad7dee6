// Elements made by hand. Texts become text nodes only, so that no name can ever become markup.

const SVG = "http://www.w3.org/2000/svg";
const LINKS = new Set(["href", "src", "action", "formaction"]);

/** An HTML element. `attributes`: strings and numbers as they stand, true as a bare attribute,
 * false and null not at all, `on` an object of listeners, `value`, `checked`, … as properties.
 * Children: nodes, texts, numbers, lists of them; null and false are left out. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, by the same rules. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

const PROPERTIES = new Set(["value", "checked", "selected", "indeterminate", "open"]);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value === null || value === undefined || value === false) {
      continue;
    } else if (name === "style" || name.startsWith("on")) {
      throw new Error(`${name} is forbidden by the content policy`);
    } else if (PROPERTIES.has(name)) {
      element[name] = value;
    } else {
      if (LINKS.has(name) && /^\s*(javascript|vbscript):/i.test(value)) throw new Error("a script as address");
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

/** Append children as `h` does. */
export function append(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Replace all that stands in an element. */
export function put(element, ...children) {
  element.replaceChildren();
  return append(element, ...children);
}

// Control characters, and those that turn the direction of what follows or are not seen at all.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** A text with a sign in place of every character that is not seen. */
export function visible(text) {
  return String(text).replace(UNSEEN, (character) => {
    if (character === "\t" || character === "\n" || character === "\r") return " ";
    const code = character.codePointAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : "\ufffd";
  });
}

/** At most so many characters, never half of one. */
export function cut(text, most) {
  const whole = String(text);
  if (whole.length <= most) return whole;
  return [...whole.slice(0, most * 2)].slice(0, most).join("") + "\u2026";
}

/** A name or value of the knowledge base: apart from the direction of what stands around it,
 * cut where it is very long (the whole stands behind a button). */
export function said(text, { most = 160, tag = "bdi", ...attributes } = {}) {
  const whole = visible(text);
  const shown = cut(whole, most);
  const element = h(tag, { class: "said", dir: "auto", ...attributes }, shown || "\u201c\u201d");
  return element;
}

/** As `said`, with a button that shows the rest of a long text. */
export function saidWhole(text, { most = 300, ...attributes } = {}) {
  const element = said(text, { most, ...attributes });
  if (visible(text).length <= most) return element;
  const button = h("button", { type: "button", class: "link small", "aria-expanded": "false" }, `all ${count(String(text).length)} characters`);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    element.textContent = open ? cut(visible(text), most) : visible(text);
    button.setAttribute("aria-expanded", String(!open));
    button.textContent = open ? `all ${count(String(text).length)} characters` : "less";
  });
  return h("span", {}, element, " ", button);
}

/** A number for people: 12,345. */
export function count(number) {
  return new Intl.NumberFormat("en").format(number);
}

/** "1 call", "2 calls". */
export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Milliseconds for people. */
export function time(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1) return "< 1 ms";
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A share of one for people: 87 %. */
export function percent(share) {
  if (share > 0 && share < 0.01) return "< 1 %";
  if (share < 1 && share > 0.99) return "> 99 %";
  return `${Math.round(share * 100)} %`;
}

let numbers = 0;

/** An id that no other element of the page has. */
export function unique(prefix = "n") {
  numbers += 1;
  return `${prefix}-${numbers}`;
}

/** A label above a field. `field` gets an id where it has none. */
export function labelled(label, field, { hint = null, hidden = false } = {}) {
  field.id ||= unique("field");
  const described = hint ? h("p", { class: "hint", id: `${field.id}-hint` }, hint) : null;
  if (described) field.setAttribute("aria-describedby", described.id);
  return h("div", { class: "field" }, h("label", { for: field.id, class: hidden ? "quiet" : null }, label), field, described);
}

/** A button; `kind` is "main", "plain" (default), "link" or "danger". */
export function button(text, action, { kind = "plain", class: more = "", ...attributes } = {}) {
  return h("button", { type: "button", class: `button ${kind} ${more}`.trim(), on: { click: action }, ...attributes }, text);
}

/** A note: `kind` "info", "good", "warn" or "bad"; the word at its head says so, too. */
export function note(kind, head, ...children) {
  const attributes = { class: `note ${kind}` };
  if (kind === "bad") attributes.role = "alert";
  return h("div", attributes, head ? h("p", { class: "note-head" }, head) : null, children);
}

/** What went wrong, for people: the message, the place, what to try. */
export function problemNote(problem, head = null) {
  const place = problem.call === null || problem.call === undefined ? null : `step #${problem.call}`;
  return note(
    "bad",
    head || HEADS[problem.kind] || "That did not work",
    h("p", {}, said(problem.message || String(problem), { most: 600, tag: "span" }), place ? h("span", { class: "muted" }, ` (${place})`) : null),
    problem.to_try ? h("p", { class: "muted" }, said(problem.to_try, { most: 600, tag: "span" })) : null,
  );
}

const HEADS = {
  parse: "The text cannot be read",
  typing: "The steps do not fit together",
  execution: "The program cannot be run",
  limit: "That takes more than the server allows",
  request: "The server does not take this",
  busy: "The server is busy",
  missing: "Something is not installed",
  offline: "The server does not answer",
};

/** Say something to those who listen to the page. */
export function say(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = visible(cut(text, 300));
}

/** Calls of `action` are put off until none came for `ms`. */
export function rested(action, ms) {
  let timer = null;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), ms);
  };
  later.now = (...given) => {
    clearTimeout(timer);
    return action(...given);
  };
  later.stop = () => clearTimeout(timer);
  return later;
}

/** Whether a key belongs to the field that has the focus, not to the page. */
export function isTyping(event) {
  const at = event.target;
  return at instanceof Element && (at.matches("input:not([type=checkbox]):not([type=radio]):not([type=button]), textarea, select") || at.isContentEditable);
}

/** Copy a text, and say so at the button. */
export async function copied(text, at) {
  const before = at.textContent;
  try {
    await navigator.clipboard.writeText(text);
    at.textContent = "Copied";
    say("Copied");
  } catch {
    at.textContent = "Not allowed to copy";
  }
  setTimeout(() => (at.textContent = before), 1600);
}
