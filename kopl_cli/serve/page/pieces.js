// Parts that several screens show: facts, answers, how sure an answer is.

import * as api from "./api.js";
import { chart } from "./chart.js";
import { count, counted, cut, h, percent, problemNote, put, s, said, saidWhole, visible } from "./dom.js";
import { link } from "./state.js";

/** The characters that a question may have, as the server counts them. */
export const LONGEST_QUESTION = 2000;

/** A fact as a line: subject, relation or key, value, and its qualifiers below. */
export function factItem(fact) {
  if (!fact.subject) return h("li", { class: "fact-card" }, said(fact.text, { most: 400 }));
  const qualifiers = fact.qualifiers || [];
  const thing = (text, id) => (id ? h("a", { href: link({ tab: "base", id, concept: null }) }, said(text)) : said(text));
  const ends = [thing(fact.subject, fact.subject_id), thing(fact.value, fact.id)];
  if (fact.direction === "backward") ends.reverse();
  return h(
    "li",
    { class: "fact-card" },
    h("span", { class: "fact-line" }, ends[0], h("span", { class: "fact-relation" }, said(fact.relation || fact.key || "", { most: 80 })), ends[1]),
    qualifiers.length ? h("dl", { class: "fact-qualifiers" }, qualifiers.map(({ key, value: of }) => h("div", {}, h("dt", {}, said(key, { most: 80 })), h("dd", {}, said(of, { most: 160 }))))) : null,
  );
}

const IS = "is:";

/** How a reading is read as yes or no, as the address says it; null where it is not. */
export function formText(form) {
  if (!form) return null;
  return typeof form === "string" ? form : `${IS}${form.is}`;
}

/** The form that an address says, as the server has it; null for none. */
export function formOf(text) {
  if (text?.startsWith(IS)) return { is: text.slice(IS.length) };
  return text === "exists" ? text : null;
}

/** An answer in large letters: its texts, or that there is none. */
export function answerText(answer, { most = 12 } = {}) {
  if (!answer) return h("p", { class: "answer is-none" }, "No answer");
  if (!answer.count) return h("p", { class: "answer is-none" }, "Nothing was found");
  const shown = answer.answers.slice(0, most);
  if (answer.count === 1) return h("p", { class: "answer" }, saidWhole(shown[0]));
  const rest = answer.answers.slice(most);
  return h(
    "div",
    { class: "stack tight" },
    h("p", { class: "muted small" }, counted(answer.count, "answer")),
    h("ul", { class: "answers" }, shown.map((text) => h("li", {}, saidWhole(text)))),
    rest.length
      ? h(
          "details",
          { class: "fold" },
          h("summary", {}, answer.count > answer.answers.length ? `the first ${count(answer.answers.length)} of ${count(answer.count)}` : `all ${count(answer.count)}`),
          h("ul", { class: "answers" }, rest.map((text) => h("li", {}, saidWhole(text)))),
        )
      : null,
  );
}

// Words for how sure the parser is, each with the least confidence it stands for.
const WORDS = [
  [0.85, "Sure"],
  [0.6, "Fairly sure"],
  [0.4, "Not sure"],
  [0, "A guess"],
];
const UNSURE = 0.6; // who is less confident is not sure

/** Whether the parser is sure enough of a reading. */
export function isSure(reading) {
  return reading.sure && reading.confidence >= UNSURE;
}

/** How sure the parser is: a word, a number and a bar. */
export function confidence(reading) {
  const { confidence: share } = reading;
  const sure = isSure(reading);
  // A parser that was fitted for it may ask more than usual of itself.
  const word = WORDS.find(([least]) => share >= least && (sure || least < UNSURE))?.[1] ?? WORDS.at(-1)[1];
  return h(
    "p",
    { class: `confidence ${sure ? "is-sure" : "is-unsure"}` },
    s(
      "svg",
      { class: "confidence-bar", viewBox: "0 0 96 8", "aria-hidden": "true" },
      s("rect", { class: "confidence-all", width: 96, height: 8, rx: 4 }),
      s("rect", { class: "confidence-part", width: Math.max(4, 96 * share).toFixed(1), height: 8, rx: 4 }),
    ),
    h("span", {}, h("strong", {}, word), h("span", { class: "muted" }, ` \u00b7 ${percent(share)}`)),
  );
}

const FACTS = 50; // behind an answer

/** Runs programs for explanations, the newest one only. */
export function explaining(kb) {
  return api.latest((program, options) => api.run({ program, kb, shown: 3, evidence: true }, options));
}

/** How a question was read: the chart of the program, its text, and the facts behind the answer.
 * `run` is of `explaining`; `quiet`: why it does not run is said elsewhere. */
export function explanation(program, run, { quiet = false, heading = "h2" } = {}) {
  const whole = h("div", { class: "stack explained" }, h("p", { class: "muted small" }, "\u2026"));
  run(program).then(
    (ran) => {
      const picture = chart({ label: "How the question was read" });
      put(whole, h(heading, { class: "small" }, "How the question was read"), picture.element, h("p", { class: "small program-line" }, h("code", {}, cut(visible(program), 600))), factsBehind(ran.evidence));
      const steps = [];
      for (const step of ran.steps) steps[step.number] = step;
      picture.draw({ view: ran.view, steps });
    },
    (problem) => {
      if (!api.isAbandoned(problem)) put(whole, quiet ? null : problemNote(problem));
    },
  );
  return whole;
}

function factsBehind(evidence) {
  if (!evidence?.facts.length) return null;
  return h(
    "details",
    { class: "fold" },
    h("summary", {}, `The facts behind the answer (${count(evidence.count)})`),
    h("ul", { class: "facts" }, evidence.facts.slice(0, FACTS).map(factItem)),
    evidence.minimal === false ? h("p", { class: "hint" }, "Some of these may not be needed.") : null,
    evidence.count > FACTS ? h("p", { class: "hint" }, `and ${counted(evidence.count - FACTS, "more fact", "more facts")}`) : null,
  );
}
