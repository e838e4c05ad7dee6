// Program: the flow chart, every call with what it gives, and the changes that a person makes.

import * as api from "./api.js";
import { drawing } from "./ask.js";
import { chart, gave, LABELS, named, same, STATES } from "./chart.js";
import { callForm, KEYS, mends, nextFocus } from "./edit.js";
import { answerText, factItem, formOf, formText } from "./pieces.js";
import { button, count, counted, cut, h, isTyping, labelled, note, problemNote, put, rested, said, saidWhole, say, time, visible } from "./dom.js";
import { go, link, now, offered, preference, Undo, viewed } from "./state.js";

export const screen = { name: "program", title: "Program", key: "2", keys: KEYS, show: viewed((element, app) => new Desk(element, app)) };

const SHOWN = 10; // values of each call
const TYPING = 400; // milliseconds of rest before a typed text is read
const EDITED = 60;
const NOTHING = "?"; // a program that is one hole

/** Where a program is written: what is known of it, and all that shows it. */
class Desk {
  constructor(element, app) {
    Object.assign(this, { element, app });
    this.history = new Undo(null);
    this.text = null; // what the address says, null at first
    this.view = null;
    this.steps = [];
    this.known = new Map(); // what a part of a program gave, by its text
    this.pending = new Set();
    this.renewed = new Set();
    this.selected = null;
    this.swapping = null;
    this.everything = false;
    this.answer = this.why = this.problem = null;
    this.queue = Promise.resolve();
    this.loads = 0; // programs that came from elsewhere
    this.readAs = null; // the form of the address that the answer was read by
    this.started = null; // the program as it was before it was changed
    this.runLater = rested(() => this.run(), EDITED);
    this.readLater = rested((text) => this.read(text), TYPING);
    this.build();
    element.addEventListener("keydown", (event) => this.keyed(event));
    addEventListener("resize", () => this.fitField(), { passive: true });
    // Keys reach the screen also where nothing on it has the focus.
    document.addEventListener("keydown", (event) => element.isConnected && !element.hidden && event.target === document.body && this.keyed(event));
  }

  build() {
    this.field = h("textarea", {
      class: "code program-text",
      rows: 2,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      on: {
        input: () => {
          this.field.dataset.typed = "yes";
          this.readLater(this.field.value);
        },
        blur: () => this.view && !this.problem && this.write(this.shownText()),
      },
    });
    this.wrong = h("div", { class: "stack tight", "aria-live": "polite" });
    this.undoButton = button("Undo", () => this.back(), { title: "Ctrl+Z" });
    this.redoButton = button("Redo", () => this.forth(), { title: "Ctrl+Shift+Z" });
    this.tools = h("div", { class: "row" }, h("div", { class: "group" }, this.undoButton, this.redoButton), button("New", () => go({ program: null, question: null })));
    this.timing = h("span", { class: "muted small push nowrap" });
    this.head = h("div", { class: "stack tight" });
    this.chart = chart({ select: (path, from) => this.select(path, from), fitted: (wide, isTooWide) => this.arrange(wide, isTooWide) });
    this.list = h("ol", { class: "calls", "aria-label": "Steps, in the order in which they are run" });
    this.banner = h("div", {});
    this.result = h("section", { class: "card result", "aria-label": "What the program gives" });
    this.after = h("div", { class: "stack" });
    this.start = h("div", { class: "stack" });
    this.board = h(
      "div",
      { class: "stack board" },
      h("div", { class: "stack tight" }, labelled("Program", this.field, { hidden: true }), h("p", { class: "row hint" }, "A question mark stands for what is missing. Text, chart and steps change together.", this.timing), this.wrong),
      this.banner,
      (this.bench = h("div", { class: "bench" }, this.result, h("section", { class: "card chart-card", "aria-label": "Flow chart" }, this.chart.element), this.list)),
      this.after,
    );
    put(this.element, this.head, this.start, this.board);
  }

  // --- what the address says ----------------------------------------------------------------

  show(state) {
    const text = state.program || null;
    this.drawHead(state);
    if (text === null) this.clear();
    else if (text !== this.text) this.load(text);
    else if ((state.form || null) !== this.readAs) this.run();
  }

