"""Hypothesis strategies: small knowledge bases and well-typed programs, which shrink well.

The vocabulary is tiny on purpose, so that programs hit facts; the declarations give the types.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kopl.functions import FUNCTIONS, Function
from kopl.program import Call
from kopl.types import Kind, Type

KEYS = ["height", "born", "motto", "since"]
RELATIONS = ["knows", "motto"]
NAMES = ["Ann", "Bob", "thing", "a  b", '"<arg>"']
UNITS = ["1", "metre", "kg"]
STRINGS = ["x", "1998", "5 metre", "", "1998-02-03"]

numbers = st.one_of(
    st.sampled_from([0, 5, 5.5, -0.0, 1e22, 1998]), st.floats(-10, 10, allow_nan=False)
)
years = st.sampled_from([-44, 0, 1998, 1999])
dates = st.sampled_from(["1998-02-03", "1998/02/04", "-0044-03-15", "0000-02-29", "1999-00-00"])

values = st.one_of(
    st.sampled_from(STRINGS).map(lambda v: {"type": "string", "value": v}),
    st.tuples(numbers, st.sampled_from(UNITS)).map(
        lambda v: {"type": "quantity", "value": v[0], "unit": v[1]}
    ),
    years.map(lambda v: {"type": "year", "value": v}),
    dates.map(lambda v: {"type": "date", "value": v}),
)
qualifiers = st.dictionaries(st.sampled_from(KEYS), st.lists(values, max_size=2), max_size=2)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A kb.json object with up to five entities and three concepts."""
    concepts = [f"c{n}" for n in range(draw(st.integers(1, 3)))]
    entities = [f"e{n}" for n in range(draw(st.integers(1, 5)))]
    concept_ids, nodes = st.sampled_from(concepts), st.sampled_from(entities + concepts)
    attribute = st.fixed_dictionaries(
        {"key": st.sampled_from(KEYS), "value": values, "qualifiers": qualifiers}
    )
    relation = st.fixed_dictionaries(
        {
            "relation": st.sampled_from(RELATIONS),
            "direction": st.sampled_from(["forward", "backward"]),
            "object": nodes,
            "qualifiers": qualifiers,
        }
    )
    names = st.sampled_from(NAMES)
    return {
        "concepts": {
            c: {"name": draw(names), "subclassOf": draw(st.lists(concept_ids, max_size=2))}
            for c in concepts
        },
        "entities": {
            e: {
                "name": draw(names),
                "instanceOf": draw(st.lists(concept_ids, max_size=2)),
                "attributes": draw(st.lists(attribute, max_size=3)),
                "relations": draw(st.lists(relation, max_size=3)),
            }
            for e in entities
        },
    }


def _number_text() -> st.SearchStrategy[str]:
    texts = st.sampled_from(["5", "5.5", "1998", "-0", "1e22", "+05.50"])
    return st.tuples(texts, st.sampled_from(["", " metre", " kg", " 1"])).map("".join)


_times = st.sampled_from(["1998", "-44", "0", "1998-02-03", "1998/2/4", "-44-3-15", "0-2-29"])
_texts: dict[Kind, st.SearchStrategy[str]] = {
    Kind.NAME: st.sampled_from([*NAMES, "a b", "nobody"]),
    Kind.CONCEPT: st.sampled_from([*NAMES, " a b"]),
    Kind.KEY: st.sampled_from(KEYS),
    Kind.QUALIFIER_KEY: st.sampled_from(KEYS),
    Kind.RELATION: st.sampled_from(RELATIONS),
    Kind.STRING: st.sampled_from(STRINGS),
    Kind.QUANTITY: _number_text(),
    Kind.TIME: _times,
    Kind.ANY_VALUE: st.one_of(st.sampled_from(STRINGS), _number_text(), _times),
    **{kind: st.sampled_from(kind.choices) for kind in Kind if kind.choices},
}


@st.composite
def calls(draw: st.DrawFn, function: Function, depth: int) -> Call:
    """A call of a function with inputs of the right types."""
    inputs = tuple(draw(programs(needed, depth - 1)) for needed in function.inputs)
    return Call(function, inputs, tuple(draw(_texts[kind]) for _, kind in function.arguments))


def programs(needed: Type | None = None, depth: int = 4) -> st.SearchStrategy[Call]:
    """A well-typed program that gives what is needed (None: anything)."""
    fitting = [f for f in FUNCTIONS.values() if needed is None or needed.accepts(f.output)]
    if depth <= 0:
        leaves = [f for f in fitting if not f.inputs]
        shallow = [f for f in fitting if not any(t is Type.FACTS for t in f.inputs)]
        fitting = leaves or shallow
    return st.sampled_from(fitting).flatmap(lambda function: calls(function, depth))
