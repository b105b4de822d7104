"""Laws of tables under limits: within them, as fine as the room allows, nothing wanted lost, no two trees joined."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from plerion.flow.diff import Diff, apply
from plerion.flow.entry import Tables, no_tables
from plerion.flow.fit import TreesDoNotFit, fit, safe_lengths
from plerion.flow.limited import LimitedTable
from plerion.flow.verify import verify
from plerion.index.dz import MAX_LENGTH, Dz
from plerion.index.dzset import EVERYTHING, DzColumns, DzSet
from plerion.routing.interest import Advertisement, AdvertisementId, Subscription, SubscriptionId
from plerion.routing.tree import forest, sources
from plerion.topology import ring, star
from tests.laws.networks import (
    Deployment,
    Written,
    brute_faults,
    deployments,
    shows,
    subscriptions,
    unwritten,
    written,
)

EXAMPLES = settings(max_examples=100, deadline=None)
room = st.integers(1, 4)


def prefix(dz: Dz, length: int) -> Dz:
    return Dz(dz.bits >> (dz.length - length), length) if length < dz.length else dz


def bound_of(dz: Dz, trees: Sequence[DzSet]) -> int:
    """How far an entry may be cut, one length after the other: no shorter prefix keeps clear of other trees."""
    (mine,) = [tree for tree in trees if tree.covers(dz)]
    others = [cell for tree in trees if tree != mine for cell in tree]
    lengths = range(dz.length + 1)
    return next(n for n in lengths if not any(prefix(dz, n).overlaps(cell) for cell in others))


def cut(table: dict[Dz, frozenset[int]], length: int, trees: Sequence[DzSet]) -> dict[Dz, frozenset[int]]:
    """One table with its long entries joined under prefixes, by the words of `fit`."""
    united: dict[Dz, frozenset[int]] = {}
    for dz, ports in table.items():
        cell = prefix(dz, max(length, bound_of(dz, trees)))
        united[cell] = united.get(cell, frozenset()) | ports
    kept = {}
    for dz, ports in united.items():
        around = [other for other in united if other != dz and other.covers(dz)]
        if ports != (united[max(around, key=lambda other: other.length)] if around else frozenset()):
            kept[dz] = ports
    return kept


def plain_fit(tables: Tables, limit: int, trees: Sequence[DzSet]) -> Written | None:
    """Every table cut at the greatest length that fits; None when none does."""
    fitted = {}
    for switch, table in written(tables).items():
        tried = [table] if len(table) <= limit else (cut(table, n, trees) for n in range(MAX_LENGTH, -1, -1))
        found = next((one for one in tried if len(one) <= limit), None)
        if found is None:
            return None
        fitted[switch] = found
    return fitted


def fitted(deployed: Deployment, limit: int, safe: list[tuple[Dz, int]] | None = None) -> Tables:
    exact = deployed.definition()
    limits = np.full(exact.fabric.switches, limit, np.int64)
    trees = [tree.dz for tree in deployed.forest.trees]
    return fit(exact, limits, safe_lengths(trees) if safe is None else safe)


@EXAMPLES
@given(deployments())
def test_a_safe_length_is_the_shortest_prefix_that_meets_no_other_tree(deployed: Deployment) -> None:
    trees = [tree.dz for tree in deployed.forest.trees]
    safe = dict(safe_lengths(trees))
    assert list(safe) == sorted(dz for tree in trees for dz in tree)
    assert safe == {dz: bound_of(dz, trees) for dz in safe}


@settings(max_examples=60, deadline=None)
@given(deployments(), room)
def test_tables_are_cut_at_the_greatest_length_that_fits(deployed: Deployment, limit: int) -> None:
    expected = plain_fit(deployed.definition(), limit, [tree.dz for tree in deployed.forest.trees])
    if expected is None:
        event("trees do not fit")
        with pytest.raises(TreesDoNotFit, match=f"^{limit} entries are too few"):
            fitted(deployed, limit)
    else:
        assert fitted(deployed, limit) == unwritten(deployed.fabric, expected)


@EXAMPLES
@given(deployments(), room)
def test_fitted_tables_keep_their_limits_lose_nothing_and_join_no_two_trees(
    deployed: Deployment, limit: int
) -> None:
    with suppress(TreesDoNotFit):
        tables = fitted(deployed, limit)
        limits = dict.fromkeys(deployed.topology.switches, limit)
        proof = verify(tables, deployed.covers, deployed.hosts, deployed.advertised, deployed.alive, limits)
        assert proof, str(proof.counter_example)
        for entry in tables.dz:
            met = [tree for tree in deployed.forest.trees if tree.dz.overlaps(DzSet.of([entry]))]
            assert len(met) == 1


@EXAMPLES
@given(deployments())
def test_one_tree_always_fits_into_one_entry(deployed: Deployment) -> None:
    single = Deployment(
        deployed.topology, deployed.alive, deployed.advertisements, deployed.subscriptions, 1, deployed.base
    )
    tables = fitted(single, 1)
    assert max(tables.sizes().values()) <= 1
    assert not list(brute_faults(single, tables))


def crossing() -> Deployment:
    """A ring of four whose two trees, rooted opposite each other, use all four links together."""
    network = ring(4)
    sent = tuple(
        Advertisement(AdvertisementId(h), h, DzSet.parse(dz))
        for h, dz in zip(network.hosts[::2], "01", strict=True)
    )
    asked = tuple(Subscription(SubscriptionId(h), h, DzSet.parse("0", "1")) for h in network.hosts)
    return Deployment(network, network, sent, asked)


def test_without_safe_lengths_joined_trees_loop_and_the_proof_says_so() -> None:
    deployed = crossing()
    anything_goes = [(dz, 0) for tree in deployed.forest.trees for dz in tree.dz]
    joined = fitted(deployed, 1, anything_goes)
    proof = verify(joined, deployed.covers, deployed.hosts, deployed.advertised)
    assert proof.counter_example is not None
    assert proof.counter_example.fault in ("looping", "doubled")
    assert shows(proof.counter_example, deployed, joined)
    with pytest.raises(TreesDoNotFit):
        fitted(deployed, 1)
    assert not list(brute_faults(deployed, fitted(deployed, 2)))


@EXAMPLES
@given(deployments(), room, st.data())
def test_what_a_limited_table_shows_is_what_its_diffs_add_up_to(
    deployed: Deployment, limit: int, data: st.DataObject
) -> None:
    """Loaded, routed with fewer trees until they fit, and changed: always `fit` of the exact tables."""
    table = LimitedTable(deployed.fabric, dict.fromkeys(deployed.topology.switches, limit))
    table.load(deployed.covers, deployed.hosts)
    shown = apply(routed(table, deployed), no_tables(deployed.fabric))
    for number in range(2):
        extra = data.draw(subscriptions(deployed.topology, deployed.base, number))
        for change in (table.subscribe, table.unsubscribe):
            try:
                shown = apply(change(DzColumns.of(extra.dz), extra.host), shown)
            except TreesDoNotFit:
                event("a change forced trees to merge")
                shown = apply(routed(table, deployed), shown)
            assert shown == table.tables()
            assert table.sizes.tolist() == list(shown.sizes().values())
            assert max(shown.sizes().values()) <= limit


@pytest.mark.parametrize("leaves", [62, 63, 64, 70])
def test_a_limited_hub_with_about_as_many_ports_as_a_word_has_bits_shows_what_it_holds(leaves: int) -> None:
    """The hub goes over its limit and back while one of its entries names every port that it has."""
    network = star(leaves)
    sent = tuple(Advertisement(AdvertisementId(h), h, EVERYTHING) for h in network.hosts[:2])
    deployed = Deployment(network, network, sent, ())
    table = LimitedTable(deployed.fabric, {network.switches[0]: 2})
    shown = apply(routed(table, deployed), no_tables(deployed.fabric))
    steps = [("1", host) for host in network.hosts] + [("00", host) for host in network.hosts[2:4]]
    steps += [("01", network.hosts[5]), ("011", network.hosts[6])]
    for change, ordered in ((table.subscribe, steps), (table.unsubscribe, steps[::-1])):
        for text, host in ordered:
            shown = apply(change(DzColumns.of(DzSet.parse(text)), host), shown)
            assert shown == table.tables()
    assert len(shown) == 0


def routed(table: LimitedTable, deployed: Deployment) -> Diff:
    """Routes with as many trees as fit."""
    for allowed in (64, 2, 1):
        grown = forest(deployed.alive, deployed.advertisements, allowed)
        with suppress(TreesDoNotFit):
            trees = [tree.dz for tree in grown.trees]
            return table.route(sources(grown, deployed.alive), trees, deployed.spanning, deployed.alive)
    raise AssertionError("one tree fits always")