  clear() {
    this.loads += 1;
    this.running.stop();
    this.readLater.stop();
    this.runLater.stop();
    Object.assign(this, { text: null, view: null, steps: [], selected: null, started: null, answer: null, problem: null });
    this.history = new Undo(null);
    this.board.hidden = true;
    this.start.hidden = false;
    this.drawStart();
  }

  /** Show a program from elsewhere: a link, another screen, the back button. */
  async load(text) {
    const from = this.text;
    this.loads += 1;
    this.text = text;
    this.started = text;
    this.selected = this.view = null;
    this.list.replaceChildren();
    this.board.hidden = false;
    this.start.hidden = true;
    this.write(text === NOTHING ? "" : text);
    // What was on the desk before can be had again by undoing.
    if (from === null) this.history = new Undo(text);
    else this.history.push(text);
    this.fitField();
    await this.read(text, { quiet: true });
    if (text === NOTHING) this.focus({ path: [], focus: ":function" });
  }

  // --- changes ------------------------------------------------------------------------------

  /** Operations of /api/edit, after those that are under way; one change to undo. */
  change(operations, focus = null) {
    const { loads } = this;
    this.queue = this.queue.then(async () => {
      // A change of what has given way to another program is none of that one.
      if (loads !== this.loads) return;
      try {
        const view = await api.editAll({ kb: this.app.kb, program: this.view ? this.view.draft : null }, [operations].flat());
        await pointerIsFree();
        if (loads !== this.loads) return;
        this.problem = null;
        this.put(view, focus);
      } catch (problem) {
        if (loads !== this.loads) return;
        this.problem = problem;
        this.draw();
        say(problem.message);
      }
    });
    return this.queue;
  }

  /** A new view: values of the calls that did not change stay, the others are asked for. */
  put(view, focus = null, { typed = false } = {}) {
    this.view = view;
    this.carry();
    if (view.text !== this.text) {
      this.history.push(view.text);
      this.publish(view.text);
    }
    if (!typed) this.write(this.shownText());
    this.fitField();
    const next = nextFocus(focus, view);
    if (next) this.selected = next.path;
    else if (this.selected && !this.callAt(this.selected)) this.selected = null;
    this.draw();
    if (next) this.focus(next);
    this.runLater();
  }

  publish(text) {
    this.text = text;
    const state = now();
    if (state.tab === screen.name) go({ program: text }, { replace: true, quiet: true });
  }

  /** Put a text into the field, as something that nobody typed. */
  write(text) {
    this.field.value = text;
    delete this.field.dataset.typed;
  }

  shownText() {
    return this.view.text === NOTHING ? "" : this.view.text;
  }

  carry() {
    this.steps = [];
    this.pending = new Set();
    const parts = partsOf(this.view.calls);
    for (const call of this.view.calls) {
      const step = this.known.get(parts[call.number]);
      if (step) this.steps[call.number] = { ...step, number: call.number, path: call.path };
      else this.pending.add(call.number);
    }
  }

  async undoTo(text) {
    const active = document.activeElement;
    const among = this.list.contains(active) ? (active.closest("li")?.querySelector(".call-head")?.dataset.path ?? "") : null;
    this.selected = null;
    await this.read(text, { undoing: true });
    const lost = !document.activeElement || document.activeElement === document.body;
    if (among === null ? !lost || active === document.body : !lost) return;
    // The focus goes to the step that stands there now, or to the nearest around it.
    for (let path = among ? among.split(".").map(Number) : []; ; path = path.slice(0, -1)) {
      if (this.callAt(path) || !path.length) return this.focus({ path, focus: null });
    }
  }

  back() {
    if (this.history.canUndo) this.undoTo(this.history.undo());
  }

  forth() {
    if (this.history.canRedo) this.undoTo(this.history.redo());
  }

