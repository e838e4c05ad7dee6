// One's own data: a kb.json or tables, what their columns mean as a table to edit, what is found
// wrong, how far it is; then it is asked as the others are.

import * as api from "./api.js";
import { button, count, counted, h, labelled, note, percent, problemNote, put, said, say, unique } from "./dom.js";
import { base64 } from "./files.js";
import { go, link, viewed } from "./state.js";

const MOST = 50 * 1024 * 1024;
const SHOWN = 100;
// How long until the server is asked again how far it is, in milliseconds.
const PAUSE = 400;
const TYPES = [
  ["string", "a text"],
  ["quantity", "a number"],
  ["year", "a year"],
  ["date", "a date"],
];
const KINDS = [
  ...TYPES,
  ["to", "another row"],
  ["create", "a thing of its own"],
  ["qualifier", "more about another column"],
  ["skip", "left out"],
];
const ENCODINGS = ["utf-8", "cp1252", "latin-1", "utf-16"];
// What a column's meaning says besides what its fields show: it stays while the type is the same.
const SHOWN_PARTS = ["attribute", "relation", "qualifier", "type", "unit", "separator", "create", "to", "by", "direction", "of"];

const LABELS = [
  ["kind", "is"],
  ["name", "called"],
  ["type", "which is"],
  ["unit", "unit"],
  ["to", "of table"],
  ["create", "of the kind"],
  ["of", "about column"],
  ["separator", "several, apart by"],
];

export const screen = { name: "own", title: "Own data", key: "7", show: viewed((element, app) => new View(element, app)) };

