"""The server of the page: uvicorn on one socket, which ends soon after Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import uvicorn

from losse.watch.app import make_app
from losse.watch.watched import Watched

PORT = 8321


def listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens; without a port, on the usual one or, if that is taken, on any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for chosen in (PORT, 0) if port is None else (port,):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, chosen))
            made.listen(128)
            return made
        except OSError as error:
            made.close()
            reason = error
    raise ValueError(
        f"port={port} of {host} cannot be used ({reason}): choose another --port, or none."
    ) from reason


def serve(
    watched: Watched,
    host: str = "127.0.0.1",
    port: int | None = None,
    names: Sequence[str] = (),
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    watched
        What is shown.
    host, port
        Where to listen: by default only programs on this machine can connect. No port: the usual
        one, or any other if it is taken.
    names
        Names of this machine that may stand in addresses, beside localhost.
    ready
        Called with the address of the page.
    """
    with listening(host, port) as made:
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{made.getsockname()[1]}/")
        server: uvicorn.Server
        app = make_app(watched, names, stopping=lambda: server.should_exit)
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        server.run(sockets=[made])