  /** Read a text and run it. `quiet`: the address says it already. */
  async read(text, { quiet = false, undoing = false } = {}) {
    this.readLater.stop();
    this.runLater.stop();
    try {
      const ran = await this.running(text || NOTHING);
      this.problem = null;
      const typed = document.activeElement === this.field && !quiet && !undoing;
      this.view = ran.view;
      if (!undoing && !quiet && ran.view.text !== this.text) this.history.push(ran.view.text);
      if (!quiet) this.publish(ran.view.text);
      if (!typed) this.write(this.shownText());
      this.fitField();
      if (this.view.calls.length === 1 && this.view.calls[0].function === null) this.selected = [];
      if (this.selected && !this.callAt(this.selected)) this.selected = null;
      this.carry();
      this.accept(ran, false);
    } catch (problem) {
      if (api.isAbandoned(problem)) return;
      this.problem = problem;
      this.draw();
    }
  }

  async run() {
    if (!this.view) return;
    try {
      const ran = await this.running(this.view.draft);
      await pointerIsFree();
      if (ran.view.text === this.view.text) this.accept(ran, true);
    } catch (problem) {
      if (api.isAbandoned(problem)) return;
      this.problem = problem;
      this.pending.clear();
      this.draw();
    }
  }

  running = api.latest((program, options) => {
    this.readAs = now().form || null;
    return api.run({ program, form: formOf(this.readAs), kb: this.app.kb, shown: SHOWN }, options);
  });

  /** What a run gave; `marked`: what is new is shown as new. */
  accept(ran, marked) {
    this.problem = null;
    const before = this.steps;
    this.view = ran.view;
    this.steps = [];
    for (const step of ran.steps) this.steps[step.number] = step;
    this.renewed = new Set(marked ? ran.steps.filter((step) => differ(before[step.number], step)).map((step) => step.number) : []);
    this.pending = new Set();
    this.answer = ran.answer;
    this.why = ran.why_empty;
    this.failed = ran.error || null;
    if (this.known.size > 2000) this.known.clear();
    const parts = partsOf(this.view.calls);
    for (const call of this.view.calls) {
      const step = this.steps[call.number];
      if (step && step.state !== "waiting") this.known.set(parts[call.number], step);
    }
    this.draw();
    if (marked) say(this.answer ? `Answer: ${this.answer.answers.slice(0, 3).join(", ") || "nothing"}` : "");
    this.renewed = new Set();
  }

  // --- drawing --------------------------------------------------------------------------------

  drawHead(state) {
    put(
      this.head,
      h("div", { class: "row ends" }, h("h1", {}, "Program"), state.program ? this.tools : null),
      state.question ? h("p", { class: "asked-line" }, h("span", { class: "muted" }, "for the question "), h("a", { href: link({ tab: "ask" }) }, said(state.question, { most: 300 }))) : null,
    );
  }

  draw() {
    const { view } = this;
    this.undoButton.disabled = !this.history.canUndo;
    this.redoButton.disabled = !this.history.canRedo;
    put(this.wrong, this.problem ? [problemNote(this.problem), meantFor(this.field.value)] : null);
    this.field.setAttribute("aria-invalid", String(Boolean(this.problem)));
    this.board.classList.toggle("is-stale", Boolean(this.problem));
    put(this.banner, this.swapping ? this.swapBanner() : null);
    this.bench.hidden = !view;
    if (!view) {
      this.list.replaceChildren();
      this.result.hidden = true;
      return;
    }
    this.board.hidden = false;
    this.start.hidden = true;
    this.chart.draw({ view, steps: this.steps, selected: this.selected, pending: this.pending, renewed: this.renewed });
    this.drawList();
    this.drawResult();
  }

  /** The chart beside the list where both have room, above it where the chart is wide, and the list
   * alone in a narrow window. */
  arrange(wide, isTooWide) {
    this.bench.classList.toggle("is-wide", wide > this.bench.clientWidth * 0.53 - 30);
    this.bench.classList.toggle("is-list", isTooWide);
  }

