// The frame around the screens: tabs, knowledge base, look, keys. A screen is an object
// {name, title, key, show(element, state, app)}; `show` is called whenever the address changes
// while the screen is the chosen one. Its element stays when another screen is chosen.

import * as api from "./api.js";
import { button, counted, h, isTyping, labelled, note, problemNote, put, said, say, unique } from "./dom.js";
import { go, link, now, prefer, preference, watch } from "./state.js";
import { screen as ask } from "./ask.js";
import { screen as program } from "./program.js";
import { screen as base } from "./base.js";
import { screen as sparql } from "./sparql.js";
// What these two add below a program stands above what the others add.
import { screen as share } from "./share.js";
import "./queries.js";
import { screen as queue } from "./queue.js";
import { screen as learn } from "./learn.js";
import { screen as own } from "./own.js";

const SCREENS = [ask, program, base, sparql, queue, learn, own, share];

const elements = new Map();
let info = null;

/** What screens are given: `info` as the server said it, `kb` (the id), `base` (its figures),
 * `can(what)` → {yes, why}, `reload()` asks the server again and shows the screen anew. */
const app = {
  get info() {
    return info;
  },
  get kb() {
    return info.kb;
  },
  get base() {
    return info.bases.find((base) => base.id === info.kb);
  },
  can(what) {
    return info.can?.[what] || { yes: false, why: null };
  },
  async reload() {
    const before = info.run?.folder;
    info = await api.info(now().kb);
    // What another parser said stands on no screen.
    if (info.run?.folder !== before) {
      for (const [name, element] of elements) {
        if (name === chosen().name) continue;
        element.remove();
        elements.delete(name);
      }
    }
    frame();
    show();
  },
};

async function start() {
  look();
  const content = document.getElementById("content");
  const opened = new URLSearchParams(location.hash.slice(1)).get("token");
  try {
    if (opened) {
      // Taken out of the address first, so that it stays in no history.
      history.replaceState(null, "", `${location.pathname}#/ask`);
      await api.signIn(opened);
    }
    info = await api.info(now().kb);
  } catch (problem) {
    if (problem.status === 401) return put(content, tokenForm(opened && "The token of this link is not the one of the server: perhaps the server was started again."));
    put(content, h("h1", {}, "KoPL playground"), problemNote(problem), problem.field === "kb" && now().kb ? button("Use the first knowledge base", leave) : button("Try again", () => location.reload()));
    return;
  }
  frame();
  watch(moved);
  addEventListener("keydown", keyed);
  document.getElementById("tabs").addEventListener("scroll", edges, { passive: true });
  addEventListener("resize", edges, { passive: true });
  show();
}