class View {
  constructor(element, app) {
    this.app = app;
    this.name = h("input", { type: "text", autocomplete: "off", required: true });
    this.files = h("input", { type: "file", multiple: true, accept: ".json,.csv,.tsv,.txt,.gz,.bz2,.xz", on: { change: () => this.chosen([...this.files.files]) } });
    this.told = h("div", { class: "stack", "aria-live": "polite" });
    this.body = h("div", { class: "stack" });
    this.bases = h("section", { class: "stack", "aria-label": "Knowledge bases that were added" });
    this.given = [];
    const able = app.can("upload");
    const drop = h(
      "div",
      { class: "drop stack" },
      labelled("A kb.json, or one or more tables (CSV, TSV)", this.files, { hint: "50 MB at most. The first row of a table names its columns. You can also drop files here." }),
      labelled("Name of the knowledge base", this.name),
    );
    for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => (event.preventDefault(), drop.classList.add("over")));
    for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => (event.preventDefault(), this.chosen([...event.dataTransfer.files])));
    put(
      element,
      h("div", { class: "stack tight" }, h("h1", {}, "Own data"), h("p", { class: "lead" }, "Add a table or a knowledge base; it stays at this server. What columns mean is guessed, and yours to change.")),
      able.yes ? h("form", { class: "card stack", "aria-label": "Choose data", on: { submit: (event) => (event.preventDefault(), this.begin()) } }, drop, h("div", { class: "row" }, h("button", { type: "submit", class: "button main" }, "Check it"))) : note("warn", "Nothing can be added here", able.why ? h("p", {}, said(able.why, { most: 400 })) : null),
      this.told,
      this.body,
      this.bases,
    );
  }

  show() {
    const own = this.app.info.bases.filter((base) => base.uploaded);
    put(
      this.bases,
      own.length ? h("h2", {}, "Added") : null,
      own.length
        ? h(
            "ul",
            { class: "stack tight" },
            own.map((base) => h("li", { class: "card kept-line row" }, h("strong", {}, said(base.name, { most: 80 })), h("span", { class: "small muted" }, counted(base.entities, "entity", "entities"), ", ", counted(base.facts, "fact")), h("span", { class: "push row" }, h("a", { class: "small", href: link({ tab: "ask", kb: base.id, question: null, program: null }), "aria-label": `Ask ${base.name}` }, "Ask"), h("a", { class: "small", href: link({ tab: "base", kb: base.id, question: null, program: null }), "aria-label": `Look at ${base.name}` }, "Look"), button("Delete", () => this.remove(base), { kind: "link", class: "small link", "aria-label": `Delete ${base.name}` })))),
          )
        : null,
    );
  }

  chosen(files) {
    this.given = files;
    if (files.length && !this.name.value) this.name.value = files[0].name.replace(/(\.[A-Za-z0-9]{1,5}){1,2}$/, "");
    put(this.body);
    put(this.told, files.length ? h("p", { class: "small muted" }, files.map((file, at) => [at ? ", " : "", said(file.name, { most: 60 }), ` (${size(file.size)})`])) : null);
    this.fits();
  }

  /** Whether what was chosen can be sent; says so where it is too much or nothing stands in it. */
  fits() {
    const whole = this.given.reduce((sum, file) => sum + file.size, 0);
    const empty = this.given.find((file) => !file.size);
    if (empty) put(this.told, note("bad", "It cannot be added", h("p", {}, said(empty.name, { most: 60 }), " is empty.")));
    if (whole > MOST) put(this.told, note("warn", "That is too much for the page", h("p", {}, `${size(whole)} were chosen, ${size(MOST)} can be sent. `, h("code", {}, "kopl kb import"), " reads files of any size, and ", h("code", {}, "kopl serve --kb"), " shows what it wrote.")));
    return !empty && whole <= MOST;
  }

  // --- sending ----------------------------------------------------------------------------------

  async begin() {
    if (!this.given.length) {
      put(this.told, note("info", "Choose a file first."));
      this.files.focus();
      return;
    }
    if (!this.fits()) return;
    this.busy("Reading the files");
    try {
      const json = this.given.length === 1 && /\.json(\.(gz|bz2|xz))?$/i.test(this.given[0].name);
      const sent = await Promise.all(this.given.map(async (file) => ({ name: file.name, ...(await content(file)) })));
      this.body_sent = { name: this.name.value.trim() || this.given[0].name, file: json ? "kb.json" : "table", ...(json ? { text: sent[0].text, base64: sent[0].base64 } : { files: sent }) };
      if (json) return await this.send({});
      this.busy("Guessing what the columns mean");
      this.drafted(await api.addBase({ ...this.body_sent, draft: true }));
    } catch (problem) {
      this.failed(problem);
    }
  }

  async send(more) {
    this.busy("Adding it");
    this.body.hidden = true;
    try {
      await this.follow(await api.addBase({ ...this.body_sent, ...more }));
    } catch (problem) {
      this.failed(problem);
    }
  }

  async follow(first) {
    const bar = h("progress", { max: "1", value: first.done ?? 0, "aria-label": "How far it is" });
    const message = h("p", { class: "muted" });
    put(this.told, h("div", { class: "card stack" }, h("h2", {}, "Adding it"), bar, message));
    let job = first;
    while (job.state === "running") {
      bar.value = job.done ?? 0;
      put(message, said(job.message || "", { most: 300 }), ` ${percent(job.done ?? 0)}`);
      await new Promise((resume) => setTimeout(resume, PAUSE));
      job = await api.uploadJob(job.id);
    }
    if (job.state !== "done" || !job.report) {
      this.body.hidden = false;
      put(this.told, note("bad", "It cannot be added", job.message ? h("p", {}, said(job.message, { most: 600 }), job.place ? [" (", said(job.place, { most: 120 }), ")"] : null) : null), findings(job.findings));
      return;
    }
    put(this.body);
    this.body.hidden = false;
    const base = job.report;
    await this.app.reload();
    put(
      this.told,
      note("good", "It is here", h("p", {}, said(base.name, { most: 80 }), ": ", counted(base.entities, "entity", "entities"), ", ", counted(base.concepts, "concept"), ", ", counted(base.facts, "fact"), "."), h("div", { class: "row" }, h("a", { class: "button main", href: link({ tab: "ask", kb: base.id, question: null, program: null }) }, "Ask it"), h("a", { class: "button", href: link({ tab: "base", kb: base.id, question: null, program: null }) }, "Look at it"))),
      findings(base.findings),
    );
    say("It is here");
  }

  busy(text) {
    put(this.told, h("p", { class: "row muted" }, h("span", { class: "spin", "aria-hidden": "true" }), text));
    this.told.scrollIntoView({ block: "nearest" });
  }

  failed(problem) {
    this.body.hidden = false;
    put(this.told, problem instanceof api.Problem ? problemNote(problem, "It cannot be added") : note("bad", "The file cannot be read", h("p", {}, said(problem.message, { most: 300 }))));
  }

  async remove(base) {
    if (!confirm(`Delete ${base.name} from this server?`)) return;
    try {
      await api.removeBase(base.id);
      say("Deleted");
      if (this.app.kb === base.id) go({ kb: null, question: null, program: null });
      else await this.app.reload();
    } catch (problem) {
      put(this.told, problemNote(problem));
    }
  }

  // --- what the columns mean --------------------------------------------------------------------

  drafted(draft) {
    const mapping = structuredClone(draft.mapping);
    let edited = null;
    const text = h("textarea", { class: "code", rows: "14", spellcheck: "false", value: draft.text || JSON.stringify(mapping, null, 2) });
    text.addEventListener("input", () => {
      edited = text.value;
      for (const one of tables) one.left();
    });
    const changed = () => (text.value = JSON.stringify(mapping, null, 2));
    const names = Object.keys(mapping.tables);
    const previews = [draft.preview].flat().filter(Boolean);
    const tables = names.map((name, at) => {
      const columns = draft.columns.filter((one) => one.table === undefined || one.table === name);
      return new Table(name, mapping.tables[name], columns, previews.find((one) => one.table === name) || previews[at], names, changed);
    });
    put(this.told, draft.columns.some((one) => one.doubt) ? note("warn", "Some guesses may be wrong", h("p", {}, "Look at the columns that are marked.")) : null, findings(draft.problems));
    put(
      this.body,
      h(
        "form",
        { class: "stack", "aria-label": "What the columns mean", on: { submit: (event) => (event.preventDefault(), this.send({ mapping: edited ?? mapping })) } },
        tables.map((one) => one.element),
        h("details", { class: "fold" }, h("summary", {}, "The mapping as text"), labelled("Mapping (YAML or JSON)", text, { hint: "What is edited here is what is used." })),
        h("div", { class: "row" }, h("button", { type: "submit", class: "button main" }, "Add it")),
      ),
    );
    say("Look at what the columns mean");
  }
}