  drawList() {
    const active = document.activeElement;
    const key = this.list.contains(active) ? active.dataset.focus : null;
    const typed = key && active.dataset.typed ? { value: active.value, from: active.selectionStart, to: active.selectionEnd } : null;
    // Browsers say that a field is left when it is taken away; here it comes again at once.
    if (key) active.dataset.redrawn = "yes";
    put(this.list, this.view.calls.map((call) => this.item(call)));
    if (!key) return;
    const again = this.list.querySelector(`[data-focus="${key}"]`);
    if (!again) return;
    if (typed) again.value = typed.value;
    again.focus({ preventScroll: true });
    if (!typed) return;
    // Which suggestion is marked, or is to be when they come.
    for (const name of ["marked", "wanted"]) if (active.dataset[name]) again.dataset[name] = active.dataset[name];
    // What is just being typed goes on where it was.
    again.setSelectionRange(typed.from, typed.to);
    again.dispatchEvent(new Event("input"));
  }

  item(call) {
    const step = this.steps[call.number];
    const at = call.path.join(".");
    const open = this.selected && same(this.selected, call.path);
    const problems = this.view.problems.filter((one) => same(one.path, call.path));
    const state = problems.length ? "error" : step?.state || "waiting";
    const classes = ["call", `is-${state}`, `depth-${Math.min(6, call.path.length)}`, open ? "is-open" : null, this.pending.has(call.number) ? "is-pending" : null, this.renewed.has(call.number) ? "is-renewed" : null];
    const body = `call-${at.replaceAll(".", "-") || "root"}`;
    return h(
      "li",
      { class: classes.filter(Boolean).join(" ") },
      h(
        "button",
        { type: "button", class: "call-head", "data-path": at, "data-focus": `${at}:head`, "aria-expanded": String(Boolean(open)), "aria-controls": open ? body : null, on: { click: () => this.select(call.path, "list") } },
        h("span", { class: "call-number" }, `#${call.number}`),
        h("span", { class: "call-text" }, this.text1(call)),
        h("span", { class: "call-gave" }, this.gave(call, step, problems)),
      ),
      open ? h("div", { class: "call-body stack", id: body }, problems.map((one) => h("p", { class: "wrong" }, "\u26a0 ", visible(one.message))), callForm(call, this.forForm()), this.details(call, step)) : null,
    );
  }

  text1(call) {
    if (!call.function) return h("span", { class: "hole" }, "a step is missing");
    return [
      h("strong", {}, call.function),
      call.words.map((word) => [" ", word.text === null ? h("span", { class: "hole" }, `? ${named(word)}`) : word.name === null ? h("span", { class: "muted" }, word.text) : said(word.text, { most: 60 })]),
      call.inputs.length ? h("span", { class: "muted" }, " of ", call.inputs.map((number) => `#${number}`).join(" and ")) : null,
    ];
  }

  gave(call, step, problems) {
    if (problems.length) return h("span", { class: "badge bad" }, "\u26a0 does not fit");
    if (this.pending.has(call.number) || !step) return h("span", { class: "badge" }, "\u2026");
    if (step.state === "error") return h("span", { class: "badge bad" }, `\u26a0 ${STATES.error}`);
    if (step.state === "waiting") return h("span", { class: "badge" }, STATES.waiting);
    if (step.state === "empty") return h("span", { class: "badge bad" }, step.became_empty ? "0 \u00b7 became empty here" : "0 \u00b7 nothing");
    const given = gave(call, step);
    return [
      given.count === null ? null : h("span", { class: "call-count" }, given.count),
      h("span", { class: "call-values" }, given.values.map((text, index) => [index ? ", " : null, h("bdi", {}, text)]), given.more && given.values.length ? ", \u2026" : null),
    ];
  }

