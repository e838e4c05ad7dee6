// Ask: a question, its answer, how sure the parser is of it, and what the answer rests on.

import * as api from "./api.js";
import { same } from "./chart.js";
import { mends } from "./edit.js";
import { answerText, confidence, explaining, explanation, formText, isSure, LONGEST_QUESTION } from "./pieces.js";
import { append, button, count, counted, cut, h, labelled, note, percent, problemNote, put, said, saidWhole, say, visible } from "./dom.js";
import { asked, forgetAsked, go, link, now, offered, remember, viewed } from "./state.js";

export const screen = {
  name: "ask",
  title: "Ask",
  key: "1",
  keys: [
    ["Enter", "ask"],
    ["Shift+Enter", "a new line"],
  ],
  show: viewed((element, app) => new Ask(element, app)),
};

const READINGS = 4; // programs that the parser thinks of
const EXAMPLES = 6;
const KINDS = 5; // of things, told on the first screen

class Ask {
  constructor(element, app) {
    Object.assign(this, { element, app });
    this.shown = null;
    this.seed = 0;
    this.asking = api.latest((question, options) => api.ask({ question, top: READINGS, beams: READINGS, kb: app.kb }, options));
    this.explaining = explaining(app.kb);
    this.field = h("textarea", {
      rows: 1,
      name: "question",
      class: "question",
      placeholder: "Ask a question",
      on: {
        keydown: (event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          this.submit();
        },
        input: () => this.fit(),
      },
    });
    this.head = h("div", { class: "stack tight" });
    this.form = h(
      "form",
      { class: "ask-form", on: { submit: (event) => (event.preventDefault(), this.submit()) } },
      labelled("Your question", this.field, { hidden: true }),
      h("button", { type: "submit", class: "button main large" }, "Ask"),
    );
    this.notice = h("div", {});
    this.results = h("div", { class: "stack", "aria-live": "polite", "aria-busy": "false" });
    this.examples = h("section", { class: "stack tight", "aria-label": "Examples" });
    this.history = h("div", {});
    put(element, this.head, this.form, this.notice, this.results, this.examples, this.history);
    this.drawHead();
    this.drawNotice();
    this.drawExamples();
  }

  submit() {
    const question = this.field.value.trim().replace(/\s+/g, " ");
    if (!question) {
      go({ question: null, program: null });
      put(this.results, note("info", "Type a question first"));
      say("Type a question first");
      return this.field.focus();
    }
    if (question === this.shown) this.ask(question);
    else go({ question, program: null });
    return null;
  }

  show(state) {
    const question = state.question || null;
    this.drawHistory();
    this.examples.hidden = question !== null;
    if (question === this.shown) return;
    this.field.value = question || "";
    this.fit();
    if (question) this.ask(question);
    else {
      this.shown = null;
      put(this.results);
      this.drawNotice();
    }
  }

  fit() {
    for (this.field.rows = 1; this.field.rows < 6 && this.field.scrollHeight > this.field.clientHeight + 1; ) this.field.rows += 1;
  }

  // --- asking -----------------------------------------------------------------------------------

  async ask(question) {
    this.shown = question;
    const can = this.app.can("ask");
    if (!can.yes) {
      put(this.results);
      this.drawNotice(question);
      say("Nobody can read this question yet");
      return;
    }
    const length = [...question].length;
    if (length > LONGEST_QUESTION) {
      this.asking.stop();
      put(this.results, note("warn", "This question is too long", h("p", {}, `It has ${count(length)} characters; a question may have ${count(LONGEST_QUESTION)}. Make it shorter, then ask again.`)));
      return;
    }
    remember(question, this.app.kb);
    this.drawHistory();
    this.results.setAttribute("aria-busy", "true");
    put(this.results, h("p", { class: "row muted" }, h("span", { class: "spin", "aria-hidden": "true" }), "Reading the question\u2026"));
    try {
      const found = await this.asking(question);
      this.draw(found);
      this.share(question, found.answers[0]);
    } catch (problem) {
      if (api.isAbandoned(problem)) return;
      put(this.results, problemNote(problem), api.mayPass(problem) ? button("Try again", () => this.ask(question)) : null);
    } finally {
      this.results.setAttribute("aria-busy", "false");
    }
  }

  draw(found) {
    const [first, ...others] = found.answers;
    if (!first) {
      put(this.results, note("warn", "No program was found for this question", h("p", {}, "Say it in other words, or write the program yourself.")));
      return;
    }
    put(
      this.results,
      this.card(first, found),
      offered("answer", { app: this.app, kb: this.app.kb, question: found.question, program: first.text || null, view: first.program, answer: first.answer, before: first.text || null, reading: first }),
      others.length ? this.others(others) : null,
    );
    say(first.refused ? `I do not know: ${first.refused.message}` : first.answer ? `Answer: ${first.answer.answers.slice(0, 3).join(", ") || "nothing was found"}` : "No answer");
  }