/** For a server that others can reach: it printed a link with a token, which is asked for here. */
function tokenForm(because = null) {
  const field = h("input", { type: "text", class: "code", autocomplete: "off", spellcheck: "false" });
  const wrong = h("div", {}, because ? note("bad", because) : null);
  const enter = async (event) => {
    event.preventDefault();
    try {
      await api.signIn(field.value.trim().replace(/^.*#token=/, ""));
      location.reload();
    } catch (problem) {
      put(wrong, problemNote(problem));
    }
  };
  return h(
    "form",
    { class: "card stack", on: { submit: enter } },
    h("h1", {}, "KoPL playground"),
    h("p", { class: "lead" }, "This server lets in only those who have its token. It stands in the link that the server printed when it was started."),
    labelled("Token, or the whole link", field),
    wrong,
    h("div", { class: "row" }, h("button", { type: "submit", class: "button main" }, "Enter")),
  );
}

function leave() {
  go({ kb: null }, { replace: true });
  location.reload();
}

async function moved(state, before) {
  if ((state.kb || null) !== (before.kb || null)) {
    try {
      info = await api.info(state.kb);
    } catch (problem) {
      put(document.getElementById("content"), problemNote(problem), button("Use the first knowledge base", leave));
      elements.clear();
      return;
    }
    for (const element of elements.values()) element.remove();
    elements.clear();
  }
  frame();
  show();
  if (state.tab !== before.tab) {
    document.getElementById("content").focus({ preventScroll: true });
    scrollTo(0, 0);
    say(chosen().title);
  }
}

function chosen() {
  return SCREENS.find((screen) => screen.name === now().tab) || SCREENS[0];
}

function show() {
  const content = document.getElementById("content");
  const screen = chosen();
  if (!elements.size) content.replaceChildren();
  if (!elements.has(screen.name)) {
    const element = h("section", { class: "screen", id: `screen-${screen.name}`, "aria-label": screen.title });
    elements.set(screen.name, element);
    content.append(element);
  }
  for (const [name, element] of elements) element.hidden = name !== screen.name;
  document.title = [now().question, screen.title, "KoPL playground"].filter(Boolean).join(" \u00b7 ").slice(0, 200);
  screen.show(elements.get(screen.name), now(), app);
}

// --- the frame ----------------------------------------------------------------------------------

function frame() {
  const tabs = document.getElementById("tabs");
  const focused = tabs.contains(document.activeElement) ? document.activeElement.dataset.tab : null;
  put(
    tabs,
    SCREENS.map((screen) =>
      h("a", { href: link({ tab: screen.name }), "data-tab": screen.name, title: `Key ${screen.key}`, "aria-keyshortcuts": screen.key, "aria-current": screen === chosen() ? "page" : null }, screen.title),
    ),
  );
  if (focused) tabs.querySelector(`[data-tab="${focused}"]`)?.focus();
  const current = tabs.querySelector("[aria-current]");
  if (current) tabs.scrollLeft = Math.max(0, current.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2);
  edges();
  put(document.getElementById("tools"), bases(), lookButton(), button("?", help, { kind: "bare", "aria-label": "Keys and help", title: "Keys and help (?)" }));
  const base = app.base;
  put(
    document.getElementById("foot"),
    h("span", {}, info.version && info.version !== "unknown" ? `kopl-toolkit ${info.version}` : "kopl-toolkit"),
    base ? h("span", {}, counted(base.entities, "entity", "entities"), ", ", counted(base.facts, "fact")) : null,
    info.run ? h("span", {}, "parser: ", said(info.run.name || info.run.folder)) : h("span", {}, "no parser loaded"),
    h("span", { class: "push" }, h("a", { href: "api/openapi.json" }, "API")),
  );
}

/** Tabs that do not fit fade at the side where there are more. */
function edges() {
  const tabs = document.getElementById("tabs");
  tabs.classList.toggle("has-less", tabs.scrollLeft > 4);
  tabs.classList.toggle("has-more", tabs.scrollLeft + tabs.clientWidth < tabs.scrollWidth - 4);
}

function bases() {
  if (info.bases.length === 1) return h("span", { class: "badge" }, h("span", { class: "wide-only" }, "knowledge base: "), said(info.bases[0].name, { most: 40 }));
  const id = "choose-kb";
  return h(
    "span",
    { class: "row" },
    h("label", { class: "quiet", for: id }, "Knowledge base"),
    h(
      "select",
      { id, class: "small", on: { change: (event) => go({ kb: event.target.value, question: null, program: null }) } },
      info.bases.map((base) => h("option", { value: base.id, selected: base.id === info.kb }, said(base.name, { most: 40 }).textContent)),
    ),
  );
}

const SCHEMES = [null, "light", "dark"];
const SCHEME_WORDS = { null: "as the system", light: "light", dark: "dark" };
const SUN = "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M4.9 19.1l1.8-1.8M17.3 6.7l1.8-1.8";
const MOON = "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.500 10.500z";
const HALF = "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 3v18";

function look() {
  const scheme = preference("scheme");
  if (scheme === "light" || scheme === "dark") document.documentElement.dataset.scheme = scheme;
  else delete document.documentElement.dataset.scheme;
}

function lookButton() {
  const scheme = document.documentElement.dataset.scheme || null;
  const path = scheme === "light" ? SUN : scheme === "dark" ? MOON : HALF;
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("viewBox", "0 0 24 24");
  picture.setAttribute("class", "icon");
  picture.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  picture.append(line);
  const says = `Look: ${SCHEME_WORDS[scheme]}`;
  return button(picture, change, { kind: "bare", id: "look", "aria-label": says, title: says });

  function change() {
    prefer("scheme", SCHEMES[(SCHEMES.indexOf(scheme) + 1) % SCHEMES.length]);
    look();
    const fresh = lookButton();
    document.getElementById("look").replaceWith(fresh);
    fresh.focus();
    say(fresh.getAttribute("aria-label"));
  }
}

// --- keys ---------------------------------------------------------------------------------------

function keyed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") return stop(event, help);
  if (preference("keys") === "off") return;
  if (event.key === "/") return stop(event, toField);
  const screen = SCREENS.find((one) => one.key === event.key);
  if (screen) stop(event, () => go({ tab: screen.name }));
}

function stop(event, action) {
  event.preventDefault();
  action();
}

function toField() {
  elements.get(chosen().name)?.querySelector("textarea:not([disabled]), input:not([type=hidden]):not([disabled])")?.focus();
}

function help() {
  const back = document.activeElement;
  const title = unique("help");
  const one = h("input", { type: "checkbox", checked: preference("keys") !== "off", on: { change: (event) => prefer("keys", event.target.checked ? null : "off") } });
  const dialog = h(
    "dialog",
    { "aria-labelledby": title },
    h(
      "div",
      { class: "stack" },
      h("div", { class: "row ends" }, h("h2", { id: title }, "Keys"), button("Close", () => dialog.close())),
      keys("Everywhere", [...SCREENS.map((screen) => [screen.key, screen.title]), ["/", "to the first field"], ["?", "these keys"]]),
      SCREENS.filter((screen) => screen.keys).map((screen) => keys(screen.title, screen.keys)),
      h("label", { class: "check" }, one, "Single keys choose screens (where no field has the focus)"),
    ),
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    back?.focus?.();
  });
  document.body.append(dialog);
  dialog.showModal();
}

function keys(head, pairs) {
  return h(
    "div",
    { class: "stack tight" },
    h("h3", {}, head),
    h("dl", { class: "keys" }, pairs.map(([key, does]) => [h("dt", {}, key.split(" ").map((part, at) => [at ? " " : null, h("kbd", {}, part)])), h("dd", {}, does)])),
  );
}

start();
