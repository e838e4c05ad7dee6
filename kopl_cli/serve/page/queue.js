// What people say of answers: a bar of verdicts for other screens, a queue of questions with the
// least confident first and one decision a key, and all that was kept.

import * as api from "./api.js";
import { button, count, counted, h, isTyping, labelled, note, percent, problemNote, put, said, saidWhole, say } from "./dom.js";
import { download } from "./files.js";
import { explaining, explanation, formText, LONGEST_QUESTION } from "./pieces.js";
import { go, link, offer, prefer, preference, viewed } from "./state.js";

// Each with its key in the queue, the word on its button, and what it means.
export const VERDICTS = [
  ["r", "right", "Right", "the program says what the question means"],
  ["c", "corrected", "Correct it", "another program does: write it"],
  ["u", "unclear", "Unclear", "nobody can tell what is meant"],
  ["n", "not in the knowledge base", "Not in the knowledge base", "the knowledge base does not have this"],
  ["w", "wrong data", "Wrong data", "the program is right, the facts are not"],
];
// What may be said of a program that is saved.
const SAVED = [
  ["right", "is right as it was read"],
  ["corrected", "is the corrected one"],
  ["wrong data", "is right, but the data are wrong"],
];
// Refusals of what is no question, or of what may mean several things.
const NO_QUESTION = ["language", "ambiguous"];
const FORMS = [
  ["training", "Questions to train on (JSON lines)"],
  ["kqapro", "KQA Pro's file"],
  ["label-studio", "Label Studio: tasks"],
  ["label-studio-interface", "Label Studio: the interface"],
];
const SHOWN = 200;
// Few at once: what one reader is given, others are given last.
const BATCH = 4;
// How long until the server is asked again what it has answered, in milliseconds.
const PAUSE = 1500;
// Several who judge at once are given different questions first.
const READER = reader();
// A reload is the same reader. One who has two tabs open is two.
function reader() {
  const name = "kopl.reader";
  try {
    const known = sessionStorage.getItem(name) || crypto.randomUUID?.() || String(Math.random());
    sessionStorage.setItem(name, known);
    return known;
  } catch {
    return String(Math.random());
  }
}
// Questions of one request stay below what a request may hold.
const LONGEST = 48_000;

export const screen = {
  name: "queue",
  title: "Review",
  key: "5",
  keys: [...VERDICTS.map(([key, , word]) => [key, word]), ["j", "skip this question"], ["k", "back to the one before"], ["z", "take the last verdict back"]],
  show: viewed((element, app) => new View(element, app)),
};

// --- a verdict, wherever an answer stands --------------------------------------------------------

/** Keep a verdict; `about` has question, verdict, and what else the server takes. */
async function kept(about, kb) {
  const line = await api.keep({ kb, ...about, author: preference("author") || "" });
  say(`Kept: ${line.verdict}`);
  dispatchEvent(new CustomEvent("kopl-kept", { detail: line }));
  return line;
}

/** What was predicted, as a line of corrections has it; null where nothing was. */
function predictedOf(answer) {
  if (!answer) return null;
  // The program behind a refusal was shown to nobody, so that nobody can judge it.
  if (answer.refused) return { program: null, answers: [], confidence: answer.confidence ?? 0, refused: true };
  return { program: answer.program?.text ?? answer.text ?? null, answers: answer.answer?.answers ?? [], confidence: answer.confidence ?? 0, ...(answer.form ? { answer_form: answer.form } : {}) };
}

/** A field for the name of the one who judges; this browser remembers it. */
function nameField() {
  const field = h("input", { type: "text", class: "short", value: preference("author") || "", autocomplete: "name", maxlength: "100", on: { input: () => prefer("author", field.value.trim() || null) } });
  return labelled("Your name (may stay empty)", field);
}

