"""Memberships, treaties, trade, products, religions and ethnic groups, from the factbook."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb import Quantity, Value, Year
from kb.world.collect import World, slug
from kb.world.factbook import Page, pages, territory_named
from kb.world.organizations import ORGANIZATIONS, ROLES, TREATIES
from kb.world.text import clean_name, outside_brackets, plain, split_outside_brackets

SHARE = re.compile(r"(?P<name>[^\d%<>~]+?),? (?P<number>\d+(?:\.\d+)?) ?%")
YEAR_AT_END = re.compile(r"\((\d{4})(?:-\d\d(?:\d\d)?)? ?(?:est\.?|census)?\)\s*$")


def add_memberships(world: World) -> None:
    """Add memberships with roles, and the treaties that a territory is party to or has signed."""
    for page in pages():
        text = plain(page.get("Government/International organization participation"))
        for piece in split_outside_brackets(text.partition(" note")[0]):
            match = re.fullmatch(r"([^()]+?) ?(?:\(([^()]*)\))?", piece)
            if not match or match[1].strip() not in ORGANIZATIONS:
                continue
            name, concept = ORGANIZATIONS[match[1].strip()]
            role = ROLES.get(match[2]) if match[2] else None
            if match[2] and role is None:
                continue
            id = _organization(world, match[1].strip(), name, concept)
            relation = _participation(concept, role)
            bare = role is None or role in ("observer", "candidate country", "partner")
            world.fact(page.id, relation, id, None if bare else {"role": str(role)})
            _membership_concepts(world, page, name, role)
        _add_treaties(world, page)


def _participation(concept: str, role: str | None) -> str:
    """The relation to the organization: who only observes or applies is not called a member."""
    if concept == "peacekeeping mission":
        return "participant in"
    return RELATIONS_OF_ROLES.get(role or "", "member of")


RELATIONS_OF_ROLES = {
    "observer": "observer in",
    "associate observer": "observer in",
    "candidate country": "candidate for",
    "partner": "partner of",
    "dialogue partner": "partner of",
    "enhanced engagement partner": "partner of",
}


def _organization(world: World, short: str, name: str, concept: str) -> str:
    id = world.entity(f"organization-{slug(name)}", name, concept)
    if short != name:
        world.text(id, "short name", "CABEI" if short == "BCIE" else short)
    return id


def _membership_concepts(world: World, page: Page, name: str, role: str | None) -> None:
    if role is None and name == "European Union":
        world.entity(page.id, "", "member state of the European Union")
    if role is None and name == "North Atlantic Treaty Organization":
        world.entity(page.id, "", "member state of NATO")


def _add_treaties(world: World, page: Page) -> None:
    path = "Environment/International environmental agreements"
    for ending, relation in (
        ("party to", "party to"),
        ("signed, but not ratified", "signed but not ratified"),
    ):
        for piece in plain(page.get(f"{path}/{ending}")).split(", "):
            if piece in TREATIES:
                name, concept = TREATIES[piece]
                id = world.entity(f"treaty-{slug(name)}", name, concept)
                world.fact(page.id, relation, id)


# --- trade and products ------------------------------------------------------------------------


def add_trade(world: World) -> None:
    """Add trade partners with share and year, traded commodities and farm products."""
    for page in pages():
        for side in ("export", "import"):
            path = f"Economy/{side.title()}s"
            text = plain(page.get(f"{path} - partners"))
            text = re.sub(r"(\w+), The(?= \d)", r"\1", text)
            for name, share, time in _shares(text):
                other = territory_named(name)
                if other and world.has(other) and other != page.id and share > 0:
                    world.fact(page.id, f"{side} partner", other, _when_share(time, share))
            for id, year in _products(world, page, f"{path} - commodities", "traded commodity"):
                world.fact(page.id, f"{side} commodity", id, year)
        path = "Economy/Agricultural products"
        for id, year in _products(world, page, path, "agricultural product"):
            world.fact(page.id, "agricultural product", id, year)
        _add_resources(world, page)


def _when_share(time: Year | None, share: float) -> dict[str, Value]:
    found: dict[str, Value] = {"proportion": Quantity(share, "percent")}
    return found | ({"point in time": time} if time else {})


def _shares(text: str) -> Iterator[tuple[str, float, Year | None]]:
    """Names with shares of a whole, outside brackets; a share above 100 is a slip."""
    year = YEAR_AT_END.search(text)
    time = Year(int(year[1])) if year and "-" not in year[0] else None
    for piece in split_outside_brackets(outside_brackets(text.partition(" note")[0]), ",;"):
        match = SHARE.fullmatch(piece)
        if match and float(match["number"]) <= 100:
            yield match["name"].strip(), float(match["number"]), time


def _products(
    world: World, page: Page, path: str, concept: str
) -> Iterator[tuple[str, dict[str, Value] | None]]:
    text = plain(page.get(path))
    year = YEAR_AT_END.search(text)
    if not year or ":" in text:
        return
    time: dict[str, Value] = {"point in time": Year(int(year[1]))}
    for piece in split_outside_brackets(outside_brackets(text), ",;"):
        name = piece.strip(" .").lower()
        if name.startswith("other "):
            continue
        if re.fullmatch(r"[a-z][a-z' -]+(?:/[a-z' -]+)*", name) and len(name) < 45:
            yield world.entity(f"product-{slug(name)}", name, concept), time


def _add_resources(world: World, page: Page) -> None:
    text = plain(page.get("Geography/Natural resources"))
    if ":" in text or "note" in text:
        text = text.partition("note")[0] if ":" not in text.partition("note")[0] else ""
    for piece in split_outside_brackets(outside_brackets(text), ",;"):
        name = piece.strip(" .*").removeprefix("and ")
        if re.fullmatch(r"[a-z]+(?: [a-z]+){0,2}", name) and not VAGUE.search(name):
            id = world.entity(f"resource-{slug(name)}", name, "natural resource")
            world.fact(page.id, "natural resource", id)


VAGUE = re.compile(
    r"\b(?:other|small|some|limited|extensive|possible|unexploited|none|negligible|deposits|of|"
    r"reserves|quantities|large|minor|potential|poor|modest|vast|abundant|including|numerous|"
    r"traces|various|foster|climate|tourism|significant|in|with|and|for|on)\b"
)


# --- belief and descent ------------------------------------------------------------------------

CHURCH = "Christian denomination"
RELIGIONS: dict[str, tuple[str, str]] = {
    "Muslim": ("Islam", "religion"),
    "Islam": ("Islam", "religion"),
    "Sunni Muslim": ("Sunni Islam", "religion"),
    "Christian": ("Christianity", "religion"),
    "Christians": ("Christianity", "religion"),
    "Roman Catholic": ("Roman Catholicism", CHURCH),
    "Catholic": ("Catholicism", CHURCH),
    "Protestant": ("Protestantism", CHURCH),
    "Orthodox": ("Orthodox Christianity", CHURCH),
    "Eastern Orthodox": ("Eastern Orthodoxy", CHURCH),
    "Ethiopian Orthodox": ("Ethiopian Orthodoxy", CHURCH),
    "Greek Orthodox": ("Greek Orthodoxy", CHURCH),
    "Serbian Orthodox": ("Serbian Orthodoxy", CHURCH),
    "Russian Orthodox": ("Russian Orthodoxy", CHURCH),
    "Hindu": ("Hinduism", "religion"),
    "Buddhist": ("Buddhism", "religion"),
    "Buddhism": ("Buddhism", "religion"),
    "Jewish": ("Judaism", "religion"),
    "Sikh": ("Sikhism", "religion"),
    "Taoist": ("Taoism", "religion"),
    "Baha'i": ("Bahá'í Faith", "religion"),
    "Druze": ("Druze faith", "religion"),
    "Rastafarian": ("Rastafari", "religion"),
    "Anglican": ("Anglicanism", CHURCH),
    "Methodist": ("Methodism", CHURCH),
    "Presbyterian": ("Presbyterianism", CHURCH),
    "Lutheran": ("Lutheranism", CHURCH),
    "Evangelical Lutheran": ("Evangelical Lutheranism", CHURCH),
    "Baptist": ("Baptists", CHURCH),
    "Pentecostal": ("Pentecostalism", CHURCH),
    "Evangelical": ("Evangelicalism", CHURCH),
    "Adventist": ("Adventism", CHURCH),
    "Seventh Day Adventist": ("Seventh-day Adventism", CHURCH),
    "Jehovah's Witness": ("Jehovah's Witnesses", CHURCH),
    "Jehovah's Witnesses": ("Jehovah's Witnesses", CHURCH),
    "Church of Jesus Christ": ("Church of Jesus Christ", CHURCH),
    "Kimbanguist": ("Kimbanguism", CHURCH),
    "Calvinist": ("Calvinism", CHURCH),
    "Vodoun": ("Vodun", "religion"),
    "folk religion": ("folk religion", "religion"),
    "animist": ("animism", "religion"),
    "Animist": ("animism", "religion"),
}
NO_GROUP = re.compile(
    r"\b(?:other|others|unspecified|none|mixed|unknown|undeclared|foreign|no |non-|more than|"
    r"ethnic group|two or more|citizens?|approximately|predominantly|includes?|descent|and|or|"
    r"population|groups?|mulatto|nationals?|unidentified|dual|expatriates?|born|about|than|various|"
    r"descendants?|minorities|Indigenous|peoples?|race|ancestry|est)\b",
    re.I,
)


def add_beliefs(world: World) -> None:
    """Add religions and ethnic groups with the share of the population."""
    for page in pages():
        for name, share, time in _shares(plain(page.get("People and Society/Religions"))):
            name = name.removesuffix(" (official)").strip()
            if name in RELIGIONS:
                religion, concept = RELIGIONS[name]
                id = world.entity(f"religion-{slug(religion)}", religion, concept)
                world.fact(page.id, "religion", id, _when_share(time, share))
        _add_ethnic_groups(world, page)


def _add_ethnic_groups(world: World, page: Page) -> None:
    found = list(_shares(plain(page.get("People and Society/Ethnic groups"))))
    names = [clean_name(name) for name, _, _ in found]
    for name, (_, share, time) in zip(names, found, strict=True):
        if names.count(name) > 1:
            continue  # a slip of the source: one group with two shares
        if re.fullmatch(r"[A-Z][\w' -]+", name) and not NO_GROUP.search(name):
            id = world.entity(f"ethnic-group-{slug(name)}", name, "ethnic group")
            world.fact(page.id, "ethnic group", id, _when_share(time, share))


def add_space_agencies(world: World) -> None:
    """Add the first-named space agency of a territory, where the year of its founding is told."""
    for page in pages():
        text = plain(page.get("Space/Space agency/agencies"))
        match = re.match(
            r"([A-Z][A-Za-z&' -]+?) ?\((?:([A-Z][A-Za-z]{2,9}); )?"
            r"(?:established|formed|founded|created)(?: in)? (\d{4})\)",
            text,
        )
        if match and len(match[1]) < 60:
            id = world.entity(
                f"space-agency-{slug(match[1])}", clean_name(match[1]), "space agency"
            )
            world.fact(page.id, "space agency", id)
            world.text(id, "short name", match[2] or "")
            world.time(id, "time of founding", Year(int(match[3])))
