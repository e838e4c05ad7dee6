// Program: every call of a program with what it gives.

import * as api from "./api.js";
import { button, count, h, labelled, problemNote, put, said } from "./dom.js";
import { go } from "./state.js";

export const screen = { name: "program", title: "Program", key: "2", show };

const made = new WeakMap();

function show(element, state, app) {
  if (!made.has(element)) made.set(element, make(element, app));
  made.get(element)(state);
}

function make(element, app) {
  const field = h("textarea", { class: "code", rows: 4, spellcheck: "false" });
  const calls = h("ol", { class: "stack tight" });
  put(element, h("h1", {}, "Program"), labelled("Program", field), button("Run", () => go({ program: field.value.trim() }), { kind: "main" }), calls);
  const running = api.latest((program, options) => api.run({ program, kb: app.kb }, options));
  return async (state) => {
    field.value = state.program || "";
    if (!state.program) return;
    try {
      const ran = await running(state.program);
      put(calls, ran.steps.map((step) => h("li", { class: "card" }, said(ran.view.calls[step.number].function || "?"), ` ${count(step.count)}: `, step.values.map((value) => [said(value.text), " "]))));
    } catch (problem) {
      if (!api.isAbandoned(problem)) put(calls, problemNote(problem));
    }
  };
}
