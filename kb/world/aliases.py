"""What people call the entities of `world` besides their names: by the sources, by rule, by hand.

An alias is never the name of another entity or concept: a name means what it names. Demonyms are
the exception, as "French" is a language and is said of a country as well.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from kb.world.collect import Entity, World
from kb.world.factbook import pages
from kb.world.geonames import countries, country_id
from kb.world.text import clean_name
from kb.world.vocabulary import CONCEPTS

# Keys whose values are aliases of what has them.
_KEYS = (
    "short name", "name in English", "element symbol", "ISO 4217 code", "IATA airport code",
    "official name", "former name",
)  # fmt: skip
_DEMONYM = "demonym"
# Letters that are no letter with a mark.
_PLAIN = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i", "ß": "ss", "æ": "ae",
     "Æ": "Ae", "œ": "oe", "ð": "d", "þ": "th", "ʻ": "'", "ʼ": "'", "–": "-"}
)  # fmt: skip

# What people say and no source has, by the id of what they mean.
_BY_ID: dict[str, tuple[str, ...]] = {
    "country-US": ("USA", "US", "United States of America", "America", "U.S.", "U.S.A."),
    "country-GB": ("UK", "Britain", "Great Britain", "U.K."),
    "country-NL": ("Netherlands", "Holland"),
    "country-AE": ("UAE", "Emirates"),
    "country-CZ": ("Czech Republic", "Czechia"),
    "country-KR": ("South Korea", "Republic of Korea", "ROK"),
    "country-KP": ("North Korea", "DPRK"),
    "country-CD": ("DRC", "DR Congo", "Congo-Kinshasa", "Zaire"),
    "country-CG": ("Congo-Brazzaville", "Congo Republic", "Republic of Congo"),
    "country-VA": ("Vatican City", "Holy See", "Vatican State"),
    "country-CI": ("Ivory Coast", "Côte d'Ivoire"),
    "country-TL": ("East Timor", "Timor-Leste"),
    "country-SZ": ("Swaziland",),
    "country-MM": ("Burma",),
    "country-CV": ("Cape Verde",),
    "country-BA": ("Bosnia", "Bosnia-Herzegovina"),
    "country-TT": ("Trinidad",),
    "country-MK": ("Macedonia",),
    "country-CN": ("PRC", "People's Republic of China", "Mainland China"),
    "country-TW": ("Formosa", "Republic of China"),
    "country-RU": ("Russian Federation",),
    "country-SA": ("KSA", "Saudi"),
    "country-NZ": ("NZ",),
    "country-PG": ("PNG",),
    "country-CF": ("CAR",),
    "country-MO": ("Macau",),
    "country-LK": ("Ceylon",),
    "country-IR": ("Persia",),
    "country-TR": ("Turkey", "Türkiye"),
    "country-FK": ("Falklands", "Malvinas"),
    "country-FO": ("Faroes",),
    "country-PH": ("the Philippines",),
    "country-GM": ("the Gambia",),
    "country-BS": ("the Bahamas",),
    "country-PS": ("Palestine", "State of Palestine"),
    "award-nobel-memorial-prize-in-economic-sciences": (
        "Nobel Prize in Economics", "Nobel Prize in Economic Sciences", "economics Nobel",
    ),
    "award-nobel-prize-in-physiology-or-medicine": ("Nobel Prize in Medicine", "medicine Nobel"),
    "award-nobel-prize-in-physics": ("physics Nobel",),
    "award-nobel-prize-in-chemistry": ("chemistry Nobel",),
    "award-nobel-prize-in-literature": ("literature Nobel",),
    "award-nobel-peace-prize": ("Peace Nobel", "peace prize", "Nobel Prize for Peace"),
    "currency-USD": ("United States Dollar", "American Dollar", "Greenback"),
    "currency-GBP": ("Pound Sterling", "Sterling", "UK Pound"),
    "currency-CNY": ("Renminbi", "RMB"),
    "currency-DEM": ("Deutsche Mark", "Deutschmark", "D-Mark"),
    "currency-RUB": ("Rouble", "Russian Rouble"),
    "language-fa": ("Farsi",),
    "language-zh": ("Mandarin", "Mandarin Chinese"),
    "language-bn": ("Bangla",),
    "language-my": ("Myanmar language",),
    "language-es": ("Castilian",),
    "language-nl": ("Flemish",),
    "language-si": ("Sinhalese",),
    "language-ps": ("Pushto",),
    "language-km": ("Cambodian",),
    "language-he": ("Modern Hebrew",),
    "language-el": ("Modern Greek",),
    "religion-islam": ("Muslim", "Muslims", "Mohammedanism"),
    "religion-christianity": ("Christian", "Christians"),
    "religion-buddhism": ("Buddhist", "Buddhists"),
    "religion-hinduism": ("Hindu", "Hindus"),
    "religion-judaism": ("Jew", "Jews"),
    "religion-catholicism": ("Catholic", "Catholics"),
    "religion-roman-catholicism": ("Roman Catholic", "Roman Catholics"),
    "religion-protestantism": ("Protestant", "Protestants"),
    "religion-orthodox-christianity": ("Orthodox", "Orthodox Christian", "Eastern Orthodoxy"),
    "religion-sikhism": ("Sikh", "Sikhs"),
    "religion-taoism": ("Daoism",),
    "organization-commonwealth-of-nations": ("Commonwealth", "British Commonwealth"),
    "organization-league-of-arab-states": ("Arab League",),
    "organization-north-atlantic-treaty-organization": ("Atlantic Alliance",),
    "organization-united-nations": ("UNO", "United Nations Organization"),
    "organization-international-bank-for-reconstruction-and-development": ("World Bank",),
    "organization-international-red-cross-and-red-crescent-movement": ("Red Cross",),
    "organization-caribbean-community": ("Caricom",),
    "treaty-convention-on-international-trade-in-endangered-species": ("CITES",),
    "treaty-united-nations-convention-on-the-law-of-the-sea": ("Law of the Sea", "UNCLOS"),
    "treaty-united-nations-framework-convention-on-climate-change": ("UNFCCC",),
    "treaty-comprehensive-nuclear-test-ban-treaty": ("CTBT",),
    "treaty-ramsar-convention": ("Wetlands Convention",),
    "treaty-paris-agreement": ("Paris Climate Agreement", "Paris Climate Accord"),
}  # fmt: skip
# The same by name, of what has an id with a number in it: (beginning of the id, name).
_BY_NAME: dict[tuple[str, str], tuple[str, ...]] = {
    ("city-", "New York City"): ("NYC", "Big Apple"),
    ("city-", "Los Angeles"): ("LA", "L.A."),
    ("city-", "Washington"): ("Washington DC", "Washington D.C.", "DC"),
    ("city-", "Mumbai"): ("Bombay",),
    ("city-", "Kolkata"): ("Calcutta",),
    ("city-", "Chennai"): ("Madras",),
    ("city-", "Bengaluru"): ("Bangalore",),
    ("city-", "Beijing"): ("Peking",),
    ("city-", "Guangzhou"): ("Canton",),
    ("city-", "Ho Chi Minh City"): ("Saigon",),
    ("city-", "Yangon"): ("Rangoon",),
    ("city-", "Kyiv"): ("Kiev",),
    ("city-", "Saint Petersburg"): ("Leningrad", "Petersburg"),
    ("city-", "Istanbul"): ("Constantinople",),
    ("city-", "Rio de Janeiro"): ("Rio",),
    ("city-", "Philadelphia"): ("Philly",),
    ("city-", "Las Vegas"): ("Vegas",),
    ("city-", "San Francisco"): ("Frisco",),
    ("city-", "Marrakesh"): ("Marrakech",),
    ("mountain-", "Mount McKinley"): ("Denali",),
    ("mountain-", "Mount Everest"): ("Sagarmatha", "Chomolungma"),
    ("mountain-", "Puncak Jaya"): ("Carstensz Pyramid",),
    ("mountain-", "Volcan Pico de Orizaba"): ("Pico de Orizaba", "Orizaba"),
    ("mountain-", "Pico de Teide"): ("Teide",),
    ("river-", "Huang He"): ("Yellow River",),
    ("river-", "Yangtze"): ("Chang Jiang",),
    ("river-", "Zambezi"): ("Zambesi",),
    ("lake-", "Quinghai Hu"): ("Qinghai Lake",),
    ("space-", "Japan Aerospace Exploration Agency"): ("JAXA",),
    ("space-", "National Aeronautics and Space Administration"): ("NASA",),
    ("space-", "State Space Corporation of the Russian Federation"): ("Roscosmos",),
    ("university-", "London School of Economics and Political Science"): (
        "LSE", "London School of Economics",
    ),
    ("university-", "University of California, Los Angeles"): ("UCLA",),
    ("university-", "University of California, Berkeley"): ("UC Berkeley", "Berkeley"),
    ("university-", "University of Cambridge"): ("Cambridge University",),
    ("university-", "University of Oxford"): ("Oxford University",),
}  # fmt: skip
# Elements, and so their isotopes, that are spelt in two ways.
_SPELT_SO = {"aluminum": "aluminium", "cesium": "caesium", "sulfur": "sulphur"}

# In whose name the family stands elsewhere than at the end; "" for none.
_FAMILIES = {
    "Aung San Suu Kyi": "Suu Kyi",
    "Gao Xingjian": "Gao",
    "Kim Dae-jung": "Kim",
    "Le Duc Tho": "",
    "Liu Xiaobo": "Liu",
    "Mother Teresa": "",
    "Gabriel García Márquez": "García Márquez",
    "Mario Vargas Llosa": "Vargas Llosa",
    "Camilo José Cela": "Cela",
}
_SUFFIX = re.compile(r",? (?:Jr\.?|Sr\.?|[IVX]+)$")
_PARTICLE = re.compile(
    r"(?:van|von|de|der|den|du|da|di|do|dos|del|la|le|zu|zum|zur|af|av|ter|ten|bin|al|el|'t|of)",
    re.IGNORECASE,
)
# What an anthem is called that has no title.
_NO_TITLE = {"National Anthem", "The National Anthem", "National Hymn"}
_TITLES = ("Lord ", "Sir ", "Baron ", "Dame ")

_LAKE = re.compile(r"(?:Lago|Lac|Ozero|Danau) (?:de |d')?(.+)|(.+) (?:Hu|Nuur|Hayk)")
_MOUNTAIN = re.compile(
    r"(?:Mount|Mt\.|Mont|Monte|Gora|Hora|Gunung|Cerro|Nevado|Volcan|Pico|Pic|Kuh-e|Jebel|Jabal)"
    r" (?:de |du |la )?(.+)"
)


def add_aliases(world: World) -> None:
    """Add aliases to the entities that are there; to be done last.

    Raises ValueError for what a table here names and the world does not have.
    """
    _check_tables(world)
    collected = _Collected(world)
    for id, entity in world.entities.items():
        for key, value, _ in entity.attributes:
            if key in _KEYS and value not in _NO_TITLE:
                collected.add(id, str(value))
            elif key == _DEMONYM:
                collected.add_demonym(id, str(value))
        for text in _by_hand(id, entity):
            collected.add(id, text)
        rule = _RULES.get(id.split("-")[0])
        for text in rule(entity) if rule else ():
            collected.add(id, text)
    for source in (_territories, _own_names_of_languages, _isotopes, _words_of_money, _people):
        for id, text in source(world):
            collected.add(id, text)
    for id, entity in world.entities.items():
        for text in [entity.name, *entity.aliases]:
            if not text.isascii() and (written := plain(text)).isascii():
                collected.add(id, written)


def _check_tables(world: World) -> None:
    kinds = {(id.partition("-")[0] + "-", entity.name) for id, entity in world.entities.items()}
    strangers = [id for id in _BY_ID if id not in world.entities]
    strangers += [f"{kind}{name}" for kind, name in _BY_NAME if (kind, name) not in kinds]
    if strangers:
        raise ValueError(f"aliases of what is not there: {', '.join(strangers)}")


class _Collected:
    """Takes aliases into a world, but for names of others and what is too short to mean it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._names = {entity.name for entity in world.entities.values()}
        self._named: defaultdict[str, set[str]] = defaultdict(set)
        for id, entity in world.entities.items():
            for text in (entity.name, entity.name.removeprefix("The ")):
                self._named[letters(text)].add(id)
        for concept in CONCEPTS:
            self._named[letters(concept)].add("")

    def add(self, id: str, text: str) -> None:
        """Add an alias of an entity, unless it is not there or another one has that name."""
        key = letters(text)
        if min(len(key), len(text)) < 2 and not id.startswith("element-"):
            return
        own = key == letters(self._world.entities[id].name) if id in self._world.entities else False
        if text not in self._names if own else self._named.get(key, set()) <= {id}:
            self.add_demonym(id, text)

    def add_demonym(self, id: str, text: str) -> None:
        """Add an alias although another one may have that name."""
        if id in self._world.entities and text != self._world.entities[id].name:
            self._world.entities[id].aliases[text] = None


