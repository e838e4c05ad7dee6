// Ask: a question, its answer, and how sure the parser is of it.

import * as api from "./api.js";
import { button, h, labelled, problemNote, put, said } from "./dom.js";
import { go, link, remember } from "./state.js";

export const screen = { name: "ask", title: "Ask", key: "1", show };

const made = new WeakMap();

function show(element, state, app) {
  if (!made.has(element)) made.set(element, make(element, app));
  made.get(element)(state);
}

function make(element, app) {
  const field = h("textarea", { rows: 2, name: "question" });
  const form = h(
    "form",
    { class: "card stack", on: { submit: (event) => (event.preventDefault(), go({ question: field.value.trim() })) } },
    labelled("Your question", field),
    h("div", { class: "row" }, h("button", { type: "submit", class: "button main" }, "Ask")),
  );
  const results = h("div", { class: "stack", "aria-live": "polite" });
  const examples = h("ul", { class: "stack tight" });
  put(element, h("h1", {}, "Ask ", said(app.base.name)), form, results, h("h2", {}, "Examples"), examples);
  api.examples({ kb: app.kb }).then(
    (found) =>
      put(
        examples,
        found.examples.map((one) =>
          h("li", {}, h("a", { href: one.question ? link({ question: one.question }) : link({ tab: "program", program: one.program }) }, said(one.question || one.program))),
        ),
      ),
    (problem) => put(examples, problemNote(problem)),
  );
  const asking = api.latest((question, options) => api.ask({ question, kb: app.kb }, options));
  let shown = null;
  return async (state) => {
    if (!state.question || state.question === shown) return;
    shown = field.value = state.question;
    remember(state.question, app.kb);
    try {
      const answer = await asking(state.question);
      put(results, answer.answers.map((one) => h("article", { class: "card" }, h("p", {}, said((one.answer?.answers || []).join("; "))), button("Open the program", () => go({ tab: "program", program: one.text })))));
    } catch (problem) {
      if (!api.isAbandoned(problem)) put(results, problemNote(problem));
    }
  };
}
