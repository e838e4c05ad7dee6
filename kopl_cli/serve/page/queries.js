// Below a program, where the server has a reasoner: its set part as a logical query, and the answers
// that the reasoner predicts for an incomplete graph.

import * as api from "./api.js";
import { counted, h, percent, problemNote, put, said } from "./dom.js";
import { link, offer } from "./state.js";

const SHOWN = 10;

function panel({ app, kb, program }) {
  if (!program || !app.can("queries").yes) return null;
  const body = h("div", { class: "stack", "aria-live": "polite" });
  const fold = h("details", { class: "fold" }, h("summary", {}, "As a logical query, with predicted answers"), body);
  fold.addEventListener("toggle", async () => {
    if (!fold.open || body.children.length) return;
    put(body, h("p", { class: "row muted" }, h("span", { class: "spin", "aria-hidden": "true" }), "Asking the reasoner"));
    try {
      put(body, drawn(await api.queryView({ kb, program, limit: SHOWN })));
    } catch (problem) {
      put(body, problemNote(problem, "This program has no such query"));
    }
  });
  return fold;
}

function drawn({ formula, svg, answers, known }) {
  return [
    h("figure", { class: "picture" }, h("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, alt: `Query graph: ${formula}` })),
    h("p", { class: "small muted" }, `Answers that the reasoner gives: ${counted(known, "is", "are")} in the knowledge base${answers.some((one) => one.kind !== "known") ? ", the others are predicted and need not be so" : "; it predicts no others"}.`),
    h("ul", { class: "predicted" }, answers.map((one) => h("li", {}, h("div", { class: "row baseline" }, h("a", { href: link({ tab: "base", id: one.id }) }, said(one.text, { most: 80 })), h("span", { class: `badge ${one.kind === "known" ? "good" : "warn"}` }, one.kind, one.kind === "known" ? null : ` ${one.score >= 0 && one.score <= 1 ? percent(one.score) : one.score}`)), one.support ? h("p", { class: "small muted" }, said(one.support, { most: 300 })) : null))),
    h("p", { class: "small program-line" }, h("code", {}, said(formula, { most: 600 }))),
  ];
}

offer("program", panel);
