"""Three tables of an invented bookshop: ``python docs/examples/make_bookshop.py [FOLDER]``.

``books.csv``, ``people.csv`` and ``contributions.csv``, as a spreadsheet would have them: numbers,
units in headers, days, years, lists in cells, empty cells, ids that lead from one table to the
next. All names are invented. The same files come out each time.
"""

from __future__ import annotations

import csv
import random
import sys
from datetime import date, timedelta
from pathlib import Path

FIRST = [
    "Alva",
    "Bram",
    "Celine",
    "Dario",
    "Edda",
    "Falk",
    "Greta",
    "Hanno",
    "Ilka",
    "Jorun",
    "Katla",
    "Levin",
    "Mirte",
    "Nilas",
    "Orla",
    "Piet",
    "Runa",
    "Sander",
    "Tilde",
    "Ulrik",
    "Vesna",
    "Wanda",
    "Yorick",
    "Zelda",
]
LAST = [
    "Abendrot",
    "Birkholm",
    "Calloway",
    "Dunkerley",
    "Eskildsen",
    "Farrow",
    "Gansevoort",
    "Holloway",
    "Ingelram",
    "Jessup",
    "Kettleby",
    "Lindqvist",
    "Marchbanks",
    "Nettleton",
    "Ostergard",
    "Pemberley",
    "Quarrington",
    "Rosendahl",
    "Silverthorn",
    "Tillinghast",
    "Underhill",
    "Vandermeer",
    "Winterbourne",
    "Yarborough",
]
ADJECTIVES = [
    "Blue",
    "Silent",
    "Last",
    "Crooked",
    "Hollow",
    "Amber",
    "Seventh",
    "Winter",
    "Borrowed",
    "Paper",
]
NOUNS = [
    "Bridge",
    "Orchard",
    "Lantern",
    "Harbour",
    "Clockmaker",
    "Letter",
    "Kitchen",
    "Mountain",
    "Fox",
    "Garden",
]
TOWNS = ["Harrowfen", "Millcastle", "Osterwick", "Penhallow", "Brambleton", "Stonequay"]
TOWNS += ["Vallendorf", "Eskmouth", "Little Marrow", "Thornhaven"]
PUBLISHERS = [
    "Northlight Press",
    "Quill & Anchor",
    "Tidewater Books",
    "Seven Lamps",
    "Greyfriar House",
    "Paper Kite",
]
GENRES = [
    "crime novel",
    "fantasy novel",
    "historical novel",
    "poetry collection",
    "cookbook",
    "travel guide",
    "biography",
]
LANGUAGES = ["Ostrian", "Velish", "Marrow Dutch", "High Eskan"]
AWARDS = ["Golden Bookmark", "Lantern Medal", "Prize of the Five Towns"]


def some_day(rng: random.Random, first: int, last: int) -> date:
    """A day between the beginnings of two years."""
    days = (date(last, 1, 1) - date(first, 1, 1)).days
    return date(first, 1, 1) + timedelta(days=rng.randrange(days))


def people(rng: random.Random) -> list[dict[str, object]]:
    """Forty people; a third of them are married, most to another one of them."""
    names = rng.sample([f"{first} {last}" for first in FIRST for last in LAST], 40)
    rows: list[dict[str, object]] = []
    for number, name in enumerate(names, 1):
        born = some_day(rng, 1921, 1996)
        is_dead = born.year < 1950 and rng.random() < 0.6
        award = rng.choice(AWARDS) if rng.random() < 0.4 else ""
        rows.append(
            {
                "person_id": f"p{number:02}",
                "name": name,
                "born": born,
                "died": some_day(rng, 1996, 2024) if is_dead else "",
                "birthplace": rng.choice(TOWNS),
                "languages": "; ".join(sorted(rng.sample(LANGUAGES, rng.randrange(1, 4)))),
                "height_cm": rng.randrange(152, 199) if rng.random() < 0.8 else "",
                "award": award,
                "award_year": rng.randrange(1996, 2025) if award else "",
                "spouse_id": "",
                "spouse_since": "",
            }
        )
    couples = rng.sample(rows, 14)
    for one, other in zip(couples[::2], couples[1::2], strict=True):
        since = some_day(rng, 2015, 2024)
        for row, partner in ((one, other), (other, one)):
            row["spouse_id"], row["spouse_since"] = partner["person_id"], since
    return rows


def books(rng: random.Random) -> list[dict[str, object]]:
    """Seventy books, of which some follow others."""
    titles = [f"The {adjective} {noun}" for adjective in ADJECTIVES for noun in NOUNS]
    chosen = [titles[0], *rng.sample(titles[1:], 69)]
    rows: list[dict[str, object]] = []
    for number, title in enumerate(chosen, 1):
        pages = rng.randrange(48, 820)
        published = some_day(rng, 1985, 2024)
        is_counted = rng.random() < 0.85
        rows.append(
            {
                "book_id": f"b{number:03}",
                "title": title,
                "genre": rng.choice(GENRES),
                "published": published,
                "publisher": rng.choice(PUBLISHERS),
                "binding": rng.choice(["hardback", "paperback", "paperback"]),
                "pages": pages,
                "weight_g": 90 + pages * rng.randrange(8, 14) // 10,
                "price_eur": f"{rng.randrange(6, 40)}.{rng.choice(['00', '50', '90'])}",
                "price_date": some_day(rng, 2022, 2025),
                "copies_sold": rng.randrange(3, 900) * 10 if is_counted else "",
                "copies_sold_year": rng.randrange(2020, 2025) if is_counted else "",
                "predecessor_id": f"b{number - 1:03}" if number % 6 == 0 else "",
            }
        )
    return rows


def contributions(
    rng: random.Random, books: list[dict[str, object]], people: list[dict[str, object]]
) -> list[dict[str, object]]:
    """Who did what for which book, when they had finished, and what they were paid."""
    rows: list[dict[str, object]] = []
    for book in books:
        roles = ["author"] * (2 if rng.random() < 0.15 else 1)
        roles += ["illustrator"] * (rng.random() < 0.35) + ["translator"] * (rng.random() < 0.3)
        for role, person in zip(roles, rng.sample(people, len(roles)), strict=True):
            published = book["published"]
            assert isinstance(published, date)
            rows.append(
                {
                    "book_id": book["book_id"],
                    "person_id": person["person_id"],
                    "role": role,
                    "finished": published - timedelta(days=rng.randrange(60, 500)),
                    "fee_eur": rng.randrange(8, 120) * 100 if rng.random() < 0.9 else "",
                }
            )
    return rows


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write rows as CSV with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def make(folder: Path) -> None:
    """Write the three files to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    all_people, all_books = people(rng), books(rng)
    write(folder / "books.csv", all_books)
    write(folder / "people.csv", all_people)
    write(folder / "contributions.csv", contributions(rng, all_books, all_people))


if __name__ == "__main__":
    # The folder of the command line, else this one.
    make(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
