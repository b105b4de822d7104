"""`auto` takes what the user prefers, what applies and what fits, in this order; and plans are quick to make."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from plerion.flow.fabric import fabric
from plerion.flow.table import NetworkTable
from plerion.index.cover import Covers
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.dzset import EVERYTHING, DzColumns
from plerion.routing.interest import Advertisement, AdvertisementId
from plerion.routing.tree import Forest, Tree, sources, spanning
from plerion.simnet.scene import scene
from plerion.topology import SwitchId, torus
from plerion.update.auto import PREFERENCE, auto, chosen
from plerion.update.customised_versioning import overlap
from plerion.update.paths import paths
from plerion.update.plan import peaks
from plerion.update.state import NetworkState, NotApplicable, Options, Stamp
from plerion.update.strategies import MOVES, STRATEGIES


def test_every_safe_strategy_may_be_chosen_and_no_other() -> None:
    safe = {name for name, one in {**STRATEGIES, **MOVES}.items() if one.promise.safe}
    assert all(set(order) == safe for order in PREFERENCE.values())


def test_with_room_the_accurate_one_is_chosen_and_without_it_the_small_one() -> None:
    found = scene(25)
    made = chosen(found.old, found.new, found.topology, Options(epoch_bits=1))
    assert made.plan.strategy == "epoch"
    larger = [
        max(a, b) for a, b in zip(*(np.diff(s.tables.first) for s in (found.old, found.new)), strict=True)
    ]
    tight = {s: int(n) for s, n in zip(found.topology.switches, larger, strict=True)}
    small = chosen(found.old, found.new, found.topology, Options(epoch_bits=1, limits=tight))
    assert small.plan.strategy == "bridge"
    assert small.passed[0][0] == "epoch"
    assert "room for" in small.passed[0][1]
    roomy = {s: n + len(found.topology.ports(s)) for s, n in tight.items()}
    wide = auto(found.old, found.new, found.topology, Options(epoch_bits=1, limits=roomy, prefer="small"))
    assert wide.strategy == "custom-multicast"
    assert all(peaks(wide) <= list(roomy.values()))


def test_without_epoch_bits_epoch_says_what_would_help() -> None:
    found = scene(25, epoch_bits=0)
    with pytest.raises(NotApplicable, match="epoch_bits"):
        STRATEGIES["epoch"].make(found.old, found.new, found.topology, Options())
    assert auto(found.old, found.new, found.topology, Options()).strategy == "versioning"


def test_when_nothing_fits_all_reasons_are_given() -> None:
    found = scene(25)
    none = dict.fromkeys(found.topology.switches, 0)
    with pytest.raises(NotApplicable, match=r"epoch: .*bridge: "):
        auto(found.old, found.new, found.topology, Options(epoch_bits=1, limits=none))


def test_an_index_without_room_for_epoch_bits_is_refused() -> None:
    found = scene(25)
    longest = DzColumns.of([Dz(0, MAX_LENGTH)])
    first = np.ones(len(found.topology.switches) + 1, np.int64)
    first[0] = 0
    tables = type(found.new.tables)(found.new.tables.fabric, first, longest, np.ones((1, 1), np.uint64))
    with pytest.raises(NotApplicable, match="112"):
        STRATEGIES["epoch"].make(
            found.old, NetworkState(tables, found.new.sent), found.topology, Options(epoch_bits=1)
        )


def test_moves_meet_all_three_kinds_of_switches() -> None:
    same = partial = apart = 0
    for seed in range(60):
        found = scene(seed, "tree")
        kinds = overlap(paths(found.old), paths(found.new))
        assert len(kinds.same) + len(kinds.partial) + len(kinds.apart) == len(found.topology.switches)
        same, partial, apart = same + len(kinds.same), partial + len(kinds.partial), apart + len(kinds.apart)
    assert min(same, partial, apart) > 5


NETWORK = torus(8, 8)


def large(seed: int, root: str) -> NetworkState:
    """25,000 subscriptions of four cells each on 64 switches, all on one tree."""
    random = np.random.default_rng(seed)
    count, cells = 25_000, 4
    length = random.integers(12, 26, count * cells).astype(np.uint8)
    spare = np.uint64(64) - length.astype(np.uint64)
    high = random.integers(0, 1 << 62, count * cells).astype(np.uint64) << np.uint64(2) >> spare << spare
    covers = Covers(np.arange(0, count * cells + 1, cells), DzColumns(high, np.zeros_like(high), length))
    whole = fabric(NETWORK)
    publishers = NETWORK.hosts[:16]
    sent = tuple(Advertisement(AdvertisementId(host), host, EVERYTHING) for host in publishers)
    grown = Forest((Tree(SwitchId(root), EVERYTHING),), sent, 1, EVERYTHING)
    table = NetworkTable(whole)
    table.route(sources(grown, NETWORK), lambda at: spanning(NETWORK, at, whole.host_number), "whole")
    table.load(covers, [NETWORK.hosts[i] for i in random.integers(0, len(NETWORK.hosts), count)])
    return NetworkState(table.tables(), dict.fromkeys(publishers, EVERYTHING), Stamp(epoch=0))


@pytest.mark.slow
def test_plans_for_25000_subscriptions_on_64_switches_take_seconds() -> None:
    old, other, moved = large(1, "s1"), large(2, "s1"), large(1, "s28")
    assert len(old.tables) > 200_000
    options = Options(epoch_bits=1)
    small = scene(25, "tree")
    for one in (*STRATEGIES.values(), *MOVES.values()):
        one.make(small.old, small.old, small.topology, options)  # compiles what is not compiled yet
    for known, after in [(one, other) for one in STRATEGIES.values()] + [
        (one, moved) for one in MOVES.values()
    ]:
        began = process_time()
        plan = known.make(old, after, NETWORK, options)
        peaks(plan)
        assert process_time() - began < 5.0, plan.strategy
