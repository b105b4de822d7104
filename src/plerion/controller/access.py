"""Who may do what through the API, and how large a request may be. Knows neither routes nor frameworks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from plerion.controller.config import ROLES, Role, Token

MAX_BODY = 64 << 10
REINDEX = "/v1/reindex"
MAX_INDEX = 8 << 20  # of a body there, which has a whole index

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def permitted(tokens: Sequence[Token], role: Role, header: str | None) -> tuple[int, str] | None:
    """None when the bearer may act in this role, otherwise the HTTP status and the reason.

    All tokens are compared, each in the same time whatever was shown, so nothing is learned from how long it takes.
    """
    if not tokens:
        return None
    scheme, _, shown = (header or "").partition(" ")
    digest = sha256(shown.strip().encode("utf-8", "surrogateescape")).digest()
    found = [token for token in tokens if compare_digest(token.digest, digest)]
    if scheme.lower() != "bearer" or not found:
        return 401, "a token is needed: send the header 'Authorization: Bearer …'"
    if max(ROLES.index(token.role) for token in found) < ROLES.index(role):
        return 403, f"this needs the role {role}, and the token of {found[0].name!r} has {found[0].role}"
    return None


class _TooLarge(Exception):  # noqa: N818 - it never leaves this file
    pass


class Guard:
    """Around an ASGI application: bodies are bounded, and without tokens no page in a browser gets through."""

    def __init__(self, app: App, origins_allowed: bool) -> None:
        self._app = app
        self._origins_allowed = origins_allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if b"origin" in headers and not self._origins_allowed:
            await _refuse(send, 403, "requests of web pages need a token")
            return
        length = headers.get(b"content-length", b"0")
        most = MAX_INDEX if scope["path"].startswith(REINDEX) else MAX_BODY
        if not length.isdigit() or int(length) > most:
            await _refuse(send, 413, f"a body has at most {most:,} bytes")
            return
        await _Bounded(self._app, receive, send, most).run(scope)


class _Bounded:
    """One request whose body is cut off at the bound; whatever the application makes of that, the answer says why."""

    def __init__(self, app: App, receive: Receive, send: Send, most: int) -> None:
        self._app, self._receive, self._send, self._most = app, receive, send, most
        self._seen = 0
        self._answered = False

    async def run(self, scope: Scope) -> None:
        try:
            await self._app(scope, self._counted, self._passed)
        except _TooLarge:
            await self._refused()

    async def _counted(self) -> MutableMapping[str, Any]:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > self._most:
            raise _TooLarge
        return message

    async def _passed(self, message: MutableMapping[str, Any]) -> None:
        if self._seen > self._most:
            await self._refused()
        else:
            await self._send(message)

    async def _refused(self) -> None:
        if not self._answered:
            self._answered = True
            await _refuse(self._send, 413, f"a body has at most {self._most:,} bytes")


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = f'{{"error":"{reason}"}}'.encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
