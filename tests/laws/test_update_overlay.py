"""Laws of entries, overlays and paths: each fast answer is the one that looking at every event gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from plerion.flow.entry import Tables
from plerion.flow.walk import ModelNetwork, TableLookup
from plerion.index.dz import Dz
from plerion.topology import SwitchId
from plerion.update.entries import Side, applied, changes
from plerion.update.overlay import overlay
from plerion.update.paths import arrivals, paths, regions, turns
from plerion.update.plan import same, standing
from plerion.update.state import NetworkState, NotApplicable
from tests.laws.networks import Deployment, deployments, tampered


def ports(tables: Tables, switch: SwitchId, code: Dz) -> frozenset[int]:
    found = TableLookup(tables.entries(switch)).match(code)
    return found.ports if found else frozenset()


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Deployment, Tables, Tables]:
    deployment = draw(deployments(failures=False))
    tables = deployment.definition()
    return deployment, draw(tampered(tables, deployment.base)), draw(tampered(tables, deployment.base))


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_an_overlay_gives_every_event_the_ports_of_both(drawn: tuple[Deployment, Tables, Tables]) -> None:
    deployment, old, new = drawn
    union, common = overlay(old, new, "union"), overlay(old, new, "intersection")
    assert len(union) <= len(old) + len(new)
    for switch in deployment.topology.switches:
        for code in deployment.codes():
            one, other = ports(old, switch, code), ports(new, switch, code)
            assert ports(union, switch, code) == one | other
            assert ports(common, switch, code) == one & other


@given(pairs())
@settings(max_examples=40, deadline=None)
def test_changes_lead_from_one_state_to_the_other_and_back(drawn: tuple[Deployment, Tables, Tables]) -> None:
    deployment, old, new = drawn
    before = standing(NetworkState(old, deployment.advertised), Side.OLD)
    after = standing(NetworkState(new, deployment.advertised), Side.NEW)
    change = changes(before, after)
    assert same(applied(change, before), after)
    assert same(applied(change.inverse(), after), before)
    assert same(applied(change, applied(change, before)), after)  # telling it twice does no harm
    assert same(before, after) == (len(change) == 0)


@given(deployments(failures=False))
@settings(max_examples=40, deadline=None)
def test_turns_are_those_that_walks_make(deployment: Deployment) -> None:
    tables = deployment.definition()
    ways = paths(NetworkState(tables, deployment.advertised))
    network, fabric = ModelNetwork(tables), tables.fabric
    made: set[tuple[SwitchId, int, int]] = set()
    came: set[tuple[SwitchId, int]] = set()
    for code, publisher in deployment.sendings():
        for hop in network.walk(code, publisher).hops:
            came.add((hop.switch, hop.in_port))
            made |= {(hop.switch, hop.in_port, out) for out in hop.out_ports}
    found, arrived = turns(ways), arrivals(ways)
    for slot in range(len(fabric.port)):
        x = int(fabric.switch_of[slot])
        switch, port = fabric.topology.switches[x], int(fabric.port[slot])
        assert set(fabric.ports(x, found[slot])) == {o for s, i, o in made if (s, i) == (switch, port)}
        assert bool(arrived[slot]) == ((switch, port) in came)


@given(deployments(failures=False))
@settings(max_examples=40, deadline=None)
def test_regions_are_the_whole_space_and_have_no_cycles(deployment: Deployment) -> None:
    ways = paths(NetworkState(deployment.definition(), deployment.advertised))
    try:
        cells = regions([ways, ways])
    except NotApplicable:
        return
    assert sum(cell.end - cell.start for cell in cells) == 1 << 112