  /** Let the other screens open the program of the answer that is shown, too. */
  share(question, reading) {
    const state = now();
    const program = reading?.refused ? null : reading?.program?.text;
    if (program && state.tab === screen.name && state.question === question && !state.program) go({ program, form: formText(reading.form) }, { replace: true });
  }

  card(reading, found) {
    const program = reading.program?.text || reading.text;
    return h(
      "article",
      { class: "card stack answer-card" },
      reading.read_as ? h("p", { class: "muted" }, "Read as: ", said(reading.read_as, { most: 300 })) : null,
      reading.refused ? this.refusal(reading, program, found.why_empty) : reading.error ? problemNote(reading.error, "The program that was found cannot be run") : answerText(reading.answer),
      h("div", { class: "row" }, reading.refused ? null : confidence(reading), program ? h("a", { class: `button ${reading.refused ? "" : "push"}`, href: link({ tab: "program", program, form: formText(reading.form) }) }, "Look inside and mend") : null),
      !reading.refused && !isSure(reading) ? h("p", { class: "small" }, "The parser is not sure that it read the question rightly. Look at the program before you trust the answer.") : null,
      reading.unsaid?.length && !reading.refused ? this.unsaid(reading) : null,
      reading.answer && !reading.refused && found.why_empty ? this.whyEmpty(found.why_empty, reading) : null,
      (found.why_empty ? [] : reading.answer?.hints || []).map((hint) => h("p", { class: "hint" }, saidWhole(hint))),
      reading.program && !reading.refused ? explanation(program, this.explaining, { quiet: Boolean(reading.error) }) : program && !reading.refused ? h("p", { class: "small" }, h("code", {}, cut(visible(program), 400))) : null,
    );
  }

  refusal(reading, program, why) {
    const { refused } = reading;
    const nearly = reading.answer?.answers || [];
    return h(
      "div",
      { class: "stack tight" },
      h("p", { class: "answer is-none" }, "I do not know"),
      h("p", {}, saidWhole(sentence(refused.message))),
      refused.kind === "premise" && why ? h("p", {}, saidWhole(sentence(why.message.replace(/^its input has/, "there is")))) : null,
      refused.said?.length ? h("p", { class: "row small" }, h("span", { class: "muted" }, "What it does not know:"), h("span", { class: "chips" }, refused.said.map((word) => h("span", { class: "chip" }, said(word))))) : null,
      refused.near?.length ? h("p", { class: "row small" }, h("span", { class: "muted" }, "Names that are near:"), h("span", { class: "chips" }, refused.near.map((word) => h("span", { class: "chip" }, said(word))))) : null,
      program ? h("details", { class: "fold" }, h("summary", {}, "What it nearly said"), h("div", { class: "stack tight" }, confidence(reading), nearly.length ? h("p", {}, said(nearly.slice(0, 5).join("; "), { most: 400 })) : null, h("p", { class: "small" }, h("code", {}, cut(visible(program), 400))), reading.unsaid?.length ? this.unsaid(reading) : null)) : null,
    );
  }

  unsaid(reading) {
    return note("warn", "The question does not say", h("div", { class: "chips" }, reading.unsaid.map((name) => h("span", { class: "chip" }, said(name)))), h("p", { class: "small" }, "The program names this all the same; it may be meant, or made up."));
  }

  whyEmpty(why, reading) {
    const call = reading.program?.calls.find((one) => same(one.path, why.path));
    if (reading.form) return note("info", "Why the answer is no", h("p", {}, saidWhole(sentence(why.message))));
    return note(
      "warn",
      "Why nothing was found",
      h("p", {}, saidWhole(why.message || `Nothing was left at ${why.text}`)),
      call ? mends(call, reading.program.draft, this.app, (operations) => this.mend(reading, operations)) : null,
    );
  }

  /** One click: the program with another name in it. */
  async mend(reading, operations) {
    try {
      const view = await api.editAll({ kb: this.app.kb, program: reading.program.draft }, operations);
      go({ tab: "program", program: view.text, form: formText(reading.form) });
    } catch (problem) {
      this.results.append(problemNote(problem));
    }
  }

  others(readings) {
    return h(
      "details",
      { class: "fold" },
      h("summary", {}, `Other ways to read the question (${readings.length})`),
      h(
        "ul",
        { class: "stack tight" },
        readings.map((reading) => {
          const program = reading.program?.text || reading.text;
          const found = reading.answer ? (reading.answer.count ? reading.answer.answers.slice(0, 5).join("; ") : "nothing") : reading.error ? "cannot be run" : "no answer";
          return h(
            "li",
            { class: "card reading" },
            h("p", { class: "row ends baseline" }, h("strong", {}, said(found, { most: 200 })), h("span", { class: "muted small nowrap" }, percent(reading.confidence))),
            h("p", { class: "row ends" }, h("code", { class: "muted small" }, cut(visible(program || "(nothing that can be read)"), 300)), program ? h("a", { class: "small", href: link({ tab: "program", program, form: formText(reading.form) }) }, "Open") : null),
          );
        }),
      ),
    );
  }

  // --- the first screen ----------------------------------------------------------------------------