/** The verdicts that may be given on an answer, as those of `VERDICTS`; under a refusal they judge the refusal. */
function choices(answer) {
  if (!answer?.refused) {
    const has = Boolean(predictedOf(answer)?.program) && !answer.error;
    return VERDICTS.filter(([, verdict]) => has || !["right", "wrong data"].includes(verdict)).map(([key, verdict, word, means]) => [key, verdict, verdict === "corrected" && !has ? "Write the program" : word, means]);
  }
  const meant = NO_QUESTION.includes(answer.refused.kind) ? "unclear" : "not in the knowledge base";
  const others = VERDICTS.filter(([, verdict]) => !["right", "wrong data", "corrected", meant].includes(verdict));
  return [
    ["r", meant, "Right to refuse", meant === "unclear" ? "nobody can tell what is meant" : "the knowledge base does not have this"],
    ["c", "corrected", "Write the program", "there is an answer: write the program that finds it"],
    ...others,
  ];
}

// What was answered to a question, for when its program is mended elsewhere.
const readings = new Map();

/** Buttons that judge what the server answered (`reading`) to a question. */
export function verdicts({ question, reading, kb }) {
  const told = h("div", { "aria-live": "polite" });
  const predicted = predictedOf(reading);
  readings.set(question, reading);
  const has = Boolean(predicted?.program);
  const asked = reading?.refused ? "Was it right to refuse?" : "Is this right?";
  const box = h(
    "div",
    { class: "stack tight verdicts", role: "group", "aria-label": asked },
    h(
      "div",
      { class: "row" },
      h("span", { class: "small muted" }, asked),
      choices(reading).map(([, verdict, word, means]) => button(word, () => judge(verdict), { title: means, "data-verdict": verdict })),
    ),
    h("details", { class: "fold small" }, h("summary", {}, "Sign with your name"), nameField()),
    told,
  );
  return box;

  async function judge(verdict) {
    if (verdict === "corrected") return go({ tab: "program", question, program: predicted?.program ?? "?", form: formText(predicted?.answer_form) });
    if (verdict === "wrong data") return put(told, truthForm((truth) => send({ verdict, truth })));
    await send({ verdict });
  }

  async function send(more) {
    try {
      const line = await kept({ question, ...(has && ["right", "wrong data"].includes(more.verdict) ? { program: predicted.program } : {}), ...(predicted ? { predicted } : {}), ...more }, kb);
      for (const each of box.querySelectorAll("[data-verdict]")) each.setAttribute("aria-pressed", String(each.dataset.verdict === more.verdict));
      put(told, keptNote(line));
    } catch (problem) {
      put(told, problemNote(problem));
    }
  }
}

// Of wrong data one may say what they should be.
function truthForm(send) {
  const field = h("input", { type: "text" });
  const form = h("form", { class: "row", on: { submit: (event) => (event.preventDefault(), send(field.value.trim() ? [field.value.trim()] : [])) } }, labelled("What should the facts say? (may stay empty)", field), h("button", { class: "button", type: "submit" }, "Keep"));
  setTimeout(() => field.focus());
  return form;
}

function keptNote(line) {
  return h("p", { class: "row small" }, h("span", { class: "badge good" }, "kept"), said(line.verdict), h("a", { href: link({ tab: "learn" }) }, "Learn from what was kept"));
}

// What was typed into the form before the program was changed once more.
let typed = {};

/** A form that keeps the program at hand as the right one for a question. */
function saveForm({ question, program, form: answer_form, kb }) {
  if (!program) return null;
  if (typed.about !== question) typed = { about: question, question: question || "", note: "", verdict: null };
  const reading = readings.get(question);
  const told = h("div", { "aria-live": "polite" });
  const asked = h("input", { type: "text", value: typed.question, autocomplete: "off", on: { input: () => (typed.question = asked.value) } });
  const remark = h("input", { type: "text", value: typed.note, autocomplete: "off", on: { input: () => (typed.note = remark.value) } });
  const verdict = h("select", { on: { change: () => (typed.verdict = verdict.value) } }, SAVED.map(([one, word]) => h("option", { value: one }, word)));
  verdict.value = typed.verdict || (reading && predictedOf(reading).program === program ? "right" : "corrected");
  const fold = h(
    "details",
    { class: "fold", open: typed.open ?? Boolean(question), on: { toggle: () => (typed.open = fold.open) } },
    h("summary", {}, "Save for the parser to learn"),
    h(
      "div",
      { class: "stack" },
      labelled("Question", asked),
      h("div", { class: "row grow" }, labelled("This program", verdict), labelled("Note (may stay empty)", remark), nameField()),
      h("div", { class: "row" }, h("button", { class: "button main", type: "submit" }, "Save"), told),
    ),
  );
  const form = h("form", { class: "card save", "aria-label": "Save", on: { submit: send } }, fold);
  return form;

  async function send(event) {
    event.preventDefault();
    if (!asked.value.trim()) {
      put(told, note("warn", "Which question is this the program of?"));
      asked.focus();
      return;
    }
    const predicted = predictedOf(readings.get(asked.value.trim()));
    try {
      const line = await kept({ question: asked.value.trim(), verdict: verdict.value, program, ...(answer_form ? { answer_form } : {}), ...(predicted ? { predicted } : {}), ...(remark.value.trim() ? { note: remark.value.trim() } : {}) }, kb);
      typed = { ...typed, note: "", verdict: null };
      remark.value = "";
      put(told, keptNote(line));
    } catch (problem) {
      put(told, problemNote(problem, "It was not kept"));
    }
  }
}

