"""MCP on stdin and stdout: a small JSON-RPC loop that answers its handshake before anything heavy is loaded.

stdout carries messages and nothing else: the descriptor is taken away at the start, and whatever a library prints
goes to stderr. A message is one line of at most `max_body` bytes. What is not a request is answered, where there is
someone to answer, with -32700 (not JSON), -32600 (not one request: a batch, no object, too long), -32601 (no such
method) or -32602 (wrong parameters), and the loop goes on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from commonplace.serve.json_rpc import INTERNAL_ERROR, INVALID_REQUEST, SECRET_ID, JsonRpcError
from commonplace.serve.mcp.handler import WAITING, McpHandler, may_repeat
from commonplace.serve.mcp.messages import decode, is_answer, is_plain
from commonplace.serve.mcp.sessions import StdioSession
from commonplace.serve.mcp.stdio_streams import InputStream, LineSplitter, OutputStream
from commonplace.serve.mcp.tools import Document, ToolSet
from commonplace.wire import strict_json

if TYPE_CHECKING:
    from commonplace.config import Config

#: Requests worked on at once; while there are as many, nothing more is read.
MAX_IN_FLIGHT = 64
#: How long what is in flight may take once the client is gone, and how long closing may after that.
GRACE_SECONDS = 1.2
CLOSE_SECONDS = 0.6
#: What is heavy waits for the handshake; when there is none for so long, it waits no more.
HANDSHAKE_FIRST_SECONDS = 0.5
STOPPED = "stopped before it was done; what it was to write may not have been kept"


class Options(NamedTuple):
    palace: str | None = None  # what trusty tools mean when they name none
    http: str | None = None  # where to serve trusty-memory's HTTP routes as well


class Connection:
    """One client's messages: each request is answered once, as soon as its answer is there."""

    def __init__(self, handler: McpHandler, session: StdioSession, output: OutputStream, limit: int) -> None:
        self._handler = handler
        self._session = session
        self._output = output
        self._limit = limit
        self._version = handler.tool_set.fallback
        self._turns = asyncio.Semaphore(MAX_IN_FLIGHT)
        #: Each with what it is answered with where it is not done in time; None: nothing.
        self.in_flight: dict[asyncio.Task[None], Document | None] = {}
        self._by_id: dict[Any, asyncio.Task[None]] = {}  # the last with that id: a client may use one twice
        self._has_ended = False
        self.has_answered = False  # whether the handshake is over, so that heavy things may be loaded

    def receive(self, line: bytes) -> None:
        try:
            message = decode(line)
        except JsonRpcError as error:
            self._refuse(error)
            return
        if is_answer(message):
            return  # and we never ask
        id, method, params = message.get("id"), message["method"], message.get("params")
        if "id" not in message:
            self._handle_notification(method, params)
            return
        if self._must_wait or method in WAITING or not (is_plain(id) and is_plain(method)):
            # Whether another id may be repeated is found out once there is an engine.
            unfinished = self._unfinished(id if is_plain(id) else None, method, params)
            self._start(id, lambda: self._respond(id, method, params), unfinished)
        else:  # done before the next line is looked at
            _run_without_waiting(self._respond(id, method, params))

    @property
    def _must_wait(self) -> bool:
        """Whether what comes now must wait for what came before."""
        return self._handler.tool_set.in_order and bool(self.in_flight)

    def _start(self, id: Any, work: Callable[[], Coroutine[Any, Any, None]], unfinished: Document) -> None:
        # All of them, not only the last: that one may be cancelled while those before it are still at work.
        before = list(self.in_flight) if self._must_wait else []

        async def work_in_turn() -> None:
            if before:
                await asyncio.wait(before)
            await work()

        task = asyncio.create_task(work_in_turn())
        self.in_flight[task] = unfinished
        self._by_id[id] = task
        task.add_done_callback(lambda done: self._done(id, done))

    def _refuse(self, error: JsonRpcError) -> None:
        async def send() -> None:
            self._send(error.response())

        if self._must_wait:
            self._start(object(), send, error.response())
        else:
            self._send(error.response())

    def _done(self, id: Any, task: asyncio.Task[None]) -> None:
        self.in_flight.pop(task, None)
        if self._by_id.get(id) is task:
            del self._by_id[id]

    def _handle_notification(self, method: str, params: Any) -> None:
        if method == "notifications/cancelled" and isinstance(params, dict):
            id = params.get("requestId")
            task = self._by_id.get(id) if isinstance(id, (str, int, float)) else None
            if task is not None:
                self.in_flight[task] = None  # who cancels a request wants no answer
                task.cancel()

    async def _respond(self, id: Any, method: str, params: Any) -> None:
        if not await may_repeat(self._session, id):
            self._send(JsonRpcError(INVALID_REQUEST, SECRET_ID).response())
            return
        task = asyncio.current_task()
        if task in self.in_flight:
            self.in_flight[task] = self._unfinished(id, method, params)
        try:
            version = self._version
            if method != "initialize":
                version = self._handler.version_of(method, params, version)
            async with self._turns if method in WAITING else nullcontext():
                result = await self._handler.answer(self._session, version, method, params)
        except JsonRpcError as error:
            self._send(error.response(id))
            return
        if method == "initialize":
            self._version = result["protocolVersion"]
        self._send({"jsonrpc": "2.0", "id": id, "result": result})
        self.has_answered = True

    def refuse_too_long(self) -> None:
        self._refuse(JsonRpcError(INVALID_REQUEST, f"a message may have at most {self._limit:,} bytes"))

    def _unfinished(self, id: Any, method: str, params: Any) -> Document:
        name = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
        tool = self._handler.tool_set.tool(name) if isinstance(name, str) else None
        names_itself = tool is not None and tool.faults == "error"  # as all that such a tool refuses
        return JsonRpcError(INTERNAL_ERROR, f"{name}: {STOPPED}" if names_itself else STOPPED).response(id)

    def end(self) -> None:
        """Answers what is not done yet, in the order in which it came, and stops it."""
        for task, unfinished in list(self.in_flight.items()):
            if unfinished is not None:
                self._send(unfinished)
            task.cancel()
        self._has_ended = True

    def _send(self, document: Document) -> None:
        if self._has_ended:  # a task may outlast its cancellation, and each request has one answer
            return
        self._output.send(strict_json.encode(document) + b"\n")


