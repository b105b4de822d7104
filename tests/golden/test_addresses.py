"""Addresses that users, captures and hardware rely on: they never change."""

import pytest

from plerion.index.address import AddressPlan
from plerion.index.dz import Dz

IPV6 = AddressPlan()
IPV4 = AddressPlan("ipv4")


@pytest.mark.parametrize(
    ("plan", "dz", "network"),
    [
        (IPV6, "101101", "ff0e:b400::/22"),
        (IPV6, "101", "ff0e:a000::/19"),
        (IPV6, "", "ff0e::/16"),
        (IPV6, "0", "ff0e::/17"),
        (IPV6, "1" * 112, "ff0e:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"),
        (IPV4, "", "239.128.0.0/9"),
        (IPV4, "101101", "239.218.0.0/15"),
        (IPV4, "101", "239.208.0.0/12"),
        (IPV4, "0" * 22 + "1", "239.128.0.1/32"),
        (IPV4, "1" * 23, "239.255.255.255/32"),
        (AddressPlan("ipv6", 2, 1), "101101", "ff0e:6d00::/24"),
        (AddressPlan("ipv6", 2, 5), "101101", "ff0e:6d00::/24"),
        (AddressPlan("ipv6", 8, 255), "", "ff0e:ff00::/24"),
        (AddressPlan("ipv4", 1, 1), "101101", "239.237.0.0/16"),
    ],
)
def test_a_dz_has_this_network_for_ever(plan: AddressPlan, dz: str, network: str) -> None:
    assert str(plan.network(Dz.parse(dz))) == network
    assert str(plan.dz(network)) == dz


def test_a_plan_has_room_for_112_bits_in_ipv6_and_23_in_ipv4() -> None:
    assert (IPV6.capacity, IPV4.capacity) == (112, 23)
    assert (AddressPlan("ipv6", 8).capacity, AddressPlan("ipv4", 8).capacity) == (104, 15)


def test_events_are_sent_to_the_first_address_of_their_code() -> None:
    assert str(IPV6.address(Dz.parse("101101"))) == "ff0e:b400::"
    assert str(IPV4.address(Dz.parse("101101"))) == "239.218.0.0"


def test_tables_match_the_destination() -> None:
    assert (IPV6.field, IPV4.field) == ("ipv6_dst", "ipv4_dst")


@pytest.mark.parametrize(
    ("plan", "dz", "network"),
    [
        (IPV6, "", "ff0d::/16"),
        (IPV6, "00000101", "ff0d:500::/24"),
        (AddressPlan("ipv6", 2, 1), "00000101", "ff0d:500::/24"),
        (IPV4, "", "239.64.0.0/10"),
        (IPV4, "00000101", "239.65.64.0/18"),
    ],
)
def test_a_group_has_this_network_for_ever(plan: AddressPlan, dz: str, network: str) -> None:
    assert str(plan.group(Dz.parse(dz))) == network


def test_all_events_lie_in_one_network() -> None:
    assert (str(IPV6.everything), str(IPV4.everything)) == ("ff0c::/14", "239.0.0.0/8")
