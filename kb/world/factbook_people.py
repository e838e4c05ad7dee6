"""People in office, anthems with their authors, legislatures and parties, from the factbook.

Who holds an office is a snapshot: the factbook as packaged, early in 2026. People are merged only
when the factbook names the same one twice in the same kind of office.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kb import Date, Quantity, Year
from kb.world.collect import World, slug
from kb.world.factbook import Page, pages, qualifiers
from kb.world.text import clean_name, day, family_name, outside_brackets, person_name, plain

TITLES = (
    "Acting President of the Transition",
    "Transitional President",
    "Transition President",
    "Interim President",
    "Acting President",
    "President of the Swiss Confederation",
    "President of the Republic",
    "President of the Presidency Council",
    "President",
    "Supreme People's Assembly President",
    "Executive President",
    "Supreme Leader",
    "Interim Prime Minister",
    "Acting Prime Minister",
    "Caretaker Prime Minister",
    "Transitional Prime Minister",
    "Prime Minister and Foreign Minister",
    "Prime Minister",
    "Federal Chancellor",
    "Chancellor",
    "Chief Minister",
    "First Minister",
    "Acting Premier",
    "Premier",
    "Taoiseach (Prime Minister)",
    "Taoiseach",
    "State Councilor",
    "Minister-President",
    "Minister President",
    "Minister of State",
    "Minister of the State",
    "King and Prime Minister",
    "King",
    "Queen",
    "Emperor",
    "Sultan and Prime Minister",
    "Sultan",
    "Amir",
    "Grand Duke",
    "Co-prince",
    "Prince Regent",
    "Prince",
    "Pope",
    "Captain Regent",
    "Governor General",
    "Governor-General",
    "Governor",
    "Lieutenant Governor",
    "Lieutenant-Governor",
    "Commissioner",
    "Administrator",
    "Prefect",
    "High Commissioner",
    "Chief Executive",
    "Chairman of the Council of Ministers",
    "Chairman",
    "Mayor",
    "Head of Government",
    "Secretary of State",
    "Secretary of State for Foreign and Political Affairs",
    "Chairman of the Cabinet of Ministers",
    "President of French Polynesia",
    "President of China",
    "Taliban Leader",
    "Lord of Mann King",
    "GNU Interim Prime Minister",
    "CNSP Prime Minister",
    "Transition Prime Minister",
    "Acting Governor General",
    "Administrator Superior",
    "Ulu o Tokelau",
)
RANKS = re.compile(
    r"^(?:(?:Dr|Capt|Col|Gen|Lt|Maj|Brig|Adm|Vice Adm|Rear Adm|Sir|Dame|Cmdr|Sr|Mr|Mrs|Ms|Prof)"
    r"\.? |Lt\. Gen\. |Field Marshal |Air Vice-Marshal |King |Grand Chief |General |Captain |Dame "
    r"|Sir |Sheikh |Crown Prince )+"
)
NAME = re.compile(r"[^\W\d_][\w.'`\" -]*(?:, (?:Jr|Sr)\.?)?")
SINCE = re.compile(r"\(since ([^();]+?)(?:[;,][^()]*)?\)")
CONCEPT_OF_TITLE = (
    ("King", "monarch"),
    ("Queen", "monarch"),
    ("Emperor", "monarch"),
    ("Sultan", "monarch"),
    ("Amir", "monarch"),
    ("Grand Duke", "monarch"),
    ("Pope", "monarch"),
    ("Prime Minister", "prime minister"),
    ("Premier", "prime minister"),
    ("President", "president"),
    ("Governor", "viceroy"),
    ("Lieutenant", "viceroy"),
)
NOT_NAMES = re.compile(
    r"(?i:vacant|unknown|none|note|represented|council|government|resident|also|disputed|minister)"
    r"|^[a-z]| of | to |Charg"
)


# Whose start of office is plainly misprinted in the source (2005 for 2025).
SLIPS = ("BOLOJAN",)


class Holder(NamedTuple):
    """Who holds an office: the title, which may be empty, the name, the start."""

    title: str
    name: str
    family: str
    start: Date | Year | None


def office_holder(text: str) -> Holder | None:
    """Who holds the office in a text such as ``President Emmanuel MACRON (since 14 May 2017)``.

    None when no person can be read.
    """
    text = plain(text)
    since = SINCE.search(text)
    start = day(since[1]) if since else None
    if any(name in text for name in SLIPS):
        start = None
    text = outside_brackets(text[: since.start()] if since else text).strip(" ,;")
    text = re.sub(r' "[^"]*"', "", text)  # a nickname
    title = next((t for t in sorted(TITLES, key=len, reverse=True) if text.startswith(t + " ")), "")
    rest = RANKS.sub("", text[len(title) :].strip())
    rest = re.sub(r" of (?:the )?[A-Z][a-z]+$", "", rest)
    if not rest or NOT_NAMES.search(rest) or not NAME.fullmatch(rest) or not _has_capitals(rest):
        return None
    rest = rest.replace('"', "").replace("`", "'")
    return Holder(title, person_name(rest), family_name(rest), start)


def _has_capitals(name: str) -> bool:
    """Whether a family name in capitals is there, as in every name that the factbook gives."""
    return bool(re.search(r"[^\W\d_a-z]{2}", name)) and len(name) < 50 and name.count(" ") < 7


def add_people(world: World) -> None:
    """Add heads of state and government, viceroys and ambassadors."""
    for page in pages():
        _add_leaders(world, page)
        _add_ambassadors(world, page)


def _add_leaders(world: World, page: Page) -> None:
    chief = plain(page.get("Government/Executive branch/chief of state"))
    first, _, deputy = chief.partition("; represented by ")
    offices = (
        ("head of state", first.split(";")[0], "head of state"),
        ("representative of the head of state", re.split(r";| and ", deputy)[0], "viceroy"),
        (
            "head of government",
            plain(page.get("Government/Executive branch/head of government")).split(";")[0],
            "head of government",
        ),
    )
    for relation, text, concept in offices:
        found = office_holder(text) if text else None
        if not found:
            continue
        title, name, family, start = found
        title = {"Lord of Mann King": "Lord of Mann"}.get(title, title)
        id = world.entity(f"person-{slug(name)}", name, concept)
        world.families[id] = family
        for word, more in CONCEPT_OF_TITLE:
            if word in title:
                world.entity(id, name, more)
                break
        world.fact(page.id, relation, id, qualifiers(start_time=start, position_held=title or None))


def _add_ambassadors(world: World, page: Page) -> None:
    missions = (
        ("in", "ambassador to the United States", "ambassador to the United States"),
        ("from", "ambassador from the United States", "ambassador of the United States"),
    )
    for way, relation, concept in missions:
        text = plain(
            page.get(f"Government/Diplomatic representation {way} the US/chief of mission")
        )
        if not text.startswith("Ambassador "):
            continue
        found = office_holder(text.removeprefix("Ambassador ").partition(";")[0])
        if not found:
            continue
        _, name, family, start = found
        whose = slug(page.id.removeprefix("country-")) if way == "in" else "us"
        id = world.entity(f"person-envoy-{whose}-{slug(name)}", name, concept)
        world.families[id] = family
        world.fact(page.id, relation, id, qualifiers(start_time=start))


# --- anthems ---------------------------------------------------------------------------------

NO_AUTHOR = re.compile(
    r"unknown|traditional|collective|disputed|students|committee|none|various|arranged|adapted|"
    r"anonymous|music|lyrics|written|based|composed|note|uncertain|poem|verse|others|\d",
    re.I,
)


def add_anthems(world: World) -> None:
    """Add anthems with composers and lyricists.

    Territories that name the same title and authors share the anthem.
    """
    known: dict[tuple[str, str], str] = {}
    for page in pages():
        raw = plain(page.get("Government/National anthem(s)/title"))
        title = re.match(r'["“]([^"”]+)["”]', raw)
        if not title:
            continue
        name = clean_name(title[1])
        authors = plain(page.get("Government/National anthem(s)/lyrics/music"))
        shared = name in SHARED_ANTHEMS
        key = name, "" if shared else authors.lower()
        territory = page.id.split("-", 1)[1].lower()
        id = known.get(key) or f"anthem-{slug(name)}" + ("" if shared else f"-{territory}")
        if shared or (authors and not NO_AUTHOR.search(authors)):
            known[key] = id
        world.entity(id, name, "anthem")
        history = plain(page.get("Government/National anthem(s)/history"))
        adopted = re.match(r"(?:in use|adopted) (\d{4})\b(?! as)", history)
        start = Year(int(adopted[1])) if adopted else None
        relation = "royal anthem" if history.startswith("royal anthem") else "anthem"
        world.fact(page.id, relation, id, qualifiers(start_time=start))
        english = re.search(r"\(([^()]+)\)", raw[title.end() :])
        if english and "official" not in english[1] and "or " not in english[1]:
            world.text(id, "name in English", clean_name(english[1]))
        if not NO_AUTHOR.search(authors) and ";" not in authors:
            for relation, written, concept in _authors(authors):
                author = person_name(written)
                person = world.entity(f"person-author-{slug(author)}", author, concept)
                world.families[person] = family_name(written)
                world.fact(id, relation, person)


SHARED_ANTHEMS = {"God Save the King", "La Marseillaise", "The Star-Spangled Banner"}


def _authors(text: str) -> Iterator[tuple[str, str, str]]:
    text = re.sub(r"\([^()]*\)", "", text)
    lyrics, slash, music = text.partition("/")
    for relation, part, concept in (
        ("lyrics by", lyrics, "lyricist"),
        ("composer", music if slash else lyrics, "composer"),
    ):
        if " or " in part or "/" in part:
            continue
        for name in re.split(r",(?! Jr)| and ", part):
            name = RANKS.sub("", re.sub(r' ?"[^"]*"', "", name).strip())
            if NAME.fullmatch(name) and _has_capitals(name):
                yield relation, name, concept


# --- legislatures and parties ------------------------------------------------------------------

CHAMBERS = (
    ("Legislative branch", ""),
    ("Legislative branch - lower chamber", "lower house"),
    ("Legislative branch - upper chamber", "upper house"),
)
NOT_PARTIES = re.compile(
    r"independent|other|vacant|none|appointed|unaffiliated|non-?partisan|nonaligned|seats?\b|"
    r"indigenous|minorit|tbd|presidential|allies|administration|government|parties\b|women|"
    r"deputies|members",
    re.I,
)


def add_legislatures(world: World, parties: Parties) -> None:
    """Add parliaments, their chambers and the parties with seats."""
    for page in pages():
        name = clean_name(page.get("Government/Legislative branch/legislature name"))
        if not name or "," in name or len(name) > 60 or name.lower().startswith(("no ", "none")):
            continue
        country = page.id.split("-", 1)[1]
        parliament = world.entity(f"legislature-{country}", name, "legislature")
        structure = plain(page.get("Government/Legislative branch/legislative structure"))
        for word in ("bicameral", "unicameral"):
            if structure.startswith(word):
                world.entity(parliament, name, f"{word} legislature")
        world.fact(page.id, "legislative body", parliament)
        world.fact(parliament, "country", page.id)
        for branch, concept in CHAMBERS:
            path = f"Government/{branch}"
            body = parliament
            if concept:
                chamber = clean_name(page.get(f"{path}/chamber name"))
                if not chamber or "," in chamber or len(chamber) > 60:
                    continue
                body = world.entity(f"chamber-{country}-{slug(concept)}", chamber, concept)
                world.fact(body, "country", page.id)
                world.fact(body, "part of", parliament)
            _add_body(world, page, path, body, parties)


def _add_body(world: World, page: Page, path: str, body: str, parties: Parties) -> None:
    seats = re.match(r"(\d+)\b(?! ?-)", plain(page.get(f"{path}/number of seats")))
    if seats:
        world.number(body, "number of seats", int(seats[1]))
    women = re.fullmatch(r"([\d.]+)%", plain(page.get(f"{path}/percentage of women in chamber")))
    if women:
        world.number(body, "share of women members", float(women[1]))
    election = day(plain(page.get(f"{path}/most recent election date")).split(" to ")[-1])
    if election and " - " in path and not _is_plausible(page, path, election):
        election = None
    if election:
        world.time(body, "last election date", election)
    text = plain(page.get(f"{path}/parties elected and seats per party"))
    for name, short, number in _parties(text):
        party = parties.add(page, name, short)
        world.fact(
            party,
            "represented in",
            body,
            qualifiers(number_of_seats=Quantity(number), point_in_time=election),
        )


def _is_plausible(page: Page, path: str, election: Date | Year) -> bool:
    """Whether election, term and next election agree: some pages swap the dates of the chambers."""
    term = re.match(r"(\d+) years?", plain(page.get(f"{path}/term in office")))
    following = re.search(r"\d{4}", plain(page.get(f"{path}/expected date of next election")))
    return bool(term and following and election.year + int(term[1]) == int(following[0]))


def _parties(text: str) -> Iterator[tuple[str, str, int]]:
    """Name, short name and seats of each party in ``Labour Party (LAB) (53); …``."""
    for piece in re.split(r"(?<=\)); |(?<=\d\)), ", text):
        match = re.fullmatch(r"(.+?) ?(?:\(([^()]{1,60})\))? ?\((\d+)\)(?: \(.*\))?", piece.strip())
        if not match or NOT_PARTIES.search(match[1]):
            continue
        name, short = clean_name(match[1]), match[2] or ""
        if len(name) > 2 and "(" not in name and "," not in name:
            yield name, short if re.fullmatch(r"[\w./&-]{1,12}", short) else "", int(match[3])


SENTENCE = re.compile(
    r" - .* - | - $| (?:is|are|was|has|have|does|points|includes|does|have|which|that|led by) "
)


class Parties:
    """The parties of all countries; the factbook spells one party's name in several ways."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_short_name: dict[tuple[str, str], str] = {}

    def add(self, page: Page, name: str, short: str) -> str:
        """The party of that name or, in the same country, of that short name."""
        name = re.sub(r" formerly .*| /\w+$", "", name)
        country = page.id.split("-", 1)[1]
        plain_name = re.sub(r"labour", "labor", slug(name)).removeprefix("the-")
        id = f"party-{country}-{plain_name or slug(short)}"
        key = country, short.lower()
        if not self._world.has(id) and (country, name.lower()) in self._by_short_name:
            return self._by_short_name[country, name.lower()]  # named by its short name
        longer = f"{id}-of-{slug(self._world.entities[page.id].name)}"
        if not self._world.has(id) and self._world.has(longer):
            return longer
        if not self._world.has(id) and len(short) > 1 and key in self._by_short_name:
            return self._by_short_name[key]
        self._world.entity(id, name, "political party")
        self._world.fact(id, "country", page.id)
        self._world.text(id, "short name", short)
        if short:
            self._by_short_name.setdefault(key, id)
        return id


def add_parties(parties: Parties) -> None:
    """Add the parties that the factbook lists for each territory."""
    for page in pages():
        text = page.get("Government/Political parties")
        for line in re.split(r"<br\s*/?>|</?p>|\n|;", text):
            line = plain(line).partition(" note")[0]
            if ":" in line or line.lower().startswith(("note", "none", "no ")):
                continue
            line = outside_brackets(line)
            name, _, short = line.partition(" or ")
            name, short = clean_name(name), clean_name(short)
            if not (3 < len(name) < 70) or NOT_PARTIES.search(name) or not name[0].isupper():
                continue
            if "," in name or " or " in short or "banned" in line or "dissolved" in line:
                continue
            if len(name.split()) > 9 or SENTENCE.search(name) or "(" in name or ")" in name:
                continue
            readable = re.fullmatch(r"[\w./&-]{1,12}", short)
            parties.add(page, name, short if readable else "")
