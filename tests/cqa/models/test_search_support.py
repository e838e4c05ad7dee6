"""Explanations, vectors found by gradients, settings, and what published programs do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from random import Random
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import Tensor

from cqa.errors import QueryError
from cqa.graphs.graph import Graph
from cqa.models.links.rows import CALIBRATIONS, Rows
from cqa.models.search import graph as graph_search
from cqa.models.search import projection, reasoners
from cqa.models.search.gradient import GradientSearch, GradientSettings
from cqa.models.search.search import LinkSearch
from cqa.models.search.settings import SETTINGS, SearchSettings
from cqa.models.settings import model_class, read_settings
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Variable
from cqa.types.betae import BETAE, named
from cqa.types.registry import graph_types
from cqa.types.tree import Tree, anchor, project
from kopl_base.errors import SettingsError
from tests.cqa.models.small_predictor import Table, small_graph
from tests.cqa.models.test_search import CLOSE, EXACT, filled, filled_graph, made
from tests.cqa.random_queries import ENTITIES, RELATIONS, random_query

# --- explanations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_best_binding_is_worth_what_the_answer_scores(seed: int) -> None:
    search, brute = made(EXACT["sigmoid"], seed, symmetric=True)
    query = random_query(Random(seed))
    values = brute.rows(query)
    for row in (np.unravel_index(values.argmax(), values.shape), (0,) * len(query.free)):
        answer = tuple(map(int, row))
        found = search.explain(query, answer)
        assert found.score == pytest.approx(values[answer], rel=1e-4)
        own = {Variable(name): entity for name, entity in found.bindings.items()}
        part = query.disjuncts[found.disjunct]
        expected = brute.assigned(part, own)
        assert found.value == pytest.approx(expected, rel=1e-4)
        assert found.value == pytest.approx(brute.part(part, query.free, own), rel=1e-4)
        product = np.prod([link.value for link in found.links] + list(found.without))
        assert product == pytest.approx(found.value, rel=1e-4)
        for link, atom in zip(found.links, part.atoms, strict=True):
            ends = [brute.entity(end, own) for end in (atom.head, atom.tail)]
            assert (link.relation, [link.head, link.tail]) == (atom.relation, ends)


def test_an_explanation_tells_known_links_from_predicted_ones() -> None:
    graph = small_graph(2)
    rows = Rows(Table(2), CALIBRATIONS["degree"], graph.view("train"), graph.observed())
    search = LinkSearch(rows, SETTINGS["qto"])
    head, relation, _ = (int(n) for n in graph.triples("train")[0])
    tree = project(project(anchor(head), relation), relation)
    query = from_tree(tree)
    answer = int(np.argmax(search.scores(tree).scores[0]))
    found = search.explain(tree, answer)
    links = graph.observed()
    for link in found.links:
        assert link.known == bool(
            links.has(link.relation, np.array([link.head]), np.array([link.tail]))[0]
        )
    assert found.value == pytest.approx(float(search.scores(query).scores[0, answer]))
    # The first link is in training, so that a way over it has nothing to lose there.
    assert found.links[0].known
    text = found.text(graph)
    assert text.splitlines()[0].startswith(f"f1 = {answer}, x1 = {found.links[0].tail}")
    chart = found.mermaid(graph)
    assert chart.startswith("flowchart LR\n") and f'[["{answer} (f1)"]]'.replace("(", "(") in chart
    assert ("-->" in chart) == any(link.known for link in found.links)
    assert ("-.->" in chart) == any(not link.known for link in found.links)
    with pytest.raises(QueryError, match="no entity 99"):
        search.explain(tree, 99)
    with pytest.raises(QueryError, match="has 2 entities; the query has 1"):
        search.explain(tree, (1, 2))


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("seed", range(8))
def test_the_picture_has_a_box_for_each_entity_and_link_and_none_on_another(seed: int) -> None:
    graph = small_graph(seed)
    rows = Rows(Table(seed), CALIBRATIONS["degree"], graph.view("train"), graph.observed())
    search = LinkSearch(rows, EXACT["qto"])
    query = random_query(Random(seed))
    found = search.explain(query, tuple(range(len(query.free))))
    root = ElementTree.fromstring(found.svg(graph))
    places, shown = [], []
    for group in root.iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        assert box is not None
        left, top, width, height = (float(box.attrib[k]) for k in ("x", "y", "width", "height"))
        places.append((left, top, left + width, top + height))
        shown.append(group.findtext(f"{SVG}title"))
    ends = {end for link in found.links for end in (link.head, link.tail)} | set(found.answer)
    kinds = [row[4] for row in found.table(graph) if row[1] != "negated part"]
    assert shown.count("answer") == len(set(found.answer))
    assert shown.count("answer") + shown.count("entity") == len(ends)
    assert [kind for kind in shown if kind not in ("answer", "entity")] == kinds
    heads = [path for path in root.findall(f"{SVG}path") if "tip" in path.attrib["class"].split()]
    assert len(heads) == 2 * len(found.links)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(0 <= a < c <= width and 0 <= b < d <= height for a, b, c, d in places)
    for one, other in combinations(places, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


# --- searching less -------------------------------------------------------------------------------


def test_the_best_answers_are_exact_when_the_search_stops_at_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(projection, "AT_ONCE", 1)
    random = Random(3)
    full, _ = made(EXACT["sigmoid"], 6)
    part, _ = made(replace(EXACT["sigmoid"], top=3), 6)
    queries: list[Tree | Query] = [filled(named(name), random) for name in BETAE for _ in range(3)]
    kinds = [one for one in graph_types() if one.free == 1]
    queries += [filled_graph(one.query, random) for one in random.sample(kinds, 25)]
    saved = 0
    for query in queries:
        exact, found = full.scores(query).scores[0], part.scores(query).scores[0]
        best = np.argsort(-exact, kind="stable")[:3]
        np.testing.assert_allclose(found[best], exact[best], **CLOSE, err_msg=str(query))
        assert (found <= exact + 1e-6).all()
        saved += bool((found < exact - 1e-6).any())
    assert saved


def test_values_of_a_cut_are_followed_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    kinds = [one for one in graph_types() if one.topology in ("cyclic", "multi")]
    queries = [filled_graph(one.query, random) for one in random.sample(kinds, 12)]
    found, made_rows = [], []
    for at_once in (1, 3, 32):
        monkeypatch.setattr(graph_search, "AT_ONCE", at_once)
        search, _ = made(replace(EXACT["fit"], cut=None), 3)
        search.rows = Rows(
            search.rows.predictor, search.settings.calibration, small_graph(3).view("train"),
            small_graph(3).observed(), cache_bytes=0,
        )  # fmt: skip
        found.append([search.scores(query).scores for query in queries])
        made_rows.append(search.rows.made)
    for one, other, third in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, **CLOSE)
        np.testing.assert_allclose(one, third, **CLOSE)
    assert made_rows[0] > made_rows[1] > made_rows[2]


def test_a_beam_is_a_lower_bound_and_follows_the_best() -> None:
    random = Random(1)
    full, _ = made(EXACT["sigmoid"], 6)
    beam, brute = made(replace(EXACT["sigmoid"], beam=2), 6)
    tree = filled(named("2p"), random)
    found = beam.scores(tree).scores[0]
    assert (found <= full.scores(tree).scores[0] + 1e-6).all()
    first = [brute.tree(tree.operands[0], at) for at in range(ENTITIES)]
    two = np.argsort(first)[::-1][:2]
    relation = int(tree.relation or 0)
    expected = np.max([first[h] * brute.table[relation, h] for h in two], axis=0)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_what_is_observed_comes_on_top_of_a_beam() -> None:
    settings = replace(SETTINGS["cqd-hybrid"], beam=1)
    search, brute = made(settings, 2)
    head, relation, _ = (int(n) for n in small_graph(2).triples("train")[0])
    row = brute.table[relation, head]
    known = int((row >= 1).sum())
    assert known >= 1
    chosen = np.argsort(-row, kind="stable")[: known + 1]
    expected = np.max([row[h] * brute.table[3, h] for h in chosen], axis=0)
    tree = project(project(anchor(head), relation), 3)
    np.testing.assert_allclose(search.scores(tree).scores[0], expected, **CLOSE)


def test_types_have_settings_of_their_own() -> None:
    settings = SearchSettings(CALIBRATIONS["minmax"], beam=1, by_type={"2u": (5, "minimum")})
    search, brute = made(settings, 4)
    tree = filled(named("2u"), Random(0))
    brute.norm, brute.conorm = "minimum", "maximum"
    expected = [brute.tree(tree, at) for at in range(ENTITIES)]
    np.testing.assert_allclose(search.scores(tree).scores[0], expected, **CLOSE)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"beam": 0}, "beam: 0"), ({"t_norm": "best"}, "no 'best'"), ({"negation": 0}, "negation")],
)
def test_settings_are_checked(change: dict[str, object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        replace(SETTINGS["qto"], **change)


# --- published programs ---------------------------------------------------------------------------


def published_cqd(seed: int) -> tuple[LinkSearch, Table]:
    """CQD's program with a beam of 2, and the logits that it reads."""
    search, _ = made(SearchSettings(CALIBRATIONS["minmax"], beam=2, compat="paper"), seed)
    predictor = search.rows.predictor
    assert isinstance(predictor, Table)
    return search, predictor


