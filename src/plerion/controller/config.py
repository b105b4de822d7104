"""`plerion.yaml`: everything that a controller is told, checked, with file, line and column of what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, TypeVar, get_args

from plerion.content import yaml_file
from plerion.content.errors import ContentError, SchemaError, quoted, suggestion
from plerion.controller.prepare import AUTO
from plerion.controller.quota import Quotas
from plerion.controller.reindex import Automatic
from plerion.controller.section import Section
from plerion.controller.state import Settings
from plerion.flow.render import LastHop
from plerion.index.address import AddressPlan
from plerion.index.codec import read_index
from plerion.index.cover import DEFAULT_BUDGET, MAX_BUDGET
from plerion.routing.tree import DEFAULT_MAX_TREES
from plerion.topology.error import TopologyError
from plerion.topology.generate import is_name
from plerion.topology.graph import SwitchId, Topology
from plerion.topology.read import load
from plerion.update.strategies import STRATEGIES

Role = Literal["reader", "writer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
LEVELS = ("debug", "info", "warning", "error")
SHORTEST_TOKEN = 16
EPOCH_BITS = 2  # one would do, if nobody ever slept through a change of index
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files; `authority` signs the certificates of those who connect."""

    certificate: Path
    key: Path
    authority: Path | None = None


@dataclass(frozen=True, slots=True)
class Listen:
    host: str
    port: int
    tls: TlsFiles | None = None

    @property
    def loopback(self) -> bool:
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Token:
    """Who shows the token with this digest may do what the role allows."""

    name: str
    role: Role
    digest: bytes


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    usual_seconds: float = 30.0
    longest_seconds: float = 3_600.0


@dataclass(frozen=True, slots=True)
class Config:
    """What `plerion up` runs with.

    A switch that is gone for `grace_seconds` is taken for down; at the start, when switches find their way back to a
    controller that was gone itself, they have `start_seconds`.
    """

    settings: Settings
    journal: Path
    openflow: Listen
    api: Listen
    tokens: tuple[Token, ...] = ()
    switch_ids: Mapping[SwitchId, int] | None = None
    last_hop: LastHop = "raw"
    leases: LeaseTimes = field(default_factory=LeaseTimes)
    quotas: Quotas = field(default_factory=Quotas)
    grace_seconds: float = 5.0
    start_seconds: float = 30.0
    beacon_seconds: float = 5.0
    log_level: str = "info"
    reindex: Automatic = field(default_factory=Automatic)


def read_config(path: str | Path) -> Config:
    """The configuration in a file, everything that it names loaded; SchemaError with the place otherwise."""
    file = yaml_file.load(Path(path))
    try:
        return _config(Section.of(file.content), Path(path).parent)
    except SchemaError as error:
        raise file.located(error) from None


def _config(top: Section, folder: Path) -> Config:
    openflow, api, leases = (top.section(name) for name in ("openflow", "api", "leases"))
    settings = _settings(top, folder)
    switches = _listen(openflow, "127.0.0.1:6653", folder)
    tokens = tuple(_token(entry, folder) for entry in api.sections("tokens"))
    operators = _listen(api, "127.0.0.1:8080", folder)
    _check_exposure(openflow, switches, api, operators, tokens)
    found = Config(
        settings,
        journal=folder / top.text("journal", "plerion.journal"),
        openflow=switches,
        api=operators,
        tokens=tokens,
        switch_ids=_switch_ids(openflow, settings.topology),
        last_hop=top.choice("last_hop", ("raw", "rewrite"), "raw"),
        leases=LeaseTimes(
            leases.number("usual_seconds", 30.0, 1, 86_400),
            leases.number("longest_seconds", 3_600.0, 1, 86_400),
        ),
        quotas=_quotas(top.section("quotas")),
        grace_seconds=top.number("grace_seconds", 5.0, 0, 3_600),
        start_seconds=top.number("start_seconds", 30.0, 0, 3_600),
        beacon_seconds=top.number("beacon_seconds", 5.0, 0.1, 3_600),
        log_level=top.choice("log_level", LEVELS, "info"),
        reindex=_automatic(top.section("reindex"), folder),
    )
    for section in (top, openflow, api, leases):
        section.close()
    return found


def _settings(top: Section, folder: Path) -> Settings:
    source, index_file = top.text("topology"), top.text("index")
    topology = _at(top, "topology", lambda: load(source if is_name(source) else folder / source))
    index = _at(top, "index", lambda: read_index(folder / index_file))
    epoch_bits = top.whole("epoch_bits", EPOCH_BITS, 0, 8)
    room = AddressPlan(epoch_bits=epoch_bits).capacity
    if index.bits > room:
        what = f"its codes have {index.bits} bits, beside {epoch_bits} epoch bits"
        raise top.error("index", what, f"use at most {room}")
    budget = top.whole("budget", DEFAULT_BUDGET, 1, MAX_BUDGET)
    trees = top.whole("max_trees", DEFAULT_MAX_TREES, 1, 1_000_000)
    return Settings(topology, index, budget, trees, _tcam(top, topology), epoch_bits)


def _tcam(top: Section, topology: Topology) -> dict[SwitchId, int]:
    """`tcam: 2000` for all, or a number by switch, where `others` stands for those not named."""
    if not isinstance(top.get("tcam"), dict):
        room = top.whole("tcam", 0, 1, 10**9) if top.get("tcam") is not None else 0
        return dict.fromkeys(topology.switches, room) if room else {}
    rooms = top.section("tcam")
    others = rooms.whole("others", 0, 1, 10**9) if "others" in rooms else 0
    found = dict.fromkeys(topology.switches, others) if others else {}
    for name in rooms.names():
        _known(rooms, name, topology)
        found[SwitchId(name)] = rooms.whole(name, 0, 1, 10**9)
    return found


