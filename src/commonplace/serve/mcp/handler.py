"""Every method of every version of MCP over one set of tools, whatever carries the messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from commonplace.serve.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, JsonRpcError
from commonplace.serve.mcp import versions
from commonplace.serve.mcp.messages import is_plain
from commonplace.serve.mcp.tools import Document, McpSession, Prompt, Resource, Tool, ToolSet
from commonplace.wire.errors import Fault, NotFound, OperatorActionRequired, ValidationError, internal_error
from commonplace.wire.strict_json import dumps
from commonplace.wire.words import shorten

if TYPE_CHECKING:
    from commonplace.engine import Redactor

NO_RESOURCE = -32002  # until 2025-11-25; invalid params since
UNSUPPORTED_VERSION = -32022
#: Methods that wait for the engine; all others are answered from the tables at once.
WAITING = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})
MAX_COMPLETIONS = 100  # what the protocol allows
_MAX_REFUSAL_CHARS = 2_000
_MAX_SCANNED_CHARS = 10_000  # of a refusal: what is looked at for secrets before it is cut
#: How long a client of a stateless version may keep an answer: what a server offers changes only with its version.
_LISTS = ("server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list")
_TTL_MS = {**dict.fromkeys(_LISTS, 300_000), "resources/read": 0}

#: What a model should do about a fault that its sentence does not say already.
_ADVICE = {
    "validation_error": "Correct the arguments and call {tool} again.",
    "not_found": "Call list or recall to find the right id before you try again.",
    "conflict": "Read what is there now with get, then decide whether the change still makes sense.",
    "forbidden": "Do not try again; tell the user which permission is missing.",
    "unauthenticated": "Do not try again; tell the user that a token is needed.",
    "payload_too_large": "Keep less in one memory, or several smaller ones.",
    "secret_leakage": "Leave the secret out and call {tool} again.",
    "rate_limited": "Wait before you call {tool} again.",
    "unavailable": "Try {tool} once more; if it fails again, tell the user.",
}
_NEEDS_A_PERSON = "Do not try again; tell the user that a person must look at it, beginning with `commonplace doctor`."

#: Told of what is our own fault: the operation and the exception.
Report = Callable[[str, Exception], None]
Method = Callable[[McpSession, str, Document], Awaitable[Document]]


class McpHandler:
    """Answers for one set of tools; holds nothing of a connection, so one can serve many."""

    def __init__(self, tool_set: ToolSet, report: Report) -> None:
        self.tool_set = tool_set
        self._report = report
        self._stateless = [version for version in tool_set.versions if versions.is_stateless(version)]

    def version_of(self, method: str, params: Any, negotiated: str) -> str:
        """The version a request is made in: its own where it says one, else what the handshake chose."""
        if method == "server/discover" and not self._stateless:
            raise _no_method(method)  # what a client then tries is a handshake, which works
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(meta, dict) or versions.META_VERSION not in meta:
            return negotiated
        wanted = meta[versions.META_VERSION]
        if not isinstance(wanted, str) or versions.META_CAPABILITIES not in meta:
            missing = versions.META_CAPABILITIES if isinstance(wanted, str) else versions.META_VERSION
            raise self._invalid(f"params._meta needs {missing}")
        self.check_version(wanted)
        return wanted

    def check_version(self, wanted: str) -> None:
        """Raises JsonRpcError unless it is a stateless version that this set speaks."""
        if wanted not in self._stateless:
            data: Document = {"supported": self._stateless or list(self.tool_set.versions)}
            data |= {"requested": wanted} if is_plain(wanted) else {}
            raise JsonRpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)

    async def answer(self, session: McpSession, version: str, method: str, params: Any) -> Document:
        """The result; raises JsonRpcError."""
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise self._invalid("params must be an object")
        perform = self._methods(version).get(method)
        if perform is None:
            if not is_plain(method):
                method = await _without_secrets(session, method[:_MAX_SCANNED_CHARS])
            raise _no_method(method)
        if method.endswith("/list") and params.get("cursor") is not None:
            raise self._invalid("there is only one page: leave out the cursor")
        try:
            result = await perform(session, version, params)
        except JsonRpcError as error:
            if method in WAITING:
                message, error.data = await _without_secrets(session, (error.message[:_MAX_SCANNED_CHARS], error.data))
                error.message = shorten(message, _MAX_REFUSAL_CHARS)
            raise
        except Exception as error:
            self._report(method, error)
            raise JsonRpcError(INTERNAL_ERROR, internal_error().message) from None
        if not versions.is_stateless(version):
            return result
        return versions.stateless_result(result, self.tool_set.server_info(session), _TTL_MS.get(method))

    def _methods(self, version: str) -> dict[str, Method]:
        methods: dict[str, Method] = {"tools/list": self._list_tools, "tools/call": self._call_tool}
        if versions.is_stateless(version):
            methods["server/discover"] = self._discover
        else:
            methods |= {"initialize": self._initialize, "ping": self._ping}
        if self.tool_set.resources:
            methods |= {"resources/list": self._list_resources, "resources/templates/list": self._list_templates}
            methods["resources/read"] = self._read_resource
        if self.tool_set.prompts:
            methods |= {"prompts/list": self._list_prompts, "prompts/get": self._get_prompt}
        if self.tool_set.completer is not None:
            methods["completion/complete"] = self._complete
        return methods

    # the handshake, and what stands for it

    async def _initialize(self, session: McpSession, version: str, params: Document) -> Document:
        wanted = params.get("protocolVersion")
        if wanted is not None and not isinstance(wanted, str):
            raise self._invalid("protocolVersion must be text such as 2025-11-25")
        offered = self.tool_set
        known = wanted in offered.versions and wanted in versions.HANDSHAKE_VERSIONS
        version = wanted if wanted is not None and known else offered.fallback
        result: Document = {"protocolVersion": version}
        result["capabilities"] = versions.capabilities(offered.capabilities, version)
        result["serverInfo"] = versions.server_info(offered.server_info(session), version)
        return result | self._instructions()

    async def _discover(self, session: McpSession, version: str, params: Document) -> Document:
        return {
            "supportedVersions": self._stateless,
            "capabilities": self.tool_set.capabilities,
            **self._instructions(),
        }

    async def _ping(self, session: McpSession, version: str, params: Document) -> Document:
        return {}

    def _instructions(self) -> Document:
        return {"instructions": self.tool_set.instructions} if self.tool_set.instructions else {}

    # tools

    async def _list_tools(self, session: McpSession, version: str, params: Document) -> Document:
        return {"tools": [versions.tool_document(tool, session, version) for tool in self.tool_set.tools]}

    async def _call_tool(self, session: McpSession, version: str, params: Document) -> Document:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise self._invalid("tools/call needs the name of a tool")
        tool = self.tool_set.tool(name)
        if tool is None:
            raise JsonRpcError(*self.tool_set.unknown_tool(name))
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise self._invalid(f"{name}: arguments must be an object")
        try:
            document = await tool.handler(session, arguments)
            return versions.call_result(dumps(document), document, version)
        except Fault as fault:
            await _redact(session, fault)
            return self._fault_result(tool, fault, version)
        except Exception as error:
            self._report(name, error)
            return self._fault_result(tool, internal_error(name), version)

    def _fault_result(self, tool: Tool, fault: Fault, version: str) -> Document:
        text = tool.explain(fault) if tool.explain else None
        if tool.faults == "error":
            raise JsonRpcError(INTERNAL_ERROR, text or fault.message)
        sentence = fault.summary if fault.summary.endswith((".", "!", "?")) else f"{fault.summary}."
        return versions.call_result(text or f"{sentence} {advice(tool.name, fault)}".strip(), None, version, error=True)

    # resources

    async def _list_resources(self, session: McpSession, version: str, params: Document) -> Document:
        return {"resources": [_resource(r, "uri", version) for r in self.tool_set.resources if not r.is_template]}

    async def _list_templates(self, session: McpSession, version: str, params: Document) -> Document:
        templates = [_resource(r, "uriTemplate", version) for r in self.tool_set.resources if r.is_template]
        return {"resourceTemplates": templates}

    async def _read_resource(self, session: McpSession, version: str, params: Document) -> Document:
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise self._invalid("resources/read needs a uri")
        found = next((resource for resource in self.tool_set.resources if resource.covers(uri)), None)
        missing = INVALID_PARAMS if versions.is_stateless(version) else NO_RESOURCE
        if found is None:
            raise JsonRpcError(missing, f"there is no resource {uri!r}", {"uri": uri[:2000]})
        try:
            document = await found.handler(session, uri)
        except NotFound as fault:
            raise JsonRpcError(missing, fault.summary, {"uri": uri[:2000]}) from None
        except ValidationError as fault:
            raise JsonRpcError(INVALID_PARAMS, fault.message, {"uri": uri[:2000]}) from None
        except Fault as fault:
            await _redact(session, fault)
            raise JsonRpcError(INTERNAL_ERROR, fault.message, {"code": fault.code}) from None
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": dumps(document)}]}

    # prompts

    async def _list_prompts(self, session: McpSession, version: str, params: Document) -> Document:
        return {"prompts": [_prompt(prompt, version) for prompt in self.tool_set.prompts]}

    async def _get_prompt(self, session: McpSession, version: str, params: Document) -> Document:
        name, given = params.get("name"), params.get("arguments")
        found = next((prompt for prompt in self.tool_set.prompts if prompt.name == name), None)
        if found is None:
            raise JsonRpcError(INVALID_PARAMS, f"there is no prompt {name!r}")
        try:
            text = found.text(_prompt_arguments(found, {} if given is None else given))
        except ValidationError as fault:
            raise JsonRpcError(INVALID_PARAMS, fault.message) from None
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": found.description, "messages": [message]}

    async def _complete(self, session: McpSession, version: str, params: Document) -> Document:
        ref, argument = params.get("ref"), params.get("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict):
            raise JsonRpcError(INVALID_PARAMS, "completion/complete needs a ref and an argument")
        name, typed = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(typed, str):
            raise JsonRpcError(INVALID_PARAMS, "an argument is {name, value}, both text")
        assert self.tool_set.completer is not None
        try:
            values = await self.tool_set.completer(session, ref, name, typed)
        except Fault:
            values = []  # nothing to offer; the call itself will say what is wrong
        shown = values[:MAX_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(shown) < len(values)}}

    def _invalid(self, sentence: str) -> JsonRpcError:
        return JsonRpcError(self.tool_set.invalid_params, sentence)


async def may_repeat(session: McpSession, id: Any) -> bool:
    """Whether an answer may carry this id."""
    return is_plain(id) or not (await _redactor(session)).holds_secret(str(id))


async def _without_secrets(session: McpSession, said: Any) -> Any:
    """What a refusal says: it repeats what nothing has looked at. Cut afterwards: half a secret looks like none."""
    return (await _redactor(session)).document(said)[0]


async def _redact(session: McpSession, fault: Fault) -> None:
    (await _redactor(session)).redact_fault(fault, session.who)


async def _redactor(session: McpSession) -> Redactor:
    try:
        return (await session.engine()).redactor
    except Exception:  # no engine, and the refusal is that of opening it: what has the form of a secret is still seen
        from commonplace.engine import Redactor

        return Redactor()


def _no_method(method: str) -> JsonRpcError:
    return JsonRpcError(METHOD_NOT_FOUND, f"Method not found: {shorten(method, 80)}")


def advice(tool: str, fault: Fault) -> str:
    needs_a_person = isinstance(fault, OperatorActionRequired)
    return _NEEDS_A_PERSON if needs_a_person else _ADVICE.get(fault.code, "").format(tool=tool)


def _resource(resource: Resource, key: str, version: str) -> Document:
    document = {"name": resource.name, key: resource.uri, "description": resource.description}
    return versions.titled(document | {"mimeType": "application/json"}, resource.title, version)


def _prompt(prompt: Prompt, version: str) -> Document:
    arguments = [{"name": name, "description": what, "required": required} for name, what, required in prompt.arguments]
    document = {"name": prompt.name, "description": prompt.description, "arguments": arguments}
    return versions.titled(document, prompt.title, version)


def _prompt_arguments(prompt: Prompt, given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise JsonRpcError(INVALID_PARAMS, "the arguments of a prompt are text")
    known = {name for name, _, _ in prompt.arguments}
    if unknown := sorted(given.keys() - known):
        allowed = ", ".join(sorted(known)) or "nothing"
        raise JsonRpcError(INVALID_PARAMS, f"{prompt.name} takes {allowed}, not {unknown[0]!r:.80}")
    for name, _, required in prompt.arguments:
        if required and not given.get(name, "").strip():
            raise JsonRpcError(INVALID_PARAMS, f"{prompt.name} needs the argument {name}")
    return given
