// The knowledge base: search, a thing with its facts and their qualifiers, the schema with counts.
// From names and facts, links lead to programs that begin with them.

import * as api from "./api.js";
import { append, button, count, counted, h, labelled, problemNote, put, rested, said, saidWhole, unique } from "./dom.js";
import { go, link, viewed } from "./state.js";

const KINDS = [
  ["", "Everything"],
  ["entity", "Entities"],
  ["concept", "Concepts"],
  ["relation", "Relations"],
  ["key", "Attributes"],
];
const FOUND = 30;
const LONGEST = 500;
const FACTS = 1000;
// How many rows of a table, and facts of one kind, are shown before the others are asked for.
const ROWS = 12;
const VALUES = 4;

export const screen = { name: "base", title: "Knowledge base", key: "3", show: viewed((element, app) => new View(element, app)) };

class View {
  constructor(element, app) {
    this.app = app;
    this.results = h("div", { class: "stack tight", "aria-live": "polite" });
    this.detail = h("section", { class: "stack", "aria-label": "Details" });
    this.box = h("input", { type: "search", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "a name, as you would say it", on: { input: () => this.typed() } });
    this.kind = h("select", { on: { change: () => this.typed.now() } }, KINDS.map(([value, text]) => h("option", { value }, text)));
    this.typed = rested(() => this.look(), 160);
    this.search = api.latest(api.search);
    this.read = api.latest((what, given, options) => api[what](given, options));
    put(
      element,
      h("div", { class: "stack tight" }, h("h1", {}, "Knowledge base"), this.lead()),
      h(
        "div",
        { class: "columns" },
        h(
          "section",
          { class: "stack side", "aria-label": "Search" },
          h("form", { class: "stack tight", role: "search", on: { submit: (event) => (event.preventDefault(), this.typed.now()) } }, labelled("Search names", this.box), labelled("Kind", this.kind, { hidden: true })),
          this.results,
        ),
        this.detail,
      ),
    );
  }

  lead() {
    const base = this.app.base;
    if (!base) return null;
    return h("p", { class: "lead" }, said(base.name), ": ", counted(base.entities, "entity", "entities"), ", ", counted(base.concepts, "concept"), ", ", counted(base.facts, "fact"), ".");
  }

  show(state) {
    const { look = "", kind = "", id = "", concept = "" } = state;
    if (this.box.value !== look) this.box.value = look;
    this.kind.value = kind;
    if (this.looked !== `${look}\n${kind}`) this.find(look, kind);
    const about = JSON.stringify([id, concept]);
    if (this.about === about) return;
    this.about = about;
    if (id) this.thing(id);
    else this.schema(concept);
    // In a narrow window what was chosen stands below the names that were found.
    if ((id || concept) && this.detail.offsetTop > this.results.offsetTop + 1) this.detail.scrollIntoView({ block: "start" });
  }

  look() {
    go({ look: this.box.value, kind: this.kind.value }, { replace: true, quiet: true });
    this.find(this.box.value, this.kind.value);
  }

  async find(look, kind) {
    this.looked = `${look}\n${kind}`;
    let found;
    try {
      found = await this.search({ kb: this.app.kb, q: look.slice(0, LONGEST), kind, limit: FOUND });
    } catch (error) {
      if (!api.isAbandoned(error)) put(this.results, problemNote(error));
      return;
    }
    if (!look && !kind) {
      put(this.results, h("p", { class: "small muted" }, "Names are found in any spelling, and by what else things are called."));
      return;
    }
    if (!found.matches.length) {
      put(this.results, h("p", { class: "empty" }, look ? ["Nothing is called ", said(look, { most: 60 }), " here, nor nearly so."] : "Nothing is here."));
      return;
    }
    const more = found.count > found.matches.length;
    put(
      this.results,
      h("p", { class: "small muted" }, more ? `The first ${count(found.matches.length)} of ${count(found.count)}` : counted(found.count, "name")),
      h("ul", { class: "stack tight found" }, found.matches.map((one) => this.match(one))),
    );
  }