offer("answer", verdicts);
offer("program", saveForm);

// --- the screen ----------------------------------------------------------------------------------

class View {
  constructor(element, app) {
    this.element = element;
    this.app = app;
    this.items = [];
    this.explaining = explaining(app.kb);
    this.at = 0;
    this.back = false;
    this.last = null;
    this.card = h("section", { class: "stack", "aria-label": "The question to judge", "aria-live": "polite" });
    this.kept = h("section", { class: "stack", "aria-label": "Saved corrections" });
    this.told = h("div", { "aria-live": "polite" });
    put(element, h("div", { class: "stack tight" }, h("h1", {}, "Review"), h("p", { class: "lead" }, "Judge the parser\u2019s answers, the least certain first, with one key each. The parser learns from what you say.")), this.card, this.more(), this.kept);
    document.addEventListener("keydown", (event) => this.keyed(event));
    addEventListener("kopl-kept", () => this.list());
    this.list();
  }

  async show() {
    const passed = this.items.slice(0, this.at + 1).filter((one) => !one.judged).length;
    try {
      this.took(await api.queue({ kb: this.app.kb, limit: BATCH + passed, reader: READER }));
    } catch (problem) {
      put(this.card, problemNote(problem));
    }
  }

  // What was passed stays for going back; what is still to be judged comes behind it.
  took(found) {
    this.count = found.count;
    this.left = found.left;
    this.asking = found.asking || 0;
    this.making = Boolean(found.generating);
    clearTimeout(this.later);
    if (this.asking || found.generating) this.later = setTimeout(() => this.element.hidden || this.show(), PAUSE);
    const fresh = new Map(found.items.map((one) => [one.id, one]));
    const renewed = (one) => (one.judged ? one : fresh.get(one.id) || one);
    // One that nobody has asked yet gives way to those that are.
    const current = this.items[this.at];
    const passed = this.items.slice(0, this.at + (current?.answer || current?.judged ? 1 : 0)).map(renewed);
    const known = new Set(passed.map((one) => one.id));
    this.items = [...passed, ...found.items.filter((one) => !one.judged && !known.has(one.id))];
    if (this.items[this.at]?.judged && !this.back) this.at = Math.min(this.at + 1, this.items.length);
    this.draw();
  }

  // --- one question -----------------------------------------------------------------------------

