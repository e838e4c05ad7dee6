"""What agents can do with a knowledge base: each tool a method that gives a model of its result.

Nothing here knows the protocol. Bad input raises KoplError, which `kopl_cli.mcp.replies` tells
together with what to try. Knowledge bases, executors and what is kept here may be shared between
threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Field

from kb import KnowledgeBase
from kb.arrays import Ids
from kb.lookup import NODE_KINDS, SCHEMA_KINDS, Facet, Match, NameLists, above, facets, fact_count
from kb.store import NameKind, suggest
from kopl.denotation import Located, Outcome
from kopl.errors import LimitError
from kopl.executor import Executor, Limits, Result, TraceStep
from kopl.functions import AND
from kopl.hints import hints_for, why_empty
from kopl.program import Call, linked
from kopl.text import read
from kopl.typecheck import check
from kopl.types import Type
from kopl_base.errors import KoplError, near_names
from kopl_cli.mcp import results as r
from kopl_cli.mcp.replies import MOST, ROOM, capped, cut, fitting, short, told

if TYPE_CHECKING:
    from kopl.sparql.evaluate import SparqlExecutor

# The longest text of a program, a query or a question that is read.
LONGEST_TEXT = 20_000
# How many things that exist are named where a call finds nothing.
NAMED = 8

Program = Annotated[
    str,
    Field(
        description="a KoPL program in any spelling, such as"
        ' QueryName(Relate(Find("Norway"), "capital", "forward"))',
        max_length=LONGEST_TEXT,
    ),
]
Limit = Annotated[
    int | None,
    Field(description="how many to show; without it as many as fit 2 KB", ge=1, le=MOST),
]


@dataclass(frozen=True)
class ToolLimits:
    """What one call of a tool may use: seconds, ids held by a step of a program, rows."""

    seconds: float = 10
    ids: int = 5_000_000
    rows: int = MOST


class WrongArgumentError(KoplError):
    """An argument that names what does not exist; ``to_try`` says what may be meant."""

    kind = "argument"

    def __init__(self, message: str, to_try: str = "") -> None:
        self.to_try = to_try
        super().__init__(message)


class Tools:
    """The tools over one knowledge base, with a trained run also `ask`."""

    def __init__(
        self, kb: KnowledgeBase, *, limits: ToolLimits | None = None, parser: Any = None
    ) -> None:
        self.kb, self.limits, self.parser = kb, limits or ToolLimits(), parser
        self.executor = Executor(
            kb, limits=Limits(seconds=self.limits.seconds, ids=self.limits.ids)
        )
        self._lock = threading.Lock()
        self._names = NameLists(kb)
        self._sparql: SparqlExecutor | None = None

    # --- names ------------------------------------------------------------------------------------

    def search(
        self,
        text: Annotated[
            str, Field(description="a name or a part of it; empty: all of them", max_length=500)
        ],
        kind: Annotated[r.SearchKind, Field(description="what to look for")] = "any",
        concept: Annotated[
            str | None, Field(description="only entities that are instances of it")
        ] = None,
        limit: Limit = None,
    ) -> r.FoundNames:
        """Finds how things are called here: entities, concepts, relations, keys, units.

        Programs must use names exactly as this gives them. Start with it.
        """
        kinds: tuple[NameKind, ...] = (*NODE_KINDS, *SCHEMA_KINDS, "unit")
        if kind != "any":
            kinds = (kind,)
        within = None
        if concept is not None:
            kinds, within = ("entity",), self._instances(concept)
        if text.strip():
            near = self._names.near(text, kinds, within)
            count, found = len(near), iter(near)
        else:
            count, found = self._names.all(kinds, within)
        rows = [self._match(match) for match in islice(found, limit or 100)]
        return capped(r.FoundNames(count=count, matches=[]), "matches", rows, limit, count)

    def _match(self, match: Match) -> r.FoundName:
        kb, node = self.kb, match.node
        found = r.FoundName(kind=match.kind, name=match.name)
        if match.called != match.name:
            found.also = match.called
        if match.kind == "concept":
            found.things = len(kb.instances_of(match.name))
        elif match.kind != "unit":
            found.facts = fact_count(kb, match)
        if node is not None:
            found.id, found.concepts = kb.id_of(node), above(kb, node)[:5]
        return found

    def _instances(self, concept: str) -> Ids:
        if all(map(self.kb.is_entity, self.kb.named(concept).tolist())):
            near = suggest(self.kb, concept, ("concept",))
            raise WrongArgumentError(
                f"there is no concept {concept!r}",
                f"concept={near[0]!r}" if near else 'search(text="", kind="concept") lists them',
            )
        return self.kb.instances_of(concept)

    # --- what things have -------------------------------------------------------------------------

    def schema(
        self,
        concept: Annotated[str | None, Field(description="of the things of this concept")] = None,
        program: Annotated[
            str | None,
            Field(
                description="of what this program finds, which is a set", max_length=LONGEST_TEXT
            ),
        ] = None,
        text: Annotated[
            str, Field(description="only what is called nearly so; words too", max_length=500)
        ] = "",
        limit: Limit = None,
    ) -> r.SchemaPart:
        """Tells which relations (with direction), keys and qualifiers some things have.

        With counts, types, units and an example each; of all things without concept and program.
        """
        if concept is not None and program is not None:
            raise WrongArgumentError(
                "both a concept and a program are given", "give one of them, or none"
            )
        if program is not None:
            call = self._read(program)
            nodes, of = self._located(call), str(call)
        elif concept is not None:
            nodes, of = self._instances(concept), f"things of the concept {concept}"
        else:
            nodes, of = self.kb.entities, "all things"
        found = self._names.of_all if nodes is self.kb.entities else facets(self.kb, nodes)
        if text.strip():
            found = _called_nearly(text, found)
            of = f"{of[:150]}, called nearly {text[:50]!r}"
        rows = [_row(facet) for facet in found]
        empty = r.SchemaPart(count=len(found), of=of[:200], things=len(nodes), rows=[])
        if text.strip() and not found:
            empty.more = "nothing is called so; leave text out to see all"
        return capped(empty, "rows", rows, limit, len(found))

    def _located(self, call: Call) -> Ids:
        [*_, last] = check(call)
        if last.function.output not in (Type.ENTITIES, Type.FACTS):
            raise WrongArgumentError(
                f"the program gives {last.function.output.value}, not a set of things",
                "leave its last call out",
            )
        self.executor.run(call)  # within the limits
        outcome = self.executor.outcome(call, {})
        assert isinstance(outcome, Located)
        return outcome.ids

    # --- programs ---------------------------------------------------------------------------------

    def run_program(
        self,
        program: Program,
        trace: Annotated[bool, Field(description="also what every call gave")] = False,
        limit: Limit = None,
    ) -> r.Ran:
        """Runs a KoPL program and gives its answer, or all strings that it denotes.

        Where nothing is found it says which call found nothing and what there is instead.
        """
        result = self.executor.run(self._read(program), trace=5)
        state, count = result.state, len(result.denotation)
        ran = r.Ran(state=state, answer=result.answer, count=count, denotation=[])
        ran.hints = cut(result.hints[:5]) or None
        if trace:
            ran.trace = fitting([_traced(step) for step in result.trace or ()], ROOM)
        if not count or result.denotation == ["0"]:
            ran.to_try = self._instead(result)
        if limit is None:
            ran.answer = short(ran.answer)
        return capped(ran, "denotation", result.denotation, limit, count)

    def check_program(self, program: Program) -> r.Checked:
        """Tells whether a KoPL program types and its names exist, without running it."""
        try:
            call = self._read(program)
            steps = check(call)
        except KoplError as error:
            return r.Checked(well_typed=False, error=told(error))
        calls = [
            r.CheckedCall(call=number, text=_spelt(one, inputs), gives=one.function.output.value)
            for number, (one, inputs) in enumerate(linked(steps[-1].call))
        ]
        return r.Checked(
            well_typed=True,
            calls=fitting(calls, ROOM),
            hints=cut(hints_for(self.kb, call)[:5]) or None,
        )

    def evidence(self, program: Program, limit: Limit = None) -> r.RestsOn:
        """Gives the facts, with their qualifiers, that the answer of a KoPL program rests on.

        They alone give the answer. Cite them.
        """
        result = self.executor.run(self._read(program), evidence=True)
        found = result.evidence
        assert found is not None
        shown = islice(found.facts(), limit or 50)
        rows = [r.RestingOn(**_filled(fact.to_json())) for fact in shown]
        denotation = fitting(cut(result.denotation), ROOM // 4)
        empty = r.RestsOn(
            count=len(found),
            state=result.state,
            denotation=denotation,
            minimal=found.is_minimal,
            facts=[],
        )
        return capped(empty, "facts", rows, limit, len(found))

    def translate(
        self,
        program: Annotated[
            str, Field(description="a KoPL program, or a SPARQL query", max_length=LONGEST_TEXT)
        ],
        to: Annotated[r.Form, Field(description="the form to write")],
        source: Annotated[r.Source, Field(description="what is given")] = "kopl",
    ) -> r.Translated:
        """Writes a KoPL program in another spelling, as SPARQL or a chart; SPARQL as a program."""
        from kopl_cli.translate import SPELLINGS

        if source == "sparql":
            from kopl.sparql.to_kopl import from_sparql

            call = from_sparql(program, kb=self.kb)
        else:
            call = self._read(program)
        check(call)
        if to in SPELLINGS:
            return r.Translated(form=to, text=SPELLINGS[to](call))
        if to == "sparql":
            from kopl.sparql.ast import write
            from kopl.sparql.from_kopl import translate

            query, differences = translate(call, kb=self.kb)
            return r.Translated(form=to, text=write(query), differences=[*differences] or None)
        from kopl.diagram import dot, mermaid

        return r.Translated(form=to, text={"mermaid": mermaid, "dot": dot}[to](call, None))

    def _read(self, program: str) -> Call:
        if len(program) > LONGEST_TEXT:
            raise LimitError(f"a program may have {LONGEST_TEXT} characters")
        return read(program, max_depth=self.executor.limits.depth)

    def _instead(self, result: Result) -> str | None:
        """What there is where the first call without a value looked for something."""
        outcomes: dict[Call, Outcome] = {}
        found = why_empty(
            self.kb, result.program, lambda call: self.executor.outcome(call, outcomes)
        )
        if found is None:
            return None
        shown = f"call {found.number}, {short(found.text)}, is the first that finds nothing"
        if not found.call.inputs:
            return f"{shown}; search(text={short(found.call.arguments[0])!r}) gives near names"
        if found.there:
            return short(f"{shown}; {found.message}", 600)
        return f"{shown}: {found.message}" if found.call.function is AND else shown

    # --- questions and queries --------------------------------------------------------------------

    def ask(
        self,
        question: Annotated[str, Field(description="in English", min_length=1, max_length=2000)],
        limit: Limit = None,
    ) -> r.ParserAnswer:
        """Lets the trained parser answer a question: its answer, program, and how sure it is."""
        with self._lock:  # one network, on one device
            [answer, *_] = self.parser.ask(question)
        confidence = round(float(answer.confidence), 3)
        program = None if answer.program is None else str(answer.program)
        asked = r.ParserAnswer(
            count=0,
            answers=[],
            program=program,
            confidence=confidence,
            calibrated=bool(answer.is_calibrated),
        )
        if answer.refused is not None:
            asked.refused, asked.near = answer.refused.message, [*answer.refused.near] or None
            return asked
        if answer.error is not None:
            asked.error = told(answer.error)
            return asked
        from parsers.linking import unsaid

        if answer.program is not None:
            asked.doubts = unsaid(answer.program, question, self.kb) or None
        answers = [*answer.answers]
        asked.count = len(answers)
        asked.state = "unique" if len(answers) == 1 else "several" if answers else "empty"
        return capped(asked, "answers", answers, limit, len(answers))

    def run_sparql(
        self,
        query: Annotated[
            str,
            Field(
                description="SELECT or ASK, in KQA Pro's encoding; translate(to='sparql') shows it",
                max_length=LONGEST_TEXT,
            ),
        ],
        limit: Limit = None,
    ) -> r.SparqlAnswer:
        """Runs a SPARQL query on the knowledge base; it only reads, and is stopped after a time."""
        answer = self._queries.rows(query, most=self.limits.rows + 1)
        if "boolean" in answer:
            truth = bool(answer["boolean"])
            return r.SparqlAnswer(count=1, columns=[], rows=[], truth=truth)
        columns = [*answer["head"]["vars"]]
        found = answer["results"]["bindings"]
        rows = [
            [short(row.get(name, {}).get("value", ""), 500) or "" for name in columns]
            for row in found[:MOST]
        ]
        count = len(found)
        empty = r.SparqlAnswer(count=count, columns=columns, rows=[])
        answered = capped(empty, "rows", rows, limit, count)
        if count > self.limits.rows:  # one more than it is asked for
            answered.count = self.limits.rows
            answered.more = "there are more rows than are fetched; use LIMIT and OFFSET"
        return answered

    @property
    def _queries(self) -> SparqlExecutor:
        """What runs queries; made when the first one comes, and once."""
        with self._lock:
            if self._sparql is None:
                from kopl.sparql.engine import require
                from kopl.sparql.engines import embedded
                from kopl.sparql.evaluate import SparqlExecutor

                require("oxigraph")
                engine, seconds = embedded("oxigraph", self.kb), self.limits.seconds
                self._sparql = SparqlExecutor(engine, kb=self.kb, timeout=seconds)
            return self._sparql

    # --- for resources ----------------------------------------------------------------------------

    def about(self, id: str) -> dict[str, Any]:
        """An entity or concept with its facts, at most `MOST` of them; raises KoplError."""
        kb, node = self.kb, self.kb.node(id)
        if node < 0:
            near = suggest(kb, id, ("entity", "concept"))
            raise WrongArgumentError(f"there is no id {id!r}", f"search finds ids; {near}")
        facts: list[dict[str, Any]] = []
        for fact in islice(kb.attributes(node) if kb.is_entity(node) else (), MOST):
            facts.append({"key": fact.key, "value": str(fact.value), **_qualified(fact.qualifiers)})
        for record in islice(kb.records(node, "both"), MOST - len(facts)):
            other = {"name": kb.name_of(kb.node(record.other)), "id": record.other}
            facts.append(
                {"relation": record.relation, "direction": record.direction, **other}
                | _qualified(record.qualifiers)
            )
        kind: NameKind = "entity" if kb.is_entity(node) else "concept"
        name = kb.name_of(node)
        return {
            "id": id,
            "name": name,
            "kind": kind,
            "also": [*kb.aliases_of(node)],
            "concepts": above(kb, node),
            "count": fact_count(kb, Match(kind, name, name, node)),
            "facts": facts,
        }

    def whole_schema(self) -> dict[str, Any]:
        """All relations, keys and qualifier keys with counts, and how much there is of all."""
        kb = self.kb
        rows = self._names.of_all
        return {
            "entities": kb.entity_count,
            "concepts": kb.concept_count,
            "relational facts": len(kb.relational),
            "literal facts": len(kb.literals),
            "rows": [_row(facet).model_dump(exclude_none=True) for facet in rows],
        }

    def grammar(self, form: str) -> str:
        """The grammar of all programs over the knowledge base that type; raises KoplError."""
        from kopl.grammars import FORMS, grammar

        if form not in FORMS:
            raise WrongArgumentError(f"there is no grammar {form!r}; there are {', '.join(FORMS)}")
        return grammar(self.kb, form)

    def close(self) -> None:
        """Stop what runs queries, if there is something."""
        if self._sparql is not None:
            self._sparql.close()


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, {}, [])}


def _qualified(qualifiers: dict[str, list[Any]]) -> dict[str, Any]:
    shown = {key: [*map(str, values)] for key, values in qualifiers.items()}
    return {"qualifiers": shown} if shown else {}


def _called_nearly(text: str, found: list[Facet]) -> list[Facet]:
    """Those whose names are near the text or one of its words, the nearest first."""
    names = sorted({facet.name for facet in found})
    near = near_names(text, names, len(names), cutoff=75)
    for word in text.split():
        near += near_names(word, names, NAMED, cutoff=80) if len(word) > 2 else []
    by_name: dict[str, list[Facet]] = {}
    for facet in found:
        by_name.setdefault(facet.name, []).append(facet)
    return [facet for name in dict.fromkeys(near) for facet in by_name[name]]


def _row(facet: Facet) -> r.SchemaRow:
    direction = cast(Literal["forward", "backward"] | None, facet.direction or None)
    return r.SchemaRow(
        kind=facet.kind,
        name=facet.name,
        direction=direction,
        of=facet.of or None,
        values=[*facet.forms[:6]] or None,
        things=facet.things or None,
        facts=facet.facts,
        example=short(facet.example, 60) or "",
    )


def _traced(step: TraceStep) -> r.TracedCall:
    shown = [short(text, 80) or "" for text in step.shown[:3]]
    return r.TracedCall(call=step.number, text=step.text, count=step.count, shown=shown)


def _spelt(call: Call, inputs: Sequence[int]) -> str:
    parts = [f"#{at}" for at in inputs] + [repr(text) for text in call.arguments]
    return f"{call.function.name}({', '.join(parts)})"


Tool = Callable[..., r.ToolResult]
