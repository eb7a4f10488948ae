"""A web server that only reads: pages, figures and tables of the campaigns of a database.

It answers GET and HEAD of addresses that it makes itself, and reads no file by a name that it is given. A
request has to name this server as its Host, so that a page of elsewhere cannot have a browser read it under
another name (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pandas as pd

from fecbench.errors import BadInput
from fecbench.results.reading import Campaign
from fecbench.results.report.live import TABLES, VERSION, LivePages, beside_page, campaigns_page
from fecbench.results.store.database import Database
from fecbench.results.store.error import Replaced
from fecbench.results.store.records import CampaignInfo

_log = logging.getLogger(__name__)
_HTML, _JSON, _CSV = "text/html; charset=utf-8", "application/json", "text/csv; charset=utf-8"
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'self'; base-uri 'none'; form-action 'self'",
}
_OWN_PAGE = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'self'"
)


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    kind: str
    content: bytes
    status: HTTPStatus = HTTPStatus.OK
    policy: str = ""
    """The content security policy; "": that of the page itself."""


class Site:
    """The answers of the server, by the paths of requests. Requests wait for one another: what draws figures
    and reads tables is not made for several threads."""

    def __init__(self, database: Database) -> None:
        self._alone = threading.Lock()
        self._use(database)

    def _use(self, database: Database) -> None:
        self._database = database
        self._pages = LivePages(database)

    def answer(self, target: str) -> Answer:
        """Return the answer to a request of this path, with its query. A file that has taken the place of the
        database is opened. Raises DatabaseError."""
        try:
            address = urlsplit(target)
        except ValueError:
            return _NOT_FOUND
        parts = [unquote(part) for part in address.path.split("/")[1:]]
        query = parse_qs(address.query)
        with self._alone:
            try:
                return self._answer(parts, query)
            except Replaced:
                replacement = Database.open(self._database.address, read_only=True)
                self._database.close()
                self._use(replacement)
                return self._answer(parts, query)

    def _answer(self, parts: list[str], query: dict[str, list[str]]) -> Answer:
        match parts:
            case [""]:
                return self._index()
            case ["beside"]:
                return self._beside(query)
            case ["campaign", name, *rest]:
                campaign = self._database.campaign(name)
                return _NOT_FOUND if campaign is None else self._of(campaign, rest, query)
        return _NOT_FOUND

    def _of(self, campaign: CampaignInfo, rest: list[str], query: dict[str, list[str]]) -> Answer:
        match rest:
            case []:
                return Answer(_HTML, self._pages.html(campaign).encode())
            case ["standing.json"]:
                return _json(self._standing(campaign))
            case ["figure", name]:
                figure = self._pages.figure(campaign, name, *query.get(VERSION, [])[:1])
                return _NOT_FOUND if figure is None else Answer(*figure, policy="default-src 'none'")
            case [name] if name.endswith(".csv") and name.removesuffix(".csv") in TABLES:
                return Answer(_CSV, _table(self._database, campaign, name.removesuffix(".csv")))
        return _NOT_FOUND

    def _standing(self, campaign: CampaignInfo) -> dict[str, Any]:
        page, trials = self._pages.version(campaign)  # before the states: the page never has more trials
        is_held = bool(self._database.claims(campaign.id))
        states = self._database.states_of(campaign.id)
        run, invalid = sum(states.values()), states.get("invalid", 0)
        return {
            "states": states,
            "done": run - invalid,
            "planned": campaign.planned_trials,
            "ended": run >= campaign.planned_trials and not is_held,
            "shown": trials,
            "page": page,
        }

    def _index(self) -> Answer:
        campaigns = self._database.campaigns()
        states = [self._database.states_of(info.id) for info in campaigns]
        text = campaigns_page(self._database.address, list(zip(campaigns, states, strict=True)))
        return Answer(_HTML, text.encode(), policy=_OWN_PAGE)

    def _beside(self, query: dict[str, list[str]]) -> Answer:
        names = [(query.get(side) or [""])[0] for side in ("left", "right")]
        if None in map(self._database.campaign, names):
            return _NOT_FOUND
        return Answer(_HTML, beside_page(names).encode(), policy=_OWN_PAGE)


def _json(document: object) -> Answer:
    return Answer(_JSON, json.dumps(document).encode())


def _refusal(status: HTTPStatus, why: str) -> Answer:
    return Answer("text/plain; charset=utf-8", f"{why}\n".encode(), status)


_NOT_FOUND = _refusal(HTTPStatus.NOT_FOUND, "There is nothing of this name: / lists the campaigns.")


def _table(database: Database, campaign: CampaignInfo, name: str) -> bytes:
    exported = Campaign(database, campaign)
    tables: dict[str, Callable[[], pd.DataFrame]] = {
        "trials": exported.trials,
        "metrics": exported.metrics,
        "ratios": exported.ratios,
        "summary": exported.summary,
        "points": lambda: exported.table("points", ""),
    }
    return str(tables[name]().to_csv(index=False)).encode()


class Server(ThreadingHTTPServer):
    """The server of a site. Raises OSError where it cannot listen."""

    daemon_threads = True

    def __init__(self, host: str, port: int, answer: Callable[[str], Answer]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.answer = answer
        super().__init__((host, port), _Handler)
        self.names = {host.lower(), "localhost", socket.gethostname().lower(), socket.getfqdn().lower()}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of an error on standard error; of a client that went away, with --verbose alone."""
        if isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            _log.info("request of %s: the client went away", client_address)
        else:
            super().handle_error(request, client_address)

    def takes(self, host: str) -> bool:
        """Whether the Host of a request is a name or an address of this server, with its port."""
        try:
            address = urlsplit(f"//{host}")
            name, port = (address.hostname or "").lower(), address.port or 80
        except ValueError:
            return False
        return port == self.server_port and (name in self.names or _is_address(name))

    @property
    def url(self) -> str:
        """Address of the first page."""
        host = self.server_address[0]
        text = host.decode() if isinstance(host, bytes | bytearray) else str(host)
        return f"http://{f'[{text}]' if ':' in text else text}:{self.server_port}/"


def _is_address(name: str) -> bool:
    """Whether it is an IP address, which no foreign name server can point elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "fecbench"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer a request."""
        answer = self._answer()
        self.send_response(answer.status)
        headers = {**_HEADERS, "Content-Type": answer.kind, "Content-Length": str(len(answer.content))}
        if answer.policy:
            headers["Content-Security-Policy"] = answer.policy
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    do_HEAD = do_GET

    def _answer(self) -> Answer:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.takes(hosts[0]):
            return _refusal(HTTPStatus.FORBIDDEN, "The Host of the request is not this server.")
        try:
            return self.server.answer(self.path)
        except BadInput as problem:
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(problem))

    def log_message(self, format: str, *arguments: Any) -> None:
        """Tell a request with --verbose alone."""
        _log.info("request: %s", format % arguments)
