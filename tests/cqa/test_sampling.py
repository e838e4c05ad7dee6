"""Sampled queries: what is kept is right by other answerers, and negations matter by deletion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cqa.errors import QueryError
from cqa.formats.samples import read_samples
from cqa.graphs.graph import from_triples
from cqa.graphs.readers import read_graph
from cqa.hardness.hardness import Hardness
from cqa.notation.sparql import triples_of, write_sparql
from cqa.query import Atom, Conjunction, Query
from cqa.sampling.kinds import kinds, sampler
from cqa.sampling.options import Options, SamplingError
from cqa.sampling.plan import plan_of
from cqa.sampling.run import Plan, run, stream
from cqa.sampling.sample import Kind, Sample
from cqa.sampling.source import Source
from cqa.types.canonical import canonical
from cqa.types.efo1 import types as efo1_types
from cqa.types.normal import FORMS, to_form
from cqa.types.registry import graph_types
from cqa.types.tree import Tree, arrange, nodes, read_formula
from kb.rdf.iri import BASE
from kopl_base.errors import KoplError, ReadError
from tests.cqa.brute import Brute, Triple, tree_set
from tests.cqa.small_graph import ENTITIES, RELATIONS, full, observed, parts, small_graph

LIMITS = Options(most=ENTITIES)


def drawn(
    kind: Kind, count: int, source: Source, options: Options = LIMITS, seed: int = 0
) -> list[Sample]:
    """That many queries of a type."""
    maker, random = sampler(kind, source, options), Random(seed)
    found: dict[str, Sample] = {}
    for _ in range(20_000):
        attempt = maker.attempt(random)
        if attempt is not None:
            found[attempt[0]] = attempt[1]
        if len(found) == count:
            return list(found.values())
    raise AssertionError(f"{kind.formula} yields {len(found)} queries only")


@pytest.fixture(scope="module")
def source() -> Source:
    return Source(small_graph())


# --- operator trees -----------------------------------------------------------------------------


def without_negations(tree: Tree) -> Iterator[Tree]:
    """The tree without one of its negations, each in turn."""
    for at, part in enumerate(tree.operands):
        if part.op == "n":
            yield tree.operands[1 - at]
        others = list(tree.operands)
        for changed in without_negations(part):
            others[at] = changed
            yield Tree(tree.op, tuple(others), tree.relation)


def test_every_efo1_type(source: Source) -> None:
    known, everything = observed(), full()
    for number, tree in enumerate(efo1_types()):
        for sample in drawn(Kind(str(number), tree.formula, tree), 2, source, seed=number):
            assert isinstance(sample.query, Tree)
            assert sample.query.abstract == tree
            answers = tree_set(sample.query, everything, ENTITIES)
            easy = tree_set(sample.query, known, ENTITIES)
            assert sample.easy[:, 0].tolist() == sorted(easy)
            assert sample.hard[:, 0].tolist() == sorted(answers - easy)
            assert sample.lost[:, 0].tolist() == sorted(easy - answers)
            assert sample.full[:, 0].tolist() == sorted(answers)
            assert 1 <= len(sample.hard) <= LIMITS.most
            for changed in without_negations(sample.query):
                assert tree_set(changed, everything, ENTITIES) != answers


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_the_shape(form: str, source: Source) -> None:
    everything = full()
    for number, tree in enumerate(efo1_types()):
        shape = to_form(tree, form)
        if number % 3 and form != "DM":
            continue
        kind = Kind("x", shape.formula, shape)
        (sample,) = drawn(kind, 1, source, Options(most=ENTITIES), seed=number)
        assert isinstance(sample.query, Tree)
        assert sample.query.formula == shape.formula
        assert set(sample.full[:, 0].tolist()) == tree_set(sample.query, everything, ENTITIES)


def test_grounded_queries_are_written_in_the_form(source: Source) -> None:
    (kind,) = kinds(["(i,(n,(u,(p,(e)),(p,(p,(e))))),(p,(e)))"], "DNF+IUD")
    (sample,) = drawn(kind, 1, source)
    assert sample.formula == "(D,(p,(e)),(p,(e)),(p,(p,(e))))" == sample.query.formula  # type: ignore[union-attr]


def test_trees_with_other_operators(source: Source) -> None:
    # A union with a complement is bounded from outside: a and (b or not c).
    for formula in (
        "(i,(p,(e)),(u,(n,(p,(e))),(p,(e))))",
        "(i,(p,(e)),(u,(n,(p,(e))),(n,(p,(e)))))",
        "(D,(p,(e)),(p,(e)),(n,(p,(e))))",
        "(p,(d,(p,(e)),(n,(n,(p,(e))))))",
        "(I,(n,(p,(e))),(n,(p,(e))),(p,(e)))",
    ):
        tree = read_formula(formula)
        for sample in drawn(Kind("x", formula, tree), 3, source):
            assert isinstance(sample.query, Tree)
            assert set(sample.full[:, 0].tolist()) == tree_set(sample.query, full(), ENTITIES)


def test_branches_are_never_alike(source: Source) -> None:
    (kind,) = kinds(["3i"])
    for sample in drawn(kind, 60, source):
        assert isinstance(sample.query, Tree)
        branches = [node for node in nodes(sample.query) if node.op == "p"]
        assert len(set(branches)) == 3


def test_assignments_that_a_tree_loses(source: Source) -> None:
    """With "assignments" a negation may be without effect on the answers further up."""
    (kind,) = kinds(["(p,(i,(n,(p,(e))),(p,(e))))"])
    options = replace(LIMITS, negations="assignments")
    without_effect = 0
    for sample in drawn(kind, 100, source, options):
        assert isinstance(sample.query, Tree)
        inner = sample.query.operands[0]
        (changed,) = without_negations(inner)
        inside = tree_set(inner, full(), ENTITIES)
        assert tree_set(changed, full(), ENTITIES) != inside
        (changed,) = without_negations(sample.query)
        without_effect += tree_set(changed, full(), ENTITIES) == set(sample.full[:, 0].tolist())
    assert without_effect


# --- query graphs -------------------------------------------------------------------------------


def rows(found: np.ndarray) -> list[tuple[int, ...]]:
    """Answers as tuples."""
    return [tuple(row) for row in found.tolist()]


def check_graph(sample: Sample, before: Brute, after: Brute) -> None:
    """Compare answers with the brute force, and look for what each negated edge removes."""
    query = sample.graph
    answers, easy = after.answers(query), before.answers(query)
    assert rows(sample.easy) == easy
    assert rows(sample.hard) == sorted(set(answers) - set(easy))
    assert rows(sample.lost) == sorted(set(easy) - set(answers))
    assert rows(sample.full) == answers
    for part in query.disjuncts:
        for at, atom in enumerate(part.atoms):
            if not atom.positive:
                turned = Atom(atom.relation, atom.head, atom.tail)
                changed = Conjunction((*part.atoms[:at], turned, *part.atoms[at + 1 :]))
                assert any(True for _ in after.matches(changed, (), {}))


def test_efok_types_by_brute_force(source: Source) -> None:
    before, after = Brute(observed(), ENTITIES), Brute(full(), ENTITIES)
    seen: Counter[tuple[int, str]] = Counter()
    for number, row in enumerate(graph_types()):
        # Four variables are 65,536 assignments; of those types fewer.
        if number % (12 if row.free + row.existential < 4 else 60):
            continue
        seen[row.free, row.topology] += 1
        kind = Kind(row.id, row.formula, row.query)
        for sample in drawn(kind, 1, source, Options(most=200), seed=number):
            check_graph(sample, before, after)
            assert canonical(sample.graph, numbers=False) == canonical(row.query)
    assert len(seen) == 6


def test_every_efok_type_can_be_drawn(source: Source) -> None:
    for row in graph_types("paper"):
        assert drawn(Kind(row.id, row.formula, row.query), 1, source, Options(most=200))


@pytest.mark.parametrize(
    "formula",
    [
        "((r1(s1,f1))&(r2(f1,f2)))&((r3(s2,f2))&(r4(s3,f1)))",
        "(r1(s1,f1))|((r2(s2,e1))&(r3(e1,f1)))",
        "((r1(s1,f1))&(!(r2(s2,f1))))|((r3(s3,f1))&(!(r4(s4,f1))))",
        "(r1(s1,f1))&((!(r2(s2,f1)))&(!(r3(s3,f1))))",
        "(r1(s1,f1))&(r2(f1,f1))",
        "(r1(s1,f1))&(!(r2(f1,f1)))",
        "(r1(s1,f1))&((r2(s1,e1))&(r3(e1,f1)))",
        "(r1(s1,f1))&((r2(s2,f2))&(!(r3(f1,f2))))",
        "(r1(s1,f1))&((r2(s1,e1))&((r3(e1,f1))&(!(r4(s1,e1)))))",
        "(r1(e1,f1))&((r2(f1,f2))&(r3(f2,f3)))",
        "(r1(e1,f1))&((r2(e1,f1))&(!(r3(e1,f1))))",
    ],
)
def test_graphs_of_users(formula: str, source: Source) -> None:
    """Unions, loops, several negations, constants on several edges, parts that only "not" joins."""
    before, after = Brute(observed(), ENTITIES), Brute(full(), ENTITIES)
    (kind,) = kinds([formula])
    for sample in drawn(kind, 3, source, Options(most=500, answers=5000)):
        check_graph(sample, before, after)


def test_negations_that_change_answers(source: Source) -> None:
    options = Options(most=200, negations="answers")
    after = Brute(full(), ENTITIES)
    for number in (3, 20, 61, 150, 301):
        row = graph_types()[number]
        for sample in drawn(Kind(row.id, row.formula, row.query), 3, source, options):
            (part,) = sample.graph.disjuncts
            for atom in part.atoms:
                if not atom.positive:
                    rest = Conjunction(tuple(other for other in part.atoms if other != atom))
                    assert after.answers(Query(sample.graph.free, (rest,))) != rows(sample.full)


def test_pyoxigraph_agrees() -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="pip install 'kopl-toolkit[sparql]'")
    graph = small_graph()
    store = pyoxigraph.Store()
    named = ((pyoxigraph.NamedNode(BASE + end) for end in row) for row in triples_of(graph))
    store.extend(pyoxigraph.Quad(*row) for row in named)
    plan = Plan(tuple(kinds(["betae", "efok:paper"]))[::13], 2, options=Options(most=200))
    cut, count = len(BASE) + 1, 0
    for sample in stream(plan, graph):
        query = sample.graph
        found = store.query(write_sparql(query, graph, base=BASE))
        answers = sorted(tuple(int(row[v.name].value[cut:]) for v in query.free) for row in found)
        assert answers == rows(sample.full)
        count += 1
    assert count > 100


# --- what is drawn ------------------------------------------------------------------------------


def star() -> Source:
    """Entity 0 has one link of relation 0, and nine of relation 1, one of them missing."""
    train = [(1, 0, 0), *((at, 1, 0) for at in range(2, 10))]
    arrays = [np.array(train, np.int32), np.array([(10, 1, 0)], np.int32)]
    return Source(from_triples(arrays, ("train", "test")), "test")


def test_relations_alike_or_links_alike() -> None:
    given = star()
    random = Random(1)
    relations = Counter(given.enter(random, 0)[0] for _ in range(2000))
    assert 900 < relations[0] < 1100 and set(relations) == {0, 2}
    train = [(1, 0, 0), *((at, 1, 0) for at in range(2, 10))]
    arrays = [np.array(train, np.int32), np.array([(10, 1, 0)], np.int32)]
    by_links = Source(from_triples(arrays, ("train", "test")), "test", "links")
    found = Counter(by_links.enter(random, 0) for _ in range(2000))
    assert set(found) == {(0, 1), *((2, at) for at in range(2, 11))}
    assert min(found.values()) > 130


def test_onward_never_goes_straight_back() -> None:
    given = Source(small_graph(), relations="onward")
    (kind,) = kinds(["3p"])
    for sample in drawn(kind, 80, given):
        assert isinstance(sample.query, Tree)
        path = [int(node.relation) for node in nodes(sample.query) if node.op == "p"]  # type: ignore[arg-type]
        assert all(one != other ^ 1 for one, other in pairwise(path))
    plain = drawn(kind, 80, Source(small_graph()))
    paths = [[n.relation for n in nodes(s.query) if n.op == "p"] for s in plain]  # type: ignore[arg-type]
    assert any(path[0] == path[1] ^ 1 for path in paths)  # type: ignore[operator]
    # An entity with one link can only be entered by it.
    train, test = np.array([(0, 0, 1)], np.int32), np.array([(1, 0, 2)], np.int32)
    line = Source(from_triples([train, test], ("train", "test")), relations="onward")
    assert line.enter(Random(1), 0) == (1, 1)
    assert line.enter(Random(1), 0, before=0) == (-1, -1)


BETAE_WAY = Options(most=ENTITIES, draw="betae")


def entering(entity: int) -> set[int]:
    """The relations that enter an entity on the full graph."""
    links = small_graph().full()
    return {r ^ 1 for r in range(links.relation_count) if len(links.row(r, entity))}


def test_betaes_way_starts_each_branch_anew() -> None:
    """A chain never goes straight back; below an intersection a branch may take what led there."""
    way = Source(small_graph(), relations=BETAE_WAY.walk)
    for name in ("3p", "2i", "ip", "up", "pi"):
        (kind,) = kinds([name])
        for one in drawn(kind, 60, way, BETAE_WAY):
            assert isinstance(one.query, Tree)
            for node in nodes(one.query):
                below = node.operands[0] if node.op == "p" else node
                if node.op == below.op == "p":
                    assert node.relation != (below.relation or 0) ^ 1
    (kind,) = kinds(["ip"])
    back = [
        branch.relation == (one.query.relation or 0) ^ 1
        for one in drawn(kind, 60, way, BETAE_WAY)
        if isinstance(one.query, Tree)
        for branch in one.query.operands[0].operands
    ]
    assert any(back)
    strict = Options(most=ENTITIES, relations="onward")
    for one in drawn(kind, 60, Source(small_graph(), relations="onward"), strict):
        assert isinstance(one.query, Tree)
        for branch in one.query.operands[0].operands:
            assert branch.relation != (one.query.relation or 0) ^ 1


def test_betaes_way_puts_the_answer_in_every_branch_of_a_union() -> None:
    way = Source(small_graph(), relations=BETAE_WAY.walk)
    (kind,) = kinds(["2u"])
    for one in drawn(kind, 80, way, BETAE_WAY):
        assert isinstance(one.query, Tree)
        triples = full()
        sets = [tree_set(part, triples, ENTITIES) for part in one.query.operands]
        assert set.intersection(*map(set, sets))


def test_betaes_way_wants_answers_that_a_negation_takes_back() -> None:
    options = Options(most=3, draw="betae")
    way = Source(small_graph(), relations=options.walk)
    for name in ("2in", "pin", "inp"):
        (kind,) = kinds([name])
        for one in drawn(kind, 20, way, options):
            assert 1 <= len(one.lost) <= 3 and 1 <= len(one.hard) <= 3
    (kind,) = kinds(["2u-DM"])
    assert not any(len(one.lost) for one in drawn(kind, 5, way, options))


def test_betaes_way_is_for_operator_trees() -> None:
    (kind,) = kinds(["r1(s1,f1)"])
    with pytest.raises(SamplingError, match="draw 'betae' is for operator trees, not r1"):
        sampler(kind, Source(small_graph()), BETAE_WAY)


def test_betaes_way_takes_both_orders_of_branches(tmp_path: Path) -> None:
    plan = Plan(tuple(kinds(["2i"])), 300, options=BETAE_WAY)
    graph = small_graph()
    run(plan, graph, tmp_path / "q", format="betae")
    found = list(read_samples(tmp_path / "q"))
    assert len(found) == 300
    different = {arrange(one.query) for one in found if isinstance(one.query, Tree)}
    assert len(different) < 300


@pytest.mark.parametrize(
    # Means of the published half, and how far the share of 2i may be from the published one.
    ("name", "hard", "kind", "share", "near"),
    [("2i", 5.9, "2i", 6.0, 1), ("pi", 12.3, "2i", 49.0, 5)],
)
def test_nell_as_its_published_queries_were_drawn(
    name: str, hard: float, kind: str, share: float, near: float, kopl_data: Path
) -> None:
    """The number of hard answers, and Table 1 of the hardness paper."""
    graph = read_graph(kopl_data / "nell995")
    options = Options(most=80, draw="betae")
    samples = list(stream(Plan(tuple(kinds([name])), 4000, options=options), graph))
    counts = [len(one.hard) for one in samples]
    assert max(counts) <= 80 and sum(counts) / 4000 == pytest.approx(hard, abs=0.9)
    told = Hardness(graph).label([one.query for one in samples], [one.hard for one in samples])
    (reduced,) = told.counts().values()
    assert 100 * reduced[kind] / reduced.total() == pytest.approx(share, abs=near)


def test_queries_of_train_have_easy_answers_only() -> None:
    graph = small_graph()
    plan = Plan(tuple(kinds(["2i", "2in", "(r1(s1,f1))&(r2(f1,f2))"])), 5, split="train")
    train = Brute(parts()[0], ENTITIES)
    found = list(stream(plan, graph))
    assert len(found) == 15
    for sample in found:
        assert rows(sample.easy) == train.answers(sample.graph)
        assert len(sample.hard) == len(sample.lost) == 0


def test_limits() -> None:
    graph = small_graph()
    options = Options(least=2, most=3, answers=6)
    wanted = tuple(kinds(["2p", "(r1(s1,f1))&(r2(f1,f2))"]))
    for sample in stream(Plan(wanted, 20, options=options), graph):
        width = sample.easy.shape[1]
        assert 2 <= len(sample.hard) <= 3 * width
        assert len(sample.full) <= 6 * width


def test_no_two_queries_are_alike() -> None:
    graph = small_graph()
    wanted = tuple(kinds(["2i", "3i", "2u", "(r1(s1,e1))&((r2(s2,e1))&(r3(e1,f1)))"]))
    seen = {
        (sample.type, canonical(sample.graph))
        for sample in stream(Plan(wanted, 150, options=LIMITS), graph)
    }
    assert len(seen) == 600


def test_caps_hold() -> None:
    graph = small_graph()
    options = Options(most=ENTITIES, relation_share=0.5, anchor_share=0.2)
    found = list(stream(Plan(tuple(kinds(["2i"])), 60, options=options), graph))
    relations = Counter(number for sample in found for number in sample.relations)
    anchors = Counter(number for sample in found for number in sample.anchors)
    assert len(found) == 60
    assert max(relations.values()) <= 30 and max(anchors.values()) <= 12
    free = list(stream(Plan(tuple(kinds(["2i"])), 60, options=LIMITS), graph))
    assert max(Counter(n for s in free for n in s.anchors).values()) > 12


def test_a_type_of_few_queries_ends() -> None:
    train, test = np.array([(0, 0, 1), (1, 0, 2)], np.int32), np.array([(2, 0, 3)], np.int32)
    graph = from_triples([train, test], ("train", "test"))
    found = list(stream(Plan(tuple(kinds(["1p", "2p"])), 50), graph))
    # 2 -r-> 3 and back; 1 -r-> r-> 3 and back, and from an end back to itself.
    assert Counter(sample.type for sample in found) == {"1p": 2, "2p": 4}


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([], "no type is given"),
        (["9x"], "there is no query type named '9x'"),
        (["efo1:type9999"], "efo1 has no type 'type9999'; kopl cqa types lists them"),
        (["efo1:paper"], "a space (complete, paper) is of efok; efo1 has none"),
        (["type0016"], "write efo1:type0016 or efok:type0016, which are different types"),
        (["type1906"], "'type1906' is an id, which needs its family: write efok:type1906"),
        (["efo1", "efok"], "two types are called type0000"),
        (["(n,(p,(e)))"], "the complement (n,(p,(e))) is not bounded"),
        (["(i,(p,(e)),(u,(p,(e)),(n,(p,(e)))"], "ends too early"),
        (["(e)"], "a given entity stands alone"),
        (["(i,(e),(p,(e)))"], "a given entity stands alone"),
        (["(r1(s1,f1))&(r1(s2,f1))"], "the relation r1 stands twice"),
        (["12(s1,f1)"], "12 is a number"),
        (["(r1(s1,f1))&(r2(s1,s2))"], "r2 links two constants"),
        (["(r1(s1,f1))|(r2(s1,f1))"], "a constant stands in two disjuncts"),
        (["!(r1(s1,f1))"], "stands in no positive atom"),
        (["@/no/such/file"], "No such file"),
    ],
)
def test_what_is_no_type(types: list[str], message: str) -> None:
    with pytest.raises((SamplingError, QueryError, ReadError)) as caught:
        kinds(types)
    assert message in str(caught.value)


def test_types_from_a_listing(tmp_path: object) -> None:
    path = f"{tmp_path}/types.tsv"
    with open(path, "w") as file:
        file.write("(p,(e))\ttype0000\t1p\t1\t1\n\n(i,(p,(e)),(p,(e)))\ttype0013\t2i\t2\t1\n")
    found = kinds([f"@{path}", "pni"])
    assert [kind.id for kind in found] == ["type0000", "type0013", "pni"]
    assert found[1:2] == kinds(["efo1:type0013"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draw": "any"}, "no way to draw queries 'any'; choose of efo1, betae"),
        ({"draw": "betae", "relations": "links"}, "says how relations are drawn, too"),
        ({"relations": "any"}, "no way to draw relations 'any'; choose of uniform, onward, links"),
        ({"negations": "all"}, "no effect of a negation 'all'"),
        ({"least": 0}, "0 to 100 is no range"),
        ({"least": 5, "most": 4}, "5 to 4 is no range"),
        ({"least": 5, "answers": 4}, "4 answers are fewer than 5"),
        ({"relation_share": 0}, "a share lies above 0"),
        ({"anchor_share": 1.5}, "not 1.5"),
    ],
)
def test_options_out_of_range(options: dict[str, object], message: str) -> None:
    with pytest.raises(SamplingError) as caught:
        Options(**options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_graphs_that_yield_nothing() -> None:
    array = np.array([(0, 0, 1)], np.int32)
    graph = from_triples([array, array], ("train", "test"))
    for split, message in (("test", "adds no link"), ("dev", "no split 'dev'")):
        with pytest.raises(KoplError) as caught:
            Source(graph, split)
        assert message in str(caught.value)
    with pytest.raises(SamplingError):
        Source(from_triples([array[:0]], ("train",), entity_count=3, relation_count=1), "train")


def test_numbers_of_the_small_graph() -> None:
    """The fixtures are what the other tests take them for."""
    everything: list[Triple] = full()
    assert len(set(everything)) == len(everything)
    assert {relation for _, relation, _ in everything} == set(range(RELATIONS))


def test_plan_reads_any_form() -> None:
    union = plan_of(read_formula("(n,(i,(n,(p,(e))),(n,(p,(p,(e))))))"))
    assert [union.root.op, len(union.root.inputs), union.negations] == ["u", 2, ()]
    tree = read_formula("(i,(n,(n,(i,(n,(p,(e))),(n,(p,(p,(e))))))),(p,(e)))")
    same = plan_of(read_formula("(i,(n,(u,(p,(e)),(p,(p,(e))))),(p,(e)))"))
    assert len(plan_of(tree).negations) == len(same.negations) == 1
    apart = plan_of(read_formula("(i,(i,(n,(p,(e))),(n,(p,(p,(e))))),(p,(e)))"))
    assert len(apart.negations) == 2