  details(call, step) {
    if (!step || step.state === "waiting") return call.doc ? h("p", { class: "hint" }, call.doc) : null;
    const facts = h("div", { class: "call-facts", "aria-live": "polite" });
    const asking = api.latest((value, options) => api.facts({ kb: this.app.kb, program: this.view.draft, path: call.path, ...(value.id ? { id: value.id } : { text: value.text }) }, options));
    return h(
      "div",
      { class: "stack tight call-result" },
      h("p", { class: "hint" }, call.doc),
      step.message ? h("p", { class: step.state === "error" ? "wrong" : "hint" }, visible(step.message)) : null,
      step.values.length
        ? [
            h("p", { class: "row small" }, h("strong", {}, step.count > step.values.length ? `The first ${step.values.length} of ${count(step.count)}` : counted(step.count, "value")), h("span", { class: "muted" }, time(step.ms)), h("span", { class: "muted" }, "choose one to see why it is here")),
            h(
              "div",
              { class: "chips" },
              step.values.map((value, index) =>
                h("button", { type: "button", class: "chip", "aria-pressed": "false", "data-focus": `${call.path.join(".")}:value-${index}`, on: { click: (event) => showFacts(event.currentTarget, value) } }, said(value.text, { most: 80 })),
              ),
            ),
            facts,
          ]
        : h("p", { class: "muted small" }, time(step.ms)),
    );

    async function showFacts(chip, value) {
      for (const one of chip.parentElement.children) one.setAttribute("aria-pressed", String(one === chip));
      put(facts, h("p", { class: "muted small" }, "\u2026"));
      try {
        const found = await asking(value);
        put(
          facts,
          h("p", { class: "small" }, h("strong", {}, "Why ", said(value.text, { most: 80 }), " is here")),
          found.facts.length ? h("ul", { class: "facts" }, found.facts.map(factItem)) : h("p", { class: "muted small" }, "No fact put it there: it is named by the program, or it was computed."),
          found.count > found.facts.length ? h("p", { class: "muted small" }, `and ${counted(found.count - found.facts.length, "more fact", "more facts")}`) : null,
        );
      } catch (problem) {
        if (!api.isAbandoned(problem)) put(facts, problemNote(problem));
      }
    }
  }

  drawResult() {
    const { answer, view } = this;
    this.result.hidden = false;
    if (!view.complete) {
      put(this.result, h("h2", {}, "Answer"), h("p", { class: "muted" }, view.holes.length === 1 ? "One thing is still missing: " : `${view.holes.length} things are still missing: `, view.holes.slice(0, 4).map((hole, index) => [index ? ", " : null, button(this.holeName(hole), () => this.toHole(hole), { kind: "link" })]), view.holes.length > 4 ? ", \u2026" : "."));
      this.timing.textContent = "";
    } else if (answer) {
      put(this.result, h("h2", {}, "Answer"), answerText(answer), this.formChoice(), (this.why ? [] : answer.hints || []).map((hint) => h("p", { class: "hint" }, saidWhole(hint))), this.why ? this.whyAnswer() : null);
      this.timing.textContent = answer.ms === undefined ? "" : `ran in ${time(answer.ms)}`;
    } else if (!this.problem && !this.view.problems.length) {
      const failed = this.failed || this.steps.find((step) => step?.state === "error");
      put(this.result, h("h2", {}, "Answer"), failed ? note("bad", "The program cannot be run", h("p", {}, saidWhole(failed.message || ""))) : h("p", { class: "muted" }, "\u2026"));
    } else {
      put(this.result, h("h2", {}, "Answer"), h("p", { class: "muted" }, "The program does not fit together yet; the steps that are marked say why."));
    }
    if (this.pending.size) return;
    put(this.after, offered("program", { app: this.app, kb: this.app.kb, question: now().question || null, program: view.complete ? view.text : null, view, answer, form: this.form(), before: this.started }));
  }

  /** How what the program denotes is read as yes or no; null where it is not. */
  form() {
    const form = formOf(now().form);
    return form === "exists" && !this.counts() ? null : form;
  }

  /** Whether the program says how many there are. */
  counts() {
    return this.view?.calls.at(-1)?.function === "Count";
  }

  /** Whether the question asks yes or no, which a number of things may be read as. */
  formChoice() {
    const form = this.form();
    if (!form && !(this.counts() && now().question)) return null;
    const box = h("input", {
      type: "checkbox",
      checked: Boolean(form),
      "data-focus": "form",
      on: {
        change: async () => {
          go({ form: box.checked ? formText(form) || "exists" : null }, { replace: true, quiet: true });
          await this.run();
          this.result.querySelector("[data-focus=form]")?.focus();
        },
      },
    });
    return h("label", { class: "check" }, box, "The question asks yes or no", form?.is ? ["; yes where this is ", said(form.is, { most: 80 })] : null);
  }

