"""Laws of the proof: it holds exactly when sending every code finds nothing wrong, and its walk is the model's."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from plerion.flow.atoms import atoms, matches, net, scratch, walk
from plerion.flow.entry import Tables
from plerion.flow.verify import Proof, verify
from plerion.flow.walk import ModelNetwork
from plerion.index.dz import MAX_LENGTH, WHOLE, Dz
from plerion.index.dzset import DzColumns
from plerion.topology import HostId
from tests.laws.networks import Deployment, brute_faults, deployments, shows, slots_out, tampered

EXAMPLES = settings(max_examples=100, deadline=None)


def proof(deployed: Deployment, tables: Tables) -> Proof:
    return verify(tables, deployed.covers, deployed.hosts, deployed.advertised, deployed.alive)


def cut_points(deployed: Deployment, tables: Tables) -> list[int]:
    """Where any cell begins or ends: the beginnings of the atoms, counted with whole numbers."""
    cells = {WHOLE, *tables.dz, *deployed.covers.dz, *(dz for s in deployed.advertised.values() for dz in s)}
    return sorted({point for dz in cells for point in (dz.start, dz.end)} - {1 << MAX_LENGTH})


@EXAMPLES
@given(deployments())
def test_right_tables_are_proven_and_the_proof_counts_every_atom(deployed: Deployment) -> None:
    tables = deployed.table().tables()
    proven = proof(deployed, tables)
    assert proven
    assert proven.counter_example is None
    points = cut_points(deployed, tables)
    assert proven.atoms == len(points)
    expected = sum(
        len(deployed.wanted(Dz(point, MAX_LENGTH), host))
        for host, sent in deployed.advertised.items()
        for point in points
        if sent.covers(Dz(point, MAX_LENGTH))
    )
    assert (proven.deliveries, proven.unwanted) == (expected, 0)


@settings(max_examples=250, deadline=None)
@given(deployments(), st.data())
def test_the_proof_fails_exactly_when_some_code_goes_wrong_and_shows_one(
    deployed: Deployment, data: st.DataObject
) -> None:
    broken = data.draw(tampered(deployed.table().tables(), deployed.base))
    proven = proof(deployed, broken)
    first = next(brute_faults(deployed, broken), None)
    assert bool(proven) == (first is None)
    event(proven.counter_example.fault if proven.counter_example else "proven")
    if proven.counter_example:
        assert shows(proven.counter_example, deployed, broken)


@EXAMPLES
@given(deployments(), st.data())
def test_the_compiled_walk_equals_the_model_networks(deployed: Deployment, data: st.DataObject) -> None:
    exact = deployed.table().tables()
    tables = data.draw(st.just(exact) | tampered(exact, deployed.base))
    codes = DzColumns.of(deployed.codes())
    space = atoms([tables.dz, codes])
    rows = matches(tables, space.first[0], space.last[0], len(space))
    network = net(tables.fabric, deployed.alive)
    memory = scratch(network)
    model = ModelNetwork(tables, deployed.alive)
    for i, code in enumerate(codes):
        for number, host in enumerate(deployed.topology.hosts):
            if host not in deployed.alive.hosts:
                assert network.attachment[number] == network.part[number] == -1
                continue
            journey = model.walk(code, host)
            finished = walk(network, tables.ports, rows[space.first[1][i]], number, memory)
            assert finished == (not journey.looped)
            if finished:
                copies = {
                    HostId(h): n for h, n in zip(deployed.topology.hosts, memory.copies, strict=True) if n
                }
                assert copies == Counter(journey.delivered)
                went = ((hop.switch, port) for hop in journey.hops for port in hop.out_ports)
                length = int(memory.trail_length[0])
                assert Counter(memory.trail[:length].tolist()) == slots_out(tables, went)
                assert (memory.cause[:length] < np.arange(length)).all()
