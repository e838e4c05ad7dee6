// The parser learns: a first training, or a lesson from what was kept; how far it is, what changed,
// and whether the new parser is kept.

import * as api from "./api.js";
import { button, count, counted, h, labelled, note, percent, problemNote, put, said, saidWhole, say } from "./dom.js";
import { link, viewed } from "./state.js";

const SHOWN = 100;
// Below this, chance alone seldom makes such a difference.
const SURE = 0.05;

// What may be said of a training: its name for the server, its label, what holds without it, and the
// largest number.
const SETTINGS = {
  lesson: [
    ["epochs", "Epochs", 5, 100],
    ["each", "Questions like each that was kept", 16, 1000],
    ["replay", "Old questions that are learnt again", 4000, 1_000_000],
    ["held_out", "Other questions that are asked before and after", 500, 10_000],
  ],
  default: [
    ["minutes", "Minutes at most", null, 1440],
    ["questions", "Generated questions", null, 1_000_000],
    ["epochs", "Epochs", null, 100],
  ],
};

export const screen = { name: "learn", title: "Learn", key: "6", show: viewed((element, app) => new View(element, app)) };

class View {
  constructor(element, app) {
    this.app = app;
    this.body = h("div", { class: "stack" });
    this.told = h("div", { "aria-live": "polite" });
    this.filter = "all";
    put(element, h("div", { class: "stack tight" }, h("h1", {}, "Learn"), h("p", { class: "lead" }, "The parser learns from what people saved. No parser is overwritten: look at which answers changed, then keep the new one or throw it away.")), this.told, this.body);
    addEventListener("kopl-kept", () => this.job?.state === "running" || this.show());
  }

  async show() {
    let info;
    try {
      info = await api.info(this.app.kb);
    } catch (problem) {
      put(this.body, problemNote(problem));
      return;
    }
    this.info = info;
    if (this.job?.state === "running" && info.learning?.state === "running") return;
    this.took(info.learning);
  }

  took(job) {
    this.job = job;
    if (job?.state === "running") {
      this.running(job);
      this.listen();
    } else if (job?.state === "done" && job.kept === null) this.finished(job);
    else this.waiting(job);
  }

  // --- before -----------------------------------------------------------------------------------

  waiting(job) {
    const { run, corrections, taught, can } = this.info;
    const able = can?.train || { yes: false, why: null };
    const lines = [];
    if (job?.state === "failed") lines.push(note("bad", "The last training failed", h("p", {}, saidWhole(job.message || "", { most: 600 }))));
    if (job?.state === "stopped" || job?.state === "unfinished") lines.push(note("info", "The last training was stopped", job.message ? h("p", {}, said(job.message, { most: 400 })) : null, h("div", { class: "row" }, job.resumable ? button("Go on with it", () => this.start("resume")) : null, job.waits ? button("Throw it away", () => this.keep(false), { kind: "danger" }) : null)));
    if (!able.yes) lines.push(note("warn", "Nothing can be trained here", h("p", {}, saidWhole(able.why || "", { most: 600 }))));
    put(
      this.body,
      lines,
      run && !run.moved
        ? h(
            "section",
            { class: "card stack", "aria-label": "A lesson" },
            h("h2", {}, "A lesson"),
            h("p", {}, "The parser that answers now: ", said(run.name || run.folder, { most: 80, tag: "code" }), run.learned_from ? [", which learned from ", said(run.learned_from.split(/[\\/]/).at(-1), { most: 80, tag: "code" })] : null, "."),
            lessonOf(taught, corrections - taught),
            this.settings("lesson"),
            h("div", { class: "row" }, button("Begin the lesson", () => this.start("lesson"), { kind: "main", disabled: !able.yes || !taught })),
          )
        : h(
            "section",
            { class: "card stack", "aria-label": "The first training" },
            h("h2", {}, "The first training"),
            h("p", {}, run ? ["The parser that answers now, ", said(run.name || run.folder, { most: 80, tag: "code" }), ", was trained on another knowledge base; here it goes by names alone."] : "No parser is loaded, so nothing answers questions yet.", run ? " One of its own is" : " The default one is", " trained on questions that are generated from ", said(this.app.base?.name || "the knowledge base"), ", in the background: everything else works meanwhile."),
            this.settings("default"),
            h("div", { class: "row" }, button(run ? "Train a parser for it" : "Train the default parser", () => this.start("default"), { kind: "main", disabled: !able.yes })),
          ),
    );
  }

