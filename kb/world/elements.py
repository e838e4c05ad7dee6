"""Chemical elements and isotopes, from mendeleev's database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from kb import Quantity, Value, Year
from kb.world.collect import World, slug
from kb.world.geonames import country_named
from kb.world.sources import folder_of

SERIES = {
    "Nonmetals": "reactive nonmetal",
    "Noble gases": "noble gas",
    "Alkali metals": "alkali metal",
    "Alkaline earth metals": "alkaline earth metal",
    "Metalloids": "metalloid",
    "Halogens": "halogen",
    "Poor metals": "post-transition metal",
    "Transition metals": "transition metal",
    "Lanthanides": "lanthanide",
    "Actinides": "actinide",
}
# Column of the table of elements, key.
PROPERTIES = (
    ("atomic_weight", "atomic weight"),
    ("density", "density"),
    ("en_pauling", "electronegativity"),
    ("atomic_radius", "atomic radius"),
)
# How the source writes discoverers, where it differs from their usual names.
DISCOVERERS: dict[str, tuple[str, ...]] = {
    "Sir William Ramsey": ("William Ramsay",),
    "Sir William Ramsay": ("William Ramsay",),
    "Nils Langet": ("Nils Abraham Langlet",),
    "P.T.Cleve": ("Per Teodor Cleve",),
    "Per Theodor Cleve": ("Per Teodor Cleve",),
    "Johann Arfwedson": ("Johan August Arfwedson",),
    "Fredrich Wöhler": ("Friedrich Wöhler",),
    "A.A.Bussy": ("Antoine Bussy",),
    "Sir H. Davy": ("Humphry Davy",),
    "Sir Humphrey Davy": ("Humphry Davy",),
    "J.L. Gay-Lussac": ("Joseph Louis Gay-Lussac",),
    "L.J. Thénard": ("Louis Jacques Thénard",),
    "Joseph Priestly": ("Joseph Priestley",),
    "M.W. Travers": ("Morris Travers",),
    "M. W. Travers": ("Morris Travers",),
    "Hans Christian Oersted": ("Hans Christian Ørsted",),
    "Jöns Berzelius": ("Jöns Jacob Berzelius",),
    "J. Berzelius": ("Jöns Jacob Berzelius",),
    "Baron Rayleigh": ("Lord Rayleigh",),
    "Lars Nilson": ("Lars Fredrik Nilson",),
    "Nils Sefström": ("Nils Gabriel Sefström",),
    "Louis Vauquelin": ("Louis Nicolas Vauquelin",),
    "L.N.Vauquelin": ("Louis Nicolas Vauquelin",),
    "Johann Gahn": ("Johan Gottlieb Gahn",),
    "George Brandt": ("Georg Brandt",),
    "Axel Cronstedt": ("Axel Fredrik Cronstedt",),
    "Antoine J. Balard": ("Antoine Jérôme Balard",),
    "R. Bunsen": ("Robert Bunsen",),
    "G. Kirchoff": ("Gustav Kirchhoff",),
    "Gustov Kirchoff": ("Gustav Kirchhoff",),
    "A. Crawford": ("Adair Crawford",),
    "Martin Klaproth": ("Martin Heinrich Klaproth",),
    "M. Klaproth": ("Martin Heinrich Klaproth",),
    "Charles Hatchet": ("Charles Hatchett",),
    "Émillo Segrè": ("Emilio Segrè",),
    "E.Segré": ("Emilio Segrè",),
    "Karl Klaus": ("Karl Ernst Claus",),
    "William Wollaston": ("William Hyde Wollaston",),
    "Fredrich Stromeyer": ("Friedrich Stromeyer",),
    "T. Richter": ("Theodor Richter",),
    "Franz Müller von Reichenstein": ("Franz-Joseph Müller von Reichenstein",),
    "Carl Mosander": ("Carl Gustaf Mosander",),
    "W. von Hisinger": ("Wilhelm Hisinger",),
    "C.F. Aver von Welsbach": ("Carl Auer von Welsbach",),
    "J.A. Marinsky": ("Jacob Marinsky",),
    "L.E. Glendenin": ("Lawrence Glendenin",),
    "C.D. Coryell": ("Charles Coryell",),
    "Eugène Demarçay": ("Eugène-Anatole Demarçay",),
    "Jean de Marignac": ("Jean Charles Galissard de Marignac",),
    "J.L. Soret": ("Jacques-Louis Soret",),
    "Georg von Hevesy": ("George de Hevesy",),
    "Anders Ekeberg": ("Anders Gustaf Ekeberg",),
    "Fausto and Juan José de Elhuyar": ("Fausto de Elhuyar", "Juan José de Elhuyar"),
    "Smithson Tenant": ("Smithson Tennant",),
    "S.Tenant": ("Smithson Tennant",),
    "A.F.Fourcory": ("Antoine François Fourcroy",),
    "H.V.Collet-Descoltils": ("Hippolyte-Victor Collet-Descotils",),
    "Sir William Crookes": ("William Crookes",),
    "Pierre and Marie Curie": ("Pierre Curie", "Marie Curie"),
    "D.R.Corson": ("Dale R. Corson",),
    "K.R.MacKenzie": ("Kenneth Ross MacKenzie",),
    "Fredrich Ernst Dorn": ("Friedrich Ernst Dorn",),
    "Marguerite Derey": ("Marguerite Perey",),
    "André Debierne": ("André-Louis Debierne",),
    "Fredrich Soddy": ("Frederick Soddy",),
    "E.M. McMillan": ("Edwin McMillan",),
    "E.M.McMillan": ("Edwin McMillan",),
    "P.H. Abelson": ("Philip Abelson",),
    "G.T.Seaborg": ("Glenn T. Seaborg",),
    "J.W.Kennedy": ("Joseph W. Kennedy",),
    "A.C.Wohl": ("Arthur Wahl",),
    "R.A.James": ("Ralph A. James",),
    "L.O.Morgan": ("Leon O. Morgan",),
    "A.Ghiorso": ("Albert Ghiorso",),
    "A. Ghiorso": ("Albert Ghiorso",),
    "S.G.Tompson": ("Stanley G. Thompson",),
    "K.Street Jr.": ("Kenneth Street",),
    "T.Sikkeland": ("Torbjørn Sikkeland",),
    "A.E.Larsh": ("Almon Larsh",),
    "R.M.Latimer": ("Robert M. Latimer",),
}
# Years that cannot be right: before the discoverers were born (beryllium, Wöhler in 1800) or after
# they died (platinum, Scaliger in 1558), or another year than its twin's (neodymium, of 1885).
WRONG_YEARS = {4, 60, 78}
LABORATORIES: dict[str, tuple[str, ...]] = {
    "Heavy Ion Research Laboratory (HIRL)": ("GSI Helmholtz Centre for Heavy Ion Research",),
    "GSI Helmholtz Centre for Heavy Ion Research": ("GSI Helmholtz Centre for Heavy Ion Research",),
    "Argonne, Los Alamos, U of Calif": (
        "Argonne National Laboratory",
        "Los Alamos National Laboratory",
        "University of California",
    ),
    "Nobel Institute for Physics": ("Nobel Institute for Physics",),
    "Soviet Nuclear Research/ U. of Cal at Berkeley": (
        "Joint Institute for Nuclear Research",
        "University of California",
    ),
    "RIKEN": ("RIKEN",),
    "Joint Institute for Nuclear Research": ("Joint Institute for Nuclear Research",),
    "Lawrence Livermore National Laboratory": ("Lawrence Livermore National Laboratory",),
    "Joint Institute for Nuclear Research/Oak Ridge National Laboratory": (
        "Joint Institute for Nuclear Research",
        "Oak Ridge National Laboratory",
    ),
}


def _database() -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{folder_of('mendeleev') / 'elements.db'}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    return connection


def add_elements(world: World) -> None:
    """Add elements, then isotopes with their decays."""
    with closing(_database()) as database:
        _add_elements(world, database)
        _add_isotopes(world, database)


def _add_elements(world: World, database: sqlite3.Connection) -> None:
    series = {row["id"]: SERIES[row["name"]] for row in database.execute("select * from series")}
    for row in database.execute("select * from elements order by atomic_number"):
        number = row["atomic_number"]
        year = None if number in WRONG_YEARS else row["discovery_year"]
        id = world.entity(f"element-{number}", row["name"].lower(), series[row["series_id"]])
        if row["is_radioactive"]:
            world.entity(id, "", "radioactive element")
        world.number(id, "atomic number", number)
        world.text(id, "element symbol", row["symbol"])
        world.text(id, "CAS number", row["cas"] or "")
        for column, key in PROPERTIES:
            if row[column] is not None:
                world.number(id, key, row[column])
        if year:
            world.time(id, "time of discovery", Year(year))
        _add_discoverers(world, id, row, year)
        _add_producers(world, id, row)
    for row in database.execute(
        "select * from ionizationenergies where ion_charge = 0 order by atomic_number"
    ):
        if row["ionization_energy"] and world.has(f"element-{row['atomic_number']}"):
            world.number(
                f"element-{row['atomic_number']}", "ionization energy", row["ionization_energy"]
            )
    _add_transitions(world, database)


def _add_transitions(world: World, database: sqlite3.Connection) -> None:
    """Add melting and boiling points; of an element with allotropes, told apart by a qualifier."""
    for row in database.execute("select * from phasetransitions order by id"):
        if row["is_transition"]:
            continue  # where one solid form turns into another
        id = f"element-{row['atomic_number']}"
        form: dict[str, Value] = {"allotrope": row["allotrope"]} if row["allotrope"] else {}
        if row["melting_point"] is not None and not row["is_sublimation_point"]:
            world.number(id, "melting point", round(row["melting_point"], 4), form)
        if row["boiling_point"] is not None and not row["is_sublimation_point"]:
            world.number(id, "boiling point", round(row["boiling_point"], 4), form)


def _add_discoverers(world: World, id: str, row: sqlite3.Row, year: int | None) -> None:
    text = row["discoverers"] or ""
    if not text or text.startswith("Known to the ancients"):
        return
    time: dict[str, Value] = {"point in time": Year(year)} if year else {}
    if text in LABORATORIES:
        for name in LABORATORIES[text]:
            laboratory = world.entity(f"organization-{slug(name)}", name, "laboratory")
            world.fact(id, "discoverer or inventor", laboratory, time)
        return
    everyone: list[str] = []
    for piece in re.split(r"[,;] ?", text):
        piece = piece.strip()
        if piece and piece != "et al":
            everyone.extend(DISCOVERERS.get(piece, (piece,)))
    for name in everyone:
        person = world.entity(
            f"person-discoverer-{slug(name)}", name, "discoverer of a chemical element"
        )
        world.fact(id, "discoverer or inventor", person, time)
    for place in (row["discovery_location"] or "").split("/"):
        country = country_named(place) if place and place != "USSR" else None
        if country and world.has(country):
            world.fact(id, "location of discovery", country, time)


def _add_producers(world: World, id: str, row: sqlite3.Row) -> None:
    for column, relation in (
        ("top_3_producers", "main producer"),
        ("top_3_reserve_holders", "main reserve holder"),
    ):
        for rank, name in re.findall(r"(\d)\) ([A-Za-z .]+?)(?=  |$)", row[column] or ""):
            country = country_named(name.strip())
            if country and world.has(country):
                world.fact(id, relation, country, {"rank": Quantity(int(rank))})


# --- isotopes ----------------------------------------------------------------------------------

SECOND, YEAR = 1.0, 31_556_926.0
HALF_LIFE_UNITS = {
    "nsec": 1e-9,
    "usec": 1e-6,
    "msec": 1e-3,
    "sec": SECOND,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86_400.0,
    "year": YEAR,
    "kyear": 1e3 * YEAR,
    "Myear": 1e6 * YEAR,
    "Gyear": 1e9 * YEAR,
}
LONG_LIFE = 1e6 * YEAR

# Mode: its name, and by how much proton and mass number change. Fission and emissions whose
# products the table does not tell lead to no daughter.
DECAYS: dict[str, tuple[str, int, int]] = {
    "A": ("alpha decay", -2, -4),
    "B-": ("beta-minus decay", 1, 0),
    "B+": ("beta-plus decay", -1, 0),
    "EC": ("electron capture", -1, 0),
    "e+": ("positron emission", -1, 0),
    "2B-": ("double beta-minus decay", 2, 0),
    "2B+": ("double beta-plus decay", -2, 0),
    "p": ("proton emission", -1, -1),
    "2p": ("two-proton emission", -2, -2),
    "3p": ("three-proton emission", -3, -3),
    "n": ("neutron emission", 0, -1),
    "2n": ("two-neutron emission", 0, -2),
    "B-n": ("beta-delayed neutron emission", 1, -1),
    "B+p": ("beta-delayed proton emission", -2, -1),
    "B-A": ("beta-minus-delayed alpha emission", -1, -4),
    "B+A": ("beta-plus-delayed alpha emission", -3, -4),
    "B-p": ("beta-minus-delayed proton emission", 0, -1),
}


def _isotope_id(symbol: str, mass_number: int) -> str:
    return f"isotope-{symbol}-{mass_number}"


def _add_isotopes(world: World, database: sqlite3.Connection) -> None:
    elements = {
        row["atomic_number"]: (row["symbol"], row["name"].lower())
        for row in database.execute("select atomic_number, symbol, name from elements")
    }
    ids: dict[int, tuple[str, int, int]] = {}
    for row in database.execute("select * from isotopes order by atomic_number, mass_number, id"):
        number, mass_number = row["atomic_number"], row["mass_number"]
        symbol, name = elements[number]
        id = _isotope_id(symbol, mass_number)
        if world.has(id):
            continue
        if row["is_radioactive"]:
            concept = "radioactive isotope"
        else:  # the source marks unbound nuclides, which nature has not, like stable ones
            concept = "stable isotope" if row["abundance"] else "isotope"
        world.entity(id, f"{name}-{mass_number}", concept)
        ids[row["id"]] = (id, number, mass_number)
        world.fact(id, "isotope of", f"element-{number}")
        world.number(id, "mass number", mass_number)
        if row["abundance"]:
            world.number(id, "natural abundance", row["abundance"])
        if row["discovery_year"]:
            world.time(id, "time of discovery", Year(row["discovery_year"]))
        unit = HALF_LIFE_UNITS.get(row["half_life_unit"] or "")
        if row["half_life"] and unit and row["is_radioactive"]:
            seconds = float(f"{row['half_life'] * unit:.5g}")
            world.number(id, "half-life", seconds)
            if seconds > LONG_LIFE:
                world.entity(id, "", "long-lived isotope")
            elif seconds < SECOND:
                world.entity(id, "", "short-lived isotope")
    for head, tail, qualifiers in _decays(database, elements, ids):
        if world.has(tail):
            world.fact(head, "decays to", tail, qualifiers)


def _decays(
    database: sqlite3.Connection,
    elements: dict[int, tuple[str, str]],
    ids: dict[int, tuple[str, int, int]],
) -> Iterator[tuple[str, str, dict[str, Value]]]:
    for row in database.execute("select * from isotopedecaymodes order by isotope_id, mode, id"):
        if row["is_allowed_not_observed"] or row["isotope_id"] not in ids:
            continue
        if row["mode"] not in DECAYS:
            continue
        id, number, mass_number = ids[row["isotope_id"]]
        name, protons, mass = DECAYS[row["mode"]]
        if number + protons not in elements:
            continue
        qualifiers: dict[str, Value] = {"decay mode": name}
        if row["relation"] == "=" and row["intensity"] is not None:
            qualifiers["proportion"] = Quantity(row["intensity"], "percent")
        symbol = elements[number + protons][0]
        yield id, _isotope_id(symbol, mass_number + mass), qualifiers