  match(one) {
    const name = said(one.name, { most: 80 });
    const to = one.kind === "entity" ? { id: one.id, concept: null } : one.kind === "concept" ? { concept: one.name, id: null } : null;
    const also = one.also && one.also !== one.name ? ["also ", said(one.also, { most: 60 })] : null;
    const kinds = one.concepts?.length ? said(one.concepts.slice(0, 3).join(", "), { most: 80 }) : null;
    return h(
      "li",
      {},
      h("div", { class: "row baseline" }, to ? h("a", { href: link({ tab: "base", ...to }) }, name) : name, h("span", { class: "badge" }, one.kind), one.facts === null || one.facts === undefined ? null : h("span", { class: "small muted push" }, counted(one.facts, "fact"))),
      also || kinds ? h("p", { class: "small muted" }, kinds, kinds && also ? " \u00b7 " : null, also) : null,
    );
  }

  async schema(concept) {
    this.wait("Counting what there is");
    let found;
    try {
      found = await this.read("schema", { kb: this.app.kb, concept });
    } catch (error) {
      if (!api.isAbandoned(error)) put(this.detail, problemNote(error));
      return;
    }
    const begin = concept ? `FilterConcept(FindAll(), ${quoted(concept)})` : "FindAll()";
    put(
      this.detail,
      h(
        "div",
        { class: "row ends" },
        h("h2", {}, concept ? ["What is said of ", said(concept, { most: 80 })] : "What there is"),
        h("div", { class: "row" }, concept ? h("a", { href: link({ tab: "base", concept: null, id: null }) }, "Everything") : null, h("a", { class: "button", href: link({ tab: "program", program: begin, question: null }) }, "Begin a program")),
      ),
      table("Kinds of things", ["kind", "#things", "is a kind of"], found.concepts, (one) => [h("a", { href: link({ tab: "base", concept: one.name, id: null }) }, said(one.name, { most: 80 })), one.count, one.parents?.length ? said(one.parents.join(", "), { most: 80 }) : ""]),
      table("Relations", ["relation", "direction", "#things", "for example"], found.relations, (one) => [said(one.name, { most: 80 }), one.direction || "", one.count, example(one)]),
      table("Attributes", ["attribute", "type", "units", "#things", "for example"], found.keys, (one) => [said(one.name, { most: 80 }), [one.type].flat().join(", "), units(one).length ? said(units(one).join(", "), { most: 60 }) : "", one.count, example(one)]),
      table("Qualifiers of facts", ["qualifier", "of", "type", "#facts", "for example"], found.qualifiers, (one) => [said(one.name, { most: 80 }), one.of ? said(one.of, { most: 60 }) : "", [one.type || ""].flat().join(", "), one.count, example(one)]),
    );
  }

  async thing(id) {
    this.wait("Reading its facts");
    let found;
    try {
      found = await this.read("entity", { kb: this.app.kb, id, limit: FACTS });
    } catch (error) {
      if (!api.isAbandoned(error)) put(this.detail, problemNote(error), h("p", {}, h("a", { href: link({ tab: "base", id: null }) }, "Everything that there is")));
      return;
    }
    const more = found.count - found.facts.length;
    put(
      this.detail,
      h(
        "div",
        { class: "row ends" },
        h("h2", {}, saidWhole(found.name, { most: 120 })),
        h("div", { class: "row" }, h("a", { href: link({ tab: "base", id: null, concept: null }) }, "Everything"), h("a", { class: "button", href: link({ tab: "program", program: `Find(${quoted(found.name)})`, question: null }) }, "Begin a program")),
      ),
      h("p", { class: "small muted" }, h("code", {}, said(found.id, { most: 60 })), (found.concepts || []).map((one) => [" \u00b7 ", h("a", { href: link({ tab: "base", concept: one, id: null }) }, said(one, { most: 60 }))])),
      found.aliases?.length ? h("p", { class: "small" }, h("span", { class: "muted" }, "also called "), saidWhole(found.aliases.join("; "))) : null,
      found.facts.length ? h("ul", { class: "facts" }, grouped(found.facts).map((facts) => this.facts(facts, found))) : h("p", { class: "empty" }, "Nothing is said of it."),
      more > 0 ? h("p", { class: "small muted" }, `and ${counted(more, "more fact")}`) : null,
    );
  }

