"""A small knowledge base with questions about it, and a network that is quick to train."""

from __future__ import annotations

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


@pytest.fixture(scope="session")
def settings() -> Any:
    """Settings that learn the small examples by heart in seconds."""
    from parsers.settings import Settings

    return Settings(
        embedding=32, hidden=64, dropout=0.0, batch=8, epochs=40, learning_rate=0.01, seed=3,
        validation=20, threads=1,
    )  # fmt: skip


@pytest.fixture(scope="session")
def trained(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:  # fmt: skip
    """The folder of a run that was trained on the small examples, with its knowledge base."""
    from kb import write_snapshot
    from parsers.training import begin

    folder = tmp_path_factory.mktemp("trained")
    kb_file = folder / "small.kopl"
    write_snapshot(small, kb_file)
    run = folder / "run"
    trainer = begin(run, settings.changed({"kb": str(kb_file)}), small, small_examples,
                    small_examples)  # fmt: skip
    assert trainer.run()
    return run
