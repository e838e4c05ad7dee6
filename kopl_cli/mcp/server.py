"""The server of the Model Context Protocol: tools, resources and prompts, on three transports.

`server` offers `kopl_cli.mcp.tools.Tools`; `serve` answers one client on standard input and output,
`serve_http` many by streamable HTTP, with a token where others than this machine can reach it.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any, TypeAlias

from mcp.server import MCPServer
from mcp.server.mcpserver import ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, TextContent, ToolAnnotations

from kopl.functions import FUNCTIONS, SPELLINGS
from kopl_base.errors import KoplError, near_names
from kopl_base.packages import version
from kopl_base.visitors import LOOPBACK, bears, known_hosts
from kopl_cli.functions import explain
from kopl_cli.mcp.replies import told
from kopl_cli.mcp.tools import Tool, Tools

INSTRUCTIONS = """\
Answers questions over one knowledge base by KoPL programs: nested calls with quoted texts, such as
Count(QFilterYear(Relate(Find("Norway"), "head of state", "forward"), "start time", "1950", ">")).
1. search: how the things of the question are called here; names must be written exactly so.
2. schema: which relations, in which direction, keys and qualifiers they have (concept, or program).
3. run_program: one program for the whole question, not a call for each hop. Where it finds nothing
it says which call did and what there is instead.
4. evidence: the facts that the answer rests on; cite them.
Resource kopl://functions lists the 27 functions. Values are "300 kilometre", "1917", "1917-12-06".
"""

READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Scope: TypeAlias = MutableMapping[str, Any]
Application: TypeAlias = Callable[[Scope, Any, Any], Awaitable[None]]


def server(tools: Tools) -> MCPServer[Any]:
    """The server of some tools; without a trained run it has no `ask`."""
    made: MCPServer[Any] = MCPServer(
        "kopl", title="KoPL", instructions=INSTRUCTIONS, version=version(), log_level="WARNING"
    )
    offered: list[Tool] = [
        tools.search,
        tools.schema,
        tools.run_program,
        tools.check_program,
        tools.evidence,
        tools.translate,
        tools.run_sparql,
    ]
    if tools.parser is not None:
        offered.append(tools.ask)
    for tool in offered:
        made.add_tool(_typed(tool), annotations=READ_ONLY, title=tool.__name__.replace("_", " "))
    _add_resources(made, tools)
    _add_prompts(made, tools)
    return made


def _typed(tool: Tool) -> Callable[..., CallToolResult]:
    """The tool as the protocol has it: compact JSON, and errors that say what to try."""

    @functools.wraps(tool)
    def call(**arguments: Any) -> CallToolResult:
        try:
            found = tool(**arguments).model_dump(mode="json", exclude_none=True)
        except KoplError as error:
            wrong = {"error": told(error).model_dump(mode="json", exclude_none=True)}
            return CallToolResult(content=[_text(wrong)], is_error=True)
        return CallToolResult(content=[_text(found)], structured_content=found)

    signature = inspect.signature(tool, eval_str=True)
    model = signature.return_annotation
    annotation = Annotated[CallToolResult, model]
    call.__signature__ = signature.replace(return_annotation=annotation)  # type: ignore[attr-defined]
    call.__annotations__ = {
        name: parameter.annotation for name, parameter in signature.parameters.items()
    } | {"return": annotation}
    del call.__wrapped__
    return call


def _text(found: Any) -> TextContent:
    return TextContent(type="text", text=json.dumps(found, ensure_ascii=False))


# --- resources and prompts ------------------------------------------------------------------------


def _add_resources(made: MCPServer[Any], tools: Tools) -> None:
    as_json, as_text = "application/json", "text/plain"

    def functions() -> str:
        """The 27 functions, one a line: signature, what it gives, what it does."""
        lines = [f"{f.signature} -> {f.output.value}: {f.doc}" for f in FUNCTIONS.values()]
        return "\n".join(lines)

    def function(name: str) -> str:
        """One function: inputs, arguments, what it gives, an example."""
        found = SPELLINGS.get(name)
        if found is None:
            near = near_names(name, SPELLINGS)
            raise ResourceNotFoundError(f"there is no function {name!r}; near: {near}")
        return explain(found)

    def grammar(form: str) -> str:
        """The grammar of the programs that type here: lark, gbnf or json-schema; all names."""
        try:
            return tools.grammar(form)
        except KoplError as error:
            raise ResourceNotFoundError(str(error)) from None

    def schema() -> str:
        """All relations, keys and qualifier keys, with counts, units and examples."""
        return json.dumps(tools.whole_schema(), ensure_ascii=False)

    def entity(id: str) -> str:
        """A thing or concept by its id, with its facts."""
        try:
            return json.dumps(tools.about(id), ensure_ascii=False)
        except KoplError as error:
            raise ResourceNotFoundError(str(error)) from None

    # An id is no path: none is opened.
    any_text = ResourceSecurity(exempt_params={"id", "name", "form"})
    made.resource("kopl://functions", mime_type=as_text)(functions)
    made.resource("kopl://function/{name}", mime_type=as_text, security=any_text)(function)
    made.resource("kopl://grammar/{form}", mime_type=as_text, security=any_text)(grammar)
    made.resource("kopl://schema", mime_type=as_json)(schema)
    made.resource("kopl://entity/{+id}", mime_type=as_json, security=any_text)(entity)


def _add_prompts(made: MCPServer[Any], tools: Tools) -> None:
    def parse_question(question: str) -> str:
        """Turn a question into one KoPL program and run it."""
        return (
            f"Answer this question over the knowledge base by one KoPL program: {question}\n"
            "Look every name up with search, and what the things have with schema; write one nested"
            " program; run it with run_program; where it finds nothing, follow what to_try says."
            " Then call evidence and give the answer with the facts that it rests on. If the"
            " knowledge base does not have it, say so."
        )

    def explain_program(program: str) -> str:
        """Explain a KoPL program in plain words, with the facts that its answer rests on."""
        return (
            f"Explain this KoPL program in plain words: {program}\n"
            "Run it with run_program and trace=true, and call evidence. Say which question it"
            " answers, what each call gives, and which facts the answer rests on."
        )

    def repair_program(program: str, error: str = "") -> str:
        """Mend a KoPL program that fails or finds nothing."""
        said = f"It fails with: {error}\n" if error else ""
        return (
            f"Mend this KoPL program: {program}\n{said}"
            "Call check_program for its types and names, and run_program for the first call that"
            " finds nothing. Mend names with search, and relations, directions and keys with"
            " schema(program=...) of the part before. Change as little as needed, and run it again."
        )

    for prompt in (parse_question, explain_program, repair_program):
        made.prompt()(prompt)


# --- transports -----------------------------------------------------------------------------------


def serve(tools: Tools) -> None:
    """Answer one client on standard input and output, until it goes away."""
    server(tools).run("stdio")


def http_application(
    tools: Tools, host: str, *, token: str | None = None, names: tuple[str, ...] = ()
) -> Application:
    """The server by streamable HTTP, at ``/mcp``.

    Only requests to this machine, to ``host`` or to one of the ``names`` are answered, and those of
    web pages only from there. With a ``token``, only those that bear it. Raises KoplError without
    one where others can reach the host.
    """
    if host not in LOOPBACK and not token:
        raise KoplError(
            f"--host {host}: others can reach it, so that clients must show a token; put one into"
            " KOPL_MCP_TOKEN (such as: openssl rand -hex 32)"
        )
    allowed = [form for name in known_hosts(host, names) for form in (name, f"{name}:*")]
    security = TransportSecuritySettings(
        allowed_hosts=allowed,
        allowed_origins=[f"{scheme}://{name}" for scheme in ("http", "https") for name in allowed],
    )
    application: Application = server(tools).streamable_http_app(
        host=host, stateless_http=True, json_response=True, transport_security=security
    )
    return _with_token(application, token) if token else application


def _with_token(application: Application, token: str) -> Application:
    """The application, which answers only requests that bear the token."""

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            shown = dict(scope["headers"]).get(b"authorization", b"")
            if not bears(shown, token):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                start = {"type": "http.response.start", "status": 401, "headers": headers}
                await send(start)
                await send({"type": "http.response.body", "body": b"a token is needed\n"})
                return
        await application(scope, receive, send)

    return guarded


def serve_http(
    tools: Tools, host: str, port: int, *, token: str | None = None, names: tuple[str, ...] = ()
) -> None:
    """Serve by streamable HTTP until it is interrupted."""
    import uvicorn

    application = http_application(tools, host, token=token, names=names)
    uvicorn.run(application, host=host, port=port, log_level="warning", access_log=False)
