"""Values: reading, printing, the table "fact against constant", and the value table's order."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import Builder, Condition, Date, KoplError, Quantity, ValueReadError, Year
from kb.values import (
    LARGEST_YEAR,
    OPERATORS,
    Value,
    compares,
    days_in_month,
    print_number,
    read_quantity,
    read_time,
    read_year,
    readings,
)

Y, D, Q = Year, Date, Quantity
DAY = D(2001, 2, 3)

# fact, constant, the operators that hold
TABLE: list[tuple[Value, Value, str]] = [
    # quantities of one unit: by number
    (Q(2, "m"), Q(2.0, "m"), "="),
    (Q(1, "m"), Q(2, "m"), "!= <"),
    (Q(3, "m"), Q(2, "m"), "!= >"),
    (Q(-0.0), Q(0), "="),
    (Q(0.1 + 0.2), Q(0.3), "!= >"),
    # two units, or unit against none: skipped
    (Q(2, "m"), Q(2, "cm"), ""),
    (Q(2, "m"), Q(2), ""),
    (Q(2, "m"), Q(2, "M"), ""),
    # years
    (Y(2001), Y(2001), "="),
    (Y(2000), Y(2001), "!= <"),
    (Y(2002), Y(2001), "!= >"),
    (Y(-45), Y(-44), "!= <"),
    # day against year: whether it lies in it, else years
    (DAY, Y(2001), "="),
    (DAY, Y(2000), "!= >"),
    (DAY, Y(2002), "!= <"),
    (D(-44, 3, 15), Y(-44), "="),
    (D(0, 12, 31), Y(1), "!= <"),
    # year against day: never equal, always different, years
    (Y(2001), DAY, "!="),
    (Y(2000), DAY, "!= <"),
    (Y(2002), DAY, "!= >"),
    # days by calendar
    (DAY, DAY, "="),
    (D(2001, 2, 2), DAY, "!= <"),
    (D(2001, 1, 31), DAY, "!= <"),
    (D(2001, 3, 1), DAY, "!= >"),
    (D(2002, 1, 1), DAY, "!= >"),
    (D(-1, 12, 31), D(0, 1, 1), "!= <"),
    # strings: same code points; no order
    ("a", "a", "="),
    ("a", "b", "!="),
    ("a", "A", "!="),
    ("caf\u00e9", "cafe\u0301", "!="),
    ("a ", "a", "!="),
    # anything else is skipped
    ("2001", Y(2001), ""),
    ("2001-02-03", DAY, ""),
    ("5", Q(5), ""),
    (Q(2001), "2001", ""),
    (Q(2001), Y(2001), ""),
    (Q(2001), DAY, ""),
    (Y(2001), Q(2001), ""),
    (DAY, Q(2001), ""),
    (Y(2001), "2001", ""),
    (DAY, "2001-02-03", ""),
]


@pytest.mark.parametrize(("fact", "constant", "holds"), TABLE)
def test_fact_against_constant(fact: Value, constant: Value, holds: str) -> None:
    found = [op for op in OPERATORS if compares(fact, op, constant)]
    assert sorted(found) == sorted(holds.split())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-3.5, "-3.5"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (-2.5e-5, "-0.000025"),
        (1e15, "1000000000000000"),
        (1e16, "10000000000000000"),
        (1e22, "10000000000000000000000"),
        (123456789012345678, "123456789012345680"),
        (9007199254740993, "9007199254740992"),
        (5e-324, "0." + "0" * 323 + "5"),
        (-1e300, "-1" + "0" * 300),
    ],
)
def test_printed_numbers(number: float, text: str) -> None:
    assert print_number(float(number)) == text == str(Quantity(number))
    assert read_quantity(text) == Quantity(number)


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["1", "m", "a b", " "]))
def test_a_printed_quantity_reads_back_as_the_same_double(number: float, unit: str) -> None:
    quantity = Quantity(number, unit)
    text = str(quantity)
    again = read_quantity(text)
    assert again == quantity
    assert math.copysign(1, again.number) == (1 if number == 0 else math.copysign(1, number))
    digits = text.split(" ")[0]
    assert "e" not in digits and not digits.endswith(".0") and digits != "-0"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_digits_are_the_shortest(number: float) -> None:
    def significant(text: str) -> str:
        mantissa = text.lower().split("e")[0].lstrip("-")
        return mantissa.replace(".", "").strip("0")

    assert significant(print_number(number)) == significant(repr(number))


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (Y(0), "0"),
        (Y(-44), "-44"),
        (Y(7), "7"),
        (Y(-LARGEST_YEAR), "-1000000000000"),
        (D(7, 1, 2), "0007-01-02"),
        (D(0, 2, 29), "0000-02-29"),
        (D(-4, 2, 29), "-0004-02-29"),
        (D(-400, 2, 29), "-0400-02-29"),
        (D(10000, 1, 1), "10000-01-01"),
    ],
)
def test_printed_times(time: Value, text: str) -> None:
    assert str(time) == text
    assert read_time(text) == time


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2001/2/3", DAY),
        ("2001-2-03", DAY),
        ("-44-3-15", D(-44, 3, 15)),
        ("-0044/03/15", D(-44, 3, 15)),
        ("0007", Y(7)),
        ("0", Y(0)),
        ("2000-02-29", D(2000, 2, 29)),
    ],
)
def test_spellings_of_times(text: str, value: Value) -> None:
    assert read_time(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("206 centimetre", Q(206, "centimetre")),
        ("+5", Q(5)),
        (".5", Q(0.5)),
        ("5.", Q(5)),
        ("3.5e2", Q(350)),
        ("1E-7 m", Q(1e-7, "m")),
        ("007", Q(7)),
        ("5 1", Q(5)),
        ("5 dollar / hour", Q(5, "dollar / hour")),
    ],
)
def test_spellings_of_quantities(text: str, value: Value) -> None:
    assert read_quantity(text) == value


NOT_A_NUMBER = (
    "1,000|nan|inf|-inf|Infinity|1_000|٣|5 |5\n|\n5| 5|5\u00a0m|0x10|1e|e5|.|+|--5||m|1e999"
)


@pytest.mark.parametrize("text", NOT_A_NUMBER.split("|"))
def test_not_a_quantity(text: str) -> None:
    with pytest.raises(ValueReadError):
        read_quantity(text)


NOT_A_TIME = (
    "2001-02-30|2001-1/2|2001/1-2|٢٠٠١|2001 | 2001|2001\n|2001-02-03\n|2001-00-01|2001-01-00|"
    "2001-13-01|2001-001-01|2001-01|+2001|1900-02-29|-1-02-29|--1|2001-02-03T00:00||x|-|"
    "1000000000001|-1000000000001-01-01|99999999999999999999|-0000-01-01|-0/1/1|-0000|-0"
)


@pytest.mark.parametrize("text", NOT_A_TIME.split("|"))
def test_not_a_time(text: str) -> None:
    with pytest.raises(ValueReadError):
        read_time(text)


@pytest.mark.parametrize("text", ["2001-02-03", "2001.0", "x", "", "9" * 5000, "-0", "-0000"])
def test_not_a_year(text: str) -> None:
    with pytest.raises(ValueReadError):
        read_year(text)


HUGE = (10**400, -(10**5000))  # the second cannot even be printed


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, *HUGE], ids="abcde")
def test_a_quantity_is_finite(number: float) -> None:
    with pytest.raises(ValueReadError, match="finite"):
        Quantity(number)


@pytest.mark.parametrize("unit", ["", None, 1])
def test_a_unit_is_a_text(unit: Any) -> None:
    with pytest.raises(ValueReadError, match="unit"):
        Quantity(1, unit)


@pytest.mark.parametrize("year", [LARGEST_YEAR + 1, -LARGEST_YEAR - 1, *HUGE], ids="abcd")
def test_years_have_bounds(year: int) -> None:
    with pytest.raises(ValueReadError, match="out of range"):
        Year(year)
    with pytest.raises(ValueReadError, match="out of range"):
        Date(year, 1, 1)


def test_value_errors_are_errors_of_the_toolkit() -> None:
    assert issubclass(ValueReadError, KoplError) and issubclass(ValueReadError, ValueError)


@given(st.dates())
def test_days_agree_with_the_standard_library(day: datetime.date) -> None:
    date = Date(day.year, day.month, day.day)
    assert str(date) == day.isoformat()
    assert read_time(str(date)) == date
    last = Date(day.year, day.month, days_in_month(day.year, day.month))
    with pytest.raises(ValueError, match="day"):
        datetime.date(last.year, last.month, last.day + 1)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x", ["x"]),
        ("5 metre", ["5 metre", Q(5, "metre")]),
        ("2001", ["2001", Q(2001), Y(2001)]),
        ("2001/2/3", ["2001/2/3", DAY]),
        ("2001-02-30", ["2001-02-30"]),
        ("nan", ["nan"]),
        ("", [""]),
    ],
)
def test_readings_of_untyped_constants(text: str, values: list[Value]) -> None:
    assert readings(text) == values
    condition = Condition.untyped(text)
    assert all(condition.holds_for(value) for value in values)


# --- the value table -----------------------------------------------------------------------

YEARS = st.sampled_from([-(10**12), -45, -44, -1, 0, 1, 1999, 2000, 2001, 10**12])
DAYS = st.builds(D, YEARS, st.sampled_from([1, 2, 12]), st.sampled_from([1, 2, 28]))
NUMBERS = st.sampled_from([0, 1, 2, 2.5, -1, 1e300, -1e300, 5e-324, 0.1])
TEXTS = st.sampled_from(["", "a", "b", "5", "2001", "2 m", "\u00e9", "\U0001f600", "\uffff", "m"])
VALUES = st.one_of(
    TEXTS,
    st.builds(Q, NUMBERS, st.sampled_from(["1", "m", "cm", "\U0001f600", "\uffff"])),
    st.builds(Y, YEARS),
    DAYS,
)
CONDITIONS = st.one_of(
    st.builds(lambda c, op: Condition((c,), op), VALUES, st.sampled_from(OPERATORS)),
    st.builds(Condition.untyped, VALUES.map(str)),
)


@given(st.lists(VALUES, max_size=25), CONDITIONS)
def test_intervals_are_what_the_condition_holds_for(
    values: list[Value], condition: Condition
) -> None:
    builder = Builder()
    builder.add_entity("e", "e")
    for value in values:
        builder.add_attribute("e", "key", value)
    table = builder.build().values
    all_values = [table[number] for number in range(len(table))]
    assert len(all_values) == len(set(all_values)) and set(all_values) == set(values)
    chosen = [n for low, high in table.intervals(condition) for n in range(low, high)]
    assert chosen == [n for n, value in enumerate(all_values) if condition.holds_for(value)]


def test_intervals_of_every_value_of_the_table() -> None:
    """The same without chance: every fact and constant of TABLE against all of them."""
    values = {value for row in TABLE for value in row[:2]}
    builder = Builder()
    builder.add_entity("e", "e")
    for value in values:
        builder.add_attribute("e", "key", value)
    table = builder.build().values
    for constant in values:
        for operator in OPERATORS:
            condition = Condition((constant,), operator)
            chosen = [n for low, high in table.intervals(condition) for n in range(low, high)]
            assert chosen == [n for n in range(len(table)) if condition.holds_for(table[n])]


@given(st.lists(VALUES, max_size=25))
def test_values_are_numbered_in_the_order_of_printing(values: list[Value]) -> None:
    def order(value: Value) -> tuple[Any, ...]:
        if isinstance(value, str):
            return (0, value)
        if isinstance(value, Quantity):
            return (1, value.unit, value.number)
        return (2, value.year, 0, 0) if isinstance(value, Year) else (
            2, value.year, value.month, value.day
        )  # fmt: skip

    builder = Builder()
    builder.add_entity("e", "e")
    for value in values:
        builder.add_attribute("e", "key", value)
    table = builder.build().values
    assert [table[n] for n in range(len(table))] == sorted(set(values), key=order)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("x", "string"),
        (Q(1), "quantity"),
        (Q(1, "m"), "quantity (m)"),
        (Y(1), "year"),
        (DAY, "date"),
    ],
)
def test_form(value: Value, form: str) -> None:
    builder = Builder()
    builder.add_entity("e", "e")
    builder.add_attribute("e", "key", value)
    assert builder.build().values.form(0) == form
