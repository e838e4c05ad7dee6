// A program as a SPARQL query and a query as a program, or the reason why not; and what each of them
// gives on the chosen engine.

import * as api from "./api.js";
import { button, count, h, labelled, note, problemNote, put, said, saidWhole, time } from "./dom.js";
import { go, viewed } from "./state.js";

const STYLES = [
  ["exact", "Exactly what the program means"],
  ["data", "As KQA Pro writes its queries"],
  ["wikidata", "For Wikidata"],
];
const ROWS = 100;
const LONGEST = 4000; // characters of a query in the address

export const screen = {
  name: "sparql",
  title: "SPARQL",
  key: "4",
  keys: [["Ctrl Enter", "run both"]],
  show: viewed((element, app) => new View(element, app)),
};

class View {
  constructor(element, app) {
    this.app = app;
    const code = { class: "code", rows: "9", spellcheck: "false", autocomplete: "off", autocapitalize: "off" };
    this.program = h("textarea", code);
    this.query = h("textarea", code);
    this.style = h("select", { on: { change: () => this.style_chosen() } }, STYLES.map(([value, text]) => h("option", { value }, text)));
    const engines = app.info.engines?.filter((one) => one !== "kopl") || [];
    this.engine = h("select", { disabled: !engines.length }, engines.length ? engines.map((one) => h("option", { value: one }, one)) : h("option", { value: "" }, "none installed"));
    this.said = h("div", { "aria-live": "polite" });
    this.results = h("div", { class: "halves", "aria-live": "polite" });
    this.runs = button("Run both", () => this.run(), { kind: "main" });
    put(
      element,
      h("div", { class: "stack tight" }, h("h1", {}, "SPARQL"), h("p", { class: "lead" }, "Programs become queries and queries become programs. Both run here, side by side.")),
      h(
        "div",
        { class: "halves" },
        h("section", { class: "card stack", "aria-label": "Program" }, labelled("Program (KoPL)", this.program), h("div", { class: "row" }, button("To SPARQL \u2192", () => this.toSparql()), button("Open in Program", () => go({ tab: "program", program: this.program.value, question: null }), { kind: "bare" }))),
        h("section", { class: "card stack", "aria-label": "Query" }, labelled("Query (SPARQL)", this.query), h("div", { class: "row" }, button("\u2190 To KoPL", () => this.toKopl()), labelled("Style of queries", this.style))),
      ),
      this.said,
      h("div", { class: "row" }, this.runs, labelled("Engine for the query", this.engine)),
      app.can("sparql").yes ? null : note("warn", "Queries cannot be run here", app.can("sparql").why ? h("p", {}, said(app.can("sparql").why, { most: 400 })) : null),
      this.results,
    );
    // What was run is no answer to what is written now.
    this.program.addEventListener("input", () => put(this.results));
    this.query.addEventListener("input", () => {
      put(this.results);
      this.keepQuery();
    });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.run();
      }
    });
    this.about();
  }

  // The field says what it is for to those who do not see where it stands.
  about() {
    this.program.placeholder = 'QueryName(Relate(Find("Norway"), "capital", "forward"))';
    this.query.placeholder = "SELECT DISTINCT ?p WHERE { … }";
  }

  show(state) {
    if (state.style && state.style !== this.style.value) this.style.value = state.style;
    const program = state.program || "";
    const own = state.query || "";
    if (program === this.shown && (!own || own === this.query.value.trim())) return;
    if (!program && !own) return;
    this.shown = program;
    this.program.value = program;
    put(this.results);
    if (!own) return this.toSparql();
    this.query.value = own;
    put(this.said);
  }

  /** A query that somebody writes stands in the address, where it is not too long for that. */
  keepQuery() {
    const query = this.query.value.trim();
    go({ query: query.length <= LONGEST ? query : null }, { replace: true, quiet: true });
  }

  style_chosen() {
    go({ style: this.style.value }, { replace: true, quiet: true });
    if (this.program.value.trim()) this.toSparql();
  }

  async toSparql() {
    const program = this.program.value.trim();
    if (!program) return this.ask(this.program, "Write a program first.");
    const mine = (this.asked = {});
    try {
      const found = await api.translate({ kb: this.app.kb, program, to: "sparql", style: this.style.value });
      if (this.asked !== mine) return;
      this.query.value = inLines(found.text);
      this.shown = program;
      put(this.results);
      go({ program, query: null }, { replace: true, quiet: true });
      put(this.said, found.differences?.length ? note("warn", "The answers may differ", h("ul", {}, found.differences.map((one) => h("li", {}, said(one, { most: 400 }))))) : null);
    } catch (problem) {
      if (this.asked !== mine) return;
      this.query.value = "";
      put(this.results);
      put(this.said, problemNote(problem, "This program has no such query"));
    }
  }

  async toKopl() {
    const query = this.query.value.trim();
    if (!query) return this.ask(this.query, "Write a query first.");
    const mine = (this.asked = {});
    try {
      const found = await api.translate({ kb: this.app.kb, query, to: "nested" });
      if (this.asked !== mine) return;
      this.program.value = found.text;
      this.shown = found.text;
      put(this.results);
      go({ program: found.text }, { replace: true, quiet: true });
      put(this.said);
    } catch (problem) {
      if (this.asked === mine) put(this.said, problemNote(problem, "This query is no program"));
    }
  }

  ask(field, text) {
    put(this.said, note("info", text));
    field.focus();
  }

  async run() {
    const program = this.program.value.trim();
    if (program && !this.query.value.trim()) await this.toSparql();
    const query = this.query.value.trim();
    if (!program && !query) return this.ask(this.program, "Write a program or a query first.");
    this.runs.disabled = true;
    put(this.results, h("p", { class: "row muted" }, h("span", { class: "spin", "aria-hidden": "true" }), "Running"));
    const kb = this.app.kb;
    const can = this.app.can("sparql").yes && this.engine.value;
    const [left, right] = await Promise.all([
      program ? settled(api.run({ kb, program })) : null,
      query && can && this.style.value !== "wikidata" ? settled(api.sparql({ kb, query, engine: this.engine.value })) : null,
    ]);
    this.runs.disabled = false;
    const [ours, theirs] = [left?.answer?.answer, right?.answer?.answer];
    put(
      this.results,
      ours && theirs ? agreement(ours, theirs) : null,
      left ? result("KoPL", left) : null,
      right ? result(this.engine.value, right) : null,
      query && this.style.value === "wikidata" ? note("info", "Wikidata's queries run at Wikidata", h("p", {}, "Copy the query to query.wikidata.org: this page asks no other server.")) : null,
    );
  }
}

