"""From KoPL to SPARQL: one small function for each declaration.

``exact`` queries mean what the program means, on every knowledge base; ``data`` queries are written
as those of KQA Pro and may differ in the ways that `kopl.sparql.sets.DIFFERENCES` lists.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from typing import Literal as OneOf

from kb import Condition, KnowledgeBase, Quantity
from kb.store import normalise_name
from kb.values import Operator, Time
from kopl import functions as f
from kopl.executor import Program
from kopl.functions import Function
from kopl.sparql.ast import (
    Aggregate,
    Ask,
    Bind,
    Compare,
    Element,
    Expression,
    Group,
    Named,
    Order,
    Query,
    Select,
    SubSelect,
    Triple,
    Union,
    Var,
    deep_recursion,
)
from kopl.sparql.encoding import VALUE, VALUE_VARS, Encoding, integer
from kopl.sparql.sets import (
    OWN_RELATIONS,
    SUPERLATIVE,
    VALUE_OR_NODE,
    Attribute,
    Description,
    Emitter,
    Relation,
    both,
    either,
    emitter,
)
from kopl.text import MAX_DEPTH, read
from kopl.typecheck import check
from kopl_base.errors import KoplError

Style = OneOf["exact", "data"]
Translation = Callable[..., Any]
TRANSLATIONS: dict[str, Translation] = {}

NODE_NAME, RELATION, COUNT = Var("name"), Var("relation"), Var("count")


class SparqlWarning(UserWarning):
    """A query in the data's style may have another answer than its program."""


def to_sparql(
    program: Program,
    style: Style = "exact",
    *,
    kb: KnowledgeBase | None = None,
    encoding: Encoding | None = None,
) -> Query:
    """The query that a program is; ``str`` of it is its text.

    ``kb`` is the knowledge base that the query will run on: what it never has is not guarded
    against, and readings of untyped constants that its keys never have are dropped. Warns
    (SparqlWarning) where a query in ``data`` style may differ from the program. Raises ParseError
    or TypingError for what is no program.
    """
    query, reasons = translate(program, style, kb=kb, encoding=encoding)
    for reason in reasons:
        warnings.warn(reason, SparqlWarning, stacklevel=2)
    return query


def translate(
    program: Program,
    style: Style = "exact",
    *,
    kb: KnowledgeBase | None = None,
    encoding: Encoding | None = None,
    max_depth: int = MAX_DEPTH,
) -> tuple[Query, list[str]]:
    """The query, and why its answer may differ from the program's (of `DIFFERENCES`)."""
    if style not in ("exact", "data"):
        raise ValueError(f"the style is 'exact' or 'data', not {style!r}")
    encoding = encoding or Encoding()
    if style not in encoding.styles:
        raise KoplError(f"the encoding {type(encoding).__name__} has no {style!r} style")
    steps = check(read(program, max_depth=max_depth))
    out = emitter(encoding, style == "exact", kb)
    results: list[Any] = []
    with deep_recursion():
        for step in steps:
            inputs = [results[at] for at in step.inputs]
            results.append(TRANSLATIONS[step.function.name](out, *inputs, *step.arguments))
        root = results[-1]
        # A set as the root denotes its names.
        query = _names_of(out, root) if isinstance(root, Description) else root.write(out)
        query = out.encoding.finished(query)
    return query, list(out.differences)


def translates(*declared: Function) -> Callable[[Translation], Translation]:
    """Register a function's translation; its parameters must fit the declaration."""

    def register(translation: Translation) -> Translation:
        parameters = list(inspect.signature(translation).parameters)
        for function in declared:
            names = [name for name, _ in function.arguments]
            if parameters[1 + function.arity :] != names:
                raise TypeError(f"{translation.__name__} does not fit {function.signature}")
            TRANSLATIONS[function.name] = translation
        return translation

    return register


class _Ask:
    """A question about sets, written when it turns out to be the root of the program."""

    def __init__(self, write: Callable[[Emitter], Query]) -> None:
        self.write = write


class _Values(_Ask):
    """The values of a key: the root of a program, or what a Verify looks at."""

    def __init__(
        self, nodes: Description, key: str, qualifiers: Sequence[tuple[str, Condition]] = ()
    ) -> None:
        super().__init__(self._all)
        self.nodes, self.key, self.qualifiers = nodes, key, list(qualifiers)

    def _all(self, out: Emitter) -> Query:
        _, value, patterns = self.patterns(out)
        if not out.exact and out.schema.is_relation(self.key):
            out.differ(VALUE_OR_NODE)
        return _values(out, value, patterns, self.key, qualifier=False)

    def patterns(
        self, out: Emitter, condition: Condition | None = None
    ) -> tuple[Var, Var, list[Element]]:
        """The node, the value and what is said of them."""
        node, value = out.names.fresh("e"), out.names.fresh("pv")
        # An attribute's subject may be a fact, unless the node is bound otherwise.
        found = out.describe(self.nodes, node)
        found += out.encoding.attribute(node, self.key, value)
        if condition is not None:
            found += out.condition(value, self.key, condition, qualifier=False)
        found += out.qualified(node, self.key, value, self.qualifiers)
        return node, value, found