  drawHead() {
    const base = this.app.base;
    const lead = h("p", { class: "lead" }, `${counted(base.entities, "thing")} and ${counted(base.facts, "fact")}.`);
    put(this.head, h("h1", {}, "Ask about ", said(base.name, { most: 60 })), lead);
    api.schema({ kb: this.app.kb }).then(
      ({ concepts }) => {
        const kinds = widest(concepts);
        if (kinds.length) append(lead, " Among them: ", kinds.map((one, index) => [index ? ", " : "", h("a", { href: link({ tab: "base", concept: one.name, id: null }) }, said(one.name, { most: 60 })), ` (${count(one.count)})`]), ".");
      },
      () => null, // the figures alone do
    );
  }

  drawNotice(question = null) {
    const can = this.app.can("ask");
    if (can.yes) return put(this.notice);
    const train = this.app.can("train");
    const failed = h("p", { class: "wrong", "aria-live": "polite" });
    const start = async (event) => {
      event.currentTarget.disabled = true;
      try {
        await api.train({ what: "default" });
        go({ tab: "learn" });
      } catch (problem) {
        event.target.disabled = false;
        failed.textContent = visible([problem.message, problem.to_try].filter(Boolean).join(" "));
      }
    };
    return put(
      this.notice,
      note(
        "info",
        question ? "Nobody can read this question yet" : "No parser has been trained yet",
        h("p", {}, question ? "A trained parser turns questions into programs; none is loaded here. You can write the program yourself." : "A parser turns questions into programs. Everything else works now: write a program with suggestions, run it, and look at every step. The examples below are good beginnings."),
        can.why && this.app.info.run ? h("p", { class: "small" }, saidWhole(sentence(can.why))) : null,
        h("div", { class: "row" }, h("a", { class: "button main", href: link({ tab: "program", program: "?" }) }, question ? "Write the program" : "Write a program"), train.yes ? button("Train the default parser", start) : null),
        !train.yes && train.why ? h("p", { class: "small" }, saidWhole(sentence(train.why))) : null,
        failed,
      ),
    );
  }

  async drawExamples() {
    const list = h("ul", { class: "examples" });
    put(
      this.examples,
      h("div", { class: "row ends" }, h("h2", {}, "What it knows, for example"), button("Other examples", () => this.otherExamples(), { kind: "bare" })),
      list,
    );
    put(list, drawing());
    try {
      const found = await api.examples({ kb: this.app.kb, seed: this.seed, count: EXAMPLES });
      put(list, found.examples.map((one) => this.example(one)));
      if (!found.examples.length) put(this.examples);
    } catch (problem) {
      put(list, problemNote(problem));
    }
  }

  async otherExamples() {
    this.seed += 1;
    await this.drawExamples();
    this.examples.querySelector("button")?.focus();
  }

  example(one) {
    const asks = one.question && this.app.can("ask").yes;
    const href = asks ? link({ question: one.question, program: null }) : link({ tab: "program", program: one.program, question: one.question });
    const answers = (one.answers || []).slice(0, 3).join(", ");
    return h(
      "li",
      {},
      h(
        "a",
        { class: "example", href },
        h("span", { class: "example-text" }, said(one.question || one.about, { most: 200 })),
        answers && !asks ? h("span", { class: "muted small" }, "\u2192 ", said(answers, { most: 80 })) : null,
      ),
    );
  }

  drawHistory() {
    const before = asked().filter((one) => one.kb === this.app.kb);
    if (!before.length) return put(this.history);
    const open = this.history.querySelector("details")?.open || false;
    return put(
      this.history,
      h(
        "details",
        { class: "fold", open },
        h("summary", {}, `Asked before (${before.length})`),
        h("ul", { class: "stack tight" }, before.map((one) => h("li", {}, h("a", { href: link({ question: one.question, program: null }) }, said(one.question, { most: 200 }))))),
        h("p", {}, button("Forget them", () => (forgetAsked(), this.drawHistory()), { kind: "link", class: "small" })),
      ),
    );
  }
}

/** The kinds of things that say in few words what there is: those at the top, and instead of one that
 * has nearly everything those right below it. */
function widest(concepts) {
  const there = concepts.filter((one) => one.count > 0);
  const names = new Set(there.map((one) => one.name));
  const below = (name) => there.filter((one) => (one.parents || []).includes(name));
  let found = there.filter((one) => !(one.parents || []).some((name) => names.has(name)));
  for (let turn = 0; turn < KINDS && found.length && found.length < KINDS; turn += 1) {
    const [largest, ...others] = found.sort((one, other) => other.count - one.count);
    const inside = below(largest.name);
    if (!inside.length) break;
    found = [...inside, ...others.filter((one) => !inside.includes(one))];
  }
  return found.sort((one, other) => other.count - one.count).slice(0, KINDS);
}

/** A sign that examples are still being drawn. */
export function drawing() {
  return h("li", { class: "row muted" }, h("span", { class: "spin", "aria-hidden": "true" }), "Drawing examples\u2026");
}

/** A remark of the server as a sentence. */
function sentence(text) {
  if (!text) return "";
  return text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