  draw() {
    const item = this.items[this.at];
    const making = this.making ? h("p", { class: "row small muted" }, h("span", { class: "spin", "aria-hidden": "true" }), "Questions are being made") : null;
    if (!item && making) return put(this.card, h("div", { class: "empty" }, making));
    if (!item && this.left && !this.asking) {
      put(this.card, h("div", { class: "empty" }, h("p", {}, `${counted(this.left, "question was", "questions were")} skipped.`), button("Look at them again", () => this.again(), { kind: "main" })));
      return;
    }
    if (!item || (!item.answer && !item.judged && this.asking)) {
      put(this.card, this.asking ? h("p", { class: "empty" }, h("span", { class: "spin", "aria-hidden": "true" }), `${counted(this.asking, "question")} are still being asked.`) : h("p", { class: "empty" }, this.count ? "All questions are judged." : "No question waits. Add some below."));
      return;
    }
    const { top, refused } = topOf(item);
    const hidden = top?.refused ? top.program?.text || top.text : null;
    const done = this.count - this.left;
    const predicted = predictedOf(top);
    put(
      this.card,
      h("div", { class: "row ends small muted" }, h("span", {}, `${count(done)} of ${count(this.count)} judged`), this.asking ? h("span", {}, `${count(this.asking)} still being asked`) : null),
      h("progress", { max: this.count || 1, value: done, "aria-label": "How many are judged" }),
      making,
      h(
        "div",
        { class: "card stack" },
        h("h2", {}, saidWhole(item.question, { most: 400 })),
        h(
          "div",
          { class: "row baseline" },
          predicted?.answers.length ? h("strong", { class: "big-answer" }, said(predicted.answers.join("; "), { most: 300 })) : h("span", { class: "muted" }, refused ? said(refused.message, { most: 300 }) : item.answer ? "no answer" : "no parser has read it"),
          item.answer ? h("span", { class: `badge ${item.confidence >= 0.5 ? "accent" : "warn"}` }, `${percent(item.confidence)} sure`) : null,
          item.judged ? h("span", { class: "badge good" }, said(item.judged)) : null,
        ),
        h(
          "div",
          { class: "row judging", role: "group", "aria-label": "Verdict" },
          choices(top).map(([key, verdict, word, means]) => button([h("kbd", {}, key), " ", word], () => this.judge(verdict), { title: means, "data-verdict": verdict, "aria-keyshortcuts": key, "aria-pressed": String(item.judged === verdict) })),
        ),
        h(
          "div",
          { class: "row" },
          button([h("kbd", {}, "k"), " Back"], () => this.move(-1), { kind: "bare", disabled: this.at === 0, "aria-keyshortcuts": "k" }),
          button([h("kbd", {}, "j"), " Skip"], () => this.move(1), { kind: "bare", "aria-keyshortcuts": "j" }),
          button([h("kbd", {}, "z"), " Take back"], () => this.takeBack(), { kind: "bare", disabled: !this.last, "aria-keyshortcuts": "z" }),
        ),
        this.told,
        predicted?.program ? this.explained(item, predicted.program) : null,
        hidden ? h("details", { class: "fold" }, h("summary", {}, "What it nearly said"), h("pre", { class: "code" }, saidWhole(hidden, { most: 600, tag: "code" }))) : null,
        (this.named ||= h("details", { class: "fold small" }, h("summary", {}, "Sign with your name"), nameField())),
      ),
    );
  }

  // The same element for as long as the same question is shown.
  explained(item, program) {
    const about = JSON.stringify([item.id, program]);
    if (this.explanation?.about !== about) this.explanation = { about, element: explanation(program, this.explaining, { heading: "h3" }) };
    return this.explanation.element;
  }

  async judge(verdict) {
    const item = this.items[this.at];
    if (!item || this.sending) return;
    const { top } = topOf(item);
    const predicted = predictedOf(top);
    if (!choices(top).some(([, one]) => one === verdict)) return;
    if (verdict === "corrected") {
      readings.set(item.question, top);
      return go({ tab: "program", question: item.question, program: predicted?.program ?? "?", form: formText(predicted?.answer_form) });
    }
    this.sending = true;
    try {
      const program = ["right", "wrong data"].includes(verdict) ? { program: predicted.program } : {};
      const line = await kept({ item: item.id, question: item.question, verdict, ...program, ...(predicted ? { predicted } : {}) }, this.app.kb);
      if (!item.judged) this.left -= 1;
      item.judged = verdict;
      this.last = { line, item };
      put(this.told);
      this.back = false;
      await this.show();
    } catch (problem) {
      put(this.told, problemNote(problem, "It was not kept"));
    } finally {
      this.sending = false;
    }
  }

  move(by) {
    if (!this.items.length) return;
    this.at = Math.min(this.items.length, Math.max(0, this.at + by));
    this.back = by < 0;
    put(this.told);
    if (by > 0) this.show();
    else this.draw();
  }

  again() {
    this.items = [];
    this.at = 0;
    this.show();
  }

  async takeBack() {
    if (!this.last) return;
    const { line, item } = this.last;
    this.last = null;
    try {
      await api.takeBack(line.id, { kb: this.app.kb });
      this.at = Math.max(0, this.items.findIndex((one) => one.id === item.id));
      if (this.items[this.at]) this.items[this.at].judged = null;
      say("Taken back");
      await this.show();
      this.list();
    } catch (problem) {
      put(this.told, problemNote(problem));
    }
  }

