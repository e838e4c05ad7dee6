"""UltraQuery: the graph of relations, weights of files, renaming, and the published weights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import save_file

from cqa.graphs.graph import Graph, from_triples
from cqa.graphs.readers import read_graph
from cqa.models.checkpoint import load_run, write_run
from cqa.models.embed.ultra import (
    KINDS,
    VARIABLE,
    UltraNetwork,
    UltraQuery,
    UltraQuerySettings,
    read_network,
    touching,
    weights_file,
)
from cqa.models.settings import Settings
from kopl_base.training.checkpoint import CheckpointError
from tests.cqa.models.graph_models import queries_of, random_graph, stream_of, tree

DATA = Path(os.environ.get("KOPL_DATA", ""))
WEIGHTS = DATA / "ultra" / "ultraquery.safetensors"
published = pytest.mark.skipif(
    not os.environ.get("KOPL_DATA") or not WEIGHTS.exists(),
    reason="needs UltraQuery's published weights in KOPL_DATA",
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return random_graph(40, 90)


def untrained(graph: Graph, **settings: object) -> UltraQuery:
    torch.manual_seed(0)
    return UltraQuery(UltraQuerySettings(**settings), graph, UltraNetwork())


def test_relations_touch_in_four_ways(graph: Graph) -> None:
    links = graph.view("train")
    ends = {
        (relation, end): set((heads if end == "head" else tails).tolist())
        for relation in range(links.relation_count)
        for heads, tails in [links.pairs(relation)]
        for end in ("head", "tail")
    }
    found = touching(links)
    arrays = found.link_nodes, found.link_relations, found.sources
    rows = zip(*(one.tolist() for one in arrays), strict=True)
    wanted = {
        (first, kind, second)
        for kind, (own, others) in enumerate(KINDS)
        for first in range(links.relation_count)
        for second in range(links.relation_count)
        if ends[first, own] & ends[second, others]
    }
    assert set(rows) == wanted


def renamed(graph: Graph, seed: int) -> tuple[Graph, np.ndarray, np.ndarray]:
    """The graph with other numbers of entities and relations, some relations turned round.

    Also the new numbers of entities and of directed relations.
    """
    random = np.random.default_rng(seed)
    entities = random.permutation(graph.entity_count)
    numbers = random.permutation(graph.relation_count)
    turned = random.integers(2, size=graph.relation_count)
    directed = np.stack([2 * numbers + turned, 2 * numbers + 1 - turned], 1).reshape(-1)
    triples = graph.triples("train")
    relations = directed[triples[:, 1]]
    heads, tails = entities[triples[:, 0]], entities[triples[:, 2]]
    back = relations % 2 == 1
    new = np.stack(
        [np.where(back, tails, heads), relations // 2, np.where(back, heads, tails)], 1
    ).astype(np.int32)
    nothing = np.zeros((0, 3), np.int32)
    parts = [random.permutation(new), nothing, nothing]
    counts = {"entity_count": graph.entity_count, "relation_count": graph.relation_count}
    return from_triples(parts, **counts), entities, directed


QUERIES = {
    "1p": ([3], [1]),
    "2i": ([3, 8], [1, 4]),
    "2in": ([2, 7], [0, 6]),
    "up": ([1, 9], [2, 3, 5]),
}


def check_renaming(graph: Graph, network: UltraNetwork) -> None:
    other, entities, directed = renamed(graph, 3)
    here = UltraQuery(UltraQuerySettings(), graph, network)
    there = UltraQuery(UltraQuerySettings(), other, network)
    for kind, (anchors, relations) in QUERIES.items():
        own = here.scores(tree(kind, list(anchors), list(relations))).scores[0]
        numbers = entities[anchors].tolist(), directed[relations].tolist()
        theirs = there.scores(tree(kind, *numbers)).scores[0]
        assert own.std() > 0
        np.testing.assert_allclose(theirs[entities], own, atol=1e-3, rtol=1e-3)


def test_names_of_entities_and_relations_do_not_matter(graph: Graph) -> None:
    torch.manual_seed(0)
    check_renaming(graph, UltraNetwork().eval())


@published
def test_names_do_not_matter_to_the_published_weights(graph: Graph) -> None:
    check_renaming(graph, read_network(WEIGHTS))


def test_a_batch_is_what_each_query_is_alone(graph: Graph) -> None:
    model = untrained(graph)
    queries = [tree(kind, list(own[0]), list(own[1])) for kind, own in QUERIES.items()]
    queries += [tree("1p", [n], [n]) for n in range(6)]
    fresh = untrained(graph)
    for query, scored in zip(queries, model.scores_of(queries), strict=True):
        np.testing.assert_allclose(scored.scores, fresh.scores(query).scores, atol=1e-4)


def test_small_numbers_count_as_nothing_below_a_threshold(graph: Graph) -> None:
    model = untrained(graph, threshold=0.5)
    sets = torch.zeros(2, graph.entity_count)
    sets[:, 3] = 1.0
    sets[1, 4:9] = 0.4
    first, second = model.project(sets, torch.tensor([2, 2]))
    torch.testing.assert_close(first, second)


def test_bfloat16_is_near(graph: Graph) -> None:
    exact, rounded = untrained(graph), untrained(graph, precision="bfloat16")
    query = tree("2p", [3], [1, 2])
    one, other = (model.scores(query).scores for model in (exact, rounded))
    assert np.abs(one - other).max() < 0.1 * np.ptp(one) + 0.05


def test_each_weight_gets_a_gradient(graph: Graph) -> None:
    model = untrained(graph).train()
    queries = queries_of(graph, {"1p": 40, "2i": 10})
    stream = stream_of(model, queries, len(queries))
    model(stream.collate(stream.draw(0))).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool((parameter.grad != 0).any()), name


def test_a_run_needs_no_other_weights(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    model = untrained(graph)
    write_run(tmp_path / "run", model, Settings.of("ultraquery"), graph)
    found, query = load_run(tmp_path / "run", graph), tree("2p", [3], [1, 2])
    assert np.array_equal(found.scores(query).scores, model.scores(query).scores)


# --- files of weights ----------------------------------------------------------------------------


def saved(path: Path, network: UltraNetwork, prefix: str = "") -> Path:
    tensors = {prefix + name: tensor for name, tensor in network.state_dict().items()}
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save({"model": tensors, "optimizer": {"state": {0: {"step": 3}}}}, path)
    return path


@pytest.mark.parametrize("prefix", ["", "model."])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_both_kinds_of_files_are_read(tmp_path: Path, suffix: str, prefix: str) -> None:
    network = UltraNetwork()
    found = read_network(saved(tmp_path / f"weights{suffix}", network, prefix))
    for name, tensor in network.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor)


class _Harm:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch harm",)


def test_nothing_in_a_file_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"model": _Harm()}, "weights.pth")
    with pytest.raises(CheckpointError, match="no file of weights, or it holds more"):
        read_network(Path("weights.pth"))
    assert not Path("harm").exists()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    network = UltraNetwork()
    tensors = dict(network.state_dict())
    first = next(iter(tensors))
    save_file(
        {name: one for name, one in tensors.items() if name != first}, tmp_path / "a.safetensors"
    )
    with pytest.raises(CheckpointError, match=f"no weights of UltraQuery: {first} is missing"):
        read_network(tmp_path / "a.safetensors")
    save_file({**tensors, first: torch.zeros(3, 64)}, tmp_path / "b.safetensors")
    with pytest.raises(CheckpointError, match="is 3×64 there"):
        read_network(tmp_path / "b.safetensors")
    (tmp_path / "c.pth").write_text("nothing")
    with pytest.raises(CheckpointError, match="no file of weights"):
        read_network(tmp_path / "c.pth")


def test_where_the_weights_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(CheckpointError, match=r"ultraquery\.weights in the settings, or the env"):
        weights_file()
    path = tmp_path / "weights.pth"
    path.touch()
    assert weights_file(str(path)) == path
    monkeypatch.setenv(VARIABLE, str(path))
    assert weights_file() == path
    with pytest.raises(CheckpointError, match=r"elsewhere: .* ultraquery\.weights names"):
        weights_file("elsewhere")
    monkeypatch.setenv(VARIABLE, "nowhere")
    with pytest.raises(CheckpointError, match=f"nowhere: .* {VARIABLE} names"):
        weights_file()


def test_a_hub_is_asked_for_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def download(repository: str, file: str) -> str:
        asked.append((repository, file))
        if "nothing" in file:
            raise OSError("no such file there")
        return "cached"

    monkeypatch.setattr(hub, "hf_hub_download", download)
    assert weights_file("hub:owner/name/ckpts/ultra.pth") == Path("cached")
    assert asked == [("owner/name", "ckpts/ultra.pth")]
    with pytest.raises(CheckpointError, match="the hub does not give it: OSError: no such file"):
        weights_file("hub:owner/name/nothing.pth")
    with pytest.raises(CheckpointError, match="hub:OWNER/NAME/FILE"):
        weights_file("hub:owner/name")


# --- the published weights -----------------------------------------------------------------------


@published
def test_the_published_weights_answer_links_of_a_graph_that_they_have_not_seen() -> None:
    graph = read_graph(DATA / "nell995")
    model = UltraQuery(UltraQuerySettings(str(WEIGHTS)), graph)
    triples, full = graph.triples("test"), graph.full("test")
    random = np.random.default_rng(0)
    ranks = []
    for head, relation, tail in triples[random.choice(len(triples), 16, replace=False)].tolist():
        scores = model.scores(tree("1p", [head], [relation])).scores[0]
        others = scores.copy()
        others[full.row(relation, head)] = -np.inf
        ranks.append(1 / (1 + int((others >= scores[tail]).sum())))
    # Messages in the wrong direction give 0.002.
    assert np.mean(ranks) > 0.2