def letters(text: str) -> str:
    """The letters and digits of a text without case and accents."""
    spelt = unicodedata.normalize("NFKD", text.translate(_PLAIN)).casefold()
    return "".join(letter for letter in spelt if letter.isalnum())


def plain(text: str) -> str:
    """A text without accents, as keyboards without them write it."""
    spelt = unicodedata.normalize("NFKD", text.translate(_PLAIN))
    return "".join(letter for letter in spelt if not unicodedata.combining(letter))


def _by_hand(id: str, entity: Entity) -> tuple[str, ...]:
    return _BY_ID.get(id, ()) + _BY_NAME.get((id.partition("-")[0] + "-", entity.name), ())


# --- by the kind of thing ------------------------------------------------------------------------


def _place(entity: Entity) -> Iterator[str]:
    """The Hague, Saint Lucia, Trinidad and Tobago."""
    if entity.name.startswith("The "):
        yield entity.name.removeprefix("The ")
    if entity.name.startswith("Saint "):
        yield entity.name.replace("Saint ", "St. ", 1)
    if " and " in entity.name:
        yield entity.name.replace(" and ", " & ")


def _element(entity: Entity) -> Iterator[str]:
    if entity.name in _SPELT_SO:
        yield _SPELT_SO[entity.name]


def _isotope(entity: Entity) -> Iterator[str]:
    name, _, mass = entity.name.rpartition("-")
    if name in _SPELT_SO:
        yield f"{_SPELT_SO[name]}-{mass}"


