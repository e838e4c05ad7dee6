"""The names and values of a program in a text: every spelling of people, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from generation.blocks import generate
from generation.english import say
from generation.paraphrase.mentions import STANDING, mentions, missing, plain, spoken, wording
from kb import Date, KnowledgeBase, Quantity, Year
from kopl.functions import FUNCTIONS
from kopl.text import read
from kopl.types import Kind

NAME = 'QueryName(Find("{}"))'
STRING = 'QueryName(FilterStr(FindAll(), "key", "{}"))'
NUMBER = 'QueryName(FilterNum(FindAll(), "key", "{}", ">"))'
DAY = 'QueryName(FilterDate(FindAll(), "key", "{}", "="))'
YEAR = 'QueryName(FilterYear(FindAll(), "key", "{}", "="))'
ANY = 'QueryAttrQualifier(FindAll(), "key", "{}", "qkey")'

# form, constant, texts that mention it, texts that do not
TABLE = [
    (NAME, "Norway", ["Who leads Norway?", "norway's king", "NORWAY", "(Norway)"],
     ["Norwegian", "Norwayland", "", "no way"]),
    (NAME, "Côte d'Ivoire", ["In Côte d’Ivoire?", "côte  d'ivoire"],
     ["Cote d'Ivoire", "Ivory Coast"]),
    (NAME, "Guinea-Bissau", ["Guinea‑Bissau", "Guinea–Bissau"], ["Guinea Bissau", "Guinea"]),
    (NAME, "Yahoo!", ["Who owns Yahoo!?", "yahoo! again"], ["Yahoo"]),
    (NAME, "C++", ["Is C++ older?"], ["C", "C+"]),
    (NAME, "city", ["Which cities?", "the city"], ["citizen"]),
    (STRING, ".no", ["whose domain is .no?"], ["no", "not"]),
    (NUMBER, "300000 square kilometre",
     ["more than 300000 square kilometres", "300,000 square kilometers", "300 000 km²",
      "300,000 km2",
      "300 thousand square kilometres", "300,000-square-kilometre area", "300,000 sq km",
      "square kilometres: over 300,000"],
     ["300000", "3000000 square kilometres", "300,000.5 square kilometres", "1,300,000 km²",
      "300,000 kilometres", "300 km²", "-300,000 km²"]),
    (NUMBER, "2162000000 United States dollar",
     ["$2,162,000,000", "US$2.162 billion", "2.162 billion dollars", "2,162 million US dollars",
      "USD 2162000000", "2,162,000,000 U.S. dollars"],
     ["2.16 billion dollars", "2.162 million dollars", "2,162,000,000 euros", "$2,162"]),
    (NUMBER, "1000000", ["a million", "one million", "1,000,000", "1 million", "1000000"],
     ["10000000", "million", "1,000,000,000", "two million"]),
    (NUMBER, "5 percent", ["5%", "5 percent", "five percent", "5 per cent"],
     ["15%", "5", "0.5%", "5.5 percent", "5 million percent"]),
    (NUMBER, "3.5", ["over 3.5?", "3.5."], ["3.51", "13.5", "3", "3.5.1"]),
    (NUMBER, "7", ["seven of them", "7?"], ["17", "77", "seventeen", "7.5", "7,000", "-7"]),
    (NUMBER, "-9.1 degree", ["-9.1 degrees", "−9.1°", "minus 9.1 degrees"],
     ["9.1 degrees", "-9.1"]),
    (NUMBER, "0 metre", ["zero metres", "0 m", "0 meters"], ["10 m", "0"]),
    (NUMBER, "206 centimetre", ["206cm", "206 cm tall", "206 centimeters"], ["206 m", "2206 cm"]),
    (NUMBER, "1 child per woman", ["1 child per woman", "one child per woman"], ["1 child"]),
    (DAY, "1921-07-04",
     ["4 July 1921", "July 4, 1921", "July 4 1921", "on the 4th of July 1921", "4th July, 1921",
      "1921-07-04", "1921/7/4", "04 July 1921", "4 Jul 1921", "Jul. 4, 1921",
      "July the 4th, 1921"],
     ["July 1921", "14 July 1921", "4 June 1921", "1921", "7/4/1921", "4 July 1922",
      "4 July 19210"]),
    (DAY, "2007-09-30", ["30 Sept 2007", "Sept. 30, 2007", "30 Sep 2007"], ["30 October 2007"]),
    (DAY, "-0043-03-15", ["15 March 44 BC", "March 15, 44 BCE"], ["15 March 44", "15 March 43 BC"]),
    (YEAR, "1998", ["in 1998?", "(1998)", "1998's", "mid-1998"], ["1998s", "19980", "-1998", "98"]),
    (YEAR, "-43", ["in 44 BC", "44 BCE", "44 B.C.", "-43"], ["44", "43 BC", "43"]),
    (YEAR, "0", ["in 1 BC"], ["0.5", "1"]),
    (ANY, "2007", ["2007"], ["20070"]),
    (ANY, "4627926", ["4627926", "4,627,926", "4 627 926"], ["4627927", "4.6 million"]),
    (ANY, "25 percent", ["25 percent"], ["25"]),
    (ANY, "1991-01-17", ["17 January 1991", "January 17, 1991"], ["1991"]),
]  # fmt: skip


@pytest.mark.parametrize(("form", "constant", "there", "lost"), TABLE)
def test_spellings(form: str, constant: str, there: list[str], lost: list[str]) -> None:
    needed = mentions(read(form.format(constant)))
    assert [mention.text for mention in needed] == [constant]
    assert [text for text in there if missing(needed, text)] == []
    assert [text for text in lost if not missing(needed, text)] == []


def test_each_kind_of_argument_is_decided() -> None:
    """A new kind has to be told free or standing; a text can be asked for none that is not used."""
    free = {
        Kind.CONCEPT, Kind.KEY, Kind.QUALIFIER_KEY, Kind.RELATION, Kind.OPERATOR, Kind.DIRECTION,
        Kind.EXTREME, Kind.COMPARATIVE,
    }  # fmt: skip
    assert free.isdisjoint(STANDING)
    assert free | STANDING == set(Kind)
    used = {kind for function in FUNCTIONS.values() for _, kind in function.arguments}
    assert used >= STANDING


def test_what_is_free_is_not_asked_for() -> None:
    program = read(
        'SelectAmong(FilterConcept(Relate(Find("Oslo"), "capital", "backward"), "country"),'
        ' "area", "largest")'
    )
    assert missing(mentions(program), "Oslo governs which place?") == []


def test_a_longer_mention_hides_a_shorter_one() -> None:
    program = read('QueryRelation(Find("York"), Find("New York"))')
    assert missing(mentions(program), "How is New York related to it?") == ["York"]
    assert missing(mentions(program), "How are York and New York related?") == []
    program = read(
        'QueryName(FilterYear(FilterDate(FindAll(), "a", "1921-07-04", "="), "b", "1921", "="))'
    )
    assert missing(mentions(program), "On 4 July 1921?") == ["1921"]
    assert missing(mentions(program), "On 4 July 1921, and in 1921?") == []


def test_a_name_that_comes_twice_is_needed_once() -> None:
    program = read(
        'And(Relate(Find("Oslo"), "r", "forward"), Relate(Find("oslo"), "q", "forward"))'
    )
    assert [mention.text for mention in mentions(program)] == ["Oslo"]


def test_what_people_are_told_to_keep() -> None:
    program = read('QueryAttrQualifier(Find("Norway"), "population", "4627926", "point in time")')
    question = "When was the population of Norway 4,627,926?"
    assert spoken(program, question) == ("Norway", "4,627,926")
    assert spoken(program, "no such question") == ("Norway", "4627926")
    program = read(NUMBER.format("3629000000 United States dollar"))
    for said in ("3,629,000,000 United States dollars", "3.629 billion United States dollars"):
        assert spoken(program, f"Is it {said}?") == (said,)
    program = read('QueryName(FilterDate(FindAll(), "d", "1921-07-04", "="))')
    assert spoken(program, "") == ("4 July 1921",)


def test_wording_is_what_is_free() -> None:
    needed = mentions(read('QueryAttr(Find("Oslo"), "area")'))
    assert wording(needed, "What is  the area of OSLO?") == "what is the area of \0?"


def test_generated_questions_mention_everything(lands: KnowledgeBase) -> None:
    for example in generate(lands, 150, seed=11):
        needed = mentions(example.program)
        assert missing(needed, example.question) == [], example.question
        assert missing(needed, example.canonical or "") == [], example.canonical
        for mention in needed:  # each is missed where it is taken out
            without = mention.pattern.sub("it", f" {plain(example.question)} ")
            assert mention.text in missing(needed, without)


VALUES = st.one_of(
    st.builds(Year, st.integers(1, 2200)),
    st.dates().map(lambda day: Date(day.year, day.month, day.day)),
    st.builds(
        Quantity,
        st.integers(-(10**13), 10**13) | st.decimals(-(10**6), 10**6, places=3).map(float),
        st.sampled_from(["1", "metre", "percent", "United States dollar", "child per woman"]),
    ),
)


@given(VALUES)
def test_what_is_said_is_found(value: Quantity | Year | Date) -> None:
    form = {Quantity: NUMBER, Year: YEAR, Date: DAY}[type(value)]
    needed = mentions(read(form.format(value)))
    for text in (say(value), str(value), f"({say(value)}),", f"Is it {say(value)}?"):
        assert missing(needed, text) == []


@given(VALUES, VALUES)
def test_another_value_is_no_mention(
    value: Quantity | Year | Date, other: Quantity | Year | Date
) -> None:
    """Against a second way to compare: the digits of both, without commas and units."""
    form = {Quantity: NUMBER, Year: YEAR, Date: DAY}[type(value)]

    def figures(one: Quantity | Year | Date) -> list[str]:
        return re.findall(r"[\d.]+", say(one).replace(",", ""))

    assume(figures(value) != figures(other))
    if isinstance(value, Quantity | Year):  # "4" does stand in "4 July 1921"
        assume(set(figures(value)).isdisjoint(figures(other)))
    needed = mentions(read(form.format(value)))
    assert missing(needed, f"Is it {say(other)}?") == [str(value)]


@given(st.text(min_size=1))
def test_any_name_mentions_itself(name: str) -> None:
    from kopl.program import Call

    assume(plain(name))
    needed = mentions(Call(FUNCTIONS["Find"], (), (name,)))
    assert missing(needed, f"What is ( {name} ) ?") == []