def step(table: Table, relation: int, heads: Sequence[int]) -> np.ndarray:
    """The rows of some heads with one min-max over all of them."""
    rows = table.logits[relation, list(heads)].double().numpy()
    found: np.ndarray = (rows - rows.min()) / (rows.max() - rows.min())
    return found


def best_two(values: np.ndarray) -> list[int]:
    """The places of the two largest values."""
    return [int(at) for at in np.argsort(-values, kind="stable")[:2]]


def chain_of(name: str, seed: int) -> tuple[Tree, list[int], int]:
    """A chain of links: the query, its relations from the anchor on, and the anchor."""
    tree = node = filled(named(name), Random(seed))
    relations: list[int] = []
    while node.op == "p":
        relations.insert(0, int(node.relation or 0))
        node = node.operands[0]
    return tree, relations, int(node.entity or 0)


def test_published_cqd_stretches_the_rows_of_a_step_together() -> None:
    search, table = published_cqd(7)
    tree, (first, second), start = chain_of("2p", 2)
    row = step(table, first, [start])[0]
    heads = best_two(row)
    expected = (step(table, second, heads) * row[heads][:, None]).max(0)
    np.testing.assert_allclose(search.scores(tree).scores[0], expected, **CLOSE)
    alone = LinkSearch(search.rows, replace(search.settings, compat=None))
    assert not np.allclose(alone.scores(tree).scores[0], expected, **CLOSE)


