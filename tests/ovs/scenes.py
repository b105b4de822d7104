"""What must hold on any network of real switches, whatever happens to it. Each scene takes seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from plerion.experiments.live import LiveError
from plerion.topology import Port
from tests.ovs.kills import killed_at_random_moments
from tests.ovs.network import USUAL, Scene

SHORT_LEASE_SECONDS = 3.0


def from_ready_on_every_event_comes_once_until_it_is_withdrawn(scene: Scene) -> None:
    counted: list[dict[str, Any]] = []
    with scene.traffic():
        for number, host in enumerate(scene.subscribers):
            scene.subscribe(host, "low", 0, 63 + 32 * number)
            scene.subscribe(host, "middle", 100, 150)
            scene.steady(0.2)
        scene.steady(0.5)
        for host in scene.subscribers:
            counted.append(scene.unsubscribe(host, "low"))
            scene.steady(0.2)
    assert scene.verdict().fine, scene.story()
    assert all(counts["wanted"] > 0 and counts["doubles"] == 0 for counts in counted), counted


def a_first_event_after_ready_is_never_missed(scene: Scene) -> None:
    """Open vSwitch answers a barrier some milliseconds before its cache is right; *ready* has to wait for that."""
    watching, asking = scene.subscribers[:2]
    scene.subscribe(watching, "all", 0, 255)
    with scene.traffic(2.0):
        for _ in range(12):
            scene.subscribe(asking, "again", 0, 255)
            scene.steady(2 * scene.flight + 0.06)
            scene.unsubscribe(asking, "again")
    verdict = scene.verdict()
    assert verdict.fine, scene.story()
    assert verdict.due > verdict.sent, "some of them were due at both"


def what_the_sdk_counts_is_what_the_witness_saw(scene: Scene) -> None:
    host = scene.subscribers[0]
    scene.subscribe(host, "half", 0, 127)
    with scene.traffic():
        scene.steady(0.6)
    came = [
        one for one in scene.witness.seen() if one.host == host and not one.sent and one.at >= scene.began
    ]
    counts = scene.unsubscribe(host, "half")
    assert counts["received"] == counts["wanted"] == len(came) > 0
    assert counts["doubles"] == counts["dropped"] == counts["false_positives"] == 0


def a_host_that_died_is_withdrawn_after_its_lease_and_nobody_else_notices(scene: Scene) -> None:
    dying, other = scene.subscribers[:2]
    scene.guests[dying].leave()
    scene.join(dying, lease_seconds=SHORT_LEASE_SECONDS)
    scene.subscribe(dying, "all", 0, 255)
    scene.subscribe(other, "all", 0, 255)
    with scene.traffic():
        scene.steady(0.3)
        died = time.time()
        scene.guests[dying].kill()
        scene.net.until("its subscription is withdrawn", lambda: _subscribed(scene, dying) == 0)
        withdrawn = time.time()
        scene.steady(0.3)
    wish = scene.wishes.pop((dying, "all"))
    scene.ended.append(wish._replace(withdrawn=died, gone=withdrawn))
    scene.join(dying)
    assert withdrawn - died > SHORT_LEASE_SECONDS / 2, withdrawn - died
    assert scene.verdict().fine, scene.story()


def a_cut_link_is_gone_round_and_a_healed_one_does_no_harm(scene: Scene) -> None:
    for number, host in enumerate(scene.subscribers):
        scene.subscribe(host, "some", 40 * number, 255)
    port = _crossed(scene)[0]
    with scene.traffic():
        scene.steady(0.5)
        with scene.disturbance():
            scene.net.lab.cut(port)
            scene.net.until("events go round", lambda: _links_down(scene) and _in_step(scene))
        scene.steady(0.6)
        with scene.disturbance():
            scene.net.lab.heal(port)
            scene.net.until("the link is used again", lambda: not _links_down(scene) and _in_step(scene))
        scene.steady(0.6)
    assert scene.verdict().fine, f"{port}: {scene.story()}"
    assert scene.verdict().due > scene.rate, scene.verdict()


def a_switch_that_restarts_with_empty_tables_is_filled_again(scene: Scene) -> None:
    for number, host in enumerate(scene.subscribers):
        scene.subscribe(host, "some", 40 * number, 255)
    switch = _transit(scene)
    with scene.traffic():
        scene.steady(0.4)
        with scene.disturbance():
            scene.net.lab.stop_switch(switch)
            scene.net.until("events go round", lambda: _is_down(scene, switch) and _in_step(scene, switch))
        scene.steady(0.5)
        with scene.disturbance():
            scene.net.lab.start_switch(switch)
            scene.net.until_ready()
            scene.net.until("its links are used again", lambda: not _links_down(scene) and _in_step(scene))
        scene.steady(0.6)
    assert scene.verdict().fine, f"{switch}: {scene.story()}"


def a_controller_killed_at_any_moment_costs_no_event_and_no_subscription(scene: Scene) -> None:
    """`make campaign` has twenty lives."""
    killed_at_random_moments(scene, lives=2, seed=time.time_ns())


def a_full_table_refuses_who_does_not_fit_and_disturbs_nobody(scene: Scene) -> None:
    keeper, asking = scene.subscribers[:2]
    scene.subscribe(keeper, "held", 32, 95)
    switch = scene.net.topology.attachment(asking).node  # type: ignore[arg-type]  # a HostId is a str
    with scene.traffic():
        scene.steady(0.2)
        before = scene.tables()
        scene.net.lab.set_table_limit(switch, len(before[switch]) + 2)
        with pytest.raises(LiveError, match=f"{switch} does not take the entries"):
            scene.subscribe(asking, "jagged", 1, 254)
        assert scene.tables() == before, "a refusal leaves nothing behind"
        scene.subscribe(asking, "small", 128, 255)
        scene.steady(0.4)
        scene.net.lab.set_table_limit(switch, None)
        scene.subscribe(asking, "jagged", 1, 254)
        scene.steady(0.3)
    assert scene.verdict().fine, scene.story()
    assert _subscribed(scene, asking) == 2


def what_nobody_advertised_is_dropped_where_it_enters_and_counted(scene: Scene) -> None:
    host, other = scene.subscribers[:2]
    scene.subscribe(other, "all", 0, 255)
    place = scene.net.topology.attachment(host)  # type: ignore[arg-type]  # as above

    def refused() -> int:
        count: int = scene.net.asked("/v1/statistics")[place.node]["refused"].get(str(place.number), 0)
        return count

    before = refused()
    count = scene.witness.count()
    sends = (
        "import socket; s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM);"
        "s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, socket.if_nametoindex('eth0'));"
        "[s.sendto(bytes([0x97, 1, 0xA1, 0x78, n, 0, 0, 0x91, 1, 0xC0]), (f'ff0e:{n:x}00::', 20706))"
        " for n in range(1, 101)]"
    )
    scene.net.lab.exec(host, ["python3", "-c", sends], check=True)
    scene.quiet()
    assert scene.witness.count() == count + 100, "seen where they were sent, and nowhere else"
    # Open vSwitch adds what its cache counted to its tables twice a second.
    scene.net.until("all of them are counted", lambda: refused() == before + 100)


def covers_are_coarsened_where_the_room_is_known_and_nothing_is_lost(scene: Scene) -> None:
    room = 4
    scene.spent = True  # the controller keeps its limits
    scene.net.stop_controller()
    scene.net.configure(**USUAL, tcam=room)
    scene.net.start_controller()
    scene.net.until_ready()
    with scene.traffic():
        for number, host in enumerate(scene.subscribers):
            scene.subscribe(host, "jagged", 1 + 2 * number, 254 - 4 * number)
        scene.steady(0.8)
    verdict = scene.verdict()
    assert not verdict.lost, scene.story()
    assert not verdict.doubled, scene.story()
    assert verdict.unasked, "covers this coarse let through what nobody asked for"
    for switch, held in scene.tables().items():
        assert len(held) <= room + 1, switch  # and the entry that drops the rest


LAWS: list[Callable[[Scene], None]] = [
    from_ready_on_every_event_comes_once_until_it_is_withdrawn,
    a_first_event_after_ready_is_never_missed,
    what_the_sdk_counts_is_what_the_witness_saw,
    a_host_that_died_is_withdrawn_after_its_lease_and_nobody_else_notices,
    a_cut_link_is_gone_round_and_a_healed_one_does_no_harm,
    a_switch_that_restarts_with_empty_tables_is_filled_again,
    a_controller_killed_at_any_moment_costs_no_event_and_no_subscription,
    a_full_table_refuses_who_does_not_fit_and_disturbs_nobody,
    what_nobody_advertised_is_dropped_where_it_enters_and_counted,
    covers_are_coarsened_where_the_room_is_known_and_nothing_is_lost,
]


def _crossed(scene: Scene) -> list[Port]:
    """Ports between switches that events for all subscribers leave by, on the way of each publisher."""
    switches, found = set(scene.net.topology.switches), []
    for host in scene.publishers:
        body = {"publisher": host, "event": {"x": 200}}
        (journey,) = scene.net.asked("/v1/trace", body)["journeys"]
        ports = [(hop["switch"], out) for hop in journey["hops"] for out in hop["out"]]
        found += [Port(switch, out["port"]) for switch, out in ports if out["to"] in switches]
    return found


def _transit(scene: Scene) -> str:
    """A switch that events cross, where none of our hosts is, and that others can stand in for."""
    hosts = [*scene.publishers, *scene.subscribers]
    network = scene.net.topology
    homes = {network.attachment(host).node for host in hosts}  # type: ignore[arg-type]  # a HostId is a str
    crossed = [port.node for port in _crossed(scene) if port.node not in homes]
    return next(node for node in crossed if len(network.without([node], []).components()) == 1)  # type: ignore[list-item]  # as above


def _links_down(scene: Scene) -> list[str]:
    found: list[str] = scene.net.asked("/v1/topology")["links_down"]
    return found


def _is_down(scene: Scene, switch: str) -> bool:
    return switch in scene.net.asked("/v1/topology")["switches_down"]


def _in_step(scene: Scene, but: str = "") -> bool:
    """Whether all switches but one hold what they should."""
    found = scene.net.asked("/readyz")
    return (found["ready"] or bool(but)) and set(found["not_in_step"]) <= {but}


def _subscribed(scene: Scene, host: str) -> int:
    count: int = scene.net.asked(f"/v1/subscriptions?host={host}")["count"]
    return count
