"""Currencies with their periods and languages with their speakers, from CLDR in babel."""

from __future__ import annotations

import importlib
from typing import Any

from kb import Date, Quantity, Value
from kb.world.collect import World, slug
from kb.world.geonames import countries, country_id
from kb.world.text import clean_name

LEAST_SHARE = 0.01  # percent of the population that uses a language
STATUS = {
    "official": "official",
    "official_regional": "official in a part",
    "de_facto_official": "official in practice",
}
# No money that people pay with: funds codes, metals, units of account.
NO_MONEY = {
    "CHE",
    "CHW",
    "CLF",
    "COU",
    "MXV",
    "USN",
    "USS",
    "UYI",
    "UYW",
    "BOV",
    "XAG",
    "XAU",
    "XBA",
    "XBB",
    "XBC",
    "XBD",
    "XDR",
    "XEU",
    "XFO",
    "XFU",
    "XPD",
    "XPT",
    "XRE",
    "XSU",
    "XTS",
    "XUA",
    "XXX",
    "BEC",
    "BEL",
    "ESA",
    "ESB",
}


def _english() -> Any:
    return importlib.import_module("babel").Locale("en")


def _globals(name: str) -> Any:
    return importlib.import_module("babel.core").get_global(name)


def add_currencies(world: World) -> None:
    """Add currencies, with when a territory began and ceased to use them.

    Name and years of a currency that CLDR tells apart by years are split: "Angolan Kwanza".
    """
    names = _english().currencies
    for code, periods in sorted(_globals("territory_currencies").items()):
        if code not in countries():
            continue
        for currency, start, end, tender in periods:
            if not tender or currency in NO_MONEY or currency not in names:
                continue
            name = clean_name(names[currency])
            concept = "former currency" if end else "currency in use"
            id = world.entity(f"currency-{currency}", name, "currency")
            if not end:
                world.entity(id, name, concept)
            world.text(id, "ISO 4217 code", currency)
            qualifiers: dict[str, Value] = {}
            if start:
                qualifiers["start time"] = Date(*start)
            if end:
                qualifiers["end time"] = Date(*end)
            world.fact(country_id(code), "currency", id, qualifiers)
    for id, entity in world.entities.items():
        if id.startswith("currency-") and "currency in use" not in entity.concepts:
            entity.concepts.add("former currency")


def add_languages(world: World) -> None:
    """Add languages with the share of people who use them, and whether they are official."""
    names = _english().languages
    speakers: dict[str, int] = {}
    for code, languages in sorted(_globals("territory_languages").items()):
        if code not in countries():
            continue
        for language, told in sorted(languages.items()):
            share = told["population_percent"]
            if "_" in language or language not in names or share < LEAST_SHARE:
                continue
            name = clean_name(names[language])
            id = world.entity(f"language-{slug(language)}", name, "language")
            world.text(id, "ISO 639 code", language)
            qualifiers: dict[str, Value] = {"proportion": Quantity(min(share, 100.0), "percent")}
            world.fact(country_id(code), "language used", id, qualifiers)
            status = told["official_status"]
            if status:
                world.fact(
                    country_id(code),
                    "official language",
                    id,
                    {**qualifiers, "status": STATUS[status]},
                )
            speakers[id] = speakers.get(id, 0) + (share >= 1)
    for id, count in speakers.items():
        if count >= 10:
            world.entity(id, "", "widely spoken language")
