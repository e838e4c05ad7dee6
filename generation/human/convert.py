"""From a query graph to the program that it was the query of.

A clause about a node becomes a condition: a filter where its predicate is a key, else `Relate` from
the other end, which is described in the same way first. What describes a name narrows down
namesakes: ``And(conditions, Find(name))``, or filters on top of ``Find(name)``. A variable is what
satisfies its conditions, each with the concept: ``And`` of ``FilterConcept(condition, concept)``.
These are the forms of KQA Pro's own programs. Clauses stay in the order of the graph; programs that
differ in that order alone are equal for `parsers.matching`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from generation.human.records import (
    COUNT,
    ENTITY,
    INSTANCE_OF,
    PARTS,
    QUALIFIER_VALUE,
    TRUTH,
    VALUE,
    Clause,
    HumanQuestion,
    NotConverted,
    is_variable,
)
from generation.human.schema import GraphSchema
from generation.human.wording import check_belongs, check_numbers, described_end, lost_clauses
from kopl import functions as f
from kopl.program import Call
from kopl.typecheck import check

# No question says so much; a program of a longer chain could not be read again.
MOST_CLAUSES = 40

# All parts, and all source tags, in counts.
ALL = "all"


@dataclass(frozen=True)
class Conversion:
    """The program of a question; ``restored`` are the clauses that its wording gave back."""

    program: Call
    restored: tuple[Clause, ...] = ()


def convert(question: HumanQuestion, schema: GraphSchema) -> Conversion:
    """The program of a question's graph, well-typed.

    Raises NotConverted, with the reason, when the graph is no query or it is not certain which.
    """
    if question.malformed:
        raise NotConverted("malformed graph", question.malformed)
    if len(question.clauses) > MOST_CLAUSES:
        raise NotConverted("malformed graph", f"it has more than {MOST_CLAUSES} clauses")
    check_belongs(question)
    restored = lost_clauses(question, schema)
    clauses = _with(question.clauses, restored)
    check_numbers(question, clauses)
    program = _Graph(clauses, question, schema).program()
    check(program)
    return Conversion(program, restored)


def _with(clauses: Sequence[Clause], restored: Sequence[Clause]) -> list[Clause]:
    """The clauses, each restored one before the first that has its head and predicate."""
    result = list(clauses)
    for lost in restored:
        alike = (at for at, c in enumerate(result)
                 if (c.head, c.predicate) == (lost.head, lost.predicate))  # fmt: skip
        result.insert(next(alike), lost)
    return result


class _Graph:
    """A graph while its clauses are used up; each is used exactly once."""

    def __init__(
        self, clauses: Sequence[Clause], question: HumanQuestion, schema: GraphSchema
    ) -> None:
        self.question, self.schema = question, schema
        self.concepts: dict[str, str] = {}
        self.left: list[Clause] = []
        # Nodes that have their place in the program, and whether something is said of them.
        self.placed: dict[str, bool] = {}
        # For clauses between two nodes that have their place: which of them they describe.
        self.owner: dict[Clause, str] = {}
        for clause in clauses:
            if clause.predicate != INSTANCE_OF:
                self.left.append(clause)
            elif is_variable(clause.head) and not is_variable(clause.tail):
                if clause.head in self.concepts:
                    raise NotConverted("two concepts", clause.head)
                self.concepts[clause.head] = clause.tail
            else:
                raise NotConverted("malformed graph", f"{clause} is not about a variable")

    def program(self) -> Call:
        """The program; raises NotConverted."""
        target = self.question.target
        if target in (ENTITY, COUNT):
            asked = f.COUNT if target == COUNT else f.QUERY_NAME
            program = Call(asked, (self._set(ENTITY),))
        else:
            roots = {TRUTH: self._truth, VALUE: self._value, QUALIFIER_VALUE: self._qualifier_value}
            program = roots[target]()
        if self.left:
            raise NotConverted("clauses not connected", " ".join(map(str, self.left)))
        return program

    # --- what is asked ------------------------------------------------------------------------

    def _truth(self) -> Call:
        """The last clause is verified, the others say of what."""
        last = self.left.pop() if self.left else None
        if last is None or is_variable(last.tail) or self.schema.is_relation(last.predicate):
            raise NotConverted("clause missing", "the last clause has no value to verify")
        of = self._set(last.head)
        values = Call(f.QUERY_ATTR, (of,), (last.predicate,))
        if last.qualifier:
            self._no_variable(last.qualifier[1])
            values = Call(
                f.QUERY_ATTR_UNDER_CONDITION, (of,), (last.predicate, *last.qualifier)
            )  # fmt: skip
        return Call(f.VERIFY_STR, (values,), (last.tail,))

    def _value(self) -> Call:
        asked = self._take([c for c in self.left if c.tail == VALUE])
        of = self._set(asked.head)
        if asked.qualifier is None:
            return Call(f.QUERY_ATTR, (of,), (asked.predicate,))
        self._no_variable(asked.qualifier[1])
        return Call(f.QUERY_ATTR_UNDER_CONDITION, (of,), (asked.predicate, *asked.qualifier))

    def _qualifier_value(self) -> Call:
        asked = self._take(
            [c for c in self.left if c.qualifier and c.qualifier[1] == QUALIFIER_VALUE]
        )
        assert asked.qualifier
        key = asked.qualifier[0]
        if not self.schema.is_relation(asked.predicate):
            self._no_variable(asked.tail)
            return Call(
                f.QUERY_ATTR_QUALIFIER, (self._set(asked.head),),
                (asked.predicate, asked.tail, key),
            )  # fmt: skip
        ends = (asked.head, asked.tail)
        if asked.head == asked.tail:
            sets = self._namesakes(asked.head)
        else:
            for clause in self.left:
                if {clause.head, clause.tail} == set(ends):
                    self.owner[clause] = described_end(clause, self.question.question)
            self.placed |= dict.fromkeys(ends, False)
            sets = (self._described(asked.head), self._described(asked.tail))
        return Call(f.QUERY_RELATION_QUALIFIER, sets, (asked.predicate, key))

    def _namesakes(self, name: str) -> tuple[Call, Call]:
        """Both ends of a fact whose ends have one name.

        What is said of the head stands before what is said of the tail, and of each at most one
        thing is said: so it is wherever the names differ.
        """
        own = [clause for clause in self.left if self._is_about(clause, name)]
        if len(own) not in (0, 2) or any(clause.head == clause.tail for clause in own):
            raise NotConverted("ambiguous namesakes", f"both ends are {name!r}")
        self.placed[name] = bool(own)
        for clause in own:
            self.left.remove(clause)
        return self._name(name, own[:1]), self._name(name, own[1:])

    def _take(self, found: list[Clause]) -> Clause:
        if len(found) != 1:
            raise NotConverted("clause missing", f"{len(found)} clauses hold what is asked for")
        self.left.remove(found[0])
        return found[0]

    # --- sets ---------------------------------------------------------------------------------

    def _set(self, node: str) -> Call:
        """The program of a node that a clause leads to.

        A name may come again as long as nothing is said of it: then it is found once more.
        """
        if node not in self.placed:
            self.placed[node] = False
            return self._described(node)
        if (
            is_variable(node)
            or self.placed[node]
            or any(self._is_about(c, node) for c in self.left)
        ):
            raise NotConverted("ambiguous namesakes", f"{node!r} stands in two places")
        return Call(f.FIND, (), (node,))

    def _is_about(self, clause: Clause, node: str) -> bool:
        """Whether the clause says something of the node, and not of an equal value."""
        if clause.tail == node and self.schema.is_relation(clause.predicate):
            return True
        return clause.head == node

    def _described(self, node: str) -> Call:
        """The program of a node with all clauses about it that are left."""
        own = [c for c in self.left if self._is_about(c, node) and self.owner.get(c, node) == node]
        for clause in own:
            self.left.remove(clause)
        if own and not is_variable(node):
            self.placed[node] = True
        return self._variable(node, own) if is_variable(node) else self._name(node, own)

    def _variable(self, node: str, clauses: list[Clause]) -> Call:
        if node not in self.concepts:
            raise NotConverted("no concept", node)
        if not clauses:
            raise NotConverted("clause missing", f"nothing is said of {node}")
        concept = (self.concepts.pop(node),)
        result: Call | None = None
        for clause in clauses:
            condition = Call(
                f.FILTER_CONCEPT, (self._condition(node, clause, Call(f.FIND_ALL)),), concept
            )
            result = Call(f.AND, (result, condition)) if result else condition
        assert result
        return result

    def _name(self, node: str, clauses: list[Clause]) -> Call:
        result = Call(f.FIND, (), (node,))
        for clause in clauses:
            condition = self._condition(node, clause, result)
            relates = self.schema.is_relation(clause.predicate)
            result = Call(f.AND, (condition, result)) if relates else condition
        return result

    def _condition(self, node: str, clause: Clause, filtered: Call) -> Call:
        """What satisfies a clause about a node: a filter of a set, or `Relate` from the other."""
        if self.schema.is_relation(clause.predicate):
            direction = "backward" if clause.head == node else "forward"
            other = self._set(clause.other(node))
            result = Call(f.RELATE, (other,), (clause.predicate, direction))
        else:
            self._no_variable(clause.tail)
            result = Call(f.FILTER_STR, (filtered,), (clause.predicate, clause.tail))
        if clause.qualifier:
            self._no_variable(clause.qualifier[1])
            result = Call(f.QFILTER_STR, (result,), clause.qualifier)
        return result

    def _no_variable(self, text: str) -> None:
        if is_variable(text):
            raise NotConverted("malformed graph", f"{text} stands where a value was expected")


@dataclass
class ConversionCounts:
    """How many questions were converted, by part and source tag, and why the others were not.

    It is filled by `add`.
    """

    questions: Counter[tuple[str, str]] = field(default_factory=Counter)  # (part, tag)
    converted: Counter[tuple[str, str]] = field(default_factory=Counter)
    restored: int = 0
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)  # (reason, tag)

    def add(self, question: HumanQuestion, result: Conversion | NotConverted) -> None:
        """Count one question; it counts under each of its tags."""
        tags = (ALL, *sorted(set(question.sources)))
        cells = [(part, tag) for part in (ALL, question.part) for tag in tags]
        self.questions.update(cells)
        if isinstance(result, NotConverted):
            self.reasons.update((result.reason, tag) for tag in tags)
        else:
            self.converted.update(cells)
            self.restored += bool(result.restored)

    @property
    def tags(self) -> list[str]:
        """The source tags that occur, after `ALL`."""
        return [ALL, *sorted({tag for _, tag in self.questions} - {ALL})]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Rows of a table: part, source tag, questions, converted, share."""
        for part in (ALL, *PARTS):
            for tag in self.tags:
                if count := self.questions[part, tag]:
                    done = self.converted[part, tag]
                    yield part, tag, str(count), str(done), f"{done / count:.2%}"

    def reason_rows(self) -> Iterator[tuple[str, ...]]:
        """Rows of a table: reason, then how many questions for every tag."""
        for reason, _ in self._sorted_reasons():
            yield reason, *(str(self.reasons[reason, tag]) for tag in self.tags)

    def _sorted_reasons(self) -> list[tuple[str, int]]:
        found = {reason: count for (reason, tag), count in self.reasons.items() if tag == ALL}
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))

    def to_json(self) -> dict[str, Any]:
        """All counts as one JSON object."""
        return {
            "parts": {
                part: {
                    tag: {
                        "questions": self.questions[part, tag],
                        "converted": self.converted[part, tag],
                    }
                    for tag in self.tags
                }
                for part in (ALL, *PARTS)
            },
            "restored": self.restored,
            "reasons": {
                reason: {tag: self.reasons[reason, tag] for tag in self.tags}
                for reason, _ in self._sorted_reasons()
            },
        }