// What a table's rows and columns mean; what is chosen changes its part of the mapping.
class Table {
  constructor(name, mapping, columns, preview, tables, changed) {
    Object.assign(this, { name, mapping, columns, tables, changed });
    this.mapping.columns ||= {};
    this.note = h("div", { "aria-live": "polite" });
    this.fields = h("fieldset", {}, h("legend", { class: "quiet" }, `Columns of ${name}`), h("div", { class: "stack tight" }, this.rows(preview?.header || []), this.taken(preview?.header || []), columns.map((one) => this.column(one))));
    this.element = h("section", { class: "card stack", "aria-label": `Table ${name}` }, h("h2", {}, said(name, { most: 80 })), preview ? previewed(preview) : null, this.encoding(), this.note, this.fields);
  }

  // The text was edited by hand: it alone counts from now on.
  left() {
    if (this.fields.disabled) return;
    this.fields.disabled = true;
    put(this.note, note("info", "The text below counts now, as it was edited."));
  }

  // What a row is, and what it is called.
  rows(header) {
    if (this.mapping.about !== undefined || !header.length) return null;
    const named = select(header.map((one) => [one, one]), typeof this.mapping.name === "string" ? this.mapping.name : header[0]);
    named.addEventListener("change", () => ((this.mapping.name = named.value), this.changed()));
    const { concept } = this.mapping;
    const column = concept && typeof concept === "object" ? concept.column : null;
    const by = select([["one", "all of the same kind"], ...(column ? [["column", `of the kind that its \u201c${column}\u201d says`]] : [])], column ? "column" : "one");
    const kind = h("input", { type: "text", value: (column ? concept.below : concept) ?? "", autocomplete: "off" });
    const word = h("span", {});
    const shown = () => put(word, by.value === "column" ? "all of them kinds of" : "each is a");
    const changed = () => {
      shown();
      const said = kind.value.trim();
      this.mapping.concept = by.value === "column" ? { ...concept, below: said } : said;
      this.changed();
    };
    by.addEventListener("change", changed);
    kind.addEventListener("change", changed);
    shown();
    return h("div", { class: "column-row" }, h("p", { class: "label" }, "The rows"), h("div", { class: "row" }, column ? labelled("are", by) : null, labelled(word, kind), labelled("are called by the column", named)));
  }

