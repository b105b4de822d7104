"""Prefixes on the tables and no rewrite of the address: with both, the cache of Open vSwitch stays small."""

import pytest

from benchmarks.datapath import PREFIXES, addresses, measured

pytestmark = pytest.mark.ovs

EVENTS = 1_000


def test_only_with_prefixes_and_without_rewriting_addresses_share_entries_of_the_cache() -> None:
    events = addresses(EVENTS)
    ours = measured("raw", PREFIXES, events)
    assert ours.misses < 300
    assert ours.entries < 300
    assert measured("raw", (), events).misses > EVENTS
    assert measured("rewrite", PREFIXES, events).misses > EVENTS