  settings(what) {
    this.chosen = SETTINGS[what].map(([name, label, usual, most]) => {
      const field = h("input", { type: "number", min: "1", max: most, step: "1", placeholder: usual ?? "as usual", autocomplete: "off" });
      return { name, field, element: labelled(label, field) };
    });
    return h("details", { class: "fold" }, h("summary", {}, "Settings"), h("div", { class: "row" }, this.chosen.map((one) => one.element)));
  }

  async start(what) {
    put(this.told);
    const settings = Object.fromEntries((what === "resume" ? [] : this.chosen).filter(({ field }) => field.value).map(({ name, field }) => [name, Number(field.value)]));
    try {
      this.took(await api.train({ kb: this.app.kb, what, ...(Object.keys(settings).length ? { settings } : {}) }));
      say("The training has begun");
    } catch (problem) {
      put(this.told, problemNote(problem));
    }
  }

  // --- meanwhile --------------------------------------------------------------------------------

  running(job) {
    this.bar = h("progress", { max: "1", value: job.done ?? 0, "aria-label": "How far the training is" });
    this.percent = h("strong", {}, percent(job.done ?? 0));
    this.message = h("p", { class: "muted" }, told(job));
    put(
      this.body,
      h(
        "section",
        { class: "card stack", "aria-label": "The training" },
        h("div", { class: "row ends" }, h("h2", {}, job.what === "lesson" ? "Learning" : "Training"), this.percent),
        this.bar,
        this.message,
        h("div", { class: "row" }, button("Stop", () => this.stop(), { kind: "danger" })),
        h("p", { class: "small muted" }, "It goes on when this page is closed."),
      ),
    );
  }

  listen() {
    this.unlisten?.();
    this.unlisten = api.trainEvents((kind, job) => {
      if (kind === "progress") {
        this.job = job;
        this.bar.value = job.done ?? 0;
        this.percent.textContent = percent(job.done ?? 0);
        put(this.message, told(job));
        return;
      }
      this.unlisten = null;
      if (kind === "lost") {
        put(this.told, problemNote({ kind: "offline", message: "The connection broke.", to_try: "What was kept is safe. Start the server again, then reload the page." }));
        return;
      }
      say({ done: "The training is done", stopped: "The training was stopped" }[kind] || "The training failed");
      put(this.told);
      // What else the server knows of the new parser comes with its information.
      this.show();
    });
  }

  async stop() {
    try {
      await api.stopTraining();
      say("Stopping");
    } catch (problem) {
      put(this.told, problemNote(problem));
    }
  }

  // --- afterwards -------------------------------------------------------------------------------

  finished(job) {
    const report = job.report || {};
    const { corrected, held_out: held, changed } = report;
    put(
      this.body,
      h(
        "section",
        { class: "card stack", "aria-label": "What was learnt" },
        h("h2", {}, job.what === "lesson" ? "What was learnt" : "The parser is trained"),
        h("div", { class: "halves" }, corrected ? pair("Saved questions", corrected) : null, held ? pair(job.what === "lesson" ? "Other questions" : "Questions it has not seen", held, meaning(held)) : null),
        job.message ? h("p", { class: "muted" }, said(job.message, { most: 400 })) : null,
        h("div", { class: "row" }, button(job.what === "lesson" ? "Keep the new parser" : "Ask it", () => this.keep(true), { kind: "main" }), button("Throw it away", () => this.keep(false), { kind: "danger" })),
      ),
      changed?.length || job.what === "lesson" ? (this.changes = h("section", { class: "stack", "aria-label": "Answers that changed" })) : null,
    );
    if (changed?.length || job.what === "lesson") this.draw(changed || []);
  }