  keyed(event) {
    if (this.element.hidden || !this.element.isConnected || event.defaultPrevented) return;
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || preference("keys") === "off") return;
    if (document.querySelector("dialog[open]")) return;
    const item = this.items[this.at];
    const meant = [...(item ? choices(topOf(item).top) : []), ...VERDICTS];
    const verdict = meant.find(([key]) => key === event.key)?.[1];
    const action = verdict ? () => this.judge(verdict) : { j: () => this.move(1), k: () => this.move(-1), z: () => this.takeBack() }[event.key];
    if (!action || !this.items.length) return;
    event.preventDefault();
    action();
  }

  // --- more questions ---------------------------------------------------------------------------

  more() {
    const text = h("textarea", { rows: "4", autocomplete: "off" });
    const file = h("input", { type: "file", accept: ".txt,.csv,.tsv,.jsonl,.json" });
    const number = h("input", { type: "number", value: "50", min: "1", max: "1000", step: "1" });
    const told = h("div", { "aria-live": "polite" });
    const add = async (body) => {
      put(told, h("p", { class: "row muted" }, h("span", { class: "spin", "aria-hidden": "true" }), "Asking them"));
      try {
        for (const each of body) await api.fillQueue({ kb: this.app.kb, ...each });
        put(told);
        text.value = "";
        file.value = "";
        await this.show();
        say(`${counted(this.left, "question")} to judge`);
      } catch (problem) {
        put(told, problemNote(problem, "They were not added"));
      }
    };
    const lines = async () => {
      try {
        const given = file.files.length ? await questionsOf(file.files[0]) : checked(linesOf(text.value));
        if (!given.length) return put(told, note("info", "Write a question on each line, or choose a file."));
        await add(parts(given).map((questions) => ({ questions })));
      } catch (problem) {
        put(told, note("bad", file.files.length ? "The file cannot be read" : "They cannot be added", h("p", {}, saidWhole(problem.message))));
      }
    };
    return h(
      "details",
      { class: "fold card" },
      h("summary", {}, "Add questions"),
      h(
        "div",
        { class: "halves" },
        h("form", { class: "stack", "aria-label": "Questions of yours", on: { submit: (event) => (event.preventDefault(), lines()) } }, labelled("Questions, one on each line", text), labelled("or a file", file, { hint: "a line each, or JSON lines with \u201cquestion\u201d" }), h("div", {}, h("button", { class: "button", type: "submit" }, "Add these"))),
        h("form", { class: "stack", "aria-label": "Generated questions", on: { submit: (event) => (event.preventDefault(), add([{ generate: Number(number.value), seed: Math.floor(Math.random() * 1e6) }])) } }, labelled("How many generated questions", number, { hint: "drawn from this knowledge base" }), h("div", {}, h("button", { class: "button", type: "submit" }, "Generate"))),
      ),
      h("div", {}, button("Empty the queue", () => this.empty(told), { kind: "bare" })),
      told,
    );
  }

  async empty(told) {
    try {
      await api.emptyQueue({ kb: this.app.kb });
      say("The queue is empty");
      this.again();
    } catch (problem) {
      put(told, problemNote(problem));
    }
  }

  // --- what was kept ----------------------------------------------------------------------------

  async list() {
    let found;
    try {
      found = await api.corrections({ kb: this.app.kb });
    } catch (problem) {
      put(this.kept, problemNote(problem));
      return;
    }
    const lines = found.corrections.filter((one) => !one.removed);
    const form = h("select", {}, FORMS.map(([value, word]) => h("option", { value }, word)));
    put(
      this.kept,
      h("div", { class: "row ends" }, h("h2", {}, "Saved corrections ", h("span", { class: "badge" }, count(lines.length))), lines.length ? h("div", { class: "row" }, labelled("Form of the file", form, { hidden: true }), button("Download", () => this.export(form.value))) : null),
      this.exported ||= h("div", { "aria-live": "polite" }),
      lines.length ? h("ul", { class: "stack tight" }, lines.slice(0, SHOWN).map((one) => this.line(one))) : h("p", { class: "empty" }, "Nothing yet."),
      lines.length > SHOWN ? h("p", { class: "small muted" }, `${SHOWN} of ${count(lines.length)}`) : null,
    );
  }

  line(one) {
    const tone = { right: "good", corrected: "accent", "wrong data": "bad" }[one.verdict] || "warn";
    return h(
      "li",
      { class: "card kept-line" },
      h("div", { class: "row baseline" }, h("span", { class: `badge ${tone}` }, said(one.verdict)), h("strong", {}, saidWhole(one.question, { most: 200 })), h("span", { class: "push row" }, one.program ? h("a", { class: "small", href: link({ tab: "program", question: one.question, program: one.program }), "aria-label": `Look at the program of: ${one.question}` }, "Look") : null, button("Delete", () => this.remove(one), { kind: "link", class: "small link", "aria-label": `Delete: ${one.question}` }))),
      one.before || one.answers?.length ? h("p", { class: "small" }, one.before ? [h("span", { class: "muted" }, "said "), said(one.before.answers?.join("; ") || "nothing", { most: 120 })] : null, one.verdict === "corrected" && one.answers && String(one.answers) !== String(one.before?.answers) ? [h("span", { class: "muted" }, " \u2192 right is "), said(one.answers.join("; ") || "nothing", { most: 120 })] : null) : null,
      h("p", { class: "small muted" }, said(one.author || "somebody", { most: 60 }), ", ", h("time", { datetime: one.time }, dated(one.time)), one.note ? [" \u00b7 ", said(one.note, { most: 200 })] : null),
    );
  }

  async remove(one) {
    try {
      await api.takeBack(one.id, { kb: this.app.kb });
      say("Deleted");
      await this.list();
    } catch (problem) {
      put(this.exported, problemNote(problem));
    }
  }

  async export(form) {
    try {
      await download(api.correctionsAddress(form, { kb: this.app.kb }), "corrections");
      put(this.exported);
    } catch (problem) {
      put(this.exported, problemNote(problem));
    }
  }
}

