"""What a controller knows, and the tables that follow from it.

Everything here is a function of the settings and of what is live: advertisements in their order, subscriptions,
failures. `live` lists it as inputs; stepping an empty state through that list gives an equal state, whatever the
history was. That is what makes the journal compactable and a restart exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from plerion.controller.inputs import Advertise, Input, LinkDown, Subscribe, SwitchDown
from plerion.flow.admission import Admission
from plerion.flow.diff import Diff
from plerion.flow.fabric import Fabric, fabric
from plerion.flow.fit import TreesDoNotFit
from plerion.flow.limited import LimitedTable
from plerion.index.address import AddressPlan
from plerion.index.content_index import ContentIndex
from plerion.index.cover import DEFAULT_BUDGET, MAX_BUDGET
from plerion.index.dzset import DzColumns, DzSet
from plerion.routing.interest import Advertisement
from plerion.routing.tree import DEFAULT_MAX_TREES, Forest, Spanning, forest, sources, spanning
from plerion.topology.graph import HostId, Port, SwitchId, Topology
from plerion.update.entries import ANY
from plerion.update.state import UNSTAMPED, NetworkState, Stamp


@dataclass(frozen=True, slots=True)
class Settings:
    """What a state is a function of, beside what is live; only a rollout changes any of it while a controller runs."""

    topology: Topology
    index: ContentIndex
    budget: int = DEFAULT_BUDGET
    max_trees: int = DEFAULT_MAX_TREES
    tcam: Mapping[SwitchId, int] = field(default_factory=dict)
    epoch_bits: int = 0  # of each address, to tell versions of the index apart
    stamp: Stamp = UNSTAMPED  # what events and entries carry now

    def __post_init__(self) -> None:
        if self.max_trees < 1:
            raise ValueError(f"max_trees: {self.max_trees}: events need at least 1 tree to travel on")
        if not 1 <= self.budget <= MAX_BUDGET:
            raise ValueError(f"budget: {self.budget}: a cover takes 1 to {MAX_BUDGET} dz")
        for switch, limit in self.tcam.items():
            if switch not in self.topology.switches or limit < 1:
                raise ValueError(f"tcam: {switch} with {limit} entries: name a switch and at least 1 entry")
        if self.epoch_bits and self.stamp.epoch == ANY:
            object.__setattr__(self, "stamp", replace(self.stamp, epoch=0))
        if self.index.bits > self.plan.capacity:
            what = f"index: codes of {self.index.bits} bits and {self.epoch_bits} epoch bits"
            raise ValueError(f"{what}: an address has room for {self.plan.capacity} bits of a code")

    @property
    def plan(self) -> AddressPlan:
        """How codes become addresses now."""
        return AddressPlan(epoch_bits=self.epoch_bits, epoch=max(0, self.stamp.epoch))


@dataclass(slots=True)
class State:
    """Belongs to one caller at a time: `step` consumes it and hands it back changed."""

    settings: Settings
    table: LimitedTable
    forest: Forest
    advertisements: dict[str, Advertise] = field(default_factory=dict)
    announced: dict[str, Advertisement] = field(default_factory=dict)
    subscriptions: dict[str, Subscribe] = field(default_factory=dict)
    covers: dict[str, DzColumns] = field(default_factory=dict)
    dead_switches: dict[SwitchId, None] = field(default_factory=dict)
    dead_links: dict[Port, None] = field(default_factory=dict)
    surviving: Topology = field(init=False)
    admitted: frozenset[Admission] = frozenset()  # what the edge lets in
    merged: bool = False  # limits forced fewer trees than the settings allow

    def __post_init__(self) -> None:
        self.surviving = self.settings.topology

    @property
    def fabric(self) -> Fabric:
        return self.table.fabric

    def live(self) -> Iterator[Input]:
        """The shortest list of inputs that leads to this state."""
        yield from (SwitchDown(switch) for switch in self.dead_switches)
        yield from (LinkDown(str(port)) for port in self.dead_links)
        yield from self.advertisements.values()
        yield from self.subscriptions.values()

    def sent(self) -> dict[HostId, DzSet]:
        """What each publisher may send."""
        found: dict[HostId, DzSet] = {}
        for advertisement in self.announced.values():
            found[advertisement.host] = found.get(advertisement.host, DzSet()) | advertisement.dz
        return found

    def network(self) -> NetworkState:
        """What an update sees of it."""
        return NetworkState(self.table.tables(), self.sent(), self.settings.stamp)

    def survey(self) -> Diff:
        """After a failure or a return: what survives, and the change to the tables."""
        self.surviving = self.settings.topology.without(self.dead_switches, self.dead_links)
        return self.reroute()

    def reroute(self) -> Diff:
        """Trees anew from the advertisements; with fewer and fewer of them until every table fits."""
        allowed = self.settings.max_trees
        while True:
            grown = forest(self.surviving, self.announced.values(), allowed)
            try:
                change = self.route(grown)
            except TreesDoNotFit:
                allowed = max(1, min(allowed, len(grown.trees)) // 2)
                continue
            self.merged = allowed < self.settings.max_trees
            return change

    def route(self, grown: Forest) -> Diff:
        """Makes this the forest."""
        self.forest = grown
        version = (frozenset(self.dead_switches), frozenset(self.dead_links))
        return self.table.route(
            sources(grown, self.surviving), [tree.dz for tree in grown.trees], self._spanning, version
        )

    def _spanning(self, root: SwitchId) -> Spanning:
        return spanning(self.surviving, root, self.fabric.host_number)


def initial(settings: Settings) -> State:
    """A controller that has heard nothing yet."""
    return State(
        settings, LimitedTable(fabric(settings.topology), settings.tcam), Forest(max_trees=settings.max_trees)
    )


def host(state: State, name: str) -> HostId | None:
    """The host of this name, if the network has one."""
    return HostId(name) if name in state.fabric.host_number else None