  /** Why there is no answer, with mends; made once for each program. */
  whyAnswer() {
    const call = this.callAt(this.why.path);
    if (!call) return null;
    const form = this.form();
    const text = `${this.view.text} ${formText(form)}`;
    if (this.reason?.text !== text) {
      const element = note(
        form ? "info" : "warn",
        form ? "Why the answer is no" : "Why nothing was found",
        h("p", {}, "Nothing was left at ", button(`#${call.number} ${call.function || ""}`, () => this.select(call.path), { kind: "link" }), this.why.message ? [": ", saidWhole(this.why.message)] : "."),
        mends(call, this.view.draft, this.app, (operations) => this.change(operations, { path: call.path, name: "head" })),
      );
      this.reason = { text, element };
    }
    return this.reason.element;
  }

  holeName(hole) {
    const call = this.callAt(hole.path);
    const declared = this.app.info.functions.find((one) => one.name === call?.function);
    if (hole.slot === "argument" && declared) {
      const { name } = declared.arguments[hole.index];
      return `${LABELS[name] || name} of ${call.function}`;
    }
    return call?.function ? `what ${call.function} takes` : "the first step";
  }

  toHole(hole) {
    const path = hole.slot === "input" ? [...hole.path, hole.index] : hole.path;
    this.selected = path;
    this.draw();
    this.focus({ path, focus: `${path.join(".")}:${hole.slot === "argument" ? `argument-${hole.index}` : "function"}` });
  }

  forForm() {
    const desk = this;
    return {
      app: this.app,
      view: this.view,
      get everything() {
        return desk.everything;
      },
      change: (operations, focus) => this.change(operations, focus),
      select: (path) => this.select(path),
      swap: (path) => this.swap(path),
      setEverything: (yes) => {
        this.everything = yes;
      },
    };
  }

  swapBanner() {
    const call = this.callAt(this.swapping);
    return note("info", `Swap #${call.number} ${call.function || ""} with which step?`, h("p", {}, "Choose the other one in the chart or in the list; one that lies in the other cannot be chosen."), button("Give up", () => this.swap(null)));
  }

  // --- choosing and keys ----------------------------------------------------------------------

  callAt(path) {
    return this.view?.calls.find((call) => same(call.path, path));
  }

  select(path, from = null) {
    if (this.swapping) {
      const other = this.swapping;
      this.swapping = null;
      if (!same(other, path)) return this.change({ do: "move", path: other, to: path }, { path, name: "head" });
      return this.draw();
    }
    const closes = from && this.selected && same(this.selected, path);
    this.selected = closes ? null : path;
    this.draw();
    if (!from) this.focus({ path, focus: null });
    const item = this.list.querySelector(".call.is-open");
    if (from === "chart" && item && matchMedia("(min-width: 60rem)").matches) item.scrollIntoView({ block: "nearest" });
    return null;
  }

  swap(path) {
    this.swapping = path;
    this.draw();
    if (path) this.list.querySelector(`[data-focus="${path.join(".")}:head"]`)?.focus();
  }

  focus({ path, focus, stay = null }) {
    const named = focus && this.list.querySelector(`[data-focus="${focus}"]`);
    const kept = stay && document.activeElement && this.list.contains(document.activeElement);
    if (kept) return;
    const wanted = named || this.list.querySelector(`[data-focus="${path.join(".")}:head"]`);
    wanted?.focus();
    wanted?.scrollIntoView({ block: "nearest" });
  }