// A query in lines: texts and addresses stay as they are, only what stands between changes.
function inLines(query) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.max(0, depth))}`;
  const parts = query.match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<[^<>"{}|^`\\\s]*>|\{|\}|\.(?=\s)|\s+|[^\s"'<{}.]+|./gs) || [];
  let text = "";
  for (const part of parts) {
    if (part === "{") {
      depth += 1;
      text = `${text.trimEnd()} {${line()}`;
    } else if (part === "}") {
      depth -= 1;
      text = `${text.trimEnd()}${line()}}${line()}`;
    } else if (part === ".") text = `${text.trimEnd()} .${line()}`;
    else if (/^\s+$/.test(part)) text += /\s$/.test(text) || !text ? "" : " ";
    else text += part;
  }
  return text.trim();
}

async function settled(promise) {
  try {
    return { answer: await promise };
  } catch (problem) {
    return { problem };
  }
}

function agreement(ours, theirs) {
  const same = ours.count === theirs.count && JSON.stringify([...ours.answers].sort()) === JSON.stringify([...theirs.answers].sort());
  return h("p", { class: "both" }, same ? h("span", { class: "badge good" }, "the same answer") : h("span", { class: "badge bad" }, "the answers differ"));
}

function result(name, { answer, problem }) {
  const body = problem ? problemNote(problem) : answer.columns && answer.rows ? rows(answer) : values(answer.answer);
  const ms = answer?.answer?.ms ?? null;
  return h("section", { class: "card stack", "aria-label": `What ${name} gives` }, h("div", { class: "row ends" }, h("h2", {}, name), ms === null ? null : h("span", { class: "small muted" }, time(ms))), body);
}

function values(answer) {
  if (!answer) return h("p", { class: "empty" }, "A part of the program is missing.");
  if (!answer.count) return h("p", { class: "empty" }, "Nothing was found.");
  return [
    h("ul", { class: "stack tight" }, answer.answers.slice(0, ROWS).map((one) => h("li", {}, saidWhole(one)))),
    answer.count > ROWS ? h("p", { class: "small muted" }, `${ROWS} of ${count(answer.count)}`) : null,
  ];
}

function rows({ columns, rows: found, answer }) {
  if (!found.length) return h("p", { class: "empty" }, "Nothing was found.");
  const total = answer?.count ?? found.length;
  return [
    h(
      "div",
      { class: "table-box", tabindex: "0", role: "region", "aria-label": "Rows" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, columns.map((one) => h("th", { scope: "col" }, said(one, { most: 40 }))))),
        h("tbody", {}, found.slice(0, ROWS).map((row) => h("tr", {}, row.map((cell) => h("td", {}, said(cell ?? "", { most: 200 })))))),
      ),
    ),
    total > Math.min(ROWS, found.length) ? h("p", { class: "small muted" }, `${Math.min(ROWS, found.length)} of ${count(total)}`) : null,
  ];
}