def _airport(entity: Entity) -> Iterator[str]:
    short = entity.name.replace(" International Airport", "")
    if short != entity.name:
        yield f"{short} Airport"
        yield short


def _river(entity: Entity) -> Iterator[str]:
    if "River" in entity.name:
        yield entity.name.replace("River", "").strip()
    else:
        yield f"{entity.name} River"


def _lake(entity: Entity) -> Iterator[str]:
    if match := _LAKE.fullmatch(entity.name):
        yield f"Lake {match[1] or match[2]}"


def _mountain(entity: Entity) -> Iterator[str]:
    match = _MOUNTAIN.fullmatch(entity.name)
    if match and match[1][0].islower():
        return
    if match:
        yield match[1]
    if match or " " not in entity.name:
        yield f"Mount {match[1] if match else entity.name}"
        yield f"Mt. {match[1] if match else entity.name}"


_RULES: dict[str, Callable[[Entity], Iterator[str]]] = {
    "country": _place,
    "territory": _place,
    "city": _place,
    "birthplace": _place,
    "division": _place,
    "element": _element,
    "isotope": _isotope,
    "airport": _airport,
    "river": _river,
    "lake": _lake,
    "mountain": _mountain,
}


# --- from sources, or over all of a kind ---------------------------------------------------------


def _babel() -> Any:
    return importlib.import_module("babel")