  draw(changed) {
    const sorts = [
      ["all", "All", () => true],
      ["worse", "Worse", (one) => one.better === false],
      ["better", "Better", (one) => one.better === true],
      ["other", "Neither", (one) => one.better === null || one.better === undefined],
    ];
    const chosen = sorts.find(([name]) => name === this.filter) || sorts[0];
    const found = changed.filter(chosen[2]);
    put(
      this.changes,
      h("div", { class: "row ends" }, h("h2", {}, "Answers that changed"), h("div", { class: "group", role: "group", "aria-label": "Which of them" }, sorts.map(([name, word, fits]) => button(`${word} ${count(changed.filter(fits).length)}`, () => ((this.filter = name), this.draw(changed), this.changes.querySelector(`[data-sort=${name}]`).focus()), { "aria-pressed": String(name === chosen[0]), "data-sort": name })))),
      found.length ? h("ul", { class: "stack tight" }, found.slice(0, SHOWN).map(change)) : h("p", { class: "empty" }, changed.length ? "None of these." : "Every answer is as it was."),
      found.length > SHOWN ? h("p", { class: "small muted" }, `${SHOWN} of ${count(found.length)}; all are in the new run\u2019s folder`) : null,
    );
  }

  async keep(yes) {
    try {
      await api.keepTraining({ keep: yes });
      this.job = null;
      say(yes ? "The new parser answers now" : "Thrown away");
      await this.app.reload();
      if (yes) put(this.told, note("good", "The new parser answers now", h("p", {}, h("a", { href: link({ tab: "ask" }) }, "Ask it"))));
      else put(this.told, note("info", "The new parser was thrown away; the old one answers."));
      await this.show();
    } catch (problem) {
      put(this.told, problemNote(problem));
    }
  }
}

// What a training does now, and how long it may still take.
function told(job) {
  const left = job.left === null || job.left === undefined ? null : job.left < 90 ? `about ${Math.max(1, Math.round(job.left))} s left` : `about ${Math.round(job.left / 60)} min left`;
  const what = job.message || job.stage || "it begins";
  return [said(what[0].toUpperCase() + what.slice(1), { most: 300 }), left ? ` \u00b7 ${left}` : null];
}

// What a lesson is made of: what was saved with a program. The other verdicts are for people.
function lessonOf(taught, others) {
  const judge = h("a", { href: link({ tab: "queue" }) }, "Judge some answers");
  if (!taught) return h("p", {}, others ? "What was saved has no programs to learn from: " : "Nothing was saved yet. ", judge, others ? " as right, or correct them, first." : " first.");
  const more = others ? ` ${counted(others, "other verdict")} without a program ${others === 1 ? "is" : "are"} kept, but not learnt.` : "";
  return h("p", {}, counted(taught, "question was", "questions were"), ` judged and kept. ${taught === 1 ? "It is" : "They are"} learnt together with others of the kind and a sample of what the parser learnt before.${more}`);
}

// Right answers before and after, as two bars.
function pair(title, { n, before, after }, remark = null) {
  const bar = (word, right) =>
    h("div", { class: "measure" }, h("span", { class: "small muted" }, word), h("meter", { min: "0", max: n || 1, value: right, "aria-label": `${title}: right ${word}` }), h("span", { class: "nowrap" }, h("strong", {}, count(right)), h("span", { class: "muted" }, ` of ${count(n)}`)));
  return h("div", { class: "stack tight" }, h("h3", {}, title), before === null || before === undefined ? null : bar("before", before), bar(before === null || before === undefined ? "right" : "after", after), remark ? h("p", { class: "small muted" }, remark) : null);
}

function meaning({ n, before, after, p }) {
  if (before === null || before === undefined) return null;
  if (p === null || p === undefined || before === after) return before === after ? "As many right as before." : null;
  const shown = p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`;
  const way = after > before ? "more right" : "fewer right";
  return p < SURE ? `${count(Math.abs(after - before))} ${way} of ${count(n)}, more than chance makes (McNemar, ${shown}).` : `${count(Math.abs(after - before))} ${way}, which may be chance (McNemar, ${shown}).`;
}

function change(one) {
  const [tone, word] = one.better === true ? ["good", "better"] : one.better === false ? ["bad", "worse"] : ["", "changed"];
  return h(
    "li",
    { class: "card kept-line" },
    h("div", { class: "row baseline" }, h("span", { class: `badge ${tone}` }, word), h("strong", {}, saidWhole(one.question, { most: 200 })), h("a", { class: "small push", href: link({ tab: "ask", question: one.question, program: null }), "aria-label": `Ask: ${one.question}` }, "Ask")),
    h("p", {}, said(one.before?.join("; ") || "nothing", { most: 160, class: "said was" }), h("span", { class: "muted" }, " \u2192 "), said(one.after?.join("; ") || "nothing", { most: 160, class: "said" })),
  );
}
