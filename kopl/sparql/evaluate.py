"""The one place where the answers of engines become denotations."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from kb import KnowledgeBase
from kb.rdf.iri import decode
from kb.values import NO_UNIT, Quantity, Value, ValueReadError, Year, read_time
from kb.valuetable import time_code
from kopl.errors import ProgramError
from kopl.executor import Program, Result
from kopl.sparql.ast import (
    Aggregate,
    Ask,
    Brackets,
    Element,
    Group,
    Named,
    Query,
    Select,
    SubSelect,
    Triple,
    Var,
    deep_recursion,
    mapped,
    variables,
    walk,
    write,
)
from kopl.sparql.conditions import OF_VALUES
from kopl.sparql.encoding import VALUE_VARS, Encoding, Names
from kopl.sparql.engine import Answer, Dialect, Engine
from kopl.sparql.errors import NotUnderstoodError, QueryReadError, QueryTooDeepError
from kopl.sparql.from_kopl import COUNT, NODE_NAME, RELATION, translate
from kopl.sparql.order import Statistics
from kopl.sparql.reader import read, with_prologue
from kopl.sparql.rewrites import DIGITS, first_step, second_step
from kopl.text import read as read_program
from kopl_base.errors import KoplError

# Seconds for a text that is not of the subset, where no time limit is set.
LONGEST = 3600.0

# A literal that a query asks for itself.
PLAIN = Var("plain")


class SparqlExecutor:
    """Runs programs and queries on a SPARQL engine; the counterpart of `kopl.executor.Executor`.

    ``kb`` is the knowledge base that the engine holds, where it is at hand: queries are simpler
    then and unknown names get hints. ``timeout`` bounds the seconds of each query.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        kb: KnowledgeBase | None = None,
        encoding: Encoding | None = None,
        timeout: float | None = None,
    ) -> None:
        self.engine, self.kb, self.timeout = engine, kb, timeout
        self.encoding = encoding or Encoding()
        self._statistics = Statistics(kb if self.encoding.counted else None)

    def run(self, program: Program) -> Result:
        """The denotation of a program, by its translation.

        Raises ParseError, TypingError or an EngineError.
        """
        begin = time.perf_counter()
        call = read_program(program)
        query, _ = translate(call, kb=self.kb, encoding=self.encoding)
        denotation = self.denotation(query)
        ms = (time.perf_counter() - begin) * 1000
        return Result(denotation, ms, program=call, kb=self.kb)

    def run_many(self, programs: Iterable[Program | ProgramError]) -> Iterator[Result | KoplError]:
        """The results in order; a program that fails gives its error and the rest go on.

        An error in place of a program (one that a reader met) is handed on.
        """
        for program in programs:
            if isinstance(program, ProgramError):
                yield program
                continue
            try:
                yield self.run(program)
            except KoplError as error:
                yield error

    def denotation(self, query: Query | str) -> list[str]:
        """What a query asks for, as the strings in which KQA Pro writes answers.

        The query may be of any style; a text must be of the subset that is read. Raises
        QueryReadError or an EngineError.
        """
        dialect = self.engine.dialect
        if isinstance(query, str):
            query = read(query, base=dialect.base)
        with deep_recursion():
            asked = denoting(query, self.encoding)
        return strings_of(self.rows(asked), dialect)

    def rows(self, query: Query | str, *, most: int | None = None, any_text: bool = True) -> Answer:
        """The engine's own answer, in SPARQL's JSON results format; any SPARQL text may be asked.

        IRIs of the encoding come as the engine has them. ``most`` rows are asked for where the
        query is of the subset that is read.
        """
        dialect = self.engine.dialect
        tree: Query
        try:
            tree = read(query, base=dialect.base) if isinstance(query, str) else query
        except QueryTooDeepError:
            raise
        except QueryReadError:
            # Not of the subset: the engine may know better. Oxigraph ends at some texts, together
            # with its process, so that with a time limit this is another one.
            text = with_prologue(str(query), dialect.base)
            try:
                return self.engine.query(text, timeout=self.timeout or LONGEST)
            except NotUnderstoodError as error:
                raise NotUnderstoodError(_of_own_text(str(error), str(query), text)) from None
        if isinstance(tree, Select) and most is not None:
            tree = replace(tree, limit=most if tree.limit is None else min(tree.limit, most))
        with deep_recursion():
            return self._answer(tree)

    def _answer(self, query: Query) -> Answer:
        dialect = self.engine.dialect
        first = first_step(query) if dialect.steps else None
        if first is not None and isinstance(query, Select):
            rest = second_step(query, first, self._answer(first.query))
            if isinstance(rest, Select):
                return self._answer(rest)
            if rest is not None:
                return rest
        for rewrite in dialect.rewrites:
            query = rewrite(query, self._statistics)
        text = write(query, base=dialect.base, prologue=True)
        if dialect.pragma is not None:
            text = dialect.pragma(query) + text
        return self.engine.query(text, timeout=self.timeout)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()