  // The columns that say what a row is, which are no facts about it.
  taken(header) {
    const { id, name, aliases, concept } = this.mapping;
    const uses = new Map([[id, "tells rows apart"], [aliases, "other names of a row"], [name, "the name of a row"], [concept?.column, "the kind of a row"]]);
    const found = header.filter((one) => uses.has(one) && !(one in this.mapping.columns));
    return found.length ? h("div", { class: "column-row" }, h("ul", { class: "small" }, found.map((one) => h("li", {}, h("strong", {}, said(one, { most: 60 })), ": ", uses.get(one))))) : null;
  }

  encoding() {
    const given = this.mapping.encoding || ENCODINGS[0];
    const chosen = select([...new Set([given, ...ENCODINGS])].map((one) => [one, one]), given);
    chosen.addEventListener("change", () => ((this.mapping.encoding = chosen.value), this.changed()));
    return labelled("Its letters are written in", chosen);
  }

  column(column) {
    const name = column.name ?? column.column;
    const given = this.mapping.columns[name] ?? column.guess;
    const guess = given && typeof given === "object" ? given : {};
    if (given === undefined) return null;
    const kind = typeof given !== "object" || given === null ? "skip" : "qualifier" in guess ? "qualifier" : "create" in guess ? "create" : "relation" in guess ? "to" : guess.type || "string";
    const others = this.columns.map((one) => one.name ?? one.column).filter((one) => one !== name);
    const plain = typeof (guess.relation ?? "") === "string";
    const field = {
      kind: select(KINDS, kind),
      name: h("input", { type: "text", value: plain ? (guess.attribute ?? guess.relation ?? guess.qualifier ?? name) : "", disabled: !plain, autocomplete: "off" }),
      type: select(TYPES, guess.type || "string"),
      unit: h("input", { type: "text", value: unitOf(guess), disabled: Boolean(guess.unit?.column), autocomplete: "off" }),
      to: select(this.tables.map((one) => [one, one]), guess.to || this.tables[0]),
      create: h("input", { type: "text", value: guess.create ?? name, autocomplete: "off" }),
      of: select(others.map((one) => [one, one]), guess.of || others[0]),
      separator: h("input", { type: "text", value: guess.separator ?? "", class: "short", autocomplete: "off" }),
    };
    const place = {};
    for (const [key, label] of LABELS) {
      field[key].id = unique("column");
      place[key] = h("div", { class: "field" }, h("label", { for: field[key].id }, h("span", { class: "quiet" }, `${name}: `), label), field[key]);
    }
    const shown = () => {
      const is = field.kind.value;
      place.name.hidden = is === "skip";
      place.type.hidden = is !== "qualifier";
      place.unit.hidden = typeOf(field) !== "quantity";
      place.to.hidden = is !== "to";
      place.create.hidden = is !== "create";
      place.of.hidden = is !== "qualifier";
      place.separator.hidden = is === "skip" || (!["to", "create"].includes(is) && typeOf(field) !== "string" && !field.separator.value);
    };
    for (const one of Object.values(field)) {
      one.addEventListener("change", () => {
        shown();
        this.mapping.columns[name] = meaning(field, guess, plain);
        this.changed();
      });
    }
    shown();
    const seen = column.seen ?? (column.samples || []).slice(0, 3).join("; ");
    return h("div", { class: "column-row" }, h("div", { class: "stack tight" }, h("p", { class: "label" }, said(name, { most: 60 }), column.doubt ? [" ", h("span", { class: "badge warn" }, "a guess")] : null), h("p", { class: "small muted" }, said(seen || "no values", { most: 120 }))), h("div", { class: "row" }, Object.values(place)));
  }
}