  keyed(event) {
    if (event.defaultPrevented) return;
    const strong = event.ctrlKey || event.metaKey;
    const at = event.target instanceof Element ? event.target : this.element;
    // A field with its own text keeps its own undoing.
    const typing = isTyping(event) && (this.list.contains(at) || at === this.field ? Boolean(at.dataset.typed) : at.matches("input, textarea"));
    const letter = event.key.toLowerCase();
    const does = (action) => {
      event.preventDefault();
      event.stopPropagation();
      action();
    };
    if (strong && event.key === "Enter") return does(() => (at === this.field ? this.read(this.field.value) : this.run()));
    if (strong && !typing && letter === "z") return does(() => (event.shiftKey ? this.forth() : this.back()));
    if (strong && !typing && letter === "y") return does(() => this.forth());
    if (event.key === "Escape" && this.swapping) return does(() => this.swap(null));
    if (event.key === "Escape" && this.selected && this.list.contains(at)) {
      const path = this.selected;
      return does(() => {
        this.selected = null;
        this.draw();
        this.focus({ path, focus: null });
      });
    }
    const node = at.closest("[data-path]");
    if (!node || isTyping(event) || strong || event.altKey || !this.view) return;
    const path = node.dataset.path ? node.dataset.path.split(".").map(Number) : [];
    if (event.key === "Delete" || event.key === "Backspace") {
      return does(() => this.change({ do: "delete", path, ...(event.shiftKey ? { all: true } : {}) }, { path, name: "head" }));
    }
    if (node.classList.contains("call-head") && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const heads = [...this.list.querySelectorAll(".call-head")];
      return does(() => heads[heads.indexOf(node) + (event.key === "ArrowDown" ? 1 : -1)]?.focus());
    }
    if (preference("keys") === "off") return;
    const open = (then) =>
      does(() => {
        this.selected = path;
        this.draw();
        then(this.list.querySelector(".call.is-open"));
      });
    if (letter === "e") return open((item) => item.querySelector("[role=combobox]")?.focus());
    if (letter === "a") return open((item) => item.querySelector("[data-command=add]")?.click());
    if (letter === "s") return does(() => this.swap(path));
  }

  fitField() {
    const most = innerWidth < 600 ? 4 : 10;
    for (this.field.rows = 1; this.field.rows < most && this.field.scrollHeight > this.field.clientHeight + 1; ) this.field.rows += 1;
  }

  // --- nothing yet ----------------------------------------------------------------------------

  async drawStart() {
    const examples = h("ul", { class: "examples" });
    put(
      this.start,
      h("p", { class: "lead" }, "A program says step by step how an answer is found. Start with an example, or with nothing: each step offers what fits, and shows at once what it gives."),
      h("div", { class: "row" }, h("a", { class: "button main", href: link({ program: NOTHING, question: null }) }, "Start with nothing"), h("a", { class: "button", href: link({ tab: "ask" }) }, "Ask a question instead")),
      h("h2", {}, "Start with an example"),
      examples,
    );
    put(examples, drawing());
    try {
      const found = await api.examples({ kb: this.app.kb });
      put(examples, found.examples.map((one) => h("li", {}, h("a", { class: "example", href: link({ program: one.program, question: one.question }) }, h("span", { class: "example-text" }, said(one.question || one.about)), h("code", { class: "muted" }, cut(visible(one.program), 160))))));
    } catch (problem) {
      put(examples, problemNote(problem));
    }
  }
}

/** Where a text that is no program may have been meant for another screen, the way there. */
function meantFor(text) {
  const written = text.trim();
  if (/^(select|ask|prefix|base)\b.*[{<]/is.test(written)) return h("p", { class: "small" }, h("a", { href: link({ tab: "sparql", query: written, program: null }) }, "Open it as a query"));
  if (/^[^()]*\s[^()]*$/.test(written)) return h("p", { class: "small" }, h("a", { href: link({ tab: "ask", question: written.replace(/\s+/g, " "), program: null }) }, "Ask it as a question"));
  return null;
}

/** The text of each call with all that it takes: inputs come before what takes them. */
function partsOf(calls) {
  const found = [];
  for (const call of calls) {
    const own = JSON.stringify([call.function, call.arguments]);
    found[call.number] = `${own}(${call.inputs.map((number) => found[number]).join()})`;
  }
  return found;
}

function differ(before, after) {
  return !before || before.count !== after.count || before.state !== after.state || before.values.map((one) => one.text).join("\n") !== after.values.map((one) => one.text).join("\n");
}

// A field that is left by pressing the mouse elsewhere changes the program; what is pressed must
// still be there when the mouse is let go.
let pressed = null;
addEventListener("pointerdown", () => {
  let free;
  pressed = new Promise((done) => (free = done));
  const over = () => setTimeout(() => ((pressed = null), free()), 0);
  addEventListener("pointerup", over, { once: true, capture: true });
  addEventListener("pointercancel", over, { once: true, capture: true });
}, { capture: true });

function pointerIsFree() {
  return pressed || Promise.resolve();
}