// The best answer to a question of the queue, and why there is none.
function topOf(item) {
  const top = item.answer?.answers?.[0];
  const best = top && typeof top === "object" ? top : item.answer;
  return { top: best?.program || best?.text ? best : null, refused: best?.refused || best?.error || null };
}

function dated(time) {
  const when = new Date(time);
  return Number.isNaN(when.getTime()) ? String(time) : when.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

/** The lines of a text that are not empty, with their numbers. */
function linesOf(text) {
  return text.split(/\r?\n/).map((line, at) => [`line ${count(at + 1)}`, line.trim()]).filter(([, line]) => line);
}

/** The questions of a file; fails with the line of what is none. */
async function questionsOf(file) {
  const text = await file.text();
  if (text.includes("\ufffd")) throw new Error("its letters are not written in UTF-8; save it so");
  if (/\.json$/i.test(file.name)) {
    const found = parsed(text, "the file");
    if (!Array.isArray(found)) throw new Error("it is no list of questions");
    return checked(found.map((one, at) => [`item ${count(at + 1)}`, questionOf(one)]));
  }
  const lines = linesOf(text);
  return checked(/\.jsonl$/i.test(file.name) ? lines.map(([place, line]) => [place, questionOf(parsed(line, place))]) : lines);
}

function parsed(text, place) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${place} is no JSON`);
  }
}

const questionOf = (one) => (typeof one === "string" ? one : one?.question);

function checked(questions) {
  return questions.map(([place, one]) => {
    if (typeof one !== "string") throw new Error(`${place} has no text in \u201cquestion\u201d`);
    const length = [...one].length;
    if (length > LONGEST_QUESTION) throw new Error(`${place} has ${count(length)} characters; a question may have ${count(LONGEST_QUESTION)}`);
    return one;
  }).filter((one) => one.trim());
}

// Parts that a request can hold.
function parts(questions) {
  const found = [[]];
  let size = 0;
  for (const one of questions) {
    const own = new TextEncoder().encode(JSON.stringify(one)).length + 2;
    if (size + own > LONGEST && found.at(-1).length) {
      found.push([]);
      size = 0;
    }
    found.at(-1).push(one);
    size += own;
  }
  return found;
}
