"""EFOk's space against the published figures and list, and against a naive enumeration."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, permutations, product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqa.errors import FormulaError, QueryError
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable
from cqa.types.canonical import canonical, isomorphic
from cqa.types.efok import PUBLISHED, Limits, by_shape, complete
from cqa.types.efok_paper import paper
from cqa.types.efok_text import read_formula, write_formula
from cqa.types.shape import Shape, topology

# k, constants -> counts for e = 0 (SDAG, multi), e = 1 and e = 2 (SDAG, multi, cyclic).
TABLES_3_AND_4 = {
    (1, 1): ((1, 0), (2, 4, 0), (4, 16, 4)),
    (1, 2): ((2, 0), (6, 6, 0), (20, 40, 8)),
    (1, 3): ((2, 0), (8, 8, 0), (36, 72, 12)),
    (2, 1): ((1, 2), (7, 18, 4), (6, 32, 26)),
    (2, 2): ((4, 4), (20, 36, 8), (38, 108, 64)),
    (2, 3): ((4, 4), (32, 60, 12), (0, 0, 0)),
}


def test_tables_3_and_4() -> None:
    found = by_shape(paper())
    assert sum(found.values()) == 741
    expected = {
        (free, constants, existential, kind): count
        for (free, constants), rows in TABLES_3_AND_4.items()
        for existential, row in enumerate(rows)
        for kind, count in zip(("SDAG", "multi", "cyclic"), row, strict=False)
        if count
    }
    assert found == expected
    sums = Counter[tuple[int, int]]()
    for (free, constants, *_), count in found.items():
        sums[free, constants] += count
    assert sums == {(1, 1): 31, (1, 2): 82, (1, 3): 138, (2, 1): 96, (2, 2): 282, (2, 3): 112}


def test_complete_space() -> None:
    shapes = list(complete())
    assert Counter(shape.free for shape in shapes) == {1: 402, 2: 1505}
    assert len({canonical(shape.query) for shape in shapes}) == 1907
    assert len({shape.formula for shape in shapes}) == 1907


def test_published_graphs_up_to_isomorphism() -> None:
    published = {canonical(shape.query) for shape in paper()}
    assert len(published) == 552
    assert published < {canonical(shape.query) for shape in complete()}


def test_published_list(kopl_data: Path) -> None:
    with (kopl_data / "efok" / "published_741.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    shapes = {shape.formula: shape for shape in paper()}
    assert sorted(shapes) == sorted(row["formula"] for row in rows)
    kinds = {("False", "False"): "SDAG", ("False", "True"): "multi", ("True", "False"): "cyclic"}
    for row in rows:
        shape = shapes[row["formula"]]
        assert shape.topology == kinds[row["cyclic"], row["multi"]]
        numbers = (shape.free, shape.existential, len(shape.constants))
        assert numbers == (int(row["f_num"]), int(row["e_num"]), int(row["c_num"]))
        query = read_formula(row["formula"])
        assert query == shape.query
        assert write_formula(query) == row["formula"]
        assert topology(query) == shape.topology


def naive(limits: Limits) -> Iterator[Shape]:
    """All graphs with numbered variables that the rules allow, isomorphic ones and all."""
    sizes = product(range(limits.existential + 1), range(1, limits.free + 1))
    for (existential, free), constants in product(sizes, range(1, limits.constants + 1)):
        size = existential + free
        pairs = [(a, b) for b in range(size) for a in range(b)]
        for extra in range(limits.extra + 1):
            count = size - 1 + extra
            if size + constants > limits.nodes or count + constants > limits.edges:
                continue
            for edges in combinations_with_replacement(pairs, count):
                if max(Counter(edges).values(), default=0) > limits.parallel:
                    continue
                for ends in combinations_with_replacement(range(size), constants):
                    if not allowed(edges, ends, existential, size, limits.distance):
                        continue
                    for negative in {frozenset(), *one_of(edges, ends, limits.negative)}:
                        shape = Shape(
                            existential,
                            free,
                            tuple((*edge, i not in negative) for i, edge in enumerate(edges)),
                            tuple(
                                (end, i not in negative) for i, end in enumerate(ends, len(edges))
                            ),
                        )
                        if meaningful(shape):
                            yield shape


def one_of(edges: tuple[object, ...], ends: tuple[int, ...], most: int) -> set[frozenset[int]]:
    places = range(len(edges) + len(ends))
    return {frozenset(chosen) for chosen in product(places, repeat=most)} if most else set()


def reach(start: set[int], pairs: list[tuple[int, int]]) -> list[set[int]]:
    """What is reached in no hop, in up to one, in up to two, …"""
    steps = [start]
    while True:
        last = steps[-1]
        new = last | {b for a, b in pairs if a in last} | {a for a, b in pairs if b in last}
        if new == last:
            return steps
        steps.append(new)


def allowed(
    edges: tuple[tuple[int, int], ...],
    ends: tuple[int, ...],
    existential: int,
    size: int,
    distance: int,
) -> bool:
    pairs = list(edges)
    everything, free = set(range(size)), set(range(existential, size))
    if reach({0}, pairs)[-1] != everything:
        return False
    steps = reach(free, pairs)
    within = [steps[min(hops, len(steps) - 1)] for hops in (distance, distance - 1)]
    if within[0] != everything or not set(ends) <= within[1]:
        return False
    inner = [(a, b) for a, b in pairs if not {a, b} & free]
    for variable in range(existential):
        cluster = reach({variable}, inner)[-1]
        neighbours = {b for a, b in pairs if a == variable} | {a for a, b in pairs if b == variable}
        if not cluster & set(ends) and not neighbours & free:
            return False
    return True


def meaningful(shape: Shape) -> bool:
    pairs = [(a, b) for a, b, sign in shape.edges if sign]
    starts = {end for end, sign in shape.constants if sign}
    size = shape.existential + shape.free
    bound = starts | {variable for pair in pairs for variable in pair}
    free = set(range(shape.existential, size))
    return len(bound) == size and bool(reach(starts, pairs)[-1] & free)


def least(shape: Shape) -> tuple[object, ...]:
    """The same value for shapes that a renaming of variables turns into one another."""
    found = []
    early = permutations(range(shape.existential))
    late = permutations(range(shape.existential, shape.existential + shape.free))
    for one, other in product(early, late):
        to = one + other
        edges = sorted((*sorted((to[a], to[b])), sign) for a, b, sign in shape.edges)
        found.append((edges, sorted((to[end], sign) for end, sign in shape.constants)))
    return shape.existential, shape.free, repr(min(found))


@pytest.mark.parametrize(
    "limits",
    [
        PUBLISHED,
        Limits(existential=1, negative=2),
        Limits(existential=2, free=1, extra=2, parallel=3, edges=7, distance=2),
        Limits(existential=1, free=3, constants=2, distance=1),
        Limits(existential=3, free=1, constants=1, negative=0, distance=9),
        Limits(existential=0, free=1, constants=5, parallel=1),
        Limits(constants=2, nodes=4, edges=3, extra=0),
    ],
    ids=str,
)
def test_naive_enumeration(limits: Limits) -> None:
    expected = {least(shape) for shape in naive(limits)}
    made = [least(shape) for shape in complete(limits)]
    assert len(made) == len(set(made))
    assert set(made) == expected


def test_published_program_beyond_its_limits() -> None:
    limits = Limits(existential=3, free=1, constants=2)
    everything = {canonical(shape.query) for shape in complete(limits)}
    assert {canonical(shape.query) for shape in paper(limits)} < everything
    without = Limits(negative=0)
    assert all(shape.negations == 0 for shape in paper(without))
    assert len(list(paper(without))) == 379


def test_limits_that_are_none() -> None:
    with pytest.raises(QueryError, match="the limit free is 1 or more, not 0"):
        Limits(free=0)
    with pytest.raises(QueryError, match="the limit extra is 0 or more, not -1"):
        Limits(extra=-1)
    with pytest.raises(QueryError, match="more than 9 variables"):
        Limits(existential=9, nodes=12)
    with pytest.raises(QueryError, match="one or two free variables"):
        list(paper(Limits(free=3)))


def test_any_bracketing() -> None:
    published = "(r1(s1,e1))&((!(r2(s2,f1)))&(r3(e1,f1)))"
    query = read_formula(published)
    for other in (
        "r1(s1,e1)&!r2(s2,f1)&r3(e1,f1)",
        "((r1(s1,e1)&(!(r2(s2,f1)))))&(((r3(e1,f1))))",
        " r1 ( s1 , e1 ) & ! ( ( r2(s2,f1) ) ) & !!r3(e1,f1) ",
    ):
        assert read_formula(other) == query
    assert write_formula(query) == published
    assert query.free == (Variable("f1"),)
    assert query.disjuncts[0].atoms[1] == Atom("r2", Constant("s2"), Variable("f1"), False)


def test_grounded_formulas() -> None:
    query = read_formula("(12(345,e1))&(!(7(e1,f1)))")
    assert query.grounded
    assert query.disjuncts[0].atoms[0] == Atom(12, Constant(345), Variable("e1"))
    assert write_formula(query) == "(12(345,e1))&(!(7(e1,f1)))"


def test_unions_end_up_outside() -> None:
    query = read_formula("r1(s1,f1)&(r2(s2,f1)|r3(s3,f1))|r4(s4,f1)")
    expected = "((r1(s1,f1))&(r2(s2,f1)))|(((r1(s1,f1))&(r3(s3,f1)))|(r4(s4,f1)))"
    assert write_formula(query) == expected
    assert read_formula(expected) == query


MALFORMED = [
    ("", "character 1: '(', '!' or a relation (r1, … or a number) was expected, not the end"),
    ("r1(s1,f1", "character 9: ')' was expected, not the end"),
    ("r1(s1,f1))", "character 10: '&', '|' or the end was expected, not ')'"),
    ("(r1(s1,f1)", "character 11: ')' was expected, not the end"),
    ("r1(s1;f1)", "character 6: ';' has no meaning here"),
    ("r1(s1,f1)&", "character 11: '(', '!' or a relation (r1, … or a number) was expected, not"
     " the end"),
    ("r1(s1,x1)", "character 7: a constant (s1, … or a number) or a variable (e1, …, f1, …) was"
     " expected, not 'x1'"),
    ("s1(s1,f1)", "character 1: '(', '!' or a relation (r1, … or a number) was expected, not 's1'"),
    ("r1(s1,f1)&!(r2(s1,f1)&r3(s1,f1))", "character 11: '!' stands before one atom; more was found"
     " after it"),
    ("r1(s1,e1)", "no free variable (f1, …) occurs, so that nothing is asked"),
    ("(" * 300 + "r1(s1,f1)", "character 202: nested deeper than 200"),
    ("!" * 300 + "r1(s1,f1)", "character 202: nested deeper than 200"),
    ("&".join(["(r1(s1,f1)|r2(s2,f1))"] * 14), "character 286: more than 10,000 disjuncts"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed_formulas(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        read_formula(text)
    assert str(caught.value) == message


def test_queries_without_formula() -> None:
    x = Variable("f1")
    atom = Atom("r1", Constant("s1"), x)
    inner = Query((x,), (Conjunction((atom,)),))
    with pytest.raises(QueryError, match="negate single atoms only"):
        write_formula(Query((x,), (Conjunction((atom,), (inner,)),)))
    with pytest.raises(QueryError, match="without atoms"):
        write_formula(Query((x,), (Conjunction(()),)))
    with pytest.raises(QueryError, match="relations r1, … or numbers, not 'likes'"):
        write_formula(Query((x,), (Conjunction((Atom("likes", Constant("s1"), x),)),)))
    with pytest.raises(QueryError, match="constants s1, … or numbers, not 'Oslo'"):
        write_formula(Query((x,), (Conjunction((Atom("r1", Constant("Oslo"), x),)),)))


def test_other_variables_are_renamed() -> None:
    x, y = Variable("answer"), Variable("between")
    atoms = (Atom("r1", Constant("s1"), y), Atom("r2", y, x))
    assert write_formula(Query((x,), (Conjunction(atoms),))) == "(r1(s1,e1))&(r2(e1,f1))"


TERMS: list[Term] = [Constant("s1"), Constant("s2"), *map(Variable, ("e1", "e2", "f1", "f2"))]


@st.composite
def queries(draw: st.DrawFn, relations: tuple[int, ...] = ()) -> Query:
    """One conjunction of up to five atoms; types, or with these relations."""
    ends = st.sampled_from(TERMS)
    drawn = draw(st.lists(st.tuples(ends, ends, st.booleans()), min_size=1, max_size=5))
    atoms = []
    for number, (head, tail, sign) in enumerate(drawn, 1):
        relation = draw(st.sampled_from(relations)) if relations else f"r{number}"
        atoms.append(Atom(relation, head, tail, sign))
    free = (Variable("f1"), Variable("f2"))
    return Query(free, (Conjunction(tuple(atoms)),))


def naive_form(query: Query) -> str:
    """The least way to write a query over all exchanges of names."""
    groups = [TERMS[:2], TERMS[2:4], TERMS[4:]]
    found = []
    for orders in product(*map(permutations, groups)):
        to = dict(zip(TERMS, (term for order in orders for term in order), strict=True))
        found.append(sorted(_written(atom, to) for atom in query.disjuncts[0].atoms))
    return repr(min(found))


def _written(atom: Atom, to: dict[Term, Term]) -> tuple[object, ...]:
    ends = [str(to[atom.head]), str(to[atom.tail])]
    if isinstance(atom.relation, str):
        return (atom.positive, *sorted(ends))
    if atom.relation % 2:
        ends.reverse()
    return (atom.positive, atom.relation // 2, *ends)


@settings(max_examples=300, deadline=None)
@given(queries(), queries(), st.randoms(use_true_random=False))
def test_canonical_form_of_types(one: Query, other: Query, random: Random) -> None:
    assert isomorphic(one, other) == (naive_form(one) == naive_form(other))
    changed = _changed(one, random)
    assert isomorphic(one, changed) == (naive_form(one) == naive_form(changed))


@settings(max_examples=300, deadline=None)
@given(queries((0, 1, 2)), queries((0, 1, 2)), st.randoms(use_true_random=False))
def test_canonical_form_of_grounded_queries(one: Query, other: Query, random: Random) -> None:
    assert isomorphic(one, other) == (naive_form(one) == naive_form(other))
    changed = _changed(one, random)
    assert isomorphic(one, changed) == (naive_form(one) == naive_form(changed))


def _changed(query: Query, random: Random) -> Query:
    """The query with atoms shuffled and terms exchanged, and now and then one end replaced."""
    atoms = list(query.disjuncts[0].atoms)
    random.shuffle(atoms)
    to: dict[Term, Term] = {}
    for group in (TERMS[:2], TERMS[2:4], TERMS[4:]):
        to.update(zip(group, random.sample(group, len(group)), strict=True))
    if random.random() < 0.5:
        at = random.randrange(len(atoms))
        atom = atoms[at]
        atoms[at] = Atom(atom.relation, random.choice(TERMS), atom.tail, atom.positive)
    moved = (Atom(a.relation, to[a.head], to[a.tail], a.positive) for a in atoms)
    return Query(query.free, (Conjunction(tuple(moved)),))


def test_canonical_form_of_larger_parts() -> None:
    def anti(name: str, first: str, second: str) -> Query:
        x, y = Variable("f1"), Variable(name)
        inner = Conjunction((Atom(first, Constant("s2"), y), Atom(second, y, x)))
        outer = Atom("r1", Constant("s1"), x)
        return Query((x,), (Conjunction((outer,), (Query((x,), (inner,)),)),))

    assert isomorphic(anti("e1", "r2", "r3"), anti("z", "r3", "r2"))
    flat = read_formula("r1(s1,f1)&r2(s2,e1)&!r3(e1,f1)")
    assert not isomorphic(anti("e1", "r2", "r3"), flat)
    one = read_formula("r1(s1,f1)|r2(s2,e1)&r3(e1,f1)")
    other = read_formula("r1(s2,e1)&r2(f1,e1)|r3(s1,f1)")
    assert isomorphic(one, other)
    assert not isomorphic(one, read_formula("r1(s1,f1)&r2(s2,e1)&r3(e1,f1)"))
    # A name that occurs twice is one relation.
    twice = read_formula("r1(s1,f1)&r1(s2,f1)")
    assert not isomorphic(twice, read_formula("r1(s1,f1)&r2(s2,f1)"))
    assert isomorphic(twice, read_formula("r5(s7,f1)&r5(s3,f1)"))


def test_canonical_form_of_symmetric_queries() -> None:
    chains = "&".join(f"r{2 * n}(s{n},e{n})&r{2 * n + 1}(e{n},f1)" for n in range(1, 13))
    ends = list(range(1, 13))
    Random(1).shuffle(ends)
    turned = "&".join(f"r{2 * n}(e{n},f1)&r{2 * n + 1}(s{n},e{n})" for n in ends)
    assert isomorphic(read_formula(chains), read_formula(turned))


def test_topologies() -> None:
    assert topology(read_formula("r1(s1,f1)&r2(s2,f1)")) == "SDAG"
    assert topology(read_formula("r1(s1,e1)&r2(e1,f1)&!r3(f1,e1)")) == "multi"
    assert topology(read_formula("r1(s1,e1)&r2(e1,e2)&r3(e2,f1)&r4(f1,e1)")) == "cyclic"
    with pytest.raises(QueryError, match="one conjunction"):
        topology(read_formula("r1(s1,f1)|r2(s2,f1)"))
