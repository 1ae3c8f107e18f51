"""`unhans serve`: the application, its worker and the address to open, until somebody stops it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import httpx
import uvicorn

from unhans.accounts import Accounts, LocalToken
from unhans.errors import BadOption, ProjectProblem
from unhans.server import STATIC, make_app
from unhans.server.security import Settings, check_bind
from unhans.supervising import Supervisor, WorkerSettings
from unhans.workspace import Workspace

_FINISHING = 5  # seconds that requests may take to end


@dataclass(frozen=True)
class Place:
    """Where and how to serve."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8321
    database: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    root_path: str = ""
    https: bool = False  # people reach us by https, through a proxy
    works: bool = True  # whether jobs are done here
    pages: bool = True  # whether there must be pages for browsers; programs need none
    page: str = ""  # the one to begin with; empty: home


def serve(place: Place, tell: Callable[[str], None], once: Callable[[_Server], None] | None = None) -> None:
    """Serve a project or a folder of projects until a signal ends it; `tell` gets the lines for the terminal.

    `once` is called beside it, in a thread of its own, and may end it.
    """
    settings = Settings(place.allowed_hosts, place.root_path, place.https, place.port)
    if place.pages and not (STATIC / "index.html").is_file():
        raise BadOption("The browser pages are not built. Install unhans anew with `pip install .`, which builds them.")
    with Workspace.open(place.folder, database=place.database) as workspace, workspace.alone():
        accounts = Accounts(workspace.store)
        check_bind(place.host, accounts.can_log_in(), place.allowed_hosts)
        stopping = threading.Event()
        token = LocalToken(accounts)
        queue = None if workspace.store.is_sqlite else workspace.store.name
        told = WorkerSettings(str(workspace.root), workspace.database, schema=queue)
        supervisor = Supervisor(workspace.jobs, told)
        config = uvicorn.Config(
            "",  # the application is made below: its cookie is named after the port that was really taken
            host=place.host,
            port=place.port,
            log_level="warning",
            access_log=False,
            server_header=False,
            # who has told us its name has a proxy in front, which tells us where people come from
            proxy_headers=bool(place.allowed_hosts),
            forwarded_allow_ips="127.0.0.1",
            ws="none",
            timeout_graceful_shutdown=_FINISHING,
        )
        server = _Server(config, stopping)
        server.bind()
        settings = replace(settings, port=server.port)
        config.app = make_app(workspace, accounts=accounts, token=token, settings=settings, stopping=stopping)
        if place.works:
            supervisor.start()
        try:
            for line in _welcome(place, server.port, token.token, accounts.can_log_in()):
                tell(line)
            beside = threading.Thread(target=once, args=(server,)) if once else None
            if beside:
                beside.start()
            server.run(sockets=server.sockets)
            if beside:
                beside.join()
        finally:
            supervisor.stop()


def try_out(place: Place) -> str:
    """Start the server for a moment, ask it for its page, and say how that went: for scripts, where nobody looks."""
    lines: list[str] = []
    found: list[int] = []

    def ask(server: _Server) -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=10) as client:
            for _ in range(100):
                try:
                    found.append(client.get("/").status_code)
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
        server.should_exit = True

    serve(replace(place, port=0, works=False), lines.append, once=ask)
    if found != [200]:
        raise ProjectProblem(f"The workbench did not answer as it should ({found or 'no answer'}).")
    return f"The workbench works. To open it: unhans serve {place.folder}"


class _Server(uvicorn.Server):
    """uvicorn, which tells streams of news to end before it waits for them."""

    def __init__(self, config: uvicorn.Config, stopping: threading.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    def bind(self) -> None:
        """Take the port now, so that a port in use is told before anything starts."""
        try:
            self.sockets = [self.config.bind_socket()]
            self.sockets[0].listen(self.config.backlog)  # whoever opens the printed address at once waits in the queue
        except SystemExit:
            raise BadOption(
                f"Port {self.config.port} cannot be used: another program has it, perhaps another `unhans serve`. "
                "Choose one with --port."
            ) from None

    @property
    def port(self) -> int:
        """The port that was really taken."""
        port: int = self.sockets[0].getsockname()[1]
        return port

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: news end, then everything else."""
        self._stopping.set()
        super().handle_exit(sig, frame)


def _welcome(place: Place, port: int, token: str, accounts: bool) -> Sequence[str]:
    host = "127.0.0.1" if place.host in ("0.0.0.0", "::") else place.host
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}{place.root_path}/"
    lines = [
        f"unhans is at {address}?token={token}{f'#{place.page}' if place.page else ''}",
        "Open this address in a browser; it lets you in. Ctrl-C stops the server.",
    ]
    if accounts:
        named = place.allowed_hosts[0] if place.allowed_hosts else None
        where = f"{'https' if place.https else 'http'}://{named}{place.root_path}/" if named else address
        lines.append(f"People with accounts sign in at {where}")
    return lines
