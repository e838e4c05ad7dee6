// Editing one call of a program: its function, its arguments, what it takes, what stands around it.
// Every change is an operation of POST /api/edit; what may stand in a place says /api/complete.

import * as api from "./api.js";
import { LABELS } from "./chart.js";
import { combobox } from "./combobox.js";
import { button, h, put, said, visible } from "./dom.js";

/** The keys that change a program, for the help. */
export const KEYS = [
  ["\u2191 \u2193", "from step to step (in the chart \u2190 \u2192 too)"],
  ["Enter", "open a step, or close it"],
  ["e", "edit the step: to its first field"],
  ["a", "add a step after this one"],
  ["s", "swap the step with another one"],
  ["Delete", "remove the step; what it took takes its place"],
  ["Shift+Delete", "remove the step with all that it takes"],
  ["Ctrl+Z", "undo"],
  ["Ctrl+Shift+Z", "redo"],
  ["Ctrl+Enter", "run again"],
  ["Escape", "close, or give up swapping"],
];

/** The form of a call. `desk`: `{app, view, change(operations, focus), select(path), swap(path),
 * everything, setEverything(yes)}`. Each field has a key (`data-focus`) by which it is found again
 * after the change that it made. */
export function callForm(call, desk) {
  const { app, view } = desk;
  const functions = app.info.functions;
  const declared = functions.find((one) => one.name === call.function);
  const at = call.path.join(".");
  const problems = view.problems.filter((one) => one.path.join(".") === at);
  const wrong = (index) => problems.find((one) => one.index === index)?.message || null;

  const fields = [functionField(call, desk, wrong(null), keyed)];
  if (declared) {
    declared.arguments.forEach((argument, index) => fields.push(argumentField(call, argument, index, desk, wrong(index), keyed)));
  }
  return h(
    "div",
    { class: "call-form stack" },
    h("div", { class: "call-fields" }, fields),
    declared && declared.inputs.length ? inputsOf(call, declared, desk, keyed) : null,
    call.function ? toolbar(call, desk) : null,
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", checked: desk.everything, "data-focus": `${at}:all`, on: { change: (event) => desk.setEverything(event.target.checked) } }),
      "Suggest all of the schema, also what leads to nothing here",
    ),
  );

  function keyed(box, name) {
    box.field.dataset.focus = `${at}:${name}`;
    return box.element;
  }
}

function completing(hole, desk) {
  return (prefix, options) => {
    const scope = desk.everything ? "schema" : "here";
    return api.complete({ kb: desk.app.kb, program: desk.view.draft, hole, prefix: prefix.slice(0, 500), limit: 40, scope }, options);
  };
}

function functionField(call, desk, message, keyed) {
  const isHole = call.function === null;
  const parent = call.path.slice(0, -1);
  const index = call.path[call.path.length - 1];
  const hole = isHole && call.path.length ? { path: parent, slot: "input", index } : { path: call.path, slot: "function", index: 0 };
  const box = combobox({
    label: isHole ? "Which step?" : "Step",
    value: call.function || "",
    placeholder: isHole ? "choose a function" : "",
    strict: true,
    message,
    source: completing(hole, desk),
    take: (text, option, how) => {
      if (!text) return null;
      const operation = isHole && call.path.length ? { do: "fill", path: parent, index, function: text } : { do: "function", path: call.path, function: text };
      return desk.change(operation, how === "left" ? null : { path: call.path, name: "first" });
    },
  });
  return keyed(box, "function");
}

function argumentField(call, argument, index, desk, message, keyed) {
  const label = LABELS[argument.name] || argument.name;
  const box = combobox({
    label: label[0].toUpperCase() + label.slice(1),
    value: call.arguments[index] ?? "",
    placeholder: call.arguments[index] === null ? "missing" : "",
    message,
    // Values and numbers need not be there already; names, keys and words of the language must.
    free: /value$/.test(argument.name),
    source: completing({ path: call.path, slot: "argument", index }, desk),
    take: (text, option, how) => desk.change(setting(call.path, index, text, option), how === "left" ? null : { path: call.path, name: "next", after: index }),
  });
  return keyed(box, `argument-${index}`);
}

/** The operations that put a text into an argument; what was suggested may decide others, too. */
function setting(path, index, text, option = null) {
  const others = (option?.sets || []).map((one) => ({ do: "set", path, index: one.index, text: one.text }));
  return [{ do: "set", path, index, text: text === "" && !option ? null : text }, ...others];
}

const MENDS = 5; // of each argument

/** For a call that gives nothing: other arguments with which it gives something, each a mend by one
 * click. `change(operations)` is called with what to do. The element fills itself. */