def _territories(_: World) -> Iterator[tuple[str, str]]:
    """The names that the factbook and CLDR have for territories."""
    for page in pages():
        name = clean_name(page.get("Government/Country name/conventional short form"))
        if name and name != "none" and not re.search("[/;,]", name):
            yield page.id, name
    names = _babel().Locale("en").territories
    for code in countries():
        # "Myanmar (Burma)", "Congo - Kinshasa", "Hong Kong SAR China"
        for name in re.split(r" \(|\)", names.get(code, "")):
            name = clean_name(re.sub(r" SAR .*", "", name)).replace(" - ", "-")
            if name:
                yield country_id(code), name


def _own_names_of_languages(world: World) -> Iterator[tuple[str, str]]:
    """What languages are called in themselves: Deutsch, français."""
    babel = _babel()
    for id in world.entities:
        if not id.startswith("language-"):
            continue
        code = id.removeprefix("language-")
        try:
            own = babel.Locale(code).languages.get(code)
        except (babel.UnknownLocaleError, ValueError):
            continue
        if own:
            yield id, clean_name(own)


def _isotopes(world: World) -> Iterator[tuple[str, str]]:
    """U-235 for uranium-235."""
    symbols = {
        entity.name: str(value)
        for entity in world.entities.values()
        for key, value, _ in entity.attributes
        if key == "element symbol"
    }
    for id, entity in world.entities.items():
        if id.startswith("isotope-"):
            name, _, mass = entity.name.rpartition("-")
            yield id, f"{symbols[name]}-{mass}"


