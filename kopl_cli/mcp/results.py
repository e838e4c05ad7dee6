"""What the tools give: models whose JSON schemas agents are told.

Lists are capped. ``count`` says how many there are, and ``more`` how to get those left out.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

State = Literal["unique", "empty", "several"]
SearchKind = Literal["any", "entity", "concept", "relation", "key", "qualifier key", "unit"]
Form = Literal["nested", "serialised", "json", "kqapro", "nested-json", "sparql", "mermaid", "dot"]
Source = Literal["kopl", "sparql"]


class ToolResult(BaseModel):
    """Base of what tools give; fields without a value are left out."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}


class Capped(ToolResult):
    """Something with a list of which only the first may be shown."""

    count: int = Field(description="how many there are in all")
    more: str | None = Field(default=None, description="how to get those that are not shown")


class FoundName(ToolResult):
    """One name: of a thing, a concept, a relation, a key or a unit."""

    kind: Literal["entity", "concept", "relation", "key", "qualifier key", "unit"]
    name: str = Field(description="as programs must write it")
    id: str | None = Field(
        default=None, description="of entities and concepts, for kopl://entity/{id}"
    )
    also: str | None = Field(
        default=None, description="the alias that is near; programs do not know it"
    )
    concepts: list[str] | None = Field(
        default=None, description="what it is an instance of, or below"
    )
    facts: int | None = Field(default=None, description="how many facts it has")
    things: int | None = Field(default=None, description="of a concept: how many things it has")


class FoundNames(Capped):
    """Names near a text, the nearest first."""

    matches: list[FoundName]


class SchemaRow(ToolResult):
    """A relation in one direction, an attribute key, or a qualifier key of some things."""

    kind: Literal["relation", "key", "qualifier"]
    name: str
    direction: Literal["forward", "backward"] | None = Field(
        default=None, description="for Relate: forward where the things are the subjects"
    )
    of: str | None = Field(
        default=None, description="the relation or key whose facts have the qualifier"
    )
    values: list[str] | None = Field(default=None, description="the types and units of the values")
    things: int | None = Field(default=None, description="how many of the things have it")
    facts: int
    example: str


class SchemaPart(Capped):
    """What some things have, commonest first."""

    of: str = Field(description="which things")
    things: int
    rows: list[SchemaRow]


class ErrorTold(ToolResult):
    """What is wrong, where, and what to do."""

    kind: str
    message: str
    call: int | None = Field(default=None, description="the call of the program, in post-order")
    to_try: str | None = Field(default=None, description="what to try instead")


class TracedCall(ToolResult):
    """What one call of a program gave."""

    call: int
    text: str
    count: int
    shown: list[str]


class Ran(Capped):
    """What a program denotes."""

    state: State
    answer: str | None = Field(default=None, description="the only string of a unique denotation")
    denotation: list[str]
    trace: list[TracedCall] | None = None
    hints: list[str] | None = Field(
        default=None, description="names that do not exist, with near ones"
    )
    to_try: str | None = Field(default=None, description="what to try where nothing was found")


class CheckedCall(ToolResult):
    """A call of a program that types, with what it gives."""

    call: int
    text: str
    gives: str


class Checked(ToolResult):
    """Whether a program types, and whether its names exist."""

    well_typed: bool
    calls: list[CheckedCall] | None = None
    hints: list[str] | None = Field(
        default=None, description="names that do not exist, with near ones"
    )
    error: ErrorTold | None = None


class RestingOn(ToolResult):
    """A fact that an answer rests on."""

    call: int = Field(description="the call of the program that uses it")
    kind: Literal["relation", "attribute", "membership", "name"]
    subject: str
    subject_id: str
    predicate: str
    object: str
    object_id: str | None = None
    qualifiers: dict[str, list[str]] | None = None


class RestsOn(Capped):
    """The facts that alone give the answer, with the answer."""

    state: State
    denotation: list[str]
    minimal: bool = Field(description="whether every fact is needed in some way to the answer")
    facts: list[RestingOn]


class ParserAnswer(Capped):
    """What a trained parser answers to a question."""

    answers: list[str]
    state: State | None = None
    program: str | None = None
    confidence: float
    calibrated: bool
    refused: str | None = Field(default=None, description="why the parser does not answer")
    near: list[str] | None = None
    doubts: list[str] | None = Field(
        default=None, description="names that the question does not say"
    )
    error: ErrorTold | None = None


class Translated(ToolResult):
    """A program in another form."""

    form: Form
    text: str
    differences: list[str] | None = Field(default=None, description="where its answer may differ")


class SparqlAnswer(Capped):
    """The rows of a SELECT query, or the truth of an ASK query."""

    columns: list[str]
    rows: list[list[str]]
    truth: bool | None = None