def _run_without_waiting(answering: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        answering.send(None)
    except StopIteration:
        return
    raise AssertionError("this method was not to wait")


class StdioServer:
    """From the first byte to the last: reading, the engine's opening, and an end that leaves nothing behind."""

    def __init__(self, config: Config, tool_set: ToolSet, options: Options, stdin: int, stdout: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._options = options
        self._config = config
        self._session = StdioSession(config, options.palace)
        self._output = OutputStream(stdout, self._loop, self.stop)
        self._connection = Connection(McpHandler(tool_set, report), self._session, self._output, config.max_body)
        self._lines = LineSplitter(self._connection.receive, self._connection.refuse_too_long, config.max_body)
        self._input = InputStream(stdin, self._loop, self._received)
        self._tool_set = tool_set
        self._stopping = asyncio.Event()
        self._grace_over: asyncio.Future[None] = self._loop.create_future()
        self._grace_timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._companion: Any = None
        self._companion_task: asyncio.Task[None] | None = None
        self._paused = False
        self.failure: Exception | None = None

    async def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            _on_signal(self._loop, number, self.stop)
        _on_end_of_parent(self._loop, self.stop)
        self._input.start()
        if self._options.http is not None:
            self._loop.call_later(HANDSHAKE_FIRST_SECONDS, self._start_companion)
        await self._stopping.wait()
        await self._shut_down()

    def stop(self, grace: float | None = None) -> None:
        """Finish what is in flight, which may take so long; said again, it can only become shorter."""
        grace = GRACE_SECONDS if grace is None else grace
        ends_at = self._loop.time() + grace
        if self._grace_timer is not None and self._grace_timer.when() <= ends_at:
            return
        if self._grace_timer is not None:
            self._grace_timer.cancel()
        self._grace_timer = self._loop.call_at(ends_at, self._end_grace)
        self._stopping.set()
        self._input.pause()
        # Whatever hangs, in a library or a lock, the client is gone and so are we.
        watchdog = threading.Timer(grace + CLOSE_SECONDS, os._exit, (0,))
        watchdog.daemon = True
        watchdog.start()

    def _end_grace(self) -> None:
        if not self._grace_over.done():
            self._grace_over.set_result(None)

    def _stop_at_end_of_input(self) -> None:
        """Who ends its requests here and still reads may be a pipe that waits for the answers, and the engine may not
        even be imported yet. A client in a hurry sends a signal after it, or is gone, which ends this sooner."""
        is_awaited = bool(self._connection.in_flight) and self._output.has_reader
        self.stop(self._tool_set.finish_seconds if is_awaited else None)

    def _received(self, data: bytes | None) -> None:
        if self._stopping.is_set():
            return
        if data is None:
            self._lines.end()
            self._stop_at_end_of_input()
            return
        self._lines.feed(data)
        if self._connection.has_answered and self._opening is None:
            self._opening = asyncio.create_task(self._open())
            if self._options.http is not None:
                self._start_companion()
        if len(self._connection.in_flight) >= MAX_IN_FLIGHT and not self._paused:
            self._paused = True
            self._input.pause()
            asyncio.create_task(self._resume_when_free()).add_done_callback(lambda _: None)

    async def _resume_when_free(self) -> None:
        while len(self._connection.in_flight) >= MAX_IN_FLIGHT:
            await asyncio.wait(list(self._connection.in_flight), return_when=asyncio.FIRST_COMPLETED)
        self._paused = False
        if not self._stopping.is_set():
            self._input.resume()

    async def _open(self) -> None:
        """Ahead of the first call, which would otherwise wait for it."""
        from commonplace.serve.telemetry import configure_logs

        configure_logs("warning")
        try:
            engine = await self._session.engine()
            if not self._stopping.is_set():
                engine.start_lifecycle()
                engine.stores.watch()
        except Exception as error:  # said again, in words, to whoever calls a tool
            report("opening", error)

    def _start_companion(self) -> None:
        if self._companion_task is None and not self._stopping.is_set():
            self._companion_task = asyncio.create_task(self._serve_http())

    async def _serve_http(self) -> None:
        """The HTTP server beside this loop: where one ends, so does the other."""

        def listen() -> Any:
            from commonplace.serve.companion import Companion

            return Companion(self._config, str(self._options.http), self._options.palace)

        try:
            self._companion = await asyncio.to_thread(listen)
            await self._companion.run(await self._session.engine())
        except Exception as error:
            self.failure = error
        finally:
            if not self._stopping.is_set():  # else it ends because the loop does, whose requests have their own time
                self.stop()

    async def _shut_down(self) -> None:
        if self._companion is not None:
            self._companion.stop()
        working = [*self._connection.in_flight, *([self._companion_task] if self._companion_task else [])]
        if working:
            all_done: asyncio.Future[Any] = asyncio.gather(*working, return_exceptions=True)
            await asyncio.wait((all_done, self._grace_over), return_when=asyncio.FIRST_COMPLETED)
        self.stop()  # closing has only the short time, however long the requests had
        self._connection.end()
        if self._opening is not None:
            self._opening.cancel()
        while not self._output.is_drained:
            await asyncio.sleep(0.01)  # the watchdog ends this when nobody reads
        await self._session.close()


def report(operation: str, error: Exception) -> None:
    """What is our own fault, on stderr."""
    from commonplace.serve.telemetry import log, log_bug
    from commonplace.wire.errors import Fault

    if isinstance(error, Fault):
        log.warning("%s: %s", operation, error.message)
    else:
        log_bug(operation, error)


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, stop: Any) -> None:
    try:
        loop.add_signal_handler(number, stop)
    except NotImplementedError:  # Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))


def _on_end_of_parent(loop: asyncio.AbstractEventLoop, stop: Any) -> None:
    """A client that was killed closes stdin, unless another child of its inherited the other end."""
    if not hasattr(os, "pidfd_open"):
        return
    try:
        parent = os.pidfd_open(os.getppid())
        loop.add_reader(parent, lambda: (loop.remove_reader(parent), stop()))
    except OSError:  # not allowed here; then stdin alone tells
        return


def run(config: Config, tool_set: ToolSet, options: Options | None = None) -> int:
    """Until stdin ends or a signal comes, which is 0; raises what kept the HTTP server beside it from serving."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    async def serve() -> Exception | None:
        server = StdioServer(config, tool_set, options or Options(), 0, stdout)
        await server.run()
        return server.failure

    if (failure := asyncio.run(serve())) is not None:
        raise failure
    return 0
