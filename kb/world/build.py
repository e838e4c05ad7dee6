"""Builds ``world.jsonl.gz``: ``python -m kb.world.build [-o FILE]``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from kb import write_lines
from kb.world.aliases import add_aliases
from kb.world.collect import World
from kb.world.elements import add_elements
from kb.world.factbook import add_figures, add_kinds
from kb.world.factbook_people import (
    Parties,
    add_anthems,
    add_legislatures,
    add_parties,
    add_people,
)
from kb.world.factbook_places import (
    add_borders,
    add_divisions,
    add_extremes,
    add_ports,
    add_urban_areas,
    add_waters,
)
from kb.world.factbook_society import (
    add_beliefs,
    add_memberships,
    add_space_agencies,
    add_trade,
)
from kb.world.geonames import Gazetteer, add_capitals, add_countries
from kb.world.nobel import add_laureates
from kb.world.other_sources import add_airports, add_currencies, add_figures_by_year, add_languages
from kb.world.sources import SourceError, require_sources
from kb.world.vocabulary import CONCEPTS

PRODUCT = Path(__file__).with_name("world.jsonl.gz")
# What the product must have at least.
REQUIRED = {
    "entities": 8_000,
    "concepts": 90,
    "relations": 34,
    "attribute keys": 50,
    "qualified relational facts": 8_000,
    "qualified literal facts": 8_000,
    "namesakes": 300,
    "aliases": 8_000,
}
LARGEST_FILE = 4 * 1024 * 1024


def collect() -> World:
    """Everything that the sources say, pruned."""
    world = World()
    add_countries(world)
    gazetteer = Gazetteer(world)
    gazetteer.add_states()
    gazetteer.add_large()
    add_kinds(world)
    add_capitals(world, gazetteer)
    add_figures(world)
    add_borders(world)
    add_divisions(world)
    add_waters(world)
    add_extremes(world)
    add_urban_areas(world, gazetteer)
    add_ports(world, gazetteer)
    add_people(world)
    add_anthems(world)
    parties = Parties(world)
    add_parties(parties)
    add_legislatures(world, parties)
    add_memberships(world)
    add_trade(world)
    add_beliefs(world)
    add_space_agencies(world)
    add_currencies(world)
    add_languages(world)
    add_figures_by_year(world)
    add_elements(world)
    add_airports(world, gazetteer)
    add_laureates(world, gazetteer)
    world.prune()
    add_aliases(world)
    return world


def counts(world: World) -> dict[str, int]:
    """How much of each kind there is, by the names of ``REQUIRED``."""
    entities = world.entities.values()
    relational = [fact for entity in entities for fact in entity.relations]
    literal = [fact for entity in entities for fact in entity.attributes]
    return {
        "entities": len(world.entities),
        "concepts": len(CONCEPTS) - len(world.unused_concepts()),
        "relations": len({relation for relation, _, _ in relational}),
        "attribute keys": len({key for key, _, _ in literal}),
        "relational facts": len(relational),
        "literal facts": len(literal),
        "qualified relational facts": sum(bool(pairs) for _, _, pairs in relational),
        "qualified literal facts": sum(bool(pairs) for _, _, pairs in literal),
        "namesakes": world.namesakes(),
        "aliases": sum(len(entity.aliases) for entity in entities),
    }


def main(arguments: list[str] | None = None) -> int:
    """Build, write and report; 1 when a source or a requirement is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=PRODUCT, metavar="FILE")
    options = parser.parse_args(arguments)
    try:
        require_sources()
    except SourceError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    world = collect()
    write_lines(world.build(), options.output)
    short = False
    for name, count in counts(world).items():
        wanted = REQUIRED.get(name)
        short |= wanted is not None and count < wanted
        print(f"{name:>28} {count:>8}" + (f"   (at least {wanted})" if wanted else ""))
    size = options.output.stat().st_size
    print(f"{'bytes':>28} {size:>8}   (at most {LARGEST_FILE})")
    if unused := world.unused_concepts():
        print(f"concepts without entities: {', '.join(unused)}")
    kinds = Counter(id.split("-")[0] for id in world.entities)
    print(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    return int(short or bool(unused) or size > LARGEST_FILE)


if __name__ == "__main__":
    sys.exit(main())
