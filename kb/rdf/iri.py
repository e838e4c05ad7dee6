"""Ids, relations and keys as IRI references without a base, one to one (docs/rdf.md).

A blank is an underscore; whatever would not survive as an IRI path, or would read back as another
text, is percent-encoded. Relative to any base that ends in ``/`` the reference resolves to base
and reference side by side.

>>> encode("place of birth"), encode("snake_case"), encode("pred:name")
('place_of_birth', 'snake%5Fcase', 'pred%3Aname')
>>> decode("place_of_birth")
'place of birth'
"""

from __future__ import annotations

import re
from functools import lru_cache

# What ids, relations and keys are resolved against where a tool needs absolute IRIs.
BASE = "http://kb.example/"

# The vocabulary; a key "pred:name" is encoded as pred%3Aname and never meets it.
NAME, KIND = "pred:name", "pred:kind"
INSTANCE_OF, PARENT = "pred:instance_of", "pred:parent"
VALUE, UNIT, YEAR, DATE = "pred:value", "pred:unit", "pred:year", "pred:date"
FACT_H, FACT_R, FACT_T = "pred:fact_h", "pred:fact_r", "pred:fact_t"
VOCABULARY = frozenset(
    (NAME, KIND, INSTANCE_OF, PARENT, VALUE, UNIT, YEAR, DATE, FACT_H, FACT_R, FACT_T)
)

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"
# What a node is called besides its name; no query of programs asks for it.
SKOS = "http://www.w3.org/2004/02/skos/core#"
ALIAS = SKOS + "altLabel"

# No text gives an encoded blank, so it can stand for the text without characters.
_EMPTY = "%20"

_PLAIN = re.compile(r"[A-Za-z0-9 ~-]+")
_ENCODED = re.compile(
    # Outside RFC 3987's ipchar: ASCII first, then all that is not ucschar.
    "[^A-Za-z0-9 ~!$&'()*+,;=:@./\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(p << 16)}-{chr((p << 16) + 0xFFFD)}" for p in range(1, 14))
    + "\U000e1000-\U000efffd-]"
    # White space, which tools trim or break at, and the bidi controls of section 4.1.
    "|[\u00a0\u1680\u2000-\u200a\u200e\u200f\u2028-\u202f\u205f\u2066-\u2069\u3000]"
    # A slash that would begin the path or leave an empty segment: some tools drop such segments.
    "|^/|(?<=/)/"
    # Dot segments; urllib takes ";" for the end of a segment, and drops one at the very end.
    r"|(?:(?<=^)|(?<=/))\.{1,2}(?=[/;]|\Z)|;\Z"
)
_PERCENT = re.compile("(?:%[0-9A-Fa-f]{2})+")


def encode(text: str) -> str:
    """The IRI reference of an id, relation or key."""
    return text.replace(" ", "_") if _PLAIN.fullmatch(text) else _encode(text)


@lru_cache(maxsize=1 << 16)
def _encode(text: str) -> str:
    if not text:
        return _EMPTY
    reference = _ENCODED.sub(_percent, text)
    first, slash, rest = reference.partition("/")
    return (first.replace(":", "%3A") + slash + rest).replace(" ", "_")


def _percent(match: re.Match[str]) -> str:
    data = match[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def decode(iri: str) -> str:
    """The text that `encode` made the reference of; of other references, what they spell.

    Percent-encoded bytes that are not UTF-8 stay as they are.
    """
    if "%" not in iri:
        return iri.replace("_", " ")
    return _decode(iri)


@lru_cache(maxsize=1 << 16)
def _decode(iri: str) -> str:
    return "" if iri == _EMPTY else _PERCENT.sub(_unpercent, iri.replace("_", " "))


def _unpercent(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return match[0]