export function mends(call, draft, app, change) {
  const element = h("div", { class: "stack tight" });
  const declared = app.info.functions.find((one) => one.name === call.function);
  (declared?.arguments || []).forEach(async (argument, index) => {
    const place = h("div", {});
    element.append(place);
    const written = call.arguments[index];
    if (written === null) return;
    const hole = { path: call.path, slot: "argument", index };
    // A name that is not there is looked for by how it is written.
    const prefix = call.inputs.length ? "" : written.slice(0, 500);
    try {
      const found = await api.complete({ kb: app.kb, program: draft, hole, prefix, limit: MENDS + 1, scope: "here" });
      const others = found.suggestions.filter((one) => one.text !== written || one.sets?.length).slice(0, MENDS);
      if (!others.length) return;
      put(
        place,
        h(
          "div",
          { class: "row" },
          h("span", { class: "small" }, call.inputs.length ? `Another ${LABELS[argument.name] || argument.name}:` : "Did you mean"),
          h("div", { class: "chips" }, others.map((one) => h("button", { type: "button", class: "chip", on: { click: () => change(setting(call.path, index, one.text, one)) } }, said(one.text, { most: 60 }), one.sets?.length ? h("span", { class: "muted" }, ` (${one.sets.map((other) => other.text).join(", ")})`) : null))),
        ),
      );
    } catch {
      // What cannot be suggested is no mend; the reason stands above already.
    }
  });
  return element;
}

function inputsOf(call, declared, desk, keyed) {
  return h(
    "div",
    { class: "stack tight" },
    declared.inputs.map((wanted, index) => {
      const number = call.inputs[index];
      const input = desk.view.calls[number];
      const label = declared.inputs.length > 1 ? `Input ${index + 1}` : "Input";
      if (input.function) {
        return h(
          "p",
          { class: "row small" },
          h("span", { class: "muted" }, `${label}:`),
          button(`#${number} ${input.function}`, () => desk.select(input.path), { kind: "link" }),
        );
      }
      const box = combobox({
        label: `${label}: ${wanted}`,
        placeholder: "choose a function",
        strict: true,
        source: completing({ path: call.path, slot: "input", index }, desk),
        take: (text, option, how) => (text ? desk.change({ do: "fill", path: call.path, index, function: text }, how === "left" ? null : { path: input.path, name: "first" }) : null),
      });
      return keyed(box, `input-${index}`);
    }),
  );
}

function toolbar(call, desk) {
  const at = call.path.join(".");
  const adding = h("div", { class: "call-adding", hidden: true });
  const add = button("Add a step after", toggle, { "aria-expanded": "false", "data-focus": `${at}:add`, "data-command": "add" });
  function toggle() {
    const open = add.getAttribute("aria-expanded") === "true";
    add.setAttribute("aria-expanded", String(!open));
    adding.hidden = open;
    if (open) return;
    const box = combobox({
      label: "Which step shall take this one?",
      placeholder: "choose a function",
      strict: true,
      source: completing({ path: call.path, slot: "wrap", index: 0 }, desk),
      // The new call stands where this one stood.
      take: (text) => (text ? desk.change({ do: "wrap", path: call.path, function: text }, { path: call.path, name: "next", after: -1 }) : null),
    });
    box.field.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.stopPropagation();
      toggle();
      add.focus();
    });
    put(adding, box.element);
    box.field.focus();
    box.open();
  }

  return h(
    "div",
    { class: "stack tight" },
    h(
      "div",
      { class: "row call-tools", role: "group", "aria-label": visible(`Change step #${call.number}`) },
      add,
      button("Swap\u2026", () => desk.swap(call.path), { "data-command": "swap", "data-focus": `${at}:swap`, disabled: desk.view.calls.length < 3 }),
      button("Remove", () => desk.change({ do: "delete", path: call.path }, { path: call.path, name: "head" }), { "data-command": "remove", "data-focus": `${at}:remove` }),
      call.inputs.length ? button("Remove with inputs", () => desk.change({ do: "delete", path: call.path, all: true }, { path: call.path, name: "head" }), { "data-focus": `${at}:remove-all` }) : null,
    ),
    adding,
  );
}

/** Which field of the new view has the focus after a change: the next thing that is missing. */
export function nextFocus(wanted, view) {
  if (!wanted) return null;
  const at = wanted.path.join(".");
  const here = view.calls.find((call) => call.path.join(".") === at) || view.calls[view.calls.length - 1];
  const key = (path, name) => ({ path, focus: `${path.join(".")}:${name}` });
  if (wanted.name === "head" || !here) return { path: here?.path || [], focus: null };
  if (here.function === null) return key(here.path, "function");
  const missing = here.arguments.findIndex((text, index) => text === null && index > (wanted.after ?? -1));
  const earlier = here.arguments.findIndex((text) => text === null);
  if (missing >= 0 || earlier >= 0) return key(here.path, `argument-${missing >= 0 ? missing : earlier}`);
  const input = here.inputs.findIndex((number) => view.calls[number].function === null);
  if (input >= 0) return key(here.path, `input-${input}`);
  if (view.holes.length && wanted.name !== "first") {
    const hole = view.holes[0];
    if (hole.slot === "argument") return key(hole.path, `argument-${hole.index}`);
    return hole.slot === "function" ? key(hole.path, "function") : key(hole.path, `input-${hole.index}`);
  }
  return { path: here.path, focus: null, stay: wanted };
}
