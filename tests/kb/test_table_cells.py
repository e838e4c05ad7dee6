"""Cells of spreadsheets as values, and the types that columns have in common."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import Date, Quantity, Value, ValueReadError, Year
from kb.imports.cells import CellForm, read_amount, read_day
from kb.imports.forms import guess_form, words_of
from kb.values import print_number


@pytest.mark.parametrize(
    ("text", "decimal", "thousands", "number", "unit"),
    [
        ("12", ".", "", 12, ""),
        ("-12.50", ".", "", -12.5, ""),
        ("−3", ".", "", -3, ""),
        (".5", ".", "", 0.5, ""),
        ("1e3", ".", "", 1000, ""),
        ("12 kg", ".", "", 12, "kg"),
        ("12kg", ".", "", 12, "kg"),
        ("8%", ".", "", 8, "%"),
        ("90 km/h", ".", "", 90, "km/h"),
        ("€ 12.50", ".", "", 12.5, "€"),
        ("US$12", ".", "", 12, "US$"),
        ("EUR 12", ".", "", 12, "EUR"),
        ("12,5", ",", "", 12.5, ""),
        ("1.234.567,8 €", ",", ".", 1234567.8, "€"),
        ("1,234", ".", ",", 1234, ""),
        ("12", ".", ",", 12, ""),
        ("1 234 567", ".", " ", 1234567, ""),
        ("1\u202f234 m", ".", " ", 1234, "m"),
        ("1'234", ".", "'", 1234, ""),
    ],
)
def test_amounts(text: str, decimal: str, thousands: str, number: float, unit: str) -> None:
    assert read_amount(text, decimal, thousands) == (number, unit)


@pytest.mark.parametrize(
    ("text", "decimal", "thousands"),
    [
        ("", ".", ""),
        ("many", ".", ""),
        ("b12", ".", ""),
        ("1,234", ".", ""),
        ("1.234", ",", ""),
        ("12,34", ".", ","),
        ("1,2345", ".", ","),
        ("5-10", ".", ""),
        ("1e999", ".", ""),
        ("€ 12 kg", ".", ""),
        ("12:30", ".", ""),
        ("12/7", ".", ""),
        ("nan", ".", ""),
        ("٣", ".", ""),
    ],
)
def test_what_is_no_amount(text: str, decimal: str, thousands: str) -> None:
    with pytest.raises(ValueReadError):
        read_amount(text, decimal, thousands)


def test_the_message_tells_other_marks() -> None:
    with pytest.raises(ValueReadError, match='may say decimal: ","'):
        read_amount("12,5")
    with pytest.raises(ValueReadError, match=r'decimal: ",", thousands: "\."'):
        read_amount("1.234,5")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_numbers_read_back(number: float) -> None:
    text = print_number(number)
    assert read_amount(text) == (number, "")
    assert read_amount(text.replace(".", ",") + " kg", ",") == (number, "kg")


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("2003-02-14", "", Date(2003, 2, 14)),
        ("2003", "", Year(2003)),
        ("2003.0", "", Year(2003)),
        ("2003-02-14 00:00:00", "", Date(2003, 2, 14)),
        ("2003-02-14T23:59:01.5Z", "", Date(2003, 2, 14)),
        ("14.2.2003", "dd.mm.yyyy", Date(2003, 2, 14)),
        ("14.02.2003 12:30", "dd.mm.yyyy", Date(2003, 2, 14)),
        ("2/14/2003", "mm/dd/yyyy", Date(2003, 2, 14)),
        ("14 Feb 2003", "d mmm yyyy", Date(2003, 2, 14)),
        ("February 14, 2003", "mmm d, yyyy", Date(2003, 2, 14)),
        ("Sept 1, 2003", "mmm d, yyyy", Date(2003, 9, 1)),
        ("02/2003", "mm/yyyy", Year(2003)),
        ("2003", "dd.mm.yyyy", Year(2003)),
    ],
)
def test_days(text: str, form: str, value: Value) -> None:
    assert read_day(text, form) == value


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("14.02.03", "dd.mm.yyyy"),
        ("31.02.2003", "dd.mm.yyyy"),
        ("13/2003", "mm/yyyy"),
        ("14 Foo 2003", "d mmm yyyy"),
        ("1 Ju 2003", "d mmm yyyy"),
        ("x", "dd.mm.yyyy"),
        ("2003", "dd.mm.yy"),
        ("2003-1-1", "dd.dd.yyyy"),
        ("2003-1-1", "dd yyyy"),
    ],
)
def test_what_is_no_day(text: str, form: str) -> None:
    with pytest.raises(ValueReadError):
        read_day(text if "yyyy" in form else "1.1.1", form)


def test_units() -> None:
    form = CellForm("quantity", "kilogram", {"kg": "kilogram"})
    assert form.value("12 kg") == form.value("12") == Quantity(12, "kilogram")
    assert form.value("12 kilogram") == Quantity(12, "kilogram")
    with pytest.raises(ValueReadError, match="is in 'g', and the unit is 'kilogram'"):
        form.value("12 g")
    assert form.value("12", "kg") == Quantity(12, "kilogram")
    assert CellForm("quantity").value("12 g") == Quantity(12, "g")
    assert CellForm("quantity").value("12") == Quantity(12)


@pytest.mark.parametrize(
    ("values", "header", "type", "fields"),
    [
        (["1", "2.5", "-3"], "x", "quantity", {}),
        (["1,5", "2,25"], "x", "quantity", {"decimal": ","}),
        (["1,500", "2,250"], "x", "quantity", {"thousands": ","}),
        (["1.500,5", "250"], "x", "quantity", {"decimal": ",", "thousands": "."}),
        (["12 kg", "8 kg"], "x", "quantity", {"units": {"kg": "kilogram"}}),
        (["12 zorkmid", "8 zorkmid"], "x", "quantity", {"unit": "zorkmid"}),
        (["12b", "12c"], "x", "string", {}),
        (["4 Elm Street", "7 Oak Road"], "x", "string", {}),
        (["1998", "2003"], "founded", "year", {}),
        (["1998", "2003"], "x", "year", {}),
        (["1998", "203"], "x", "quantity", {}),
        (["0471", "0123"], "x", "string", {}),
        (["471", "123"], "phone", "string", {}),
        (["1998-01-02", "2003"], "x", "date", {}),
        (["2.1.1998", "14.2.2003"], "x", "date", {"format": "dd.mm.yyyy"}),
        (["1/13/1998", "2/14/2003"], "x", "date", {"format": "mm/dd/yyyy"}),
        (["Jan 3, 1998", "May 4, 2003"], "x", "date", {"format": "mmm d, yyyy"}),
        (["yes", "no"], "x", "string", {}),
        (["1e999", "2"], "x", "string", {}),
    ],
)
def test_guessed_types(values: list[str], header: str, type: str, fields: dict) -> None:
    guess = guess_form(values, [header])
    assert (guess.type, guess.fields) == (type, fields)


def test_doubts() -> None:
    assert guess_form(["1/2/1998", "3/4/2003"]).doubt == "or format: mm/dd/yyyy"
    assert guess_form(["1998", "2003"]).doubt == "or type: quantity"
    assert "several units" in guess_form(["1 kg", "500 g"]).doubt


def test_words_of_headers() -> None:
    assert words_of("birth_place") == words_of("birth place") == words_of("birth-place")
    assert words_of("birthPlace") == ["birth", "place"]
    assert words_of("BIRTH_PLACE") == ["birth", "place"]
    assert words_of("has ISBN") == ["has", "ISBN"]
    assert words_of("count/total: a.b") == ["count", "total", "a", "b"]
    assert words_of("name - first, no.") == ["name", "first,", "no"]
    assert words_of("note, <b>x</b>") == ["note,", "<b>x</b>"]
