"""All strategies by name, and what each promises: what the checker holds them to, and the documents say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from plerion.topology.graph import Topology
from plerion.update.bridge import bridge
from plerion.update.custom_multicast import custom_multicast
from plerion.update.customised_versioning import customised_versioning
from plerion.update.direct import direct
from plerion.update.epoch import epoch
from plerion.update.ip_multicast import ip_multicast
from plerion.update.ordered import ordered
from plerion.update.plan import Plan
from plerion.update.state import NetworkState, Options
from plerion.update.tree_versioning import tree_versioning
from plerion.update.versioning import versioning

Strategy = Callable[[NetworkState, NetworkState, Topology, Options], Plan]


@dataclass(frozen=True, slots=True)
class Promise:
    """What never happens while a plan of the strategy runs, wherever it is applicable."""

    no_loss: bool = True
    no_double: bool = True  # nor loop
    coherent: bool = True  # no event is forwarded by an entry of the other state
    accurate: bool = True  # nobody gets what neither state would give them

    @property
    def safe(self) -> bool:
        return self.no_loss and self.no_double


@dataclass(frozen=True, slots=True)
class Known:
    make: Strategy
    promise: Promise


STRATEGIES: Mapping[str, Known] = MappingProxyType(
    {
        "epoch": Known(epoch, Promise()),
        "versioning": Known(versioning, Promise()),
        "custom-multicast": Known(custom_multicast, Promise(accurate=False)),
        "ip-multicast": Known(ip_multicast, Promise(accurate=False)),
        "bridge": Known(bridge, Promise()),
        "ordered": Known(ordered, Promise(no_double=False, coherent=False, accurate=False)),
        "direct": Known(direct, Promise(no_loss=False, no_double=False, coherent=False, accurate=False)),
    }
)
"""For a change of index. `ordered` promises this with `make-first`."""

MOVES: Mapping[str, Known] = MappingProxyType(
    {
        "tree-versioning": Known(tree_versioning, Promise()),
        "customised-versioning": Known(customised_versioning, Promise(accurate=False)),
    }
)
"""For trees that move while the index stays; those above that are safe will do, too."""
