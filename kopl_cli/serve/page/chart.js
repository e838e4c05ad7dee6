// The flow chart of a program: what takes nothing stands on top, the last call at the bottom, and
// on the way from one to the next what a call gave. Made of SVG elements and classes only.

import { count, cut, h, put, s, visible } from "./dom.js";

const PAD = 14;
const LINE = 19;
const WIDEST = [230, 140, 104]; // pixels of a line of text, less where the chart has no room
const MOST = 3; // lines of one argument
const BETWEEN = 28; // boxes beside one another
const LABEL = 26; // height of what stands on an edge
const DROP = 12; // from a box to its label
const CURVE = 34; // from the label to the next box
const MARGIN = 14;
const SHOWN = 3; // values on an edge
const LEAST = 0.72; // a chart is not drawn smaller than this

// Each text apart from the direction of its neighbours.
const apart = (text) => `\u2068${visible(text)}\u2069`;

/** What arguments are called for people. */
export const LABELS = { op: "comparison", qkey: "qualifier", qvalue: "qualifier's value", key: "attribute" };

/** What a word of a call is called for people, where it is an argument. */
export function named(word) {
  return LABELS[word.name] || word.name;
}

// What is one by its nature is not counted.
const SINGLE = new Set(["a number", "yes or no"]);

/** What a call gave in a few words: `{count, values, more}`; `count` is null for a number or a
 * truth, and all is null where nothing is known yet. */
export function gave(call, step) {
  if (!step || !["ok", "empty"].includes(step.state)) return null;
  const values = step.values.slice(0, SHOWN).map((value) => cut(visible(value.text), 40));
  return { count: SINGLE.has(call.output) ? null : count(step.count), values, more: step.count > values.length };
}

/** How a state is called beside its colour. */
export const STATES = {
  ok: "",
  empty: "nothing",
  error: "cannot be run",
  waiting: "waits for what is missing",
};

let ruler = null;