def _select(items: Sequence[Var | Named], where: Sequence[Element]) -> Select:
    return Select(tuple(items), Group(tuple(where)), distinct=True)


def _names_of(out: Emitter, nodes: Description) -> Query:
    node = out.names.fresh("e")
    if not out.exact:
        return _select([node], out.describe(nodes, node))
    patterns = out.describe(nodes, node, bound=True)
    return _select([NODE_NAME], [*patterns, *out.encoding.named(node, NODE_NAME)])


def _values(
    out: Emitter, value: Var, patterns: list[Element], key: str, *, qualifier: bool
) -> Query:
    """The distinct values, with all that is needed to print them; or their nodes."""
    if not out.exact:
        return _select([value], patterns)
    types = out.schema.types((key, qualifier)) or out.encoding.types(key)
    return _select(VALUE_VARS, [*patterns, *out.encoding.printed(value, types)])


# --- locating ---------------------------------------------------------------------------------


@translates(f.FIND_ALL)
def find_all(out: Emitter) -> Description:
    return Description(entity=True)


@translates(f.FIND)
def find(out: Emitter, name: str) -> Description:
    return Description(names=[normalise_name(name)])


@translates(f.FILTER_CONCEPT)
def filter_concept(out: Emitter, nodes: Description, concept: str) -> Description:
    return both(nodes, Description(concepts=[normalise_name(concept)]))


@translates(f.FILTER_STR)
def filter_str(out: Emitter, nodes: Description, key: str, value: str) -> Description:
    return nodes.add(Attribute(key, Condition((value,))))


