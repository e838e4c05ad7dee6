"""What a part of a program must hold, what its rule has bound so far, and what it is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal, TypeAlias

import numpy as np

from generation.comparisons import Comparisons, Years, constant_for
from generation.derivation import Derivation
from generation.english import can_be_read
from generation.grammar import Part, Pattern, Symbol, Variable
from generation.lexicon import POINT_IN_TIME, Direction, Lexicon, OperatorWords, ValueWords, Words
from generation.pools import (
    Form,
    NoDraw,
    Overdrawn,
    Pools,
    Qualified,
    draw_from,
)
from generation.taste import OPEN, Taste
from kb import Date, KnowledgeBase, Value, Year
from kb.facts import FactTable
from kb.values import Operator
from kopl.denotation import Outcome
from kopl.executor import Executor
from kopl.functions import FILTER_CONCEPT, FIND_ALL, OR, RELATE
from kopl.program import Call

# How often only those facts describe of which the knowledge base has all.
# The share of the attempts in which names that several things have will do.
NAMESAKES = 0.08
MOSTLY = 0.8
# What dates mean where nothing is before or after them: the year of a figure, of a list.
# How often no fact is drawn where its year came as often as it should.
LEFT_ALONE = 0.9
SPOT = ("estimate", "edition")

Fact: TypeAlias = tuple[Literal["literal", "relational"], int]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a part of a program is drawn for.

    ``target``: a node that its result must hold (None: any). ``form``: the type of value it must
    have. ``qualified``: its fact must have such a qualifier. ``path``: the nodes on the way here,
    which a description must not come back to. ``namesakes``: a name is that of several nodes, as
    something else tells them apart. ``several``: the result holds others too, as a further
    condition tells the target from them. ``claim``: the part says something of what is known
    already, as in "Is Oslo the capital of Norway?", so that no clause of it needs to narrow
    anything. ``single``: the result shall hold nothing but the target. ``beside``: a condition that
    holds as well, and leaves several.
    """

    target: int | None = None
    form: Form = "any"
    qualified: Qualified | None = None
    path: tuple[int, ...] = ()
    namesakes: bool = False
    several: bool = False
    claim: bool = False
    single: bool = False
    beside: Call | None = None

    def alone(self) -> Goal:
        """The same for a result that holds nothing else."""
        return Goal(
            self.target, self.form, self.qualified, self.path, self.namesakes, self.several,
            self.claim, True, self.beside,
        )  # fmt: skip

    def at(self, target: int | None, *, namesakes: bool = False, several: bool = False) -> Goal:
        """The same for another target and without asking for a type or qualifiers."""
        return Goal(target, "any", None, self.path, namesakes, several)


@dataclass(frozen=True, slots=True)
class DrawnPart:
    """A drawn part: its call, a node that its result holds, the fact that puts it there."""

    call: Call
    target: int
    fact: Fact | None = None
    intended: str | None = None


# A part that was drawn: the left side that it stands for, what it was drawn for, and itself.
Leftover: TypeAlias = tuple[str, Goal, Derivation, DrawnPart]


@dataclass(slots=True)
class Scope:
    """What the variables and non-terminals of one rule became so far.

    ``single`` are the non-terminals that must give one entity. ``budget`` is how many rules may
    follow one another below this one. ``leftovers`` are parts that rules tried before in its place
    had drawn in vain, ``taken`` the parts of this one. ``least`` is how many calls the rule's parts
    must have yet, ``open`` how many of its parts are to come. ``asks`` is how the rule's answer is
    read (`generation.grammar.Rule`).
    """

    single: frozenset[str]
    budget: int
    leftovers: list[Leftover] = field(default_factory=list)
    least: int = 0
    open: int = 0
    asks: str = ""
    words: dict[str, Words] = field(default_factory=dict)
    parts: dict[str, Derivation] = field(default_factory=dict)
    taken: list[Leftover] = field(default_factory=list)

    def leftover(self, left: str, goal: Goal) -> tuple[Derivation, DrawnPart] | None:
        """A part for a left side that was drawn in vain, and not taken yet, for as much or more."""
        for known, drawn_for, derivation, drawn in self.leftovers:
            if known != left or drawn_for.target != goal.target or drawn_for.path != goal.path:
                continue
            if goal.form not in ("any", drawn_for.form):
                continue
            if goal.qualified not in (None, drawn_for.qualified):
                continue
            if all(derivation is not part for part in self.parts.values()):
                return derivation, drawn
        return None

    def take(
        self, symbol: Symbol, goal: Goal, derivation: Derivation, drawn: DrawnPart
    ) -> DrawnPart:
        """Use a part for a non-terminal."""
        self.least, self.open = self.least - drawn.call.size, self.open - 1
        self.parts[symbol.name] = derivation
        self.taken.append((symbol.left, goal, derivation, drawn))
        return drawn

    def given(self, argument: str | Variable) -> str | None:
        """The text of an argument that is fixed or was drawn before."""
        if isinstance(argument, str):
            return argument
        words = self.words.get(argument.name)
        return words.text if words else argument.text or None

    def bind(self, argument: str | Variable, words: Words) -> str:
        """The text for an argument; raises NoDraw when it has another, or none can read it."""
        given = self.given(argument)
        if (given is not None and given != words.text) or not can_be_read(words.text):
            raise NoDraw
        if isinstance(argument, Variable):
            self.words[argument.name] = words
        return words.text

    def call(self, pattern: Pattern, inputs: list[Call], *words: Words) -> Call:
        """The call with these inputs and with these words as its textual arguments."""
        pairs = zip(pattern.arguments, words, strict=True)
        texts = tuple(self.bind(argument, word) for argument, word in pairs)
        return Call(pattern.function, tuple(inputs), texts)


