"""Put a server under load it was not made for, on loopback, and count what it answers.

    python scripts/soak/load.py --command target/release/bayespc [--seconds 20] [--clients 16]

A model is fitted to the built-in wine table and served. Then, all at once and for so many seconds each:

* good:     requests of one row, on open connections, as fast as answers come; every answer must be that of
            the model;
* mixed:    good ones between broken JSON, wrong columns, wrong types, oversized bodies, unknown paths: 4xx
            for those, named;
* slow:     clients that send a byte now and then, beside good ones; good ones must not wait for them;
* reload:   the model file is replaced by another again and again: every answer is that of one of the two
            models;
* stop:     SIGTERM under load, in the middle of long requests too: every request that was accepted is
            answered, and the process ends with 0.

One JSON line in the end: requests per second, latencies in milliseconds, memory in MB, what went wrong
(nothing, or the script exits with 1). Bounded in time and in the number of clients.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROW = {
    "fixed_acidity": 7.4, "volatile_acidity": 0.7, "citric_acid": 0.0, "residual_sugar": 1.9,
    "chlorides": 0.076, "free_sulfur_dioxide": 11.0, "total_sulfur_dioxide": 34.0, "density": 0.9978,
    "ph": 3.51, "sulphates": 0.56, "alcohol": 9.4,
}  # fmt: skip

LONG = 20_000
"""Rows of a request that takes a while."""

ACCEPTED = 0.02
"""Seconds after which a server has taken what was sent to it; what came later may meet a closed door."""


class Failure(Exception):
    """The connection ended without an answer."""


class Connection:
    """An open connection that asks and hears."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        """Ask and return status and body; a new connection where the last one was closed."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            if self.streams is None:
                self.streams = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = self.streams
            writer.write(head.encode() + body)
            await writer.drain()
            status = await reader.readline()
            if not status:
                raise Failure
            length, closes = 0, False
            while (line := await reader.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode().partition(":")
                length = int(value) if name.lower() == "content-length" else length
                closes = closes or (name.lower() == "connection" and "close" in value)
            answer = await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.close()
            raise Failure from error
        if closes:
            self.close()
        return int(status.split()[1]), answer

    def close(self) -> None:
        """Forget the connection."""
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


class Load:
    """A server, what it should answer, and what was seen."""

    def __init__(self, command: Path, folder: Path, seconds: float, clients: int) -> None:
        self.command, self.folder = str(command.resolve()), folder
        self.seconds, self.clients = seconds, clients
        self.wrong: list[str] = []
        self.path = "/v2/models/m/infer"
        inputs = [
            {"name": name, "shape": [1], "datatype": "FP64", "data": [value]} for name, value in ROW.items()
        ]
        self.body = json.dumps({"inputs": inputs, "outputs": [{"name": "mean"}]}).encode()
        for name, seed in (("a", 1), ("b", 2)):
            fit = ["fit", "wine", "--target", "quality", "--preset", "fast", "--set", "training.epochs=5"]
            line = [self.command, *fit, "--seed", str(seed), "--out", f"{name}.safetensors"]
            subprocess.run(line, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.copy(folder / "a.safetensors", folder / "m.safetensors")

    def complain(self, what: str) -> None:
        """Remember what went wrong, once."""
        if what not in self.wrong and len(self.wrong) < 20:
            self.wrong.append(what)
            print(what, file=sys.stderr)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        line = [self.command, "serve", "m.safetensors", "--port", str(self.port)]
        self.process = subprocess.Popen(
            line, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise RuntimeError("the server does not start")

    def memory(self) -> float:
        """Return the resident memory of the server in MB, where the system tells."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) / 1024
        return float("nan")

    async def mean(self) -> float:
        """Return what the model at hand answers."""
        status, body = await Connection(self.port).post(self.path, self.body)
        if status != 200:
            raise RuntimeError(f"{status}: {body!r}")
        return float(json.loads(body)["outputs"][0]["data"][0])

    async def good(self, until: float, expected: set[float], seen: list[float]) -> None:
        """Ask until the time is up, one after the other."""
        connection = Connection(self.port)
        while time.monotonic() < until:
            began = time.perf_counter()
            try:
                status, body = await connection.post(self.path, self.body)
            except Failure:
                self.complain("a good request had no answer")
                continue
            if status == 503:
                await asyncio.sleep(0.01)
                continue
            seen.append(1000 * (time.perf_counter() - began))
            if status != 200:
                self.complain(f"a good request: {status}")
            elif float(json.loads(body)["outputs"][0]["data"][0]) not in expected:
                self.complain("a wrong answer")
        connection.close()

    async def bad(self, until: float, seen: Counter[int]) -> None:
        """Ask what cannot be answered."""
        column = {"name": "x", "shape": [1], "datatype": "FP64", "data": [1]}
        unknown = json.loads(self.body) | {"inputs": [column]}
        texts = json.loads(self.body)
        texts["inputs"][0] |= {"datatype": "BYTES", "data": ["sour"]}
        asked: list[tuple[str, bytes, set[int]]] = [
            (self.path, self.body[:-9], {400}),
            (self.path, b"\xff\x00", {400}),
            (self.path, json.dumps(unknown).encode(), {400}),
            (self.path, json.dumps(texts).encode(), {400}),
            ("/v2/models/none/infer", self.body, {404}),
            ("/nowhere", self.body, {404}),
            (self.path, b" " * (33 << 20), {413}),
        ]
        turn = 0
        while time.monotonic() < until:
            path, body, fitting = asked[turn % len(asked)]
            turn += 1
            try:
                status, _ = await Connection(self.port).post(path, body)
            except Failure:
                # A server that has read enough of an oversized body may close before all of it was sent.
                if len(body) < 1 << 20:
                    self.complain("a bad request had no answer")
                continue
            seen[status] += 1
            if status not in fitting | {503}:
                self.complain(f"a bad request to {path} of {len(body)} bytes: {status}")

    async def slow(self, until: float) -> None:
        """Send a byte now and then."""
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            text = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n".encode()
            for byte in text + b" " * 1000:
                if time.monotonic() > until:
                    break
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
            writer.close()

    async def together(self, expected: set[float], others: Any = ()) -> dict[str, float]:
        """Run good clients beside others and return how they fared."""
        seen: list[float] = []
        began = time.monotonic()
        until = began + self.seconds
        good = [self.good(until, expected, seen) for _ in range(self.clients)]
        await asyncio.gather(*good, *(other(until) for other in others))
        seen.sort()
        if not seen:
            self.complain("no good request was answered")
            return {}
        at = {name: round(seen[int(p * (len(seen) - 1))], 2) for name, p in (("p50", 0.5), ("p99", 0.99))}
        rate = round(len(seen) / (time.monotonic() - began))
        return {"requests": len(seen), "per_second": rate, **at, "memory_mb": round(self.memory(), 1)}

    def put(self, name: str) -> None:
        """Put a model in place of the one that is served, atomically."""
        shutil.copy(self.folder / f"{name}.safetensors", self.folder / "draft")
        os.replace(self.folder / "draft", self.folder / "m.safetensors")

    async def replacing(self, until: float) -> None:
        """Replace the model that is served again and again."""
        turn = 0
        while time.monotonic() < until:
            self.put("ba"[turn % 2])
            turn += 1
            await asyncio.sleep(1.5)

    async def stopping(self) -> dict[str, float]:
        """Send SIGTERM under load, long requests among it: what was accepted is answered."""
        seen = Counter[str]()
        signalled = float("inf")
        table = "\n".join([",".join(ROW), *[",".join(map(str, ROW.values()))] * LONG]).encode()

        async def ask(*request: Any) -> None:
            connection = Connection(self.port)
            while True:
                sent = time.monotonic()
                try:
                    status, _ = await connection.post(*request)
                except Failure:
                    if sent < signalled - ACCEPTED:
                        seen["lost"] += 1
                    elif sent < signalled:
                        seen["on its way"] += 1
                    return
                if status == 200:
                    seen["answered"] += 1
                    seen["answered after the signal"] += signalled < time.monotonic()
                elif status != 503:
                    self.complain(f"a good request before SIGTERM: {status}")

        quick = [asyncio.create_task(ask(self.path, self.body)) for _ in range(self.clients)]
        long = [asyncio.create_task(ask("/invocations", table, "text/csv")) for _ in range(4)]
        await asyncio.sleep(min(2.0, self.seconds))
        signalled = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.process.wait, 60)
        seconds = time.monotonic() - signalled
        await asyncio.wait_for(asyncio.gather(*quick, *long), 30)
        if code != 0 or seen["lost"]:
            self.complain(f"SIGTERM under load: exit code {code}, {seen['lost']} requests lost")
        if not seen["answered after the signal"]:
            self.complain("SIGTERM met no request that was being answered: there is nothing to be seen")
        return {"lost": 0, **seen, "exit_code": code, "seconds": round(seconds, 2)}

    async def run(self) -> dict[str, Any]:
        """Run all trials."""
        found: dict[str, Any] = {"memory_mb_at_start": round(self.memory(), 1)}
        first = await self.mean()
        found["good"] = await self.together({first})
        statuses: Counter[int] = Counter()
        found["mixed"] = await self.together({first}, [lambda until: self.bad(until, statuses)] * 4)
        found["mixed"]["refused"] = dict(sorted(statuses.items()))
        found["slow"] = await self.together({first}, [self.slow] * 100)
        self.put("b")
        other = first
        for _ in range(100):
            await asyncio.sleep(0.1)
            other = await self.mean()
            if other != first:
                break
        if other == first:
            self.complain("a new model file was not picked up")
        found["reload"] = await self.together({first, other}, [self.replacing])
        found["stop"] = await self.stopping()
        return found


def main() -> None:
    """Start, load, stop."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--command", type=Path, required=True, help="the program bayespc, with the server in it"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="of each trial")
    parser.add_argument("--clients", type=int, default=16)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load = Load(arguments.command, Path(folder), arguments.seconds, min(arguments.clients, 256))
        load.start()
        try:
            found = asyncio.run(load.run())
        finally:
            load.process.kill()
            load.process.wait()
    print(json.dumps(found | {"wrong": load.wrong}))
    sys.exit(1 if load.wrong else 0)


if __name__ == "__main__":
    main()