@translates(f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
def filter_value(
    out: Emitter, nodes: Description, key: str, value: Quantity | Time, op: Operator
) -> Description:
    return nodes.add(Attribute(key, Condition((value,), op)))


@translates(f.QFILTER_STR)
def qfilter_str(out: Emitter, nodes: Description, qkey: str, value: str) -> Description:
    return _qfilter(nodes, qkey, Condition((value,)))


@translates(f.QFILTER_NUM, f.QFILTER_YEAR, f.QFILTER_DATE)
def qfilter_value(
    out: Emitter, nodes: Description, qkey: str, value: Quantity | Time, op: Operator
) -> Description:
    return _qfilter(nodes, qkey, Condition((value,), op))


def _qfilter(nodes: Description, qkey: str, condition: Condition) -> Description:
    assert nodes.fact is not None  # typing sees to it
    nodes.fact.qualifiers.append((qkey, condition))
    return nodes


@translates(f.RELATE)
def relate(out: Emitter, nodes: Description, relation: str, direction: str) -> Description:
    return Description().add(Relation(relation, direction == "forward", nodes))


@translates(f.AND)
def both_sets(out: Emitter, left: Description, right: Description) -> Description:
    return both(left, right)


@translates(f.OR)
def either_set(out: Emitter, left: Description, right: Description) -> Description:
    return either(left, right)


# --- asking -----------------------------------------------------------------------------------


@translates(f.QUERY_NAME)
def query_name(out: Emitter, nodes: Description) -> _Ask:
    return _Ask(lambda out: _names_of(out, nodes))


@translates(f.COUNT)
def count(out: Emitter, nodes: Description) -> _Ask:
    def write(out: Emitter) -> Query:
        node = out.names.fresh("e")
        total = Named(Aggregate("COUNT", node, distinct=True), COUNT)
        return Select((total,), Group(tuple(out.describe(nodes, node))))

    return _Ask(write)


@translates(f.QUERY_ATTR)
def query_attr(out: Emitter, nodes: Description, key: str) -> _Ask:
    return _Values(nodes, key)


@translates(f.QUERY_ATTR_UNDER_CONDITION)
def query_attr_under_condition(
    out: Emitter, nodes: Description, key: str, qkey: str, qvalue: Condition
) -> _Ask:
    return _Values(nodes, key, [(qkey, qvalue)])


@translates(f.VERIFY_STR)
def verify_str(out: Emitter, values: _Values, value: str) -> _Ask:
    return _verify(values, Condition((value,)))


@translates(f.VERIFY_NUM, f.VERIFY_YEAR, f.VERIFY_DATE)
def verify_value(out: Emitter, values: _Values, value: Quantity | Time, op: Operator) -> _Ask:
    return _verify(values, Condition((value,), op))


def _verify(values: _Values, condition: Condition) -> _Ask:
    def write(out: Emitter) -> Query:
        return Ask(Group(tuple(values.patterns(out, condition)[2])))

    return _Ask(write)


@translates(f.QUERY_RELATION)
def query_relation(out: Emitter, heads: Description, tails: Description) -> _Ask:
    def write(out: Emitter) -> Query:
        head, tail, patterns = _two(out, heads, tails)
        if not out.exact and out.may_be_concept(tails):
            out.differ(OWN_RELATIONS)
        relation = RELATION if out.exact else out.names.fresh("p")
        patterns += out.encoding.any_relation(head, relation, tail, only=out.exact)
        return _select([relation], patterns)

    return _Ask(write)


def _two(out: Emitter, left: Description, right: Description) -> tuple[Var, Var, list[Element]]:
    first, second = (out.names.fresh("e", numbered=True) for _ in range(2))
    return first, second, out.describe(left, first) + out.describe(right, second)


@translates(f.QUERY_ATTR_QUALIFIER)
def query_attr_qualifier(
    out: Emitter, nodes: Description, key: str, value: Condition, qkey: str
) -> _Ask:
    def write(out: Emitter) -> Query:
        node, found, asked = (out.names.fresh(stem) for stem in ("e", "pv", "qpv"))
        patterns = out.describe(nodes, node)
        patterns += out.encoding.attribute(node, key, found)
        patterns += out.condition(found, key, value, qualifier=False)
        patterns += out.encoding.fact(node, key, found, [(qkey, asked)])
        return _values(out, asked, patterns, qkey, qualifier=True)

    return _Ask(write)


@translates(f.QUERY_RELATION_QUALIFIER)
def query_relation_qualifier(
    out: Emitter, heads: Description, tails: Description, relation: str, qkey: str
) -> _Ask:
    def write(out: Emitter) -> Query:
        head, tail, patterns = _two(out, heads, tails)
        asked = out.names.fresh("qpv")
        patterns += out.encoding.relation(head, relation, tail)
        patterns += out.encoding.fact(head, relation, tail, [(qkey, asked)])
        return _values(out, asked, patterns, qkey, qualifier=True)

    return _Ask(write)


# --- selecting --------------------------------------------------------------------------------


@translates(f.SELECT_AMONG)
def select_among(out: Emitter, nodes: Description, key: str, op: str) -> _Ask:
    return _Ask(lambda out: _superlative(out, [nodes], key, op == "largest"))


@translates(f.SELECT_BETWEEN)
def select_between(out: Emitter, left: Description, right: Description, key: str, op: str) -> _Ask:
    return _Ask(lambda out: _superlative(out, [left, right], key, op == "greater"))


def _superlative(out: Emitter, sides: list[Description], key: str, largest: bool) -> Query:
    if not out.exact:
        return _first_by_number(out, sides, key, largest)
    together = sides[0] if len(sides) == 1 else either(*sides)
    node, value = out.names.fresh("e"), out.names.fresh("pv")
    unit, extreme = out.names.fresh("u"), out.names.fresh("x")
    inner, its_value, its_number = (out.names.fresh(stem) for stem in ("e", "pv", "v"))
    having: Expression | None = None
    patterns: list[Element]
    if len(sides) == 1:
        patterns = out.describe(together, inner)
    else:
        # Both sides must have a quantity in the unit.
        side = out.names.fresh("side")
        marked = [
            Group((*out.describe(one, inner), Bind(integer(place), side)))
            for place, one in enumerate(sides, 1)
        ]
        patterns = [Union(tuple(marked))]
        having = Compare("=", Aggregate("COUNT", side, distinct=True), integer(len(sides)))
    patterns += out.encoding.attribute(inner, key, its_value)
    patterns += out.encoding.quantity(its_value, unit, its_number)
    # The unit that most facts have, the smallest by code point on a tie, with its extreme.
    fact = out.encoding.fact_of(inner, its_value)
    votes = Order(Aggregate("COUNT", fact, distinct=True), descending=True)
    best = Select(
        (unit, Named(Aggregate("MAX" if largest else "MIN", its_number), extreme)),
        Group(tuple(patterns)),
        group_by=(unit,),
        having=having,
        order_by=(votes, Order(unit)),
        limit=1,
    )
    return _select(
        [NODE_NAME],
        [
            SubSelect(best),
            *out.describe(together, node, bound=True),
            *out.encoding.attribute(node, key, value),
            *out.encoding.equal_quantity(value, unit, extreme),
            *out.encoding.named(node, NODE_NAME),
        ],
    )


def _first_by_number(out: Emitter, sides: list[Description], key: str, largest: bool) -> Query:
    """As the data has it: in the order of the numbers, whatever their units, the first."""
    out.differ(SUPERLATIVE)
    node, value, number = (out.names.fresh(stem) for stem in ("e", "pv", "v"))
    if len(sides) == 2:
        groups = []
        for side in out.names.alternatives(sides, reuse=True):
            groups.append(Group(tuple(out.describe(side, node))))
        patterns: list[Element] = [Union(tuple(groups))]
    else:
        patterns = out.describe(sides[0], node)
        if len(patterns) == 1 and isinstance(patterns[0], Union):
            # Two alternatives that are compared with each other would look the same.
            patterns = [Group(tuple(patterns))]
    patterns += out.encoding.attribute(node, key, value)
    patterns.append(Triple(value, VALUE, number))
    return Select((node,), Group(tuple(patterns)), order_by=(Order(number, largest),), limit=1)


if missing := [name for name in f.FUNCTIONS if name not in TRANSLATIONS]:
    raise TypeError(f"functions without a translation: {', '.join(missing)}")
