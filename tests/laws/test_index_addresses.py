"""Law 3: `a.covers(b)` exactly when `a`'s network contains `b`'s, so a switch can decide it."""

from ipaddress import IPv4Network, IPv6Network
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plerion.index.address import AddressPlan, Network
from plerion.index.dz import Dz, DzError
from tests.laws.indexes import dzs, law

families: list[Literal["ipv6", "ipv4"]] = ["ipv6", "ipv4"]
plans = st.builds(AddressPlan, st.sampled_from(families), st.integers(0, 8), st.integers(0, 1000))


@st.composite
def pairs(draw: st.DrawFn, longest: int) -> tuple[Dz, Dz]:
    """Two dz, one of which often begins with the other or nearly does."""
    a = draw(dzs(longest))
    b = draw(dzs(longest) | dzs(longest - a.length).map(a.append))
    if b.length and draw(st.booleans()):
        b = Dz(b.bits ^ 1 << draw(st.integers(0, b.length - 1)), b.length)
    return (a, b) if draw(st.booleans()) else (b, a)


def contains(outer: Network, inner: Network) -> bool:
    """By the addresses themselves: first and last of the one within first and last of the other."""
    first, last = int(inner.network_address), int(inner.broadcast_address)
    return int(outer.network_address) <= first and last <= int(outer.broadcast_address)


@law
@given(plans, st.data())
def test_a_dz_covers_another_exactly_when_its_network_contains_the_others(
    plan: AddressPlan, data: st.DataObject
) -> None:
    a, b = data.draw(pairs(plan.capacity))
    assert a.covers(b) == contains(plan.network(a), plan.network(b))
    assert a.covers(b) == str(b).startswith(str(a))
    assert a.overlaps(b) == plan.network(a).overlaps(plan.network(b))


@law
@given(plans, st.data())
def test_the_network_of_a_plan_gives_its_dz_back(plan: AddressPlan, data: st.DataObject) -> None:
    dz = data.draw(dzs(plan.capacity))
    assert plan.dz(plan.network(dz)) == plan.dz(str(plan.network(dz))) == dz
    assert plan.address(dz) in plan.network(dz)
    assert plan.network(dz).prefixlen == plan.network(Dz(0, 0)).prefixlen + dz.length


@law
@given(plans, st.integers(0, 1000), st.data())
def test_networks_of_different_epochs_never_meet(plan: AddressPlan, epoch: int, data: st.DataObject) -> None:
    other = AddressPlan(plan.family, plan.epoch_bits, epoch)
    a, b = data.draw(pairs(plan.capacity))
    apart = (epoch - plan.epoch) % (1 << plan.epoch_bits) != 0
    meet = plan.network(a).overlaps(other.network(b))
    assert meet == (a.overlaps(b) and not apart)
    if apart:
        with pytest.raises(DzError, match="is not inside"):
            other.dz(plan.network(a))


@law
@given(plans, st.data())
def test_groups_lie_apart_from_all_contents_and_both_in_one_network(
    plan: AddressPlan, data: st.DataObject
) -> None:
    one, other = data.draw(pairs(plan.capacity))
    group, contents = plan.group(one), plan.network(other)
    assert not group.overlaps(contents)
    assert contains(plan.everything, group)
    assert contains(plan.everything, contents)
    assert one.covers(other) == contains(plan.group(one), plan.group(other))


@law
@given(plans, st.data())
def test_a_dz_that_is_too_long_for_the_plan_is_refused(plan: AddressPlan, data: st.DataObject) -> None:
    longest = Dz(data.draw(st.integers(0, (1 << plan.capacity) - 1)), plan.capacity)
    assert plan.network(longest).num_addresses == 1
    if plan.capacity < 112:
        with pytest.raises(DzError, match=f"room for {plan.capacity} bits"):
            plan.network(longest.child(0))


@pytest.mark.parametrize("foreign", ["ff0f::/16", "ff00::/8", "::/0", "239.128.0.0/9"])
def test_a_network_outside_the_plan_is_refused(foreign: str) -> None:
    with pytest.raises(DzError, match="is not inside"):
        AddressPlan().dz(foreign)


@pytest.mark.parametrize("epoch_bits", [-1, 9])
def test_epoch_bits_out_of_bounds_are_refused(epoch_bits: int) -> None:
    with pytest.raises(DzError, match="epoch bits"):
        AddressPlan(epoch_bits=epoch_bits)


def test_the_oracle_tells_what_contains_from_what_does_not() -> None:
    assert contains(IPv6Network("ff0e::/16"), IPv6Network("ff0e:8000::/17"))
    assert not contains(IPv6Network("ff0e:8000::/17"), IPv6Network("ff0e::/16"))
    assert not contains(IPv4Network("239.0.0.0/9"), IPv4Network("239.128.0.0/10"))