function meaning(field, guess, plain) {
  const name = field.name.value.trim();
  const several = field.separator.value ? { separator: field.separator.value } : {};
  const type = typeOf(field);
  const rest = Object.entries(guess).filter(([part]) => !SHOWN_PARTS.includes(part));
  const unit = guess.unit?.column ? guess.unit : field.unit.value.trim();
  const typed = () => ({ type, ...(type === (guess.type || "string") ? Object.fromEntries(rest) : {}), ...(type === "quantity" && unit ? { unit } : {}) });
  const relation = plain ? name : guess.relation;
  switch (field.kind.value) {
    case "skip":
      return "skip";
    case "to":
      return { relation, to: field.to.value, ...(guess.to && guess.by ? { by: guess.by } : {}), ...(guess.direction ? { direction: guess.direction } : {}), ...several };
    case "create":
      return { relation, create: field.create.value.trim(), ...(guess.direction ? { direction: guess.direction } : {}), ...several };
    case "qualifier":
      return { qualifier: name, of: field.of.value, ...typed(), ...several };
    default:
      return { attribute: name, ...typed(), ...several };
  }
}

// The type of the values of a column; null where it names things, or nothing.
function typeOf({ kind, type }) {
  if (kind.value === "qualifier") return type.value;
  return TYPES.some(([one]) => one === kind.value) ? kind.value : null;
}

// The unit as it is shown; those that each value has stand beside it in the mapping.
function unitOf({ unit, units }) {
  if (unit?.column) return `as the column ${unit.column} says`;
  return unit ?? [...new Set(Object.values(units || {}))].join(", ");
}

// A file's content: text where it is UTF-8, else its bytes, so that nothing is lost.
async function content(file) {
  if (!/\.(gz|bz2|xz)$/i.test(file.name)) {
    try {
      return { text: new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()) };
    } catch (problem) {
      if (!(problem instanceof TypeError)) throw problem;
    }
  }
  return { base64: await base64(file) };
}

function select(options, value) {
  return h("select", {}, options.map(([one, word]) => h("option", { value: one, selected: one === value }, word)));
}

function previewed({ header, rows }) {
  return h(
    "div",
    { class: "table-box", tabindex: "0", role: "region", "aria-label": "First rows" },
    h("table", {}, h("thead", {}, h("tr", {}, header.map((one) => h("th", { scope: "col" }, said(one, { most: 40 }))))), h("tbody", {}, rows.slice(0, 3).map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell ? said(cell, { most: 60 }) : "")))))),
  );
}

// What a check of the data found, errors first.
function findings(problems) {
  if (!problems?.length) return null;
  const bad = problems.some((one) => one.level === "error");
  return h(
    "details",
    { class: "fold", open: bad || problems.length <= 5 },
    h("summary", {}, "What was found", h("span", { class: `badge ${bad ? "bad" : "warn"}` }, count(problems.length))),
    h("ul", { class: "stack tight" }, problems.slice(0, SHOWN).map((one) => h("li", { class: "small" }, h("span", { class: `badge ${one.level === "error" ? "bad" : "warn"}` }, one.level || "warning"), " ", one.place ? [said(one.place, { most: 80, tag: "code" }), " "] : null, said(one.message, { most: 300 })))),
    problems.length > SHOWN ? h("p", { class: "small muted" }, `${SHOWN} of ${count(problems.length)}`) : null,
  );
}

function size(bytes) {
  if (bytes < 1024) return bytes ? counted(bytes, "byte") : "empty";
  return bytes < 1024 * 1024 ? `${count(Math.round(bytes / 1024))} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