def _known(section: Section, name: str, topology: Topology) -> None:
    if name not in topology.switches:
        what = f"there is no switch {quoted(name)} in this network"
        raise section.error(name, what, suggestion(name, topology.switches))


def _switch_ids(openflow: Section, topology: Topology) -> Mapping[SwitchId, int] | None:
    """Ids that switches connect with, where they are not the positions in the topology."""
    given = openflow.section("ids")
    found = {switch: number for number, switch in enumerate(topology.switches, start=1)}
    for name in given.names():
        _known(given, name, topology)
        found[SwitchId(name)] = given.whole(name, 0, 1, 2**64 - 1)
    holder: dict[int, str] = {}
    for switch, number in found.items():
        if holder.setdefault(number, switch) != switch:
            what = f"{switch} and {holder[number]} have the same id {number}"
            raise openflow.error("ids", what, "give each switch its own")
    return found if "ids" in openflow else None


def _listen(section: Section, default: str, folder: Path) -> Listen:
    text = section.text("listen", default)
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise section.error("listen", f"{quoted(text)} is no address", "write 127.0.0.1:6653 or [::1]:6653")
    return Listen(host.strip("[]"), int(port), _tls(section, folder))


def _tls(section: Section, folder: Path) -> TlsFiles | None:
    if "tls" not in section:
        return None
    tls = section.section("tls")
    names = ("certificate", "key", *(("authority",) if "authority" in tls else ()))
    files = [folder / tls.text(name) for name in names]
    tls.close()
    for name, file in zip(names, files, strict=True):
        if not file.is_file():
            raise tls.error(name, f"there is no file {quoted(str(file))}", "check the path")
    return TlsFiles(*files)


def _token(entry: Section, folder: Path) -> Token:
    name, role = entry.text("name"), entry.choice("role", ROLES, None)
    if ("token" in entry) == ("token_file" in entry):
        raise entry.error("name", "a token is missing, or there are two", "give token or token_file")
    key = "token" if "token" in entry else "token_file"
    text = entry.text(key)
    secret = text if key == "token" else _at(entry, key, lambda: (folder / text).read_text().strip())
    entry.close()
    if len(secret) < SHORTEST_TOKEN:
        fix = f"use at least {SHORTEST_TOKEN}, drawn at random"
        raise entry.error(key, f"a token of {len(secret)} characters can be guessed", fix)
    return Token(name, role, sha256(secret.encode()).digest())


def _quotas(given: Section) -> Quotas:
    usual = Quotas()
    found = Quotas(
        subscriptions=given.whole("subscriptions", usual.subscriptions, 0, 10**9),
        advertisements=given.whole("advertisements", usual.advertisements, 0, 10**9),
        sessions=given.whole("sessions", usual.sessions, 0, 10**6),
        requests_per_second=given.number("requests_per_second", usual.requests_per_second, 0.1, 10**9),
        unanswered=given.whole("unanswered", usual.unanswered, 1, 10**6),
    )
    given.close()
    return found


def _automatic(given: Section, folder: Path) -> Automatic:
    usual = Automatic()
    index_file, proposals = (
        folder / given.text(name) if name in given else None for name in ("index_file", "proposals")
    )
    found = Automatic(
        index_file,
        proposals,
        enabled=given.flag("automatic", usual.enabled),
        strategy=given.choice("strategy", (AUTO, *STRATEGIES), usual.strategy),
        prefer=given.choice("prefer", ("accurate", "small"), usual.prefer),
        margin=given.number("margin", usual.margin, 0, 1),
        period_seconds=given.number("period_seconds", usual.period_seconds, 0, 10**7),
        watch_seconds=given.number("watch_seconds", usual.watch_seconds, 1, 3_600),
    )
    if found.enabled and found.proposals is None:
        what = "changes are to be automatic, and where proposals come in is not said"
        raise given.error(
            "automatic", what, "give proposals: the folder that `plerion pipeline watch` writes"
        )
    given.close()
    return found


def _check_exposure(
    openflow: Section, switches: Listen, api: Section, operators: Listen, tokens: tuple[Token, ...]
) -> None:
    if switches.tls is not None and switches.tls.authority is None:
        what = "who signs the certificates of the switches is not said"
        raise openflow.error("tls", what, "give an authority beside certificate and key")
    if not switches.loopback and switches.tls is None:
        what = f"switches would be told by anybody who reaches {switches.host}"
        raise openflow.error("listen", what, "give tls with an authority, or listen on 127.0.0.1")
    if not operators.loopback and (operators.tls is None or not tokens):
        what = f"the API would be open to anybody who reaches {operators.host}"
        raise api.error("listen", what, "give tls and tokens, or listen on 127.0.0.1")


def _at(section: Section, key: str, work: Callable[[], T]) -> T:
    """What a key names, loaded; whatever is wrong with it is wrong at the key."""
    try:
        return work()
    except ContentError as error:
        raise section.error(key, error.summary) from None
    except (TopologyError, ValueError) as error:
        raise section.error(key, str(error)) from None
    except OSError as error:
        raise section.error(
            key, f"{error.filename} cannot be read ({error.strerror})", "check the path"
        ) from None
