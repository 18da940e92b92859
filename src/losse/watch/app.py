"""The web application: a page, its data as JSON, and events that say what has changed.

It answers GET and HEAD only. Folders and runs have ids in addresses, never paths, and the files of
the page are a fixed list, so no address leads to any other file. A request whose Host header is
the name of another machine is refused: so a web page cannot reach the server under a name of its
own (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from losse.watch.watched import Watched

EVERY_SECONDS = 1.0
"""Time between two looks at the folders, however many pages are open."""
ALIVE_SECONDS = 15.0
"""Time after which a silent stream of events says that it is alive."""
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def page_files() -> dict[str, bytes]:
    """The files of the page by their addresses.

    >>> "/" in page_files()
    True
    """
    found = {}
    page = files("losse.watch") / "page"
    for folder, prefix in ((page, ""), (page / "vendor", "vendor/")):
        for file in folder.iterdir():
            if file.is_file() and file.name.endswith(tuple(_KINDS)):
                found[f"/{prefix}{file.name}"] = file.read_bytes()
    found["/"] = found.pop("/index.html")
    return found


class News:
    """News of the watched folders: one look for all pages, which wait for it."""

    def __init__(self, watched: Watched, stopping: Callable[[], bool]) -> None:
        self._watched = watched
        self._stopping = stopping
        self._changed = asyncio.Condition()

    async def look(self) -> None:
        """Look at the folders from time to time, and wake whoever waits; ends with its task."""
        clock = asyncio.get_running_loop().time
        while not self._stopping():
            began = clock()
            if await asyncio.to_thread(self._watched.refresh):
                async with self._changed:
                    self._changed.notify_all()
            # Folders that take long to look at are looked at less often.
            pause = max(EVERY_SECONDS, 10 * (clock() - began))
            while pause > 0 and not self._stopping():
                await asyncio.sleep(min(pause, EVERY_SECONDS / 2))
                pause -= EVERY_SECONDS / 2
        async with self._changed:
            self._changed.notify_all()

    async def stream(self) -> AsyncIterator[str]:
        """Events: the versions of all folders, at once and whenever they change."""
        told = -1
        while not self._stopping():
            if self._watched.version != told:
                told = self._watched.version
                yield f"data: {json.dumps(self._watched.versions())}\n\n"
                continue
            try:
                async with asyncio.timeout(ALIVE_SECONDS), self._changed:
                    await self._changed.wait()
            except TimeoutError:
                yield ": alive\n\n"


class Guard:
    """Wrapper of an application that refuses other machines' names, and adds headers.

    An address of digits cannot be a name that somebody has pointed here, so it passes.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str] = ()) -> None:
        self._app = app
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if not self._welcome(request.headers.get("host", "")):
            text = (
                "Refused: this address names another machine. Open the page as http://127.0.0.1, "
                "or start losse watch with --allow-name.\n"
            )
            await PlainTextResponse(text, 421, HEADERS)(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                message["headers"] += [
                    (name.lower().encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.lower().encode() not in names
                ]
            await send(message)

        await self._app(scope, receive, with_headers)

    def _welcome(self, host: str) -> bool:
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") <= 1:
            name = name.partition(":")[0]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True


def make_app(
    watched: Watched,
    names: Sequence[str] = (),
    stopping: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """The application that shows watched folders.

    Parameters
    ----------
    watched
        What it shows.
    names
        Names of this machine in addresses, beside localhost.
    stopping
        Tells whether the server is about to end; streams of events then end, too.
    """
    page = page_files()
    found: dict[str, News] = {}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        found["news"] = News(watched, stopping)
        await asyncio.to_thread(watched.refresh)
        looking = asyncio.create_task(found["news"].look())
        yield
        looking.cancel()

    async def part(request: Request) -> Response:
        body = page.get(request.url.path)
        if body is None:
            return PlainTextResponse("There is no such page.\n", 404)
        kind = "." + request.url.path.rpartition(".")[2]
        return Response(body, media_type=_KINDS.get(kind, _KINDS[".html"]))

    async def overview(_: Request) -> Response:
        return JSONResponse(watched.overview())

    async def folder(request: Request) -> Response:
        answer = await asyncio.to_thread(watched.folder, request.path_params["id"])
        if answer is None:
            return JSONResponse({"problem": "This folder is gone."}, 404)
        tag = f'"{answer[0]}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304)
        return Response(answer[1], media_type="application/json", headers={"ETag": tag})

    async def probe(request: Request) -> Response:
        answer = await asyncio.to_thread(watched.probe, request.path_params["id"])
        if answer is None:
            return JSONResponse({"problem": "This run has no probe."}, 404)
        return JSONResponse(answer)

    async def events(_: Request) -> Response:
        return StreamingResponse(found["news"].stream(), media_type="text/event-stream")

    routes = [
        Route("/api/overview", overview),
        Route("/api/folder/{id:str}", folder),
        Route("/api/probe/{id:str}", probe),
        Route("/events", events),
        Route("/{rest:path}", part),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), names)