def takes_all(answer: str) -> bool:
    """Refuses no answer."""
    return False


class Source:
    """What parts are drawn from: facts, chance, and what calls give on the knowledge base.

    ``draw`` draws a part of a program, and so goes on with the grammar; the sampler hands it in.
    ``comparisons`` says which operators come, ``nothing`` whether a part is still to be drawn so
    that it gives nothing, ``refuses`` whether an answer came often enough already.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        random: Random,
        lexicon: Lexicon,
        draw: Callable[[Part, Scope, Goal], DrawnPart],
    ) -> None:
        self.kb, self.random, self.lexicon, self.draw = kb, random, lexicon, draw
        self.pools = Pools(kb)
        self.taste = Taste(self.pools, lexicon)
        self.comparisons = Comparisons(random)
        self.years = self.no_years()
        self.nothing = False
        self.refuses: Callable[[str], bool] = takes_all
        self._executor = Executor(kb)
        self._outcomes: dict[Call, Outcome] = {}
        self._luck: float | None = None
        self._apart: bool | None = None

    def no_years(self) -> Years:
        """A count of years in which none came yet."""
        return Years(self.pools.different_years)

    def forget(self) -> None:
        """Let go of what calls gave; to be called before each attempt."""
        self._outcomes.clear()
        self._luck = self._apart = None

    def tells_apart(self) -> bool:
        """Whether namesakes may be told apart in this attempt: people seldom speak of them."""
        if self._apart is None:
            self._apart = self.random.random() < NAMESAKES
        return self._apart

    def is_whole(self, call: Call) -> bool:
        """Whether a set may be spoken of as of all that fits: "the country that", "how many".

        Where it is not known whether the knowledge base has all, chance decides, once for each
        attempt.
        """
        if self._luck is None:
            self._luck = self.random.random()
        return self.taste.will_do(call, self._luck)

    def whole(self, call: Call) -> Call:
        """A call that gives all that fits; else raises NoDraw."""
        if not self.is_whole(call):
            raise NoDraw
        return call

    def describing(
        self, node: int, qualified: Qualified | None = None, *, is_given: bool = False
    ) -> Sequence[tuple[int, Direction]]:
        """The relations and directions that people know a node by; mostly those that lead to all
        there is.

        Conditions by others need a further one beside them. ``qualified``: of relations that have
        such qualifiers; ``is_given``: a rule names its relation, so that it decides.
        """
        if is_given:
            return list(self.pools.links(node))
        some = self.taste.closed_links(node) if self.random.random() < MOSTLY else ()
        ways = some or self.taste.known_links(node)
        if qualified is None:
            return ways
        having = self.pools.relations_with(qualified)
        return [way for way in ways if way[0] in having]

    def is_reluctant(self, node: int) -> bool:
        """Whether a value alone shall not describe a node: there are more such in the world."""
        return self.taste.is_one_of_many(node) and self.random.random() < MOSTLY

    def counting(self, call: Call) -> None:
        """Raise NoDraw for what people would not count."""
        self.whole(call)
        if not self.taste.all_closed(call):
            raise NoDraw
        bare = call.function is FILTER_CONCEPT and call.inputs[0].function is FIND_ALL
        if bare and not self.taste.counted(call.arguments[0]):
            raise NoDraw
        inner = call.inputs[0] if call.function is FILTER_CONCEPT else call
        if any(map(self.taste.is_its_own, (inner, *inner.inputs))):
            raise NoDraw  # of what one alone has there are not several
        found = call.inputs[0] if call.function is FILTER_CONCEPT else call
        for part in found.inputs if found.function is OR else (found,):
            if part.function is RELATE:
                direction: Direction = "forward" if part.arguments[1] == "forward" else "backward"
                if not self.taste.leads_to_several(part.arguments[0], direction):
                    raise NoDraw

    def listing(self, call: Call) -> None:
        """Raise NoDraw for a whole concept that people would not go through, or half a list."""
        bare = call.function is FILTER_CONCEPT and call.inputs[0].function is FIND_ALL
        if bare and not self.taste.listed(call.arguments[0]):
            raise NoDraw
        if call.function is FILTER_CONCEPT and not self.taste.of_the_greatest(call):
            self.whole(call)

    def outcome(self, call: Call) -> Outcome:
        """What a call gives; remembered within one attempt."""
        return self._executor.outcome(call, self._outcomes)

    def size(self, call: Call) -> int:
        """How many elements a call gives."""
        return len(self._executor.outcome(call, self._outcomes))

    def narrowing(self, call: Call) -> Call:
        """A call that gives fewer elements than each of its inputs; else raises NoDraw.

        What changes nothing would be a clause too many.
        """
        size = self.size(call)
        if any(self.size(given) == size for given in call.inputs):
            raise NoDraw
        return call

    def telling(self, call: Call) -> Call:
        """A comparison that does not hold of nearly all that have its key; else raises NoDraw."""
        if not self.taste.tells(call, self.size(call)):
            raise NoDraw
        return call

    def closed(self, call: Call, goal: Goal) -> Call:
        """A description of one thing that others in the world do not fit; else raises NoDraw."""
        if goal.single and self.taste.closed(call) == OPEN:
            raise NoDraw
        return call

    def asked(self, answer: str) -> str:
        """The answer that a question will have; raises Overdrawn when it is refused."""
        if self.refuses(answer):
            raise Overdrawn
        return answer

    def as_asked(self, part: DrawnPart, goal: Goal) -> DrawnPart:
        """A part that gives several elements where that is asked for; else raises NoDraw."""
        return self.several(part) if goal.several else part

    def several(self, part: DrawnPart) -> DrawnPart:
        """A part that gives several elements, so that a condition can narrow it; else NoDraw."""
        if self.size(part.call) < 2:
            raise NoDraw
        return part

    def entity(self, goal: Goal) -> int:
        """The target, or an entity of a drawn concept."""
        if goal.target is not None:
            return goal.target
        if not self.pools.concepts:
            return draw_from(self.random, range(self.kb.entity_count))
        concept = self.pools.concept_name(draw_from(self.random, self.pools.concepts))
        return int(draw_from(self.random, self.kb.instances_of(concept).tolist()))

    def relation(self, given: str | None = None, qualified: Qualified | None = None) -> int:
        """The number of the relation that is given, or of one that is drawn; -1 for unknown."""
        if given is not None:
            return self.kb.relation_number(given)
        found = self.pools.relations_with(qualified) if qualified else self.pools.relations
        return draw_from(self.random, found)

    def relation_with(self, qualifier: str | None) -> int:
        """The number of a relation for whose facts a qualifier may be asked.

        Which edition of a list has a fact tells nothing of the fact.
        """
        found = self.pools.relations_with((qualifier, "any"))
        if qualifier == POINT_IN_TIME:
            words = (self.lexicon.relation(self.kb.relations[r], "forward") for r in found)
            found = [r for r, one in zip(found, words, strict=True) if one.entry.dates != "edition"]
        return draw_from(self.random, found)

    def literal(self, key: str | None, form: Form, goal: Goal, *, telling: bool = False) -> int:
        """A literal fact of a type: of the target if there is one, of the key if it is given.

        ``telling``: of a key by which people know things, where the knowledge base has such keys.
        """
        pools, qualified = self.pools, goal.qualified
        number = None if key is None else self.kb.key_number(key)
        if goal.target is None:
            if number is None:
                keys = pools.keys(form, qualified)
                number = draw_from(self.random, self.taste.telling(keys) if telling else keys)
            facts = pools.key_facts(number, form, qualified)
            return self.fact_of(self.kb.literals, facts, qualified)
        found = pools.literals(goal.target, form, qualified)
        groups = [
            facts
            for of, facts in found.items()
            if number == of or (number is None and (not telling or self.taste.identifies(of)))
        ]
        return self.fact_of(self.kb.literals, draw_from(self.random, groups), qualified)

    def fact_of(self, table: FactTable, facts: list[int], qualified: Qualified | None) -> int:
        """One of the facts, of whose qualifier something will be said.

        Of dated ones first a year is drawn, then a fact of that year: a source that has most facts
        in its last edition would else be asked for nothing but that. The root of how many facts it
        has is a year's weight, lest the few of a rare one come again and again. One that came often
        is left alone, mostly.
        """
        key = qualified[0] if qualified else None
        years = self.pools.years_by(key) if key else None
        if years is None or not facts:
            return draw_from(self.random, facts)
        found = years[table.qualifiers[facts]]
        different, counts = np.unique(found, return_counts=True)
        (year,) = self.random.choices(different.tolist(), np.sqrt(counts).tolist())
        if self.years.is_full(year) and self.random.random() < LEFT_ALONE:
            raise NoDraw
        places: list[int] = np.flatnonzero(found == year).tolist()
        return facts[draw_from(self.random, places)]

    def table(self, fact: Fact | None) -> tuple[FactTable, int]:
        """The table of a fact, and its number there; raises NoDraw where there is none."""
        if fact is None:
            raise NoDraw
        return self.kb.relational if fact[0] == "relational" else self.kb.literals, fact[1]

    def dates(self, fact: Fact) -> str:
        """What the dates of a fact mean."""
        table, number = self.table(fact)
        predicate = int(table.predicate[number])
        if fact[0] == "relational":
            return self.lexicon.relation(self.kb.relations[predicate], "forward").entry.dates
        return self.lexicon.key(self.kb.keys[predicate]).entry.dates

    def is_dated(self, fact: int) -> bool:
        """Whether a literal fact is of one point in time."""
        return bool(
            self.pools.sets_with((POINT_IN_TIME, "time"))[self.kb.literals.qualifiers[fact]]
        )

    def qualifier(self, fact: Fact | None, key: str | None, form: Form) -> tuple[str, Value]:
        """A qualifier of a fact: its key and value."""
        table, number = self.table(fact)
        fits = self.pools.of_form[form]
        pairs = [
            (name, v)
            for k, v in self.kb.qualifier_sets.pairs(int(table.qualifiers[number]))
            if fits[v] and ((name := self.kb.keys[k]) == key or (not key and name != POINT_IN_TIME))
        ]
        found, value = draw_from(self.random, pairs)
        return found, self.kb.values[value]

    def comparison(
        self,
        pattern: Pattern,
        key: str,
        value: Value,
        scope: Scope,
        *,
        verified: bool = False,
        fact: Fact | None = None,
    ) -> tuple[list[Words], bool]:
        """The constant and the operator, if there is one, for a value; and whether they hold.

        They hold but where something is ``verified``. ``fact`` is the one whose qualifier the value
        is; else it is one of the key's own. Nobody knows the river that is 1,086 kilometres long by
        that: numbers with many digits describe by a comparison with rounder ones.
        """
        name = pattern.function.name
        given = scope.given(pattern.arguments[-1]) if not name.endswith("Str") else "="
        equal = verified or self.taste.exact(value)
        if fact is not None and key == POINT_IN_TIME and self.dates(fact) in SPOT:
            given = "="
        day = name.endswith("Date")
        usual = self.taste.usual(key, day) if fact is None else ()
        shown = self.taste.shown(value, day)
        # What is verified may have the usual value itself: then it is not another one.
        unequal = bool(usual) if verified else any(one != shown for one in usual)
        operator: Operator = given or self.comparisons.draw(name, equal, unequal)  # type: ignore[assignment]
        kind = "" if name.endswith("Str") else operator
        holds = not verified or self.comparisons.holds(name, kind)
        others = self._values_of(key, fact) if (operator == "!=") == holds else []
        if operator == "!=" and unequal:
            others = list(usual)
            if not holds and shown not in usual:
                raise NoDraw
        constant = constant_for(self.random, value, operator, holds=holds, others=others, day=day)
        if isinstance(constant, Year | Date) and constant.year > self.taste.latest:
            raise NoDraw  # nobody asks what was before a year that is to come
        words: list[Words] = [ValueWords(str(constant), constant)]
        return [*words, OperatorWords(operator, constant)] if kind else words, holds

    def _values_of(self, key: str, fact: Fact | None) -> list[Value]:
        """A few values of a key, or of a qualifier key where a fact has it."""
        number = self.kb.key_number(key)
        if fact is not None:
            values = self.pools.qualifier_values(number)
            return [self.kb.values[draw_from(self.random, values)] for _ in range(5)]
        facts = self.pools.key_facts(number, "any", None)
        return [self.pools.value(draw_from(self.random, facts)) for _ in range(5)]
