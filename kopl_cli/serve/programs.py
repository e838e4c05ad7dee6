"""Programs: run call by call, the facts behind a value, queries, other spellings, files."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from kb.arrays import Ids, as_ids
from kopl.answer_forms import AnswerForm, answer_of, read_form
from kopl.denotation import Located, Outcome, Values
from kopl.draft_steps import steps
from kopl.drafts import Draft
from kopl.evidence import EvidenceFact, evidence_of
from kopl.hints import hints_for, why_empty
from kopl.program import Call, post_order
from kopl.typecheck import check
from kopl_base.errors import KoplError
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.knowledge import FACT, fact
from kopl_cli.serve.routes import (
    LONGEST,
    LONGEST_QUESTION,
    MAYBE,
    MAYBE_TEXT,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    WHOLE,
    Field,
    RequestError,
    Route,
    listed,
    record,
)
from kopl_cli.translate import CHARTS, SPELLINGS

ENGINES = ("kopl", "oxigraph", "rdflib")
# Rows that an engine is asked for, where it can be told.
MOST_ROWS = 10_000
STYLES = ("exact", "data", "wikidata")


# --- running --------------------------------------------------------------------------------------


def _run(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    draft = base.draft(given["program"])
    form = form_of(given["form"], "form")
    found = ran(base, draft, given["shown"], evidence=given["evidence"], form=form)
    if given["engine"] != "kopl":
        call = draft.call()
        result = base.queries(given["engine"]).run(call)
        found["answer"] = answer(base, answer_of(result.denotation, form, call), result.ms)
    if given["from"] is not None:
        # What does not take the changed call gives what it gave.
        changed = given["from"]
        found["steps"] = [
            step
            for step in found["steps"]
            if step["path"][: len(changed)] == changed
            or changed[: len(step["path"])] == step["path"]
        ]
    return found


def form_of(said: Any, field: str) -> AnswerForm | None:
    """How a request says that a program is read as yes or no; raises RequestError."""
    try:
        return read_form(said)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RequestError(f"{field}: {error}", field=field) from None


def ran(
    base: Base, draft: Draft, shown: int = 10, *, evidence: bool = False,
    form: AnswerForm | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What ``/api/run`` answers: what each call gives, as far as there are no holes.

    The answer is read as the ``form`` says.
    """
    begin = time.perf_counter()
    outcomes: dict[Call, Outcome] = {}
    done = steps(base.executor, draft, shown=shown, shared=outcomes)
    [*_, last] = done
    wrong = next((step for step in done if step.state == "error"), None)
    found: dict[str, Any] = {
        "view": draft.view(), "steps": [step.to_json() for step in done], "answer": None,
        "error": None, "why_empty": None, "evidence": None,
    }  # fmt: skip
    if wrong is not None:
        found["error"] = {
            "kind": wrong.kind, "message": wrong.message, "call": wrong.number, "field": None,
            "to_try": None,
        }  # fmt: skip
    if last.state not in ("ok", "empty"):
        return found
    call = draft.call()
    strings = outcomes[call].strings()
    ms = (time.perf_counter() - begin) * 1000
    hints = hints_for(base.kb, call)
    found["answer"] = answer(base, answer_of(strings, form, call), ms, hints)
    if not strings or strings == ["0"]:
        found["why_empty"] = emptied(base, call, outcomes, hints)
    if evidence:
        rests = evidence_of(base.kb, check(call), [outcomes[one] for one in post_order(call)])
        facts = [resting(one) for one in islice(rests.facts(), base.limits.rows)]
        found["evidence"] = {"facts": facts, "count": len(rests), "minimal": rests.is_minimal}
    return found


def answer(
    base: Base, strings: Sequence[str], ms: float, hints: Sequence[str] = ()
) -> dict[str, Any]:
    """What a program denotes, as the page shows it."""
    state = "unique" if len(strings) == 1 else "several" if strings else "empty"
    return {
        "answers": [*strings[: base.limits.rows]], "count": len(strings), "state": state,
        "ms": round(ms, 3), "hints": [*hints],
    }  # fmt: skip


