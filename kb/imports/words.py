"""Words by which columns and values are guessed: units, months of exports, headers."""

from __future__ import annotations

# Words that stand for nothing in many exports; "NA" is also Namibia.
MISSING = frozenset(
    ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "-", "–", "—", "?")
)

# Forms of days, of two that both fit the first one is taken.
DAY_FORMS = (
    "dd.mm.yyyy",
    "dd/mm/yyyy",
    "mm/dd/yyyy",
    "dd-mm-yyyy",
    "mm-dd-yyyy",
    "yyyy.mm.dd",
    "yyyy-mm",
    "mm/yyyy",
    "mm.yyyy",
    "d mmm yyyy",
    "mmm d, yyyy",
    "mmm d yyyy",
    "d. mmm yyyy",
    "d-mmm-yyyy",
    "mmm yyyy",
)

UNITS = {
    "mm": "millimetre",
    "cm": "centimetre",
    "m": "metre",
    "km": "kilometre",
    "in": "inch",
    "ft": "foot",
    "mi": "mile",
    "mg": "milligram",
    "g": "gram",
    "kg": "kilogram",
    "t": "tonne",
    "lb": "pound",
    "oz": "ounce",
    "ml": "millilitre",
    "cl": "centilitre",
    "l": "litre",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "min": "minute",
    "mins": "minute",
    "minutes": "minute",
    "h": "hour",
    "hrs": "hour",
    "hours": "hour",
    "days": "day",
    "m2": "square metre",
    "m²": "square metre",
    "km2": "square kilometre",
    "km²": "square kilometre",
    "ha": "hectare",
    "m3": "cubic metre",
    "m³": "cubic metre",
    "€": "euro",
    "eur": "euro",
    "euro": "euro",
    "$": "US dollar",
    "usd": "US dollar",
    "£": "pound sterling",
    "gbp": "pound sterling",
    "chf": "Swiss franc",
    "¥": "yen",
    "jpy": "yen",
    "%": "percent",
    "percent": "percent",
    "°c": "degree Celsius",
    "kw": "kilowatt",
    "kwh": "kilowatt-hour",
    "w": "watt",
    "v": "volt",
    "mb": "megabyte",
    "gb": "gigabyte",
    "kcal": "kilocalorie",
    "km/h": "kilometre per hour",
}

# Headers of codes that look like numbers.
CODE_WORDS = frozenset(
    (
        "phone",
        "telephone",
        "tel",
        "fax",
        "zip",
        "postcode",
        "postal",
        "isbn",
        "issn",
        "ean",
        "sku",
        "code",
        "barcode",
        "iban",
    )
)

YEAR_WORDS = frozenset(
    (
        "year",
        "born",
        "birth",
        "founded",
        "established",
        "opened",
        "published",
        "publication",
        "died",
        "death",
        "debut",
        "since",
        "until",
        "from",
        "to",
        "start",
        "end",
        "built",
        "released",
        "release",
    )
)