def _of_own_text(message: str, own: str, sent: str) -> str:
    """An engine's message with the line of the text as it was given."""
    lines = sent.count("\n") - own.count("\n")
    return re.sub(r"(?<= at )(\d+)(?=:\d)", lambda line: str(int(line[1]) - lines), message)


# --- what is asked -----------------------------------------------------------------------------


def denoting(query: Query, encoding: Encoding | None = None) -> Query:
    """The query, asking for what its answer is printed from instead of for nodes.

    A variable that stands for a node gives its name; one for a value gives the value with its
    unit, year and day; relations and numbers stay. Raises QueryReadError for a query that asks for
    several things.
    """
    encoding = encoding or Encoding()
    if isinstance(query, Select) and len(query.items) > 1:
        query = _with_our_names(query)
    if isinstance(query, Ask) or _prints(query, encoding):
        return query
    if len(query.items) != 1:
        raise QueryReadError("a query with one variable is expected: only that is an answer")
    item = query.items[0]
    if isinstance(item, Named):
        counts = isinstance(item.expression, Aggregate) and item.expression.function == "COUNT"
        if counts and not query.group_by and query.having is None:
            return replace(query, items=(Named(item.expression, COUNT),))
    # Whatever the query calls its variables, ours have their own names.
    names = Names(variables(query))
    own = (NODE_NAME, RELATION, COUNT, PLAIN, *VALUE_VARS)
    query = _renaming(query, {var: names.fresh("x") for var in own if var in variables(query)})
    item = query.items[0]
    asked = item.variable if isinstance(item, Named) else item
    if any(_has_verb(part, asked) for part in walk(query.where)):
        return _renaming(query, {asked: RELATION})
    inner: tuple[Element, ...] = query.where.elements
    grouped = query.group_by or query.having is not None
    if query.order_by or query.limit is not None or grouped or isinstance(item, Named):
        inner = (SubSelect(query),)
    fetch = encoding.denoted(asked, NODE_NAME)
    items: tuple[Var | Named, ...] = (Named(asked, PLAIN), NODE_NAME, *VALUE_VARS)
    return Select(items, Group((*inner, *fetch)), distinct=True)


def _with_our_names(query: Select) -> Select:
    """The query with our variables for the parts of one value, where it asks for them by others."""
    names: dict[Var, Var] = {}
    owners = set()
    for part in walk(query.where):
        of_value = isinstance(part, Triple) and part.predicate in OF_VALUES
        if of_value and isinstance(part.object, Var) and part.object in query.variables:
            owners.add(part.subject)
            names[part.object] = VALUE_VARS[OF_VALUES.index(part.predicate)]
    if len(owners) != 1 or set(names) != set(query.variables):
        return query
    if len(set(names.values())) != len(names):
        return query
    inside = Names(variables(query))
    taken = {var: inside.fresh("x") for var in VALUE_VARS if var in variables(query)}
    found = _renaming(query, {var: names.get(var, other) for var, other in taken.items()} | names)
    return replace(found, items=VALUE_VARS)


