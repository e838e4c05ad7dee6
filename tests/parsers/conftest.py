"""A small knowledge base with questions about it, and a network that is quick to train."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, Quantity, Year
from kopl.example import Example
from kopl.executor import Executor
from kopl.text import read

COUNTRIES = {
    "Norway": ("Oslo", 323802, 1905), "Sweden": ("Stockholm", 450295, 1523),
    "Peru": ("Lima", 1285216, 1821), "Ivory Coast": ("Yamoussoukro", 322463, 1960),
    "Mali": ("Bamako", 1240192, 1960), "Fiji": ("Suva", 18274, 1970),
    "Papua New Guinea": ("Port Moresby", 462840, 1975), "Chad": ("N'Djamena", 1284000, 1960),
}  # fmt: skip


@pytest.fixture(scope="session")
def small() -> KnowledgeBase:
    """Eight countries with capitals, areas and years."""
    builder = Builder()
    builder.add_concept("country", "country")
    builder.add_concept("city", "city")
    for name, (capital, area, year) in COUNTRIES.items():
        builder.add_entity(name, name, ["country"])
        builder.add_entity(capital, capital, ["city"])
        builder.add_attribute(name, "area", Quantity(area, "square kilometre"))
        builder.add_attribute(name, "inception", Year(year))
        builder.add_attribute(name, "code", name[:2].upper())
        builder.add_fact(name, "capital", capital, {"start time": Year(year)})
    return builder.build()


@pytest.fixture(scope="session")
def small_examples(small: KnowledgeBase) -> list[Example]:
    """Questions of seven kinds about every country."""
    found = []
    executor = Executor(small)
    for name, (capital, area, year) in COUNTRIES.items():
        larger = f'FilterNum(FindAll(), area, "{area} square kilometre", ">")'
        for question, program in (
            (f"What is the capital of {name}?",
             f'QueryName(Relate(Find("{name}"), capital, forward))'),
            (f"Which country has {capital} as its capital?",
             f'QueryName(FilterConcept(Relate(Find("{capital}"), capital, backward), country))'),
            (f"What is the area of {name}?", f'QueryAttr(Find("{name}"), area)'),
            (f"How many countries are larger than {area:,} square kilometres?",
             f"Count(FilterConcept({larger}, country))"),
            (f"Was {name} founded in {year}?",
             f'VerifyYear(QueryAttr(Find("{name}"), inception), "{year}", "=")'),
            (f"Since when is {capital} the capital of {name}?",
             f'QueryRelationQualifier(Find("{name}"), Find("{capital}"), capital, "start time")'),
            (f"Which is larger, {name} or Peru?",
             f'SelectBetween(Find("{name}"), Find("Peru"), area, greater)'),
        ):  # fmt: skip
            tree = read(program)
            found.append(Example(question, tree, executor.run(tree).answer))
    return found


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch on one thread; the test is skipped without it."""
    module = pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
    pytest.importorskip("safetensors", reason="safetensors is not installed (extra 'train')")
    module.set_num_threads(1)
    return module


# Small sizes with which each model learns the small examples by heart in seconds.
QUICK: dict[str, list[str]] = {
    "pointer": ["embedding=32", "hidden=64", "epochs=40", "batch=8", "learning_rate=0.01"],
    # Small, as products of large states saturate the paper's unscaled attention: then it takes
    # long, at most seeds, until a query's long text says the name that the question has.
    "rnn": ["embedding=64", "hidden=32", "layers=1", "epochs=110", "batch=4",
            "learning_rate=0.03", "schedule=slope", "floor=0.2", "weight_decay=0",
            "gradient_norm=0.5"],
    "seq2seq": ["name=", "hidden=64", "layers=1", "heads=4", "vocabulary=600", "longest=128",
                "epochs=40", "batch=8", "new_learning_rate=0.004"],
}  # fmt: skip

PAIRS = [(model, language) for model in QUICK for language in ("kopl", "sparql")]


# Nothing is left out at random: a batch in parts, or spread over processes, draws in another order.
NOTHING_DRAWN = ["pointer.forget=0", "pointer.forget_items=0", "pointer.forget_mentions=0"]


def quick(model: str = "pointer", language: str = "kopl", *changes: str) -> Any:
    """Settings of a small model, without dropout, with some changes."""
    from parsers.settings import read_settings

    return read_settings(
        None,
        [f"model={model}", f"language={language}", "seed=3", *QUICK[model], f"{model}.dropout=0",
         *NOTHING_DRAWN,
         "validation=8", "threads=1", "device=cpu", "plots=false", *changes],
    )  # fmt: skip


@pytest.fixture(scope="session")
def settings() -> Any:
    """Settings of the default model that learns the small examples by heart in seconds."""
    return quick()


@pytest.fixture(scope="session")
def runs(
    torch: Any, small: KnowledgeBase, small_examples: list[Example],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, str], Path]:  # fmt: skip
    """The folder of a run of a model and language, trained on the small examples when asked for."""
    from kb import write_snapshot
    from parsers.training import begin

    folder = tmp_path_factory.mktemp("trained")
    kb_file = folder / "small.kopl"
    write_snapshot(small, kb_file)

    def run(model: str, language: str) -> Path:
        found = folder / f"{model}-{language}"
        if not found.exists():
            chosen = quick(model, language, f"kb={kb_file}")
            assert begin(found, chosen, small, small_examples, small_examples[:8]).run()
        return found

    return run


@pytest.fixture(scope="session")
def trained(runs: Callable[[str, str], Path]) -> Path:
    """The folder of a run of the default model, beside its knowledge base."""
    return runs("pointer", "kopl")