  // The facts of one relation or attribute.
  facts(facts, of) {
    const [{ relation, key, direction }] = facts;
    const about = relation ?? key;
    const find = `Find(${quoted(of.name)})`;
    const asks = relation ? `QueryName(Relate(${find}, ${quoted(relation)}, ${quoted(direction || "forward")}))` : `QueryAttr(${find}, ${quoted(key)})`;
    const values = h("ul", { class: "stack tight" }, facts.slice(0, VALUES).map((one) => this.value(one)));
    const more = facts.length - VALUES;
    return h(
      "li",
      { class: "fact" },
      h("span", { class: "muted" }, direction === "backward" ? "\u2190 " : relation ? "\u2192 " : null, said(about, { most: 80 })),
      h("div", {}, values, more > 0 ? button(`${count(more)} more`, (event) => (event.target.remove(), append(values, facts.slice(VALUES).map((one) => this.value(one)))), { kind: "link", "aria-label": `${count(more)} more of ${about}` }) : null),
      h("a", { class: "small nowrap", href: link({ tab: "program", program: asks, question: null }), "aria-label": `Ask for ${about} by a program` }, "ask for it"),
    );
  }

  value({ value, id, qualifiers }) {
    const shown = saidWhole(textOf(value));
    return h("li", {}, id ? h("a", { href: link({ tab: "base", id, concept: null }) }, said(textOf(value))) : shown, qualifiers?.length ? h("span", { class: "small muted qualifiers" }, qualifiers.map((each) => h("span", {}, said(each.key, { most: 60 }), ": ", said(textOf(each.value), { most: 120 })))) : null);
  }

  wait(text) {
    put(this.detail, h("p", { class: "row muted" }, h("span", { class: "spin", "aria-hidden": "true" }), text));
  }
}

/** A text as an argument of a nested program. */
export function quoted(text) {
  return JSON.stringify(String(text));
}

function textOf(value) {
  return value !== null && typeof value === "object" ? value.text : value;
}

function example(one) {
  return one.example ? said(textOf(one.example), { most: 80 }) : "";
}

// Facts that say the same of a thing stand together, in the order in which they come first.
function grouped(facts) {
  const found = new Map();
  for (const one of facts) {
    const about = JSON.stringify([one.relation, one.key, one.direction]);
    if (!found.has(about)) found.set(about, []);
    found.get(about).push(one);
  }
  return [...found.values()];
}

// A table whose first rows are shown. Heads with "#" are above numbers.
function table(title, heads, rows, cells) {
  if (!rows?.length) return null;
  const numbers = heads.map((head) => head.startsWith("#"));
  const line = (row) => h("tr", {}, cells(row).map((cell, at) => h("td", { class: numbers[at] ? "number" : null }, numbers[at] && typeof cell === "number" ? count(cell) : cell)));
  const body = h("tbody", {}, rows.slice(0, ROWS).map(line));
  const id = unique("table");
  return h(
    "div",
    { class: "stack tight" },
    h("h3", { id, class: "row" }, title, h("span", { class: "badge" }, count(rows.length))),
    h("div", { class: "table-box", tabindex: "0", role: "region", "aria-labelledby": id }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((head, at) => h("th", { scope: "col", class: numbers[at] ? "number" : null }, head.replace("#", ""))))), body)),
    rows.length > ROWS ? h("div", {}, button(`Show all ${count(rows.length)}`, (event) => (event.target.remove(), append(body, rows.slice(ROWS).map(line))), { kind: "link", class: "small link", "aria-label": `Show all ${count(rows.length)}: ${title}` })) : null,
  );
}

// The units among the forms of values: "quantity (metre)" has the unit metre.
function units(one) {
  return (one.units || []).map((form) => /\((.+)\)$/s.exec(form)?.[1]).filter(Boolean);
}
