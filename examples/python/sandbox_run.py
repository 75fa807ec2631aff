"""Client of `sandbox-run serve`: one file, standard library only, Python 3.9 or newer.

    with SandboxRun.start("--workspace", "/path/to/project") as box:
        result = box.run("make test", timeout=60)
        print(result["status"], result.get("exitCode"), result["stdout"])

Commands are judged and confined by the server. Nothing here may be filled in by a model but the command itself: above
all not `approved` and not the answers of `approve`.
"""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

Command = Union[str, Sequence[str]]
Json = Dict[str, Any]
# Sees what the policy asks; returns True, False, or how long a yes is good for: "once", "session", "always".
Approve = Callable[[Json], Union[bool, str]]

PROTOCOL_VERSION = 1


class SandboxRunError(Exception):
    """An error of the server; `code` is stable."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Process:
    """A command of `spawn`. Iterate over it for (stream, text); its result is there at the end."""

    def __init__(self, client: "SandboxRun", name: str, events: "queue.SimpleQueue[Json]") -> None:
        self._client = client
        self._name = name
        self._events = events
        self.result: Optional[Json] = None

    def __iter__(self) -> Iterator[Tuple[str, str]]:
        while self.result is None:
            event = self._events.get()
            if "error" in event:
                raise SandboxRunError("session.closed", event["error"])
            if "result" in event:
                self.result = event["result"]
                self._client.forget(self._name)
            else:
                yield event["stream"], event["data"]

    def wait(self) -> Json:
        """Leaves out what is left of the output."""
        for _ in self:
            pass
        assert self.result is not None
        return self.result

    def write(self, text: str = "", close: bool = False) -> bool:
        params: Json = {"command": self._name, "input": {"data": text}, "close": close}
        return bool(self._client.request("write", params)["written"])

    def kill(self, signal: Optional[str] = None) -> bool:
        params = {"command": self._name, **({} if signal is None else {"signal": signal})}
        return bool(self._client.request("kill", params)["sent"])


class Session:
    """A shell that lives on from command to command."""

    def __init__(self, client: "SandboxRun", name: str) -> None:
        self._client = client
        self._name = name

    def run(self, command: str, *, timeout: Optional[float] = None, **options: Any) -> Json:
        return self._client.request(
            "session.run", {"session": self._name, "command": command, **_with_timeout(timeout, options)}
        )

    def interrupt(self) -> bool:
        return bool(self._client.request("session.interrupt", {"session": self._name})["interrupted"])

    def close(self) -> None:
        self._client.request("session.close", {"session": self._name})

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SandboxRun:
    """A connection; commands and sessions of it end with it. May be used by several threads."""

    def __init__(
        self, reader: IO[bytes], writer: IO[bytes], close: Callable[[], None], approve: Optional[Approve]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._close = close
        self._approve = approve
        self._answering = ThreadPoolExecutor(max_workers=1)
        self._lock = threading.Lock()
        self._last_id = 0
        self._pending: Dict[int, "Future[Json]"] = {}
        self._events: Dict[str, "queue.SimpleQueue[Json]"] = {}
        self._gone: Optional[str] = None
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.about = self.request(
                "initialize", {"protocolVersion": PROTOCOL_VERSION, "approvals": approve is not None}
            )
        except BaseException:
            self.close()
            raise

    @classmethod
    def start(
        cls, *options: str, program: Sequence[str] = ("sandbox-run",), approve: Optional[Approve] = None
    ) -> "SandboxRun":
        """Starts a server of its own; `options` are those of the command line."""
        server = subprocess.Popen(
            [*program, "serve", "--stdio", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert server.stdin is not None and server.stdout is not None
        stdin, stdout = server.stdin, server.stdout

        def close() -> None:
            try:
                stdin.close()
            except OSError:
                pass
            server.wait()
            stdout.close()

        return cls(stdout, stdin, close, approve)

    @classmethod
    def connect(cls, path: str, *, approve: Optional[Approve] = None) -> "SandboxRun":
        """Connects to a server that listens on a socket."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            raise

        def close() -> None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

        return cls(connection.makefile("rb"), connection.makefile("wb"), close, approve)

    def run(self, command: Command, *, timeout: Optional[float] = None, **options: Any) -> Json:
        """Runs a command to its end. `timeout`: seconds. `options`: as in the schema, such as cwd, env, input."""
        return self.request("run", {"command": command, **_with_timeout(timeout, options)})

    def spawn(self, command: Command, *, timeout: Optional[float] = None, **options: Any) -> Process:
        """Starts a command; its output is kept until it is iterated over."""
        params = {"command": command, **_with_timeout(timeout, options)}
        name = self.request("spawn", params)["command"]
        return Process(self, name, self._events_of(name))

    def check(self, command: Command, **options: Any) -> Json:
        """What the policy thinks of a command: verdict, reasons, and a message for a model where it is not allowed."""
        return self.request("check", {"command": command, **options})

    def session(self, **options: Any) -> Session:
        return Session(self, self.request("session.open", options)["session"])

    def start_request(self, method: str, params: Json) -> "Future[Json]":
        """Sends a request; many can be under way."""
        future: "Future[Json]" = Future()
        with self._lock:
            if self._gone is not None:
                raise SandboxRunError("session.closed", self._gone)
            self._last_id += 1
            self._pending[self._last_id] = future
            message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
            try:
                self._writer.write(json.dumps(message).encode() + b"\n")
                self._writer.flush()
            except (OSError, ValueError) as error:
                del self._pending[self._last_id]
                raise SandboxRunError("session.closed", f"the server is gone ({error})") from error
        return future

    def request(self, method: str, params: Json) -> Json:
        return self.start_request(method, params).result()

    def close(self) -> None:
        self._close()
        self._answering.shutdown(wait=False)

    def __enter__(self) -> "SandboxRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def forget(self, command: str) -> None:
        """Of a spawned command that has ended nothing more comes."""
        with self._lock:
            self._events.pop(command, None)

    def _events_of(self, name: str) -> "queue.SimpleQueue[Json]":
        with self._lock:
            return self._events.setdefault(name, queue.SimpleQueue())

    def _read(self) -> None:
        try:
            for line in self._reader:
                self._take(json.loads(line))
        except (OSError, ValueError):
            pass
        with self._lock:
            self._gone = "the connection to the server has ended"
            pending: List["Future[Json]"] = list(self._pending.values())
            self._pending.clear()
            events = list(self._events.values())
        for future in pending:
            future.set_exception(SandboxRunError("session.closed", self._gone))
        for waiting in events:
            waiting.put({"error": self._gone})

    def _take(self, message: Json) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method is None:
            with self._lock:
                future = self._pending.pop(message["id"], None)
            if future is None:
                return
            if "error" in message:
                error = message["error"]
                future.set_exception(SandboxRunError(error["data"]["code"], error["message"]))
            else:
                future.set_result(message["result"])
        elif method in ("output", "ended") and "command" in params:
            self._events_of(params["command"]).put(params)
        elif method == "approvals.requested" and self._approve is not None:
            self._answering.submit(self._answer, params)

    def _answer(self, question: Json) -> None:
        assert self._approve is not None
        try:
            said = self._approve(question)
        except Exception:
            said = False
        scope = {"scope": said} if isinstance(said, str) else {}
        answer = {"question": question["question"], "approved": bool(said), **scope}
        try:
            self.request("approvals.answer", answer)
        except SandboxRunError:
            pass  # It came too late.


def _with_timeout(timeout: Optional[float], options: Json) -> Json:
    return options if timeout is None else {**options, "timeout": round(timeout * 1000)}