def test_published_3p_lays_values_of_the_first_link_beside_other_ways() -> None:
    search, table = published_cqd(7)
    tree, (first, second, third), start = chain_of("3p", 2)
    row = step(table, first, [start])[0]
    a = best_two(row)
    onward = step(table, second, a)
    b = [best_two(one) for one in onward]
    ends = sorted({*b[0], *b[1]})
    last = dict(zip(ends, step(table, third, ends), strict=True))
    ways = [(i, j) for i in range(2) for j in range(2)]
    # The value of candidate j in place of that of i.
    values = [row[a[j]] * onward[i, b[i][j]] * last[b[i][j]] for i, j in ways]
    expected = np.max(values, axis=0)
    np.testing.assert_allclose(search.scores(tree).scores[0], expected, **CLOSE)


def test_published_4p_takes_the_third_relation_twice_and_drops_two_links() -> None:
    search, table = published_cqd(7)
    tree, (first, second, third, _), start = chain_of("4p", 2)
    a = best_two(step(table, first, [start])[0])
    b = sorted({end for one in step(table, second, a) for end in best_two(one)})
    onward = step(table, third, b)
    best: dict[int, float] = {}
    for one in onward:
        for end in best_two(one):
            best[end] = max(float(one[end]), best.get(end, 0.0))
    ends = sorted(best)
    last = step(table, third, ends)
    expected = (last * np.array([best[end] for end in ends])[:, None]).max(0)
    np.testing.assert_allclose(search.scores(tree).scores[0], expected, **CLOSE)