def _prints(query: Select, encoding: Encoding) -> bool:
    """Whether the query has the form that exact translations have: it asks for no nodes."""
    asked = query.variables
    if asked == (COUNT,):
        only = query.items[0]
        return isinstance(only, Named) and isinstance(only.expression, Aggregate)
    if query.order_by or query.limit is not None or query.group_by or query.having is not None:
        return False
    if asked == (RELATION,):
        return any(_has_verb(part, RELATION) for part in walk(query.where))
    if asked in ((NODE_NAME,), VALUE_VARS):
        return any(encoding.prints(part, var) for part in walk(query.where) for var in asked)
    return False


def _has_verb(part: object, var: Var) -> bool:
    if isinstance(part, Triple):
        return part.predicate == var
    if isinstance(part, Brackets):
        return any(verb == var for verb, _ in (*part.inside, *part.outside))
    return False


def _renaming(query: Select, names: dict[Var, Var]) -> Select:
    return mapped(query, lambda part: names.get(part, part) if isinstance(part, Var) else part)


# --- what comes back ---------------------------------------------------------------------------


def strings_of(answer: Answer, dialect: Dialect | None = None) -> list[str]:
    """The denotation that an answer to a denoting query is: distinct strings, in a program's order.

    Raises NotUnderstoodError for an answer that is not of that form.
    """
    if "boolean" in answer:
        return ["yes" if answer["boolean"] else "no"]
    names: set[str] = set()
    values: set[Value] = set()
    try:
        for row in answer["results"]["bindings"]:
            if (cell := row.get(COUNT.name)) is not None:
                names.add(str(int(cell["value"])))
            elif (cell := row.get(RELATION.name)) is not None:
                is_text = cell.get("type") == "literal"
                names.add(cell["value"] if is_text else _relation(cell["value"], dialect))
            elif (cell := row.get(NODE_NAME.name)) is not None:
                names.add(cell["value"])
            elif (value := _value(row)) is not None:
                values.add(value)
            elif (cell := row.get(PLAIN.name)) is not None and "literal" in cell["type"]:
                values.add(_plain(cell))
    except (KeyError, TypeError, AttributeError, ValueError, ValueReadError) as error:
        raise NotUnderstoodError(f"the answer is not of the form asked for: {error}") from error
    printed = [str(value) for value in sorted(values, key=_place)]
    return list(dict.fromkeys([*sorted(names), *printed]))


def _relation(iri: str, dialect: Dialect | None) -> str:
    base = dialect.base if dialect is not None else None
    if base and iri.startswith(base):
        iri = iri[len(base) :]
    return iri if iri.startswith("pred:") else decode(iri)


def _value(row: dict[str, dict[str, str]]) -> Value | None:
    """The value in a row: from its number or text and unit, or from its year and day."""
    text, unit, year, date = (row.get(var.name) for var in VALUE_VARS)
    if text is not None:
        kind = text.get("datatype")
        if unit is None and (kind is None or kind.endswith("#string")):
            return text["value"]
        digits = row.get(DIGITS.name)
        number = digits["value"] if digits and digits["value"] else text["value"]
        return Quantity(float(number), unit["value"] if unit else NO_UNIT)
    if date is not None:
        return read_time(date["value"])
    return Year(int(year["value"])) if year is not None else None


def _plain(cell: dict[str, str]) -> Value:
    """The value of a literal that is asked for itself; numbers have no unit."""
    kind = cell.get("datatype", "").rpartition("#")[2]
    if kind in ("double", "float", "decimal", "integer"):
        return Quantity(float(cell["value"]))
    return cell["value"]


def _place(value: Value) -> tuple[object, ...]:
    """Where a value stands in the order of a denotation."""
    if isinstance(value, str):
        return (0, value)
    if isinstance(value, Quantity):
        return (1, value.unit, value.number)
    return (2, time_code(value))