function width(text, bold = false, size = 14) {
  ruler ||= document.createElement("canvas").getContext("2d");
  ruler.font = `${bold ? 650 : 400} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

/** A text cut to so many pixels. */
function fitting(text, most, bold = false, size = 14) {
  let shown = cut(visible(text), 60);
  while (shown.length > 2 && width(shown, bold, size) > most) shown = `${shown.slice(0, -2).trimEnd()}\u2026`;
  return shown;
}

/** A text in lines of so many pixels, broken at blanks; the last is cut. */
function broken(text, most) {
  if (width(text) <= most) return [text];
  const found = [];
  let line = "";
  const words = text.split(" ");
  while (words.length) {
    const longer = line ? `${line} ${words[0]}` : words[0];
    if (line && width(longer) > most) {
      if (found.length === MOST - 1) break;
      found.push(line);
      line = "";
    } else {
      line = longer;
      words.shift();
    }
  }
  return [...found, words.length ? `${line} ${words.join(" ")}` : line].map((one) => fitting(one, most));
}

/** The words of a call in lines that are not too wide. */
function lines(words, widest) {
  const found = [];
  let line = [];
  let used = 0;
  const put = (part) => {
    if (line.length && used + part.width + 6 > widest) {
      found.push({ words: line, width: used });
      line = [];
      used = 0;
    }
    used += part.width + (line.length ? 6 : 0);
    line.push(part);
  };
  let arrow = "";
  for (const word of words) {
    if (word.text === null) {
      const text = `? ${named(word)}`;
      put({ text, hole: true, isSaid: true, width: width(text) + 14 });
    } else if (word.name === "direction") arrow = `${word.text} `;
    else {
      // What a text begins with stays with it.
      const texts = broken(arrow + cut(visible(word.text), 120), widest);
      arrow = "";
      for (const text of texts) put({ text, hole: false, isSaid: word.name !== null, width: width(text) });
    }
  }
  if (arrow) put({ text: arrow.trim(), hole: false, isSaid: true, width: width(arrow) });
  if (line.length) found.push({ words: line, width: used });
  return found;
}

function box(call, step, widest) {
  const name = call.function || "choose a step";
  const rows = lines(call.words, widest);
  const given = gave(call, step);
  let label = null;
  if (given) {
    const said = step.state === "empty" ? "nothing" : given.values.join(", ") + (given.more && given.values.length ? ", \u2026" : "");
    const number = given.count === null ? 4 : width(given.count, true, 13) + 14;
    const text = fitting(said, Math.max(40, widest - number), false, 13);
    label = { count: given.count, text, number, width: number + 8 + width(text, false, 13) + 10 };
  }
  const sign = step?.state === "error" || call.wrong ? 20 : 0;
  return {
    call,
    step,
    name,
    rows,
    label,
    width: Math.max(96, width(name, true) + sign, ...rows.map((row) => row.width)) + 2 * PAD,
    height: 2 * PAD - 6 + LINE * (1 + rows.length),
    depth: 0,
    span: 0,
    left: 0,
    top: 0,
  };
}

function place(boxes) {
  for (const one of boxes) {
    const above = one.call.inputs.map((at) => boxes[at]);
    const wide = above.reduce((sum, next) => sum + next.span, 0) + BETWEEN * Math.max(0, above.length - 1);
    one.span = Math.max(one.width, one.label?.width || 0, wide);
  }
  const root = boxes[boxes.length - 1];
  root.left = MARGIN;
  for (const one of [...boxes].reverse()) {
    const above = one.call.inputs.map((at) => boxes[at]);
    const wide = above.reduce((sum, next) => sum + next.span, 0) + BETWEEN * Math.max(0, above.length - 1);
    let start = one.left + (one.span - wide) / 2;
    for (const next of above) {
      next.depth = one.depth + 1;
      next.left = start;
      start += next.span + BETWEEN;
    }
  }
  const rows = [];
  for (const one of boxes) rows[one.depth] = Math.max(rows[one.depth] || 0, one.height);
  const tops = [];
  let top = MARGIN;
  for (let depth = rows.length - 1; depth >= 0; depth -= 1) {
    tops[depth] = top;
    top += rows[depth] + DROP + LABEL + CURVE;
  }
  for (const one of boxes) {
    one.middle = one.left + one.span / 2;
    one.top = tops[one.depth] + rows[one.depth] - one.height;
    one.bottom = one.top + one.height;
  }
  return { width: root.span + 2 * MARGIN, height: top - CURVE + MARGIN };
}

/** A chart. `select(path)` is called when a call is chosen. Gives `{element, draw(shown), focus(path)}`,
 * `shown`: `{view, steps, selected, pending, renewed}` with `steps`, `pending` and
 * `renewed` by number. Without `select` it is a picture. `fitted(width, isTooWide)` hears how wide
 * the chart has to be at least, and whether that is too wide for this window. */
export function chart({ select = null, label = "Flow chart of the program", fitted = null } = {}) {
  const element = h("div", { class: "chart" });
  let natural = 0;
  let drawing = null;
  let last = null;

  function draw(shown) {
    last = shown;
    const { view, steps } = shown;
    const lay = (widest) => {
      const laid = view.calls.map((call) => box({ ...call, wrong: view.problems?.some((problem) => same(problem.path, call.path)) }, steps[call.number], widest));
      return { boxes: laid, size: place(laid) };
    };
    const room = roomOf();
    let boxes, size;
    for (const widest of WIDEST) {
      ({ boxes, size } = lay(widest));
      if (size.width * LEAST <= room || !room) break;
    }
    natural = Math.ceil(size.width);
    const parts = boxes.flatMap((one) => one.call.inputs.map((at, index) => edge(boxes[at], one, index)));
    const root = boxes[boxes.length - 1];
    const focusable = select ? shown.selected || root.call.path : null;
    drawing = s(
      "svg",
      { viewBox: `0 0 ${natural} ${Math.ceil(size.height)}`, class: "chart-svg", role: select ? "group" : "img", "aria-label": label },
      parts,
      root.label ? s("g", { class: edgeClass(root) }, s("path", { class: "edge", d: `M${root.middle} ${root.bottom}v${DROP}` })) : null,
      boxes.map((one) => drawnLabel(one, shown)),
      boxes.map((one) => drawnBox(one, shown, select && same(one.call.path, focusable))),
    );
    const had = element.contains(document.activeElement) ? document.activeElement.dataset.path : null;
    put(element, drawing);
    if (had) element.querySelector(`[data-path="${had}"]`)?.focus({ preventScroll: true });
    fit();
  }

  // A chart that is not shown has the room of what it stands in.
  function roomOf() {
    return element.clientWidth || Math.max(0, (element.parentElement?.parentElement?.clientWidth || 0) - 50);
  }

  function fit() {
    if (!drawing) return;
    const room = roomOf();
    if (!room) return;
    const wide = Math.min(natural, Math.max(room, natural * LEAST));
    const was = drawing.getAttribute("width");
    drawing.setAttribute("width", String(Math.floor(wide)));
    const isTooWide = wide > room + 1 && room < 520;
    element.classList.toggle("is-narrow", isTooWide);
    if (was === null && wide > room) element.scrollLeft = (wide - room) / 2;
    fitted?.(natural * LEAST, isTooWide);
  }
  new ResizeObserver(fit).observe(element);

  function chosen(event) {
    const node = event.target.closest?.("[data-path], [data-of]");
    if (node && select) select(read(node.dataset.path ?? node.dataset.of), "chart");
  }
  element.addEventListener("click", chosen);
  element.addEventListener("keydown", (event) => {
    const node = event.target.closest?.("[data-path]");
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return chosen(event);
    }
    const next = beside(read(node.dataset.path), event.key);
    if (!next) return;
    event.preventDefault();
    focus(next);
  });

  // Up leads to what a call takes, down to what takes it, sideways to what stands beside it.
  function beside(path, key) {
    const there = (one) => (last.view.calls.some((call) => same(call.path, one)) ? one : null);
    const index = path[path.length - 1];
    if (key === "ArrowDown") return path.length ? path.slice(0, -1) : null;
    if (key === "ArrowUp") return there([...path, 0]);
    if (!path.length) return null;
    if (key === "ArrowLeft") return there([...path.slice(0, -1), index - 1]);
    if (key === "ArrowRight") return there([...path.slice(0, -1), index + 1]);
    return null;
  }

  function focus(path) {
    const wanted = element.querySelector(`[data-path="${path.join(".")}"]`);
    if (!wanted) return;
    for (const node of element.querySelectorAll("[data-path]")) node.setAttribute("tabindex", node === wanted ? "0" : "-1");
    wanted.focus();
  }

  function drawnBox(one, shown, isFocusable) {
    const { call, step } = one;
    const left = one.middle - one.width / 2;
    const selected = shown.selected && same(shown.selected, call.path);
    const state = call.wrong ? "error" : step?.state || "waiting";
    const classes = ["node", `is-${call.function ? state : "hole"}`];
    if (!call.inputs.length) classes.push("is-leaf");
    if (!call.path.length) classes.push("is-root");
    if (selected) classes.push("is-selected");
    if (shown.pending?.has(call.number)) classes.push("is-pending");
    if (step?.became_empty) classes.push("is-culprit");
    const said = [one.name, ...one.rows.flatMap((row) => row.words.map((word) => word.text))].join(" ");
    const result = one.label ? `; ${one.label.count === null ? "" : `${one.label.count}: `}${one.label.text}` : STATES[state] ? `; ${STATES[state]}` : "";
    const attributes = { class: classes.join(" ") };
    if (select) {
      Object.assign(attributes, {
        role: "button",
        tabindex: isFocusable ? "0" : "-1",
        "data-path": call.path.join("."),
        "aria-label": `Step #${call.number}: ${said}${result}`,
        "aria-pressed": selected ? "true" : "false",
      });
    }
    const first = one.top + PAD + 9;
    return s(
      "g",
      attributes,
      select ? s("title", {}, call.doc || "A step that is still missing") : null,
      s("rect", { class: "node-box", x: left, y: one.top, width: one.width, height: one.height, rx: 10 }),
      s("text", { class: "node-name", x: one.middle, y: first, "text-anchor": "middle" }, one.name),
      state === "error" ? s("text", { class: "node-sign", x: left + one.width - 12, y: first, "text-anchor": "middle" }, "!") : null,
      one.rows.map((row, number) => drawnRow(row, one.middle, first + LINE * (number + 1))),
    );
  }

  function drawnRow(row, middle, baseline) {
    let x = middle - row.width / 2;
    return row.words.map((word) => {
      const start = x;
      x += word.width + 6;
      if (!word.hole) return s("text", { class: word.isSaid ? "node-word" : "node-sign-between", x: start, y: baseline }, apart(word.text));
      return [
        s("rect", { class: "node-hole", x: start, y: baseline - 13, width: word.width, height: 17, rx: 5 }),
        s("text", { class: "node-hole-text", x: start + 7, y: baseline }, word.text),
      ];
    });
  }

  function drawnLabel(one, shown) {
    if (!one.label) return null;
    const { label, call, step } = one;
    const left = one.middle - label.width / 2;
    const top = one.bottom + DROP;
    const classes = ["given", `is-${step.state}`];
    if (shown.pending?.has(call.number)) classes.push("is-pending");
    if (shown.renewed?.has(call.number)) classes.push("is-renewed");
    if (!call.path.length) classes.push("is-answer");
    return s(
      "g",
      { class: classes.join(" "), "data-of": select ? call.path.join(".") : null },
      s("rect", { class: "given-box", x: left, y: top, width: label.width, height: LABEL, rx: LABEL / 2 }),
      label.count === null
        ? null
        : [
            s("rect", { class: "given-count-box", x: left + 3, y: top + 3, width: label.number, height: LABEL - 6, rx: LABEL / 2 - 3 }),
            s("text", { class: "given-count", x: left + 3 + label.number / 2, y: top + 17.5, "text-anchor": "middle" }, label.count),
          ],
      s("text", { class: "given-text", x: left + label.number + 9, y: top + 17.5 }, apart(label.text)),
    );
  }

  return { element, draw, focus };
}