def emptied(
    base: Base, call: Call, outcomes: dict[Call, Outcome] | None = None, hints: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Why a program finds nothing: the first call that does, and what there is instead."""
    known = {} if outcomes is None else outcomes
    found = why_empty(base.kb, call, lambda one: base.executor.outcome(one, known))
    if found is None:
        return None
    draft = Draft.of(call)
    return {
        "number": found.number,
        "path": [*draft.paths()[found.number]],
        "text": found.text,
        "near": [*found.there],
        "message": found.message,
        "hints": [*hints],
    }


# --- the facts behind a value ---------------------------------------------------------------------


def _facts(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    draft = base.draft(given["program"])
    call = draft.at(tuple(_path(given["path"]))).call()
    if given["id"] is None and given["text"] is None:
        raise RequestError("give the id or the text of a value", field="text")
    checked = check(call)
    outcomes: dict[Call, Outcome] = {}
    begin = time.perf_counter()
    for number, one in enumerate(post_order(call)):
        base.executor.enforce(base.executor.outcome(one, outcomes), begin, number)
    only = _those(base, outcomes[call], given["id"], given["text"])
    rests = evidence_of(base.kb, checked, [outcomes[one] for one in post_order(call)], only)
    found = [one for one in rests.facts() if only is not None or _names(call, one, given["text"])]
    # Those of the call itself first, then down to where it begins.
    found.sort(key=lambda one: -one.call)
    # Numbers of the whole program, not of the part that ends in the call.
    offset = draft.paths().index(tuple(given["path"])) - (call.size - 1)
    rows = [resting(one, offset) for one in found[: base.limits.rows]]
    return {"facts": rows, "count": len(found)}


def _those(base: Base, outcome: Outcome, id: str | None, text: str | None) -> Ids | None:
    """The nodes or values of an outcome that are meant, by number; None where it has only words."""
    kb = base.kb
    if isinstance(outcome, Located):
        nodes = [kb.node(id)] if id is not None else kb.named(text or "").tolist()
        had = set(outcome.ids.tolist())
        found = [node for node in nodes if node in had]
    elif isinstance(outcome, Values):
        numbers = outcome.numbers.tolist()
        texts = kb.value_texts(numbers)
        found = [number for number, one in zip(numbers, texts, strict=True) if one == text]
    else:
        if text not in outcome.words:
            raise _not_there(id, text)
        return None
    if not found:
        raise _not_there(id, text)
    return as_ids(sorted(found))


def _not_there(id: str | None, text: str | None) -> RequestError:
    name = id if id is not None else text or ""
    field = "id" if id is not None else "text"
    return RequestError(f"the call does not give {name[:100]!r}", status=404, field=field)


def _names(call: Call, one: EvidenceFact, text: str | None) -> bool:
    """Whether a fact is behind a word: behind a relation its own, behind others all."""
    return call.function.name != "QueryRelation" or one.predicate == text


def resting(one: EvidenceFact, offset: int = 0) -> dict[str, Any]:
    """A fact that an answer rests on, as the page shows it."""
    relation = one.predicate if one.kind in ("relation", "membership") else None
    key = None if relation is not None else one.predicate
    direction = "forward" if one.kind == "relation" else None
    shown = fact(one.subject, relation, key, one.object, one.target, direction, one.qualifiers)
    return shown | {"call": one.call + offset, "subject_id": one.subject_id}


def _path(given: list[Any]) -> list[int]:
    if not all(type(place) is int for place in given):
        raise RequestError("path: a list of numbers was expected", field="path")
    return given


# --- queries --------------------------------------------------------------------------------------


def _translate(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base, to, style = playground.base(given["kb"]), given["to"], given["style"]
    call = _given_program(base, given["program"], given["query"])
    text, differences = translated(base, call, to, style)
    return {"text": text, "to": to, "style": style, "differences": differences}


def _given_program(base: Base, program: Any, query: str | None) -> Call:
    """The program that is given, itself or as a query."""
    if (program is None) == (query is None):
        raise RequestError("give either a program or a query", field="program")
    if query is None:
        return base.draft(program).call()
    from kopl.sparql.to_kopl import from_sparql

    return from_sparql(query, kb=base.kb)


def translated(base: Base, call: Call, to: str, style: str = "exact") -> tuple[str, list[str]]:
    """A program in another form, and where the answer of that may differ.

    Raises KoplError with the reason where the form cannot say it.
    """
    check(call)
    if to in CHARTS:
        from kopl.diagram import dot, mermaid

        trace = base.executor.run(call, trace=True).trace
        return {"mermaid": mermaid, "dot": dot}[to](call, trace), []
    if to != "sparql":
        return SPELLINGS["nested" if to == "kopl" else to](call), []
    from kopl.sparql.ast import write
    from kopl.sparql.from_kopl import translate

    if style == "wikidata":
        query, differences = translate(call, encoding=base.wikidata)
    else:
        query, differences = translate(call, "data" if style == "data" else "exact", kb=base.kb)
    return write(query), [*differences]


def _sparql(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base, engine, most = playground.base(given["kb"]), given["engine"], playground.limits.rows
    query = given["query"]
    if engine == "kopl":
        found = ran(base, Draft.of(_given_program(base, None, query)))
        return {"answer": found["answer"], "columns": None, "rows": None}
    from kopl.sparql.errors import NotUnderstoodError
    from kopl.sparql.reader import read

    if engine == "rdflib":
        read(query)  # only what we read: a query of its own may fetch files and addresses
    begin = time.perf_counter()
    executor = base.queries(engine)
    try:
        reply = executor.rows(query, most=MOST_ROWS)
    except NotUnderstoodError:
        read(query)  # it says more of what is wrong, where it sees that, too
        raise
    ms = (time.perf_counter() - begin) * 1000
    if "boolean" in reply:
        said = "yes" if reply["boolean"] else "no"
        return {"answer": answer(base, [said], ms), "columns": [], "rows": []}
    columns = [*reply["head"]["vars"]]
    bindings = reply["results"]["bindings"]
    rows = [[_cell(row.get(name)) for name in columns] for row in bindings[:most]]
    try:
        # As a program would say it: names for nodes, quantities with their units.
        strings = executor.denotation(query)
    except KoplError:
        first = (_cell(row.get(columns[0])) for row in bindings) if len(columns) == 1 else ()
        strings = [*dict.fromkeys(first)]
        if len(columns) != 1:
            return {"answer": None, "columns": columns, "rows": rows, "count": len(bindings)}
    return {
        "answer": answer(base, strings, ms), "columns": columns, "rows": rows,
        "count": len(bindings),
    }  # fmt: skip


def _cell(cell: dict[str, str] | None) -> str:
    return "" if cell is None else cell.get("value", "")


# --- files ----------------------------------------------------------------------------------------


def _export(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base, form = playground.base(given["kb"]), given["form"]
    call = base.draft(given["program"]).call()
    check(call)
    ending, media, write = FORMS[form]
    text = write(base, call, given["question"])
    return {"name": f"program.{ending}", "type": media, "text": text}


def _spelt(form: str) -> Callable[[Base, Call, str | None], str]:
    def write(base: Base, call: Call, question: str | None) -> str:
        return translated(base, call, form)[0] + "\n"

    return write


def _as_kqapro(base: Base, call: Call, question: str | None) -> str:
    """A list of one question, as the files of KQA Pro are."""
    strings = base.executor.run(call).denotation
    item: dict[str, Any] = {"question": question} if question else {}
    item["program"] = json.loads(SPELLINGS["kqapro"](call))
    item |= {"answer": strings[0]} if len(strings) == 1 else {}
    return json.dumps([item], ensure_ascii=False, indent=1) + "\n"


def _svg(base: Base, call: Call, question: str | None) -> str:
    from kopl.diagram import chart

    return chart(call, base.executor.run(call, trace=True).trace)


def _csv(base: Base, call: Call, question: str | None) -> str:
    written = io.StringIO()
    lines = csv.writer(written)
    lines.writerow(["answer"])
    strings: Iterable[str] = base.executor.run(call).denotation
    lines.writerows([text] for text in strings)
    return written.getvalue()


def _html(base: Base, call: Call, question: str | None) -> str:
    from kopl_cli.report import one_page

    return one_page(base.executor, call, question)


# The forms of files: the ending of the name, the media type, and what writes one.
FORMS: dict[str, tuple[str, str, Callable[[Base, Call, str | None], str]]] = {
    "json": ("json", "application/json", _spelt("json")),
    "nested": ("kopl", "text/plain", _spelt("nested")),
    "kqapro": ("kqapro.json", "application/json", _as_kqapro),
    "sparql": ("rq", "application/sparql-query", _spelt("sparql")),
    "svg": ("svg", "image/svg+xml", _svg),
    "mermaid": ("mmd", "text/plain", _spelt("mermaid")),
    "csv": ("csv", "text/csv", _csv),
    "html": ("html", "text/html", _html),
}


# --- the routes -----------------------------------------------------------------------------------


ANSWER = record(answers=listed(TEXT), count=WHOLE, state=TEXT, ms=NUMBER, hints=listed(TEXT))
VIEW = record(
    text=TEXT, draft=MAYBE, complete=TRUTH, calls=listed(OBJECT), holes=listed(OBJECT),
    problems=listed(OBJECT),
)  # fmt: skip
STEP = record(
    number=WHOLE, path=listed(WHOLE), state=TEXT, count=WHOLE, values=listed(OBJECT), ms=NUMBER,
    became_empty=TRUTH, message=MAYBE_TEXT,
)  # fmt: skip
PROGRAM = Field("program", "program", "a program in any spelling, or a tree with holes", True)
AS_YES_OR_NO = "how it is read as yes or no: exists, or {is: NAME}"
QUESTION = Field("question", "text", "its question", most=LONGEST_QUESTION)
_EITHER = Field("program", "program", "a program in any spelling")
_QUERY = Field("query", "text", "a SPARQL query", most=LONGEST)
_FORM_NAMES = ("kopl", *SPELLINGS, "sparql", *CHARTS)

ROUTES = [
    Route(
        "POST",
        "/api/run",
        "Run a program call by call, as far as it has no holes.",
        _run,
        (
            PROGRAM,
            Field("engine", "text", "what gives the answer", default="kopl", choices=ENGINES),
            Field("shown", "integer", "values of each call", default=10, least=0, most=100),
            Field("form", "any", AS_YES_OR_NO),
            Field("from", "list", "the path of what changed: only steps that it may change"),
            Field("evidence", "truth", "also the facts that the answer rests on", default=False),
        ),
        record(
            view=VIEW, steps=listed(STEP), answer=MAYBE, error=MAYBE, why_empty=MAYBE,
            evidence=MAYBE,
        ),
    ),
    Route(
        "POST",
        "/api/facts",
        "The facts, with qualifiers, that put a value into what a call gives.",
        _facts,
        (
            PROGRAM,
            Field("path", "list", "the path of the call", default=[], most=300),
            Field("id", "text", "the id of the value, if it has one", most=LONGEST),
            Field("text", "text", "the value as it is printed", most=LONGEST),
        ),
        record(facts=listed(FACT), count=WHOLE),
    ),
    Route(
        "POST",
        "/api/translate",
        "A program or a query in another form; an error says why it has none.",
        _translate,
        (
            _EITHER,
            _QUERY,
            Field("to", "text", "the form", True, choices=_FORM_NAMES),
            Field("style", "text", "of SPARQL", default="exact", choices=STYLES),
        ),
        record(text=TEXT, to=TEXT, style=TEXT, differences=listed(TEXT)),
    ),
    Route(
        "POST",
        "/api/sparql",
        "Ask a SPARQL query of the knowledge base; it only reads.",
        _sparql,
        (
            Field("query", "text", "SELECT or ASK", True, most=LONGEST),
            Field("engine", "text", "what runs it", default="oxigraph", choices=ENGINES),
        ),
        record(answer=MAYBE, columns={"type": ["array", "null"]}, rows={"type": ["array", "null"]}),
    ),
    Route(
        "POST",
        "/api/export",
        "A program as a file.",
        _export,
        (PROGRAM, QUESTION, Field("form", "text", "the form", True, choices=tuple(FORMS))),
        record(name=TEXT, type=TEXT, text=TEXT),
    ),
]  # fmt: skip
