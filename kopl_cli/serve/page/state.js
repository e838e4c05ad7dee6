// What the page shows stands in the address: "#/program?kb=world&q=…&p=…". Nothing is shared
// between two tabs of the browser but the list of what was asked, and the look that was chosen.

// Kept when another screen is chosen; what else a screen puts there is its own. `form` says how what
// the program denotes is read as yes or no (`formOf` in pieces.js): it belongs to the question.
const COMMON = ["kb", "question", "program", "form"];
const SHORT = { question: "q", program: "p" };
const LONG = { q: "question", p: "program" };

const listeners = new Set();
let current = read();

function read() {
  const fragment = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  const at = fragment.indexOf("?");
  const state = { tab: (at < 0 ? fragment : fragment.slice(0, at)) || "ask" };
  for (const [name, value] of new URLSearchParams(at < 0 ? "" : fragment.slice(at + 1))) {
    if (name !== "tab") state[LONG[name] || name] = value;
  }
  return Object.freeze(state);
}

/** The state that the address says: `tab`, and where given `kb`, `question`, `program`, others. */
export function now() {
  return current;
}

function changed(changes) {
  const moves = changes.tab !== undefined && changes.tab !== current.tab;
  const kept = moves ? Object.fromEntries(COMMON.map((name) => [name, current[name]])) : current;
  const state = { ...kept, tab: current.tab, ...changes };
  const another = changes.question !== undefined && (changes.question || undefined) !== current.question;
  if (changes.form === undefined && (another || changes.program === null)) delete state.form;
  for (const [name, value] of Object.entries(state)) {
    if (value === null || value === undefined || value === "") delete state[name];
  }
  return state;
}

/** The address of the present state with these changes, for a link. */
export function link(changes) {
  return written(changed(changes));
}

function written({ tab, ...rest }) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(rest)) parameters.set(SHORT[name] || name, value);
  const said = parameters.toString();
  return `#/${tab}${said ? `?${said}` : ""}`;
}

/** Go to the present state with these changes (null takes a part away). `replace`: the back button
 * then passes over the state that was left. `quiet`: nobody is told, as the screen shows it. */
export function go(changes, { replace = false, quiet = false } = {}) {
  const state = changed(changes);
  const target = written(state);
  if (target === written(current)) return;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  const before = current;
  current = Object.freeze(state);
  if (!quiet) tell(before);
}

/** `listener(state, before)` is called when the address changes. */
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(before) {
  for (const listener of [...listeners]) listener(current, before);
}

function moved() {
  // Links inside the page, such as the one that skips to the content, are no states.
  if (location.hash && !location.hash.startsWith("#/")) return;
  const before = current;
  const next = read();
  if (written(next) === written(before)) return;
  current = next;
  tell(before);
}
addEventListener("popstate", moved);
addEventListener("hashchange", moved);

// --- what was asked, and the look ---------------------------------------------------------------

const HISTORY = "kopl.history";
const MOST = 50;

/** What was asked, the newest first: `[{question, kb, at}]`. */
export function asked() {
  try {
    const kept = JSON.parse(localStorage.getItem(HISTORY) || "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.question === "string").slice(0, MOST) : [];
  } catch {
    return [];
  }
}

/** Remember a question. */
export function remember(question, kb) {
  if (question.length > 1000) return;
  const others = asked().filter((one) => one.question !== question || one.kb !== kb);
  store(HISTORY, JSON.stringify([{ question, kb, at: Date.now() }, ...others].slice(0, MOST)));
}

export function forgetAsked() {
  store(HISTORY, "[]");
}

/** A choice about the look ("scheme", "keys"), or null. */
export function preference(name) {
  try {
    return localStorage.getItem(`kopl.${name}`);
  } catch {
    return null;
  }
}

export function prefer(name, value) {
  store(`kopl.${name}`, value);
}

function store(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // A browser that keeps nothing: the page works without.
  }
}

// --- undo ---------------------------------------------------------------------------------------

/** A line of states, one of which is the present one. */
export class Undo {
  constructor(first) {
    this.states = [first];
    this.at = 0;
  }

  get present() {
    return this.states[this.at];
  }

  get canUndo() {
    return this.at > 0;
  }

  get canRedo() {
    return this.at < this.states.length - 1;
  }

  push(state) {
    this.states = [...this.states.slice(0, this.at + 1), state].slice(-200);
    this.at = this.states.length - 1;
  }

  undo() {
    if (this.canUndo) this.at -= 1;
    return this.present;
  }

  redo() {
    if (this.canRedo) this.at += 1;
    return this.present;
  }
}

/** What shows a screen: its view is made once for an element, and told of every new address. */
export function viewed(make) {
  const views = new WeakMap();
  return (element, state, app) => {
    if (!views.has(element)) views.set(element, make(element, app));
    views.get(element).show(state);
  };
}

// --- what screens add to one another -----------------------------------------------------------

const places = new Map();

/** Let `make(context)` add an element (or null) to a place of another screen: "answer" (below an
 * answer of Ask: `{question, answer, kb}`) or "program" (below a program: `{question, program,
 * view, answer, before, kb}`). */
export function offer(place, make) {
  places.set(place, [...(places.get(place) || []), make]);
}

/** The elements that others add to a place. */
export function offered(place, context) {
  return (places.get(place) || []).map((make) => make(context)).filter(Boolean);
}
