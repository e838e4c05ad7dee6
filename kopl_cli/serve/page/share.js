// A link to what is on the page, and the program in every form that others read.

import * as api from "./api.js";
import { button, copied, h, labelled, note, problemNote, put, said } from "./dom.js";
import { save } from "./files.js";
import { link, now, offer, viewed } from "./state.js";

const FORMS = [
  ["nested", "KoPL, nested"],
  ["json", "JSON"],
  ["kqapro", "KQA Pro\u2019s JSON"],
  ["sparql", "SPARQL"],
  ["svg", "Picture (SVG)"],
  ["mermaid", "Mermaid"],
  ["csv", "Answers (CSV)"],
  ["html", "One page of its own (HTML)"],
];

export const screen = { name: "share", title: "Share", key: "8", show: viewed((element, app) => new View(element, app)) };

class View {
  constructor(element, app) {
    this.app = app;
    this.link = h("input", { type: "text", class: "code", readonly: true, spellcheck: "false" });
    this.form = h("select", { on: { change: () => this.draw() } }, FORMS.map(([value, word]) => h("option", { value }, word)));
    this.preview = h("div", { class: "stack", "aria-live": "polite" });
    this.body = h("div", { class: "stack" });
    this.make = api.latest(api.exportProgram);
    put(element, h("div", { class: "stack tight" }, h("h1", {}, "Share"), h("p", { class: "lead" }, "A link holds the question and the program behind its #, which browsers send to no server. A file stands for itself.")), this.body);
  }

  show(state) {
    if (!state.program && !state.question) {
      put(this.body, h("div", { class: "empty" }, h("p", {}, "There is no program yet."), h("div", { class: "row" }, h("a", { class: "button", href: link({ tab: "ask" }) }, "Ask a question"), h("a", { class: "button", href: link({ tab: "program" }) }, "Write a program"))));
      return;
    }
    const address = new URL(location.href);
    address.hash = link({ tab: state.program ? "program" : "ask" });
    this.link.value = address.href;
    const copy = button("Copy", () => copied(this.link.value, copy));
    put(
      this.body,
      state.question ? h("p", {}, h("strong", {}, said(state.question, { most: 300 }))) : null,
      h("section", { class: "card stack", "aria-label": "Link" }, h("h2", {}, "Link"), h("div", { class: "row grow" }, labelled("The address of this question and program", this.link), copy), h("p", { class: "hint" }, "It opens the same at every server over the same knowledge base.")),
      state.program ? h("section", { class: "card stack", "aria-label": "File" }, h("h2", {}, "File"), h("div", { class: "row" }, labelled("Form", this.form)), this.preview) : null,
    );
    if (state.program) this.draw();
  }

  async draw() {
    const { program, question } = now();
    const form = this.form.value;
    let made;
    try {
      made = await this.make({ kb: this.app.kb, program, form, ...(question ? { question } : {}) });
    } catch (problem) {
      if (!api.isAbandoned(problem)) put(this.preview, problemNote(problem, "It cannot be written in this form"));
      return;
    }
    const copy = button("Copy", () => copied(made.text, copy));
    put(
      this.preview,
      h("div", { class: "row" }, button("Download", () => save(made.name, made.type, made.text), { kind: "main" }), copy, h("span", { class: "small muted" }, said(made.name), `, ${Math.max(1, Math.round(new Blob([made.text]).size / 1024))} KB`)),
      form === "svg" ? h("figure", { class: "picture" }, h("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(made.text)}`, alt: `The program as a flow chart: ${program.slice(0, 300)}` })) : form === "html" ? note("info", "One file, no network", h("p", {}, "Question, program, what every step gives and the answer, for papers and issues.")) : h("pre", { class: "code tall", tabindex: "0", role: "region", "aria-label": "The file" }, made.text.length > 20_000 ? `${made.text.slice(0, 20_000)}\n\u2026` : made.text),
    );
  }
}

offer("program", ({ program }) => (program ? h("p", { class: "row" }, h("a", { class: "button", href: link({ tab: "sparql", program }) }, "As SPARQL"), h("a", { class: "button", href: link({ tab: "share", program }) }, "Share or export")) : null));
