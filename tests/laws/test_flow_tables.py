"""Laws of tables: they deliver exactly (style law 4), they are what the demands say, and no entry is idle."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.flow.entry import Tables
from plerion.flow.fabric import fabric
from plerion.flow.table import NetworkTable
from plerion.flow.walk import ModelNetwork
from plerion.index.dz import Dz
from plerion.index.dzset import EVERYTHING, DzColumns, DzSet
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.routing.tree import sources
from plerion.topology import HostId, SwitchId, star
from tests.laws.networks import Deployment, brute_faults, cells, deployments, unwritten, written

EXAMPLES = settings(max_examples=100, deadline=None)


@EXAMPLES
@given(deployments())
def test_an_event_reaches_exactly_the_hosts_whose_covers_contain_it_once_and_without_loops(
    deployed: Deployment,
) -> None:
    network = ModelNetwork(deployed.table().tables(), deployed.alive)
    for code, publisher in deployed.sendings():
        journey = network.walk(code, publisher)
        assert not journey.looped
        assert Counter(journey.delivered) == Counter(deployed.wanted(code, publisher))


@EXAMPLES
@given(deployments())
def test_the_tables_are_those_that_the_demands_define(deployed: Deployment) -> None:
    table = deployed.table()
    assert table.tables() == deployed.definition()
    assert table.sizes.tolist() == list(table.tables().sizes().values())


@EXAMPLES
@given(deployments())
def test_loading_many_subscriptions_at_once_gives_the_same_tables(deployed: Deployment) -> None:
    loaded = NetworkTable(deployed.fabric)
    loaded.route(sources(deployed.forest, deployed.alive), deployed.spanning, deployed.alive)
    loaded.load(deployed.covers, deployed.hosts)
    assert loaded.tables() == deployed.definition()
    assert loaded.sizes.tolist() == np.diff(loaded.tables().first).tolist()


def idle(tables: Tables) -> list[tuple[SwitchId, Dz]]:
    """Entries that say what their nearest shorter one says, or that drop what nothing shorter sends."""
    found = []
    for switch, entries in written(tables).items():
        for dz, ports in entries.items():
            shorter = [other for other in entries if other != dz and other.covers(dz)]
            inherited = entries[max(shorter, key=lambda other: other.length)] if shorter else frozenset()
            if ports == inherited:
                found.append((switch, dz))
    return found


@EXAMPLES
@given(deployments())
def test_no_entry_is_idle_and_priority_grows_with_length(deployed: Deployment) -> None:
    tables = deployed.table().tables()
    assert idle(tables) == []
    for switch in deployed.topology.switches:
        ranked = sorted(tables.entries(switch), key=lambda entry: entry.dz.length)
        for shorter, longer in pairwise(ranked):
            assert (shorter.dz.length < longer.dz.length) == (shorter.priority < longer.priority)


@EXAMPLES
@given(deployments(failures=False), st.data())
def test_an_idle_entry_would_be_noticed(deployed: Deployment, data: st.DataObject) -> None:
    entries = written(deployed.table().tables())
    switch = data.draw(st.sampled_from(deployed.topology.switches))
    extra = data.draw(cells(deployed.base))
    if extra in entries[switch]:
        return
    around = [dz for dz in entries[switch] if dz.covers(extra)]
    entries[switch][extra] = entries[switch][max(around)] if around else frozenset()
    assert (switch, extra) in idle(unwritten(deployed.fabric, entries))


@pytest.mark.parametrize("leaves", [62, 63, 64, 70])
def test_a_switch_with_more_ports_and_hosts_than_a_word_has_bits_delivers(leaves: int) -> None:
    """Every host wants its own half of the space beside a cell that it shares with all; the hub has > 64 ports."""
    topology = star(leaves)
    sent = tuple(
        Advertisement(AdvertisementId(host), host, EVERYTHING)
        for host in (topology.hosts[0], topology.hosts[-1])
    )
    asked = tuple(
        Subscription(SubscriptionId(host), host, DzSet.parse(f"{i % 2}", f"{1 - i % 2}11"))
        for i, host in enumerate(topology.hosts)
    )
    deployed = Deployment(topology, topology, sent, asked)
    table = deployed.table()
    assert fabric(topology).port_words == (1 if leaves < 63 else 2)
    assert fabric(topology).host_words == (1 if leaves < 64 else 2)
    assert table.tables() == deployed.definition()
    assert not list(brute_faults(deployed, table.tables()))
    for subscription in asked:
        table.unsubscribe(DzColumns.of(subscription.dz), subscription.host)
    assert len(table.tables()) == 0


def test_the_walk_never_goes_back_where_it_came_from() -> None:
    topology = star(2)
    both = tuple(Advertisement(AdvertisementId(host), HostId(host), EVERYTHING) for host in topology.hosts)
    all_want = tuple(Subscription(SubscriptionId(h), h, EVERYTHING) for h in topology.hosts)
    deployed = Deployment(topology, topology, both, all_want)
    journey = ModelNetwork(deployed.definition()).walk(deployed.codes()[0], HostId("h2"))
    assert sorted(journey.delivered) == ["h1", "h3"]
    assert all(hop.in_port not in hop.out_ports for hop in journey.hops)
