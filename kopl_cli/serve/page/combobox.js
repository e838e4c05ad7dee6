// A field with suggestions, by the ARIA pattern of a combobox with a list: the focus stays in the
// field, arrows choose, Enter takes, Escape closes. Free text may always be given.

import { count, cut, h, put, rested, say, unique, visible } from "./dom.js";

const WAIT = 120; // milliseconds of rest before suggestions are asked for

/** A combobox. `source(prefix, {signal})` resolves to `{suggestions: [{text, kind, count, example,
 * doc, also}], count}`. `take(text, suggestion, how)` is called with what was chosen or typed, once
 * for each change; `how` is "left" where that was by leaving the field. What was typed stands for the best
 * suggestion; other text is taken only where nothing is suggested or the last item of the list says so.
 * `free`: any text is a value as it stands. `strict`: only what was suggested is taken.
 * Returns `{element, field, value, open()}`. */
export function combobox({ label, value = "", source, take, placeholder = "", strict = false, free = false, mono = false, message = null, hint = null }) {
  const id = unique("combo");
  const field = h("input", {
    id,
    type: "text",
    role: "combobox",
    class: mono ? "code" : null,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": `${id}-list`,
    "aria-invalid": message ? "true" : null,
    "aria-describedby": message || hint ? `${id}-said` : null,
    placeholder,
    value,
    dir: "auto",
  });
  const list = h("ul", { id: `${id}-list`, role: "listbox", class: "combo-list", "aria-label": label });
  const foot = h("p", { class: "combo-foot" });
  const popup = h("div", { class: "combo-popup", hidden: true }, list, foot);
  const element = h(
    "div",
    { class: "field combo" },
    h("label", { for: id }, label),
    h("div", { class: "combo-box" }, field, popup),
    message || hint ? h("p", { id: `${id}-said`, class: message ? "wrong" : "hint" }, message ? "\u26a0 " : "", visible(message || hint)) : null,
  );

  let kept = value; // what was taken last
  let options = [];
  let at = -1;
  let counts = false; // whether the numbers of the options say something
  let shown = null; // the text whose suggestions stand in the list
  let controller = null;

  const ask = rested(fetchAll, WAIT);

  async function fetchAll() {
    controller?.abort();
    controller = new AbortController();
    const text = field.value;
    const prefix = text === kept ? "" : text;
    try {
      const found = await source(prefix, { signal: controller.signal });
      shown = text;
      draw(found, prefix);
    } catch (problem) {
      if (problem.name === "AbortError") return false;
      options = [];
      put(list);
      foot.hidden = false;
      put(foot, visible(problem.message));
    }
    return true;
  }

  const isSaid = (text) => (option) => !option.asItIs && option.text.toLowerCase() === text.trim().toLowerCase();

  function draw(found, prefix) {
    const named = prefix.trim();
    const as = named && !strict && !free && found.suggestions.length && !found.suggestions.some(isSaid(prefix)) ? [{ text: prefix, asItIs: true }] : [];
    // What is marked stays marked where it is still suggested, also when the field was drawn anew:
    // so what is marked, and which end is to be marked as soon as there is something, stand at the field.
    const before = field.dataset.marked;
    const marked = at >= 0 ? found.suggestions.findIndex((one) => same(one, options[at])) : found.suggestions.findIndex((one) => one.text === before);
    options = [...found.suggestions, ...as];
    at = -1;
    // That each of the things here has something once says nothing.
    counts = options.some((option) => option.count > 1);
    put(list, options.map((option, number) => drawn(option, number)));
    if (named && !free) list.children[Math.max(0, options.findIndex(isSaid(prefix)))]?.classList.add("is-best");
    const wanted = field.dataset.wanted;
    mark(marked >= 0 || !wanted ? marked : wanted === "first" ? 0 : options.length - 1);
    delete field.dataset.wanted;
    const more = found.count - found.suggestions.length;
    put(foot, !options.length ? (strict ? "Nothing fits here." : "Nothing is suggested; what you type is taken as it stands.") : more > 0 ? `${count(more)} more; type to narrow them down` : "");
    foot.hidden = !foot.textContent;
    if (!popup.hidden) say(options.length ? `${count(found.count)} suggestions` : foot.textContent);
  }

  function drawn(option, number) {
    const attributes = { id: `${id}-${number}`, role: "option", "aria-selected": "false", class: "combo-option", on: { pointerdown: (event) => event.preventDefault(), click: () => choose(number) } };
    if (option.asItIs) return h("li", attributes, h("span", { class: "muted" }, "take \u201c", h("bdi", {}, cut(visible(option.text), 80)), "\u201d as it is"));
    // The form of a function is no example of what is there.
    const example = option.kind === "function" ? null : option.example;
    return h(
      "li",
      attributes,
      h("span", { class: "combo-text" }, h("bdi", {}, cut(visible(option.text), 120)), option.also ? h("span", { class: "muted" }, " also ", h("bdi", {}, cut(visible(option.also), 60))) : null),
      h("span", { class: "combo-more" }, !counts || option.count === null || option.count === undefined ? null : h("span", { class: "combo-count" }, count(option.count), h("span", { class: "quiet" }, " found")), KINDS.has(option.kind) ? h("span", { class: "badge" }, option.kind) : null),
      option.doc || example ? h("span", { class: "combo-doc" }, option.doc ? cut(visible(option.doc), 140) : null, option.doc && example ? ", " : null, example ? ["e.g. ", h("bdi", {}, cut(visible(example), 100))] : null) : null,
    );
  }

  function open() {
    if (!popup.hidden) return;
    popup.hidden = false;
    popup.classList.remove("is-end");
    popup.classList.toggle("is-end", popup.getBoundingClientRect().right > document.documentElement.clientWidth - 8);
    field.setAttribute("aria-expanded", "true");
    ask.now();
  }

  function close() {
    ask.stop();
    controller?.abort();
    popup.hidden = true;
    at = -1;
    delete field.dataset.wanted;
    delete field.dataset.marked;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function mark(next) {
    list.children[at]?.setAttribute("aria-selected", "false");
    at = Math.min(next, options.length - 1);
    const marked = list.children[at];
    delete field.dataset.marked;
    if (!marked) return field.removeAttribute("aria-activedescendant");
    marked.setAttribute("aria-selected", "true");
    marked.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", marked.id);
    field.dataset.marked = options[at].text;
  }

  function choose(number) {
    const option = options[number];
    field.value = option.text;
    finish(option.text, option.asItIs ? null : option, option.asItIs ? "as it is" : "taken");
  }

  /** Take what was typed: what it says, or else the best that is suggested for it. */
  async function settle(how) {
    const text = field.value;
    if (free || text === kept || !text.trim()) return finish(text, null, how);
    if (shown !== text) {
      const came = await ask.now();
      // Another text was typed, or this one was taken or given up, while the suggestions came.
      if (!came || field.value !== text || text === kept) return null;
    }
    if (shown !== text) return strict ? null : finish(text, null, how);
    const option = options.find((one) => !one.asItIs && one.text === text) || options.find(isSaid(text)) || options.find((one) => !one.asItIs);
    if (!option) return finish(text, null, how);
    field.value = option.text;
    return finish(option.text, option, how);
  }

  function finish(text, option = null, how = "taken") {
    close();
    delete field.dataset.typed;
    if (text === kept && !(text === "" && option)) return;
    if (strict && !option) {
      option = options.find((one) => one.text.toLowerCase() === text.trim().toLowerCase());
      if (!option) {
        field.value = kept;
        return;
      }
      text = field.value = option.text;
    }
    kept = text;
    take(text, option, how);
  }

  function keyed(event) {
    if (event.isComposing) return;
    const last = options.length - 1;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (popup.hidden || last < 0) {
        field.dataset.wanted = step > 0 ? "first" : "last";
        return open();
      }
      mark(at + step > last ? 0 : at + step < 0 ? last : at + step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (at >= 0) choose(at);
      else if (!popup.hidden || field.value !== kept) settle("taken");
      else open();
    } else if (event.key === "Escape") {
      if (!popup.hidden) {
        event.preventDefault();
        event.stopPropagation();
        close();
      } else if (field.value !== kept) {
        event.preventDefault();
        event.stopPropagation();
        field.value = kept;
      }
    } else if ((event.key === "PageDown" || event.key === "PageUp") && !popup.hidden && last >= 0) {
      event.preventDefault();
      mark(Math.max(0, Math.min(last, at + (event.key === "PageDown" ? 8 : -8))));
    } else if (event.key === "Tab" && at >= 0) {
      choose(at);
    }
  }

  field.addEventListener("keydown", keyed);
  field.addEventListener("input", () => {
    field.dataset.typed = "yes";
    if (popup.hidden) open();
    else ask();
  });
  field.addEventListener("click", open);
  // As by Tab: what is typed takes the place of what stands there. A click places the cursor.
  let pointed = false;
  field.addEventListener("pointerdown", () => (pointed = true));
  field.addEventListener("focus", () => {
    if (!pointed && field.value === kept) field.select();
    pointed = false;
  });
  field.addEventListener("blur", () => {
    // Leaving the field takes what was typed.
    if (element.isConnected && !field.dataset.redrawn) settle("left").finally(close);
  });
  return {
    element,
    field,
    open,
    get value() {
      return field.value;
    },
  };
}

function same(one, other) {
  return one.text === other.text && one.kind === other.kind && JSON.stringify(one.sets) === JSON.stringify(other.sets);
}

// Of functions and operators the kind is plain from where they stand.
const KINDS = new Set(["entity", "concept", "value"]);