def test_rows_of_a_step_are_the_same_in_blocks() -> None:
    search, table = published_cqd(7)
    heads = torch.tensor([1, 4, 0, 5, 2])
    expected = step(table, 3, heads.tolist())
    for numbers in (ENTITIES, 2 * ENTITIES, 1 << 20):
        blocks = list(search.rows.of_step(3, heads, numbers))
        assert len(blocks) == math.ceil(5 / max(1, min(5, numbers // ENTITIES)))
        found = torch.cat([rows for _, rows in blocks])
        np.testing.assert_allclose(found.numpy(), expected, **CLOSE)
    assert not list(search.rows.of_step(3, heads[:0]))


def test_published_pni_negates_the_last_link_only() -> None:
    corrected, brute = made(SETTINGS["qto"], 9)
    published = LinkSearch(corrected.rows, replace(SETTINGS["qto"], compat="paper"))
    tree = filled(named("pni"), Random(4))
    (negated, positive) = tree.operands
    chain = negated.operands[0]
    link, inner = brute.table[int(chain.relation or 0)], chain.operands[0]
    expected = [
        brute.tree(positive, at)
        * max(brute.tree(inner, x) * brute.no(link[x, at]) for x in range(ENTITIES))
        for at in range(ENTITIES)
    ]
    np.testing.assert_allclose(published.scores(tree).scores[0], expected, **CLOSE)
    assert not np.allclose(corrected.scores(tree).scores[0], expected, **CLOSE)


def test_published_fit_tries_only_observed_values_on_cycles() -> None:
    exact, _ = made(replace(EXACT["fit"], cut=None), 3)
    published = LinkSearch(exact.rows, replace(SETTINGS["fit"], compat="paper"))
    random = Random(5)
    kinds = [one for one in graph_types() if one.free == 1 and one.topology == "cyclic"]
    different = 0
    for one in random.sample(kinds, 10):
        query = filled_graph(one.query, random)
        more, less = exact.scores(query).scores[0], published.scores(query).scores[0]
        assert (less <= more + 1e-6).all()
        different += not np.allclose(less, more)
    assert different


# --- gradients ------------------------------------------------------------------------------------


class Vectors:
    """Random vectors, as DistMult has them."""

    def __init__(self, seed: int, entities: int = ENTITIES, size: int = 6) -> None:
        made = torch.Generator().manual_seed(seed)
        self.entities = torch.randn((entities, size), generator=made)
        self.relations = torch.randn((2 * RELATIONS, size), generator=made)
        self.relation_count = 2 * RELATIONS

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Heads times relations."""
        return heads * relations

    def beside(self, queries: Tensor, tails: Tensor) -> Tensor:
        """Their products with tails."""
        return (queries * tails).sum(1)

    def cubes(self, vectors: Tensor) -> Tensor:
        """The cubes of the lengths."""
        return vectors.abs().pow(3).sum(1)

    def truth(self, relation: int, head: int) -> Tensor:
        """The truth values of all tails."""
        image = self.relations[relation] * self.entities[head]
        return torch.sigmoid(self.entities @ image)


def test_without_existential_variables_the_scores_are_the_links() -> None:
    vectors = Vectors(1)
    search = GradientSearch(vectors, GradientSettings(steps=5))
    one, two = vectors.truth(0, 2), vectors.truth(3, 4)
    sides = project(anchor(2), 0), project(anchor(4), 3)
    cases = [
        (sides[0], one), (Tree("i", sides), one * two),
        (Tree("u", sides), 1 - (1 - one) * (1 - two)),
        (Tree("i", (sides[0], Tree("n", (sides[1],)))), one * (1 - two)),
    ]  # fmt: skip
    for tree, expected in cases:
        np.testing.assert_allclose(search.scores(tree).scores[0], expected.numpy(), **CLOSE)


def test_gradients_reach_a_better_truth_value_than_the_start() -> None:
    vectors = Vectors(2)
    tree = project(project(anchor(2), 0), 3)
    start = GradientSearch(vectors, GradientSettings(steps=0, penalty=0.01)).scores(tree)
    found = GradientSearch(vectors, GradientSettings(steps=300, penalty=0.01)).scores(tree)
    assert found.scores.max() > start.scores.max()


def test_a_batch_of_gradients_is_one_query_at_a_time() -> None:
    search = GradientSearch(Vectors(3), GradientSettings(steps=20))
    random = Random(1)
    kinds = random.sample([one for one in graph_types() if one.free == 2], 3)
    queries: list[Query | Tree] = [filled_graph(k.query, random) for k in kinds for _ in range(3)]
    queries += [filled(named("pni"), random) for _ in range(3)]
    random.shuffle(queries)
    for query, found in zip(queries, search.scores_of(queries), strict=True):
        free = len(query.free) if isinstance(query, Query) else 1
        assert found.scores.shape == (free, ENTITIES)
        np.testing.assert_allclose(found.scores, search.scores(query).scores, rtol=1e-3, atol=1e-5)


def test_atoms_against_the_order_of_reading_are_inverted() -> None:
    vectors = Vectors(4)
    free = Variable("f1")
    query = Query((free,), (Conjunction((Atom(0, free, Constant(3)),)),))
    found = GradientSearch(vectors, GradientSettings(steps=1)).scores(query)
    np.testing.assert_allclose(found.scores[0], vectors.truth(1, 3).numpy(), **CLOSE)


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cqd-beam", "cqd-hybrid", "qto", "fit", "cqd-co"])
def test_a_model_is_made_of_the_run_that_its_settings_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = small_graph(3)
    asked = []

    def run(place: str, given: Graph) -> object:
        asked.append((place, given))
        return Vectors(3) if name == "cqd-co" else Table(3)

    monkeypatch.setattr(reasoners, "load_run", run)
    settings = read_settings(None, [f"model={name}", f"{name}.predictor=runs/links"])
    model = model_class(name).create(settings, graph)
    assert asked == [("runs/links", graph)]
    queries = [filled(named(kind), Random(kind)) for kind in ("2p", "pni", "up")]
    for query, found in zip(queries, model.scores_of(queries), strict=True):
        assert found.scores.shape == (1, ENTITIES)
        np.testing.assert_allclose(model.scores(query).scores, found.scores, rtol=1e-3)
    assert model.paper and model.cost and model.cycles
    with pytest.raises(SettingsError, match=rf"{name}\.predictor=runs/complex"):
        model_class(name).create(read_settings(None, [f"model={name}"]), graph)


def test_settings_of_a_model_are_those_of_the_search() -> None:
    for name, settings in SETTINGS.items():
        assert read_settings(None, [f"model={name}"]).own.search == settings
    pairs = ["model=fit", "compat=paper", "cut=0", "threshold=0.0002", "tuned=nell995"]
    found = read_settings(None, pairs).own.search
    assert (found.compat, found.cut, found.calibration.threshold) == ("paper", None, 0.0002)
    assert found.unions == "disjuncts" and found.by_type["3p"] == (2, "product")
    with pytest.raises(SettingsError, match="calibration must be one of"):
        read_settings(None, ["model=qto", "calibration=best"])
