"""How an application gets a session."""

from __future__ import annotations

from ipaddress import IPv6Address
from pathlib import Path
from typing import Final

from plerion.client.channel import CONTROLLER, Target
from plerion.client.logbook import FLUSH_SECONDS, Keeping
from plerion.client.opening import Opening
from plerion.client.place import find_place
from plerion.client.rehearsal import rehearse
from plerion.client.session import Session
from plerion.client.transport import Transport

LEASE_SECONDS: Final = 15.0
DEADLINE_SECONDS: Final = 10.0


def connect(
    address: str | IPv6Address | None = None,
    interface: str | None = None,
    *,
    controller: Target | None = None,
    transport: Transport | None = None,
    lease_seconds: float = LEASE_SECONDS,
    deadline_seconds: float = DEADLINE_SECONDS,
    log: str | Path | None = None,
    log_rate: float = 1.0,
    log_seconds: float = FLUSH_SECONDS,
) -> Opening[Session]:
    """A session on this host, to be entered or awaited.

    Without an address the host's own is taken; a machine that is no host is refused, and sends nothing.
    The controller withdraws all that the session asked for when it hears nothing for `lease_seconds`; a request
    that is not answered in `deadline_seconds` raises ControllerSilent. With `log` a share of what is sent and received
    goes into the event log in that directory, a file every `log_seconds` of traffic.

    A `transport` of your own replaces the network's, and then `controller` says where the controller listens on ::1.
    """

    async def joined() -> Session:
        place = find_place(address, interface) if transport is None else None
        rehearse()
        opened = None if log is None else Keeping(log, log_rate, log_seconds)
        session = Session(place, transport, lease_seconds, deadline_seconds, opened)
        await session.join(controller or CONTROLLER)
        return session

    return Opening(joined(), Session.close)
