"""What an MCP server says: every method of every era over one set of tools, whatever carries the messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.serve.mcp import eras
from commonplace.serve.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS, NO_METHOD, Problem
from commonplace.serve.mcp.table import STATELESS_ERAS, Document, Prompt, Resource, Session, Tool, ToolSet, resolved
from commonplace.wire import strict_json
from commonplace.wire.errors import Fault, NotFound, OperatorActionRequired, ValidationError

NO_RESOURCE = -32002  # until 2025-11-25; invalid params since
UNSUPPORTED_VERSION = -32022
#: Methods that wait for the engine; all others are answered from the tables at once.
WAITING = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})
MOST_COMPLETIONS = 100  # what the protocol allows

#: What a model should do about a fault that its sentence does not say already.
_NEXT = {
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


class Speaker:
    """Answers for one set of tools; holds nothing of a conversation, so one can serve many."""

    def __init__(self, offered: ToolSet, report: Report) -> None:
        self.offered = offered
        self._report = report

    def era_of(self, method: str, params: Any, negotiated: str) -> str:
        """The version a request is made in: its own where it says one, else what the handshake chose."""
        if method == "server/discover" and not any(era in STATELESS_ERAS for era in self.offered.eras):
            raise _no_method(method)  # what a client then tries is a handshake, which works
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(meta, dict) or eras.ENVELOPE_VERSION not in meta:
            return negotiated
        wanted = meta[eras.ENVELOPE_VERSION]
        if not isinstance(wanted, str) or eras.ENVELOPE_CAPABILITIES not in meta:
            missing = eras.ENVELOPE_CAPABILITIES if isinstance(wanted, str) else eras.ENVELOPE_VERSION
            raise Problem(self.offered.invalid_params, f"params._meta needs {missing}")
        self.require_version(wanted)
        return wanted

    def require_version(self, wanted: str) -> None:
        if wanted not in self.offered.eras or wanted not in STATELESS_ERAS:
            served = [era for era in self.offered.eras if era in STATELESS_ERAS] or list(self.offered.eras)
            data = {"supported": served, "requested": wanted}
            raise Problem(UNSUPPORTED_VERSION, "Unsupported protocol version", data)

    async def answer(self, session: Session, era: str, method: str, params: Any) -> Document:
        """The result; raises Problem."""
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise Problem(self.offered.invalid_params, "params must be an object")
        if method == "tools/call":
            return self._finish(session, await self._call(session, era, params), era)
        speak = self._methods(era).get(method)
        if speak is None:
            raise _no_method(method)
        found = speak(session, era, params)
        try:
            result, ttl = found if isinstance(found, tuple) else await found
        except Problem:
            raise
        except Exception as error:
            self._report(method, error)
            raise Problem(INTERNAL_ERROR, "this failed for a reason of our own; the server's log says where") from None
        return self._finish(session, result, era, ttl)

    def _finish(self, session: Session, result: Document, era: str, ttl_ms: int | None = None) -> Document:
        info = self.offered.server_info(session) if eras.stateless(era) else {}
        return eras.finished(result, info, era, ttl_ms=ttl_ms)

    def _methods(self, era: str) -> dict[str, Callable[[Session, str, Document], Any]]:
        methods: dict[str, Callable[[Session, str, Document], Any]] = {"tools/list": self._tools}
        if eras.stateless(era):
            methods["server/discover"] = self._discover
        else:
            methods |= {"initialize": self._initialize, "ping": lambda *_: ({}, None)}
        if self.offered.resources:
            methods |= {
                "resources/list": self._resources, "resources/templates/list": self._templates,
                "resources/read": self._read,
            }  # fmt: skip
        if self.offered.prompts:
            methods |= {"prompts/list": self._prompts, "prompts/get": self._prompt}
        if self.offered.completer is not None:
            methods["completion/complete"] = self._complete
        return methods

    # the handshake, and what stands for it

    def _initialize(self, session: Session, era: str, params: Document) -> tuple[Document, None]:
        wanted = params.get("protocolVersion")
        if wanted is not None and not isinstance(wanted, str):
            raise Problem(self.offered.invalid_params, "protocolVersion must be text such as 2025-11-25")
        era = eras.chosen(self.offered, wanted)
        info = eras.server_info(self.offered.server_info(session), era)
        declared = eras.capabilities(self.offered.capabilities, era)
        result: Document = {"protocolVersion": era, "capabilities": declared, "serverInfo": info}
        if self.offered.instructions:
            result["instructions"] = self.offered.instructions
        return result, None

    def _discover(self, session: Session, era: str, params: Document) -> tuple[Document, int]:
        result: Document = {
            "supportedVersions": [era for era in self.offered.eras if era in STATELESS_ERAS],
            "capabilities": self.offered.capabilities,
        }
        if self.offered.instructions:
            result["instructions"] = self.offered.instructions
        return result, eras.LIST_TTL_MS

    # tools

    def _tools(self, session: Session, era: str, params: Document) -> tuple[Document, int]:
        self._one_page(params)
        listed = [
            eras.tool_document(tool, tool.input_schema(session), tool.output_schema(session), era)
            for tool in self.offered.tools
        ]
        return {"tools": listed}, eras.LIST_TTL_MS

    async def _call(self, session: Session, era: str, params: Document) -> Document:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise Problem(self.offered.invalid_params, "tools/call needs the name of a tool")
        tool = self.offered.tool(name)
        if tool is None:
            raise Problem(*self.offered.unknown_tool(name))
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise Problem(self.offered.invalid_params, f"{name}: arguments must be an object")
        try:
            document = await tool.call(session, arguments)
            return eras.call_result(strict_json.dumps(document), document, era)
        except Fault as fault:
            return self._faulty(tool, fault, era)
        except Exception as error:
            self._report(name, error)
            ours = Fault(f"{name} failed for a reason of our own; the server's log says where")
            return self._faulty(tool, ours, era)

    def _faulty(self, tool: Tool, fault: Fault, era: str) -> Document:
        if tool.faults == "error":
            raise Problem(INTERNAL_ERROR, tool.explain(fault) if tool.explain else fault.message)
        text = tool.explain(fault) if tool.explain else f"{_sentence(fault.summary)} {advice(tool.name, fault)}".strip()
        return eras.call_result(text, None, era, error=True)

    # resources

    def _resources(self, session: Session, era: str, params: Document) -> tuple[Document, int]:
        self._one_page(params)
        fixed = [resource for resource in self.offered.resources if not resource.template]
        return {"resources": [_resource(each, "uri", era) for each in fixed]}, eras.LIST_TTL_MS

    def _templates(self, session: Session, era: str, params: Document) -> tuple[Document, int]:
        self._one_page(params)
        open_ones = [resource for resource in self.offered.resources if resource.template]
        return {"resourceTemplates": [_resource(each, "uriTemplate", era) for each in open_ones]}, eras.LIST_TTL_MS

    async def _read(self, session: Session, era: str, params: Document) -> tuple[Document, int]:
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise Problem(self.offered.invalid_params, "resources/read needs a uri")
        found = next((each for each in self.offered.resources if each.covers(uri)), None)
        missing = INVALID_PARAMS if eras.stateless(era) else NO_RESOURCE
        if found is None:
            raise Problem(missing, f"there is no resource {uri[:200]!r}", {"uri": uri[:2000]})
        try:
            document = await resolved(found.handler)(session, uri)
        except NotFound as fault:
            raise Problem(missing, fault.summary, {"uri": uri[:2000]}) from None
        except ValidationError as fault:
            raise Problem(INVALID_PARAMS, fault.message, {"uri": uri[:2000]}) from None
        except Fault as fault:
            raise Problem(INTERNAL_ERROR, fault.message, {"code": fault.code}) from None
        content = {"uri": uri, "mimeType": "application/json", "text": strict_json.dumps(document)}
        return {"contents": [content]}, 0

    # prompts

    def _prompts(self, session: Session, era: str, params: Document) -> tuple[Document, int]:
        self._one_page(params)
        return {"prompts": [_prompt(each, era) for each in self.offered.prompts]}, eras.LIST_TTL_MS

    async def _prompt(self, session: Session, era: str, params: Document) -> tuple[Document, None]:
        name, given = params.get("name"), params.get("arguments")
        found = next((each for each in self.offered.prompts if each.name == name), None)
        if found is None:
            raise Problem(INVALID_PARAMS, f"there is no prompt {name!r:.80}")
        arguments = self._prompt_arguments(found, {} if given is None else given)
        try:
            text = await resolved(found.handler)(session, arguments)
        except ValidationError as fault:
            raise Problem(INVALID_PARAMS, fault.message) from None
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": found.description, "messages": [message]}, None

    def _prompt_arguments(self, prompt: Prompt, given: Any) -> dict[str, str]:
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise Problem(INVALID_PARAMS, "the arguments of a prompt are text")
        known = {name for name, _, _ in prompt.arguments}
        if unknown := sorted(given.keys() - known):
            raise Problem(INVALID_PARAMS, f"{prompt.name} takes {', '.join(sorted(known)) or 'nothing'}, "
                                          f"not {unknown[0]!r:.80}")  # fmt: skip
        for name, _, required in prompt.arguments:
            if required and not given.get(name, "").strip():
                raise Problem(INVALID_PARAMS, f"{prompt.name} needs the argument {name}")
        return given

    async def _complete(self, session: Session, era: str, params: Document) -> tuple[Document, None]:
        ref, argument = params.get("ref"), params.get("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict):
            raise Problem(INVALID_PARAMS, "completion/complete needs a ref and an argument")
        name, typed = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(typed, str):
            raise Problem(INVALID_PARAMS, "an argument is {name, value}, both text")
        try:
            values = await resolved(self.offered.completer)(session, ref, name, typed)
        except Fault:
            values = []  # nothing to offer; the call itself will say what is wrong
        shown = values[:MOST_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(shown) < len(values)}}, None

    def _one_page(self, params: Document) -> None:
        if params.get("cursor") is not None:
            raise Problem(self.offered.invalid_params, "there is only one page: leave out the cursor")


def _no_method(method: str) -> Problem:
    return Problem(NO_METHOD, f"Method not found: {method:.80}")


def advice(tool: str, fault: Fault) -> str:
    return _NEEDS_A_PERSON if isinstance(fault, OperatorActionRequired) else _NEXT.get(fault.code, "").format(tool=tool)


def _sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."


def _resource(resource: Resource, key: str, era: str) -> Document:
    document = {"name": resource.name, key: resource.uri, "description": resource.description,
                "mimeType": "application/json"}  # fmt: skip
    return eras.titled(document, resource.title, era)


def _prompt(prompt: Prompt, era: str) -> Document:
    arguments = [{"name": name, "description": what, "required": required} for name, what, required in prompt.arguments]
    document = {"name": prompt.name, "description": prompt.description, "arguments": arguments}
    return eras.titled(document, prompt.title, era)