def _words_of_money(world: World) -> Iterator[tuple[str, str]]:
    """The yen, the dollar: the last word of the currencies in use that end in it.

    Former currencies only where none in use does.
    """
    named: defaultdict[str, list[str]] = defaultdict(list)
    for id, entity in world.entities.items():
        words = entity.name.split()
        if id.startswith("currency-") and len(words) > 1:
            named[words[-1]].append(id)
    for word, ids in named.items():
        used = [id for id in ids if "currency in use" in world.entities[id].concepts]
        for id in used or ids:
            yield id, word


def _people(world: World) -> Iterator[tuple[str, str]]:
    """Family names that only one person has, and names without what stands in the middle.

    Persons of one name are one here: a laureate may be there as a discoverer, too.
    """
    people = {id: entity.name for id, entity in world.entities.items() if id.startswith("person-")}
    said: defaultdict[str, set[str]] = defaultdict(set)  # names by what would be said for them
    found: list[tuple[str, str]] = []
    for id, name in people.items():
        for text in dict.fromkeys(_short_names(name, world.families.get(id))):
            said[letters(text)].add(name)
            found.append((id, text))
    elsewhere = Counter(
        letters(alias)
        for id, entity in world.entities.items()
        if id not in people
        for alias in entity.aliases
    )
    given = {letters(name.split()[0]) for name in people.values()}  # "John" means no one
    for id, text in found:
        key = letters(text)
        if len(said[key]) == 1 and not elsewhere[key] and key not in given:
            yield id, text


def _short_names(name: str, family: str | None) -> Iterator[str]:
    """Family name, with and without what stands before it, and first with family name."""
    for title in _TITLES:
        if name.startswith(title):
            name = name.removeprefix(title)
            yield name
    name = _SUFFIX.sub("", name)
    words = name.split()
    if family is None:
        family = _FAMILIES.get(name)
    if family is None:
        if len(words) < 2:
            return
        at = len(words) - 1
        while at > 1 and _PARTICLE.fullmatch(words[at - 1]) and words[at - 1][0].islower():
            at -= 1
        family = " ".join(words[at:])
    if not family:
        return
    yield family
    last = family.split()[-1]
    if last != family and _PARTICLE.fullmatch(family.split()[0]):
        yield last
    if len(words) > 2 and name.endswith(f" {family}") and len(words[0].strip(".")) > 1:
        yield f"{words[0]} {family}"
