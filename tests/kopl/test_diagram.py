"""Flow charts as SVG: well-formed, nothing overlaps, every call and argument is there."""

from __future__ import annotations

import base64
from itertools import combinations
from xml.etree import ElementTree

from hypothesis import given, settings

from kb import KnowledgeBase
from kopl.diagram import chart, data_uri
from kopl.executor import Executor, TraceStep
from kopl.functions import FUNCTIONS
from kopl.program import Call, post_order
from kopl.text import read
from kopl_base.svg import WIDEST
from tests.kopl.strategies import programs

SVG = "{http://www.w3.org/2000/svg}"

FIFTEEN = read(
    'SelectBetween(And(FilterConcept(FilterNum(FindAll(), "value of imports",'
    ' "300000 square kilometre", ">"), "member of the United Nations Educational, Scientific and'
    ' Cultural Organization"), Relate(QFilterYear(Relate(Find("Llanfairpwllgwyngyllgogerychwyrndr'
    'obwllllantysiliogogogoch"), "shares border with", "forward"), "start time", "1991", "="),'
    ' "capital", "backward")), Or(FilterStr(FindAll(), "motto", "Ein & <alles>"),'
    ' Relate(Relate(Find("Norway"), "head of state", "forward"), "place of birth", "forward")),'
    ' "area", "greater")'
)


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and lower end of each box."""
    found = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        assert box is not None
        left, top, width, height = (float(box.attrib[k]) for k in ("x", "y", "width", "height"))
        found.append((left, top, left + width, top + height))
    return found


def check(program: Call, trace: list[TraceStep] | None = None) -> None:
    """A box for each call and what it gave, an arrow for each input, all apart and inside."""
    svg = chart(program, trace)
    root = ElementTree.fromstring(svg)
    places = boxes(svg)
    assert len(places) == program.size * (2 if trace else 1)
    paths = [path.attrib for path in root.findall(f"{SVG}path")]
    tips = [path["d"] for path in paths if "tip" in path["class"].split()]
    arrows = [path["d"] for path in paths if " C" in path["d"]]
    assert len(tips) == len(arrows) == program.size - 1
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for left, top, right, low in places:
        assert 0 <= left < right <= width
        assert 0 <= top < low <= height
    for one, other in combinations(places, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart
    for path, tip in zip(arrows, tips, strict=True):
        # From the lower end of one box down to the upper end of another.
        start, end = (tuple(map(float, d[1:].split(" ")[0].split(","))) for d in (path, tip))
        assert start[1] < end[1]
        assert any(box[0] < start[0] < box[2] and box[3] == start[1] for box in places)
        assert any(box[0] < end[0] < box[2] and box[1] == end[1] for box in places)


def shown(svg: str) -> str:
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return "\n".join("".join(text.itertext()) for text in texts)


@settings(max_examples=40, deadline=None)
@given(programs())
def test_any_program(program: Call) -> None:
    check(program)
    for call in post_order(program):
        assert call.function.name in shown(chart(program))


def test_a_large_program_can_be_read() -> None:
    assert FIFTEEN.size == 15
    check(FIFTEEN)
    text = shown(chart(FIFTEEN))
    assert max(map(len, text.split("\n"))) <= WIDEST
    joined = " ".join(text.split())
    assert "Ein & <alles>" in joined
    assert (
        "member of the United Nations Educational, Scientific and Cultural Organization" in joined
    )
    assert "Llanfair" in joined and "gogogoch" in joined
    root = ElementTree.fromstring(chart(FIFTEEN))
    assert float(root.attrib["width"]) < 1400 and float(root.attrib["height"]) < 900


def test_every_letter_can_be_shown() -> None:
    name = "a\0b\x1f\ud800c\ufffe日本国" + "日" * 40 + "&\"'<"
    svg = chart(Call(FUNCTIONS["Find"], (), (name,)))
    assert base64.b64decode(data_uri(svg).partition(",")[2]).decode() == svg
    text = shown(svg).replace("\n", "")
    assert "日" * 40 in text and "&\"'<" in text
    check(Call(FUNCTIONS["Find"], (), (name,)))


def test_a_deep_program() -> None:
    program = Call(FUNCTIONS["FindAll"])
    for _ in range(1500):
        program = Call(FUNCTIONS["Relate"], (program,), ("r", "forward"))
    assert len(boxes(chart(program))) == 1501


def test_the_same_program_gives_the_same_picture() -> None:
    assert chart(FIFTEEN) == chart(read(str(FIFTEEN)))
    assert data_uri(chart(FIFTEEN)).startswith("data:image/svg+xml;base64,")


def test_what_every_call_gave(tiny: KnowledgeBase) -> None:
    program = read("Count(FilterConcept(FindAll(), city))")
    trace = Executor(tiny).run(program, trace=True).trace
    assert trace is not None
    check(program, trace)
    lines = shown(chart(program, trace)).split("\n")
    # A number is no list of one thing, and is not counted.
    assert lines[-3:] == ["Count", "how many", trace[-1].shown[0]]
    assert f"{trace[0].count}\N{EN SPACE}{', '.join(trace[0].shown[:3])}" in "\n".join(lines)
    assert "value" not in chart(program)


def test_what_is_empty_is_red(tiny: KnowledgeBase) -> None:
    program = read("Count(FilterConcept(Find(nobody), city))")
    trace = Executor(tiny).run(program, trace=True).trace
    svg = ElementTree.fromstring(chart(program, trace))
    nothing = [box for box in svg.iter(f"{SVG}rect") if box.attrib["class"] == "nothing"]
    wrong = [path for path in svg.iter(f"{SVG}path") if path.attrib["class"] == "wrong"]
    assert len(nothing) == len(wrong) == 2  # of two calls; the third counts them


def test_long_values_are_cut() -> None:
    step = TraceStep(0, "FindAll", (), (), 2, ["x" * 500, "\0<&>"])
    program = Call(FUNCTIONS["FindAll"])
    check(program, [step])
    last = shown(chart(program, [step])).split("\n")[-1]
    assert last.startswith("2\N{EN SPACE}xxx") and last.endswith("\N{HORIZONTAL ELLIPSIS}")
    assert len(last) <= WIDEST + 2


def test_marked_calls() -> None:
    program = read("Count(Relate(Find(Norway), capital, forward))")
    groups = list(ElementTree.fromstring(chart(program, marked=[1])).iter(f"{SVG}g"))
    frames = [group.find(f"{SVG}rect") for group in groups]
    assert [f is not None and f.attrib["class"] for f in frames] == ["given", "wrong", "answer"]