function edgeClass(from) {
  return `flow is-${from.step?.state || "waiting"}`;
}

/** The way from a call to the one that takes what it gives; the more that is, the wider. */
function edge(from, to, index) {
  const inputs = to.call.inputs.length;
  const end = to.middle + (inputs > 1 ? (index - (inputs - 1) / 2) * Math.min(60, to.width / inputs) : 0);
  const start = from.middle;
  const mid = from.bottom + DROP + LABEL;
  const tip = to.top - 1;
  const bend = (tip - mid) * 0.55;
  const amount = from.step?.count || 0;
  const wide = Math.min(6, 1.5 + Math.log10(amount + 1));
  return s(
    "g",
    { class: edgeClass(from) },
    s("path", {
      class: "edge",
      "stroke-width": from.step?.state === "ok" ? wide.toFixed(2) : 1.75,
      d: `M${start} ${from.bottom}V${mid}C${start} ${mid + bend} ${end} ${tip - bend} ${end} ${tip - 5}`,
    }),
    s("path", { class: "edge-tip", d: `M${end} ${tip}l${-5 - wide / 3} ${-8}h${10 + (2 * wide) / 3}z` }),
  );
}

/** Whether two paths are the same. */
export function same(one, other) {
  return one.length === other.length && one.every((step, at) => step === other[at]);
}

function read(path) {
  return path ? path.split(".").map(Number) : [];
}
