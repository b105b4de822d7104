"""Seed 001, Figures 6.3, 6.4, 6.6 and 6.7: an index changes while events flow, on tori of 8 to 64 switches.

The index spends its bits on the attributes that CS selects. What happens drifts, CS selects again, and each strategy
brings in the new tables under the same events and delays; `epoch` is drawn beside those of the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final

from plerion.experiments.figure import (
    CLEAR,
    Figure,
    Point,
    Row,
    Verdict,
    curve,
    graded,
    panels,
    percent,
    saved,
)
from plerion.experiments.torus_site import EVENTS, OPTIONS, SHAPES, Site, learned
from plerion.experiments.update_story import EVENTS_EACH, Story, over_time, story
from plerion.flow.walk import ModelNetwork
from plerion.simnet.traffic import Sample
from plerion.topology import SwitchId
from plerion.update.plan import Plan
from plerion.update.state import NetworkState, Order
from plerion.update.strategies import STRATEGIES

EPOCH: Final = "epoch (ours)"
VERSIONING, IP, CUSTOM = "versioning", "ip-multicast", "custom-multicast"
AT_REST: Final = "at rest, before"
MEAN, WORST = "on average", "at the worst"
RATED: Final[tuple[Order, ...]] = ("transmission-rate", "filter-rate")
UNRATED: Final[tuple[Order, ...]] = ("source-quench", "random")
INTERVALS: Final = {8: 0.002, 16: 0.003, 32: 0.005, 64: 0.008}  # seconds that a dot stands for
METHOD: Final = ("regular", "cs")
SETTINGS: Final = (
    "torus, half of the hosts publish, half subscribe to one region; 4 attributes, regular index on those that CS "
    f"selects, 23 bits, covers of up to 128 dz; a dot is {EVENTS_EACH} events"
)


@lru_cache(maxsize=16)
def _change(switches: int, seed: int, scale: float) -> tuple[NetworkState, NetworkState, list[Sample]]:
    """The states before and after, and the events of after the drift."""
    site = Site.drawn(switches, seed, events=Point("", scale=scale).events(EVENTS))
    drift = site.drift
    old, new = (learned(load, site.budget, *METHOD) for load in (drift.before, drift.after))
    return site.state(old), site.state(new), site.samples(old, new)


@cache
def _told(line: str, switches: int, seed: int, scale: float) -> Story:
    """What the line of a plot is drawn from; an order of removal is a line of `custom-multicast`."""
    old, new, samples = _change(switches, seed, scale)
    options = replace(OPTIONS, seed=seed)
    if line in (*RATED, *UNRATED):
        strategy, options = CUSTOM, replace(options, order=line)
    else:
        strategy = line.removesuffix(" (ours)")
    options = replace(options, rates=rates(old, samples, options.order))
    plan: Plan = STRATEGIES[strategy].make(old, new, old.tables.fabric.topology, options)
    return story(plan, samples, seed, INTERVALS[switches])


def rates(state: NetworkState, samples: Sequence[Sample], order: Order) -> dict[SwitchId, float]:
    """What a controller reads off its switches: packets sent on, or the share of those come in that is dropped."""
    network = ModelNetwork(state.tables)
    came = dict.fromkeys(state.tables.fabric.topology.switches, 0)
    sent, dropped = came.copy(), came.copy()
    for sample in samples:
        for hop in network.walk(sample.old, sample.publisher).hops if sample.old else ():
            came[hop.switch] += 1
            sent[hop.switch] += len(hop.out_ports)
            dropped[hop.switch] += not hop.out_ports
    if order == "transmission-rate":
        return {switch: float(count) for switch, count in sent.items()}
    return {switch: dropped[switch] / max(1, count) for switch, count in came.items()}


def _rows(point: Point, value: Callable[[Story, float, float], float]) -> list[Row]:
    found, interval = _told(point.line, point.at, point.seed, point.scale), INTERVALS[point.at]
    dots = over_time(found, interval, lambda first, last: value(found, first, last))
    return [Row(point.panel, point.line, x, y, point.seed) for x, y in dots]


def entry_rows(point: Point) -> list[Row]:
    return _rows(point, Story.most_held)


def packet_rows(point: Point) -> list[Row]:
    return _rows(point, lambda found, *when: found.packets_each(found.between(*when)))


def waste_rows(point: Point) -> list[Row]:
    return _rows(point, lambda found, *when: found.waste(found.between(*when)))


def size_rows(point: Point) -> list[Row]:
    """Packets an event in the time that is shown of an update, on average or at the worst; at rest before it."""
    found = []
    for switches in SHAPES:
        one = _told(CUSTOM if point.line == AT_REST else point.line, switches, point.seed, point.scale)
        shown = over_time(one, INTERVALS[switches], lambda *when: one.packets_each(one.between(*when)))  # noqa: B023 - used up before the next one
        dots = [y for x, y in shown if (x < 0) == (point.line == AT_REST)]
        y = max(dots) if point.panel == WORST else sum(dots) / len(dots)
        found.append(Row(point.panel, point.line, switches, y, point.seed))
    return found


def mean(rows: Sequence[Row], line: str, panel: str, *, after: bool = True) -> float:
    """Of all dots of a line from the update's beginning on, or before it."""
    ys = [y for x, y in curve(rows, line, panel).items() if (x > 0) == after]
    return sum(ys) / len(ys)


def versioning_needs_more(found: Sequence[Row]) -> Verdict:
    """Half as many entries again or more for versioning, at most a tenth more for either multicast."""
    parts, told = [], []
    for panel in panels(found):
        more = {line: _more(found, line, panel) for line in (VERSIONING, IP, CUSTOM, EPOCH)}
        parts += [more[VERSIONING] >= 0.5, more[IP] <= 0.1, more[CUSTOM] <= 0.1]
        told.append(f"{panel}: {', '.join(f'{line} +{percent(share)}' for line, share in more.items())}")
    return graded(parts, f"most entries over those at rest: {'; '.join(told)}")


def _more(found: Sequence[Row], line: str, panel: str) -> float:
    """By which share the worst moment is above the larger of both states."""
    ys = list(curve(found, line, panel).values())
    return max(ys) / max(ys[0], ys[-1]) - 1


def custom_sends_less(found: Sequence[Row]) -> Verdict:
    """On average over the time that is shown, and in its worst interval."""
    parts, told = [], []
    for panel in (MEAN, WORST):
        lines = {line: curve(found, line, panel) for line in (AT_REST, IP, CUSTOM, EPOCH)}
        parts += [saved(lines[CUSTOM][x], lines[IP][x]) >= CLEAR for x in lines[IP]]
        sizes = (
            f"{x:.0f} switches " + ", ".join(f"{line} {ys[x]:.1f}" for line, ys in lines.items())
            for x in lines[IP]
        )
        told.append(f"{panel}: {'; '.join(sizes)}")
    return graded(parts, f"packets an event, {'. '.join(told)}")


def rated_orders_send_less(found: Sequence[Row]) -> Verdict:
    """In the larger networks both orders by measured rates against both others, over the whole time that is shown."""
    parts, told = [], []
    for panel in panels(found):
        means = {line: mean(found, line, panel) for line in (*RATED, *UNRATED, EPOCH)}
        if panel in (_panel(32), _panel(64)):
            parts += [saved(means[one], means[other]) >= CLEAR for one in RATED for other in UNRATED]
        told.append(f"{panel}: {', '.join(f'{line} {packets:.1f}' for line, packets in means.items())}")
    return graded(parts, f"packets an event: {'; '.join(told)}")


def a_spike_then_less(found: Sequence[Row]) -> Verdict:
    """Custom multicast wastes more meanwhile and less in the end than before; IP multicast wastes more than it."""
    parts, told = [], []
    for panel in panels(found):
        before, dots = mean(found, CUSTOM, panel, after=False), curve(found, CUSTOM, panel)
        worst, end = max(dots.values()), dots[max(dots)]
        ip, epoch = (
            max(curve(found, IP, panel).values()),
            max(y for x, y in curve(found, EPOCH, panel).items() if x > 0),
        )
        parts += [saved(before, worst) >= CLEAR, saved(end, before) >= CLEAR, saved(worst, ip) >= CLEAR]
        told.append(
            f"{panel}: {percent(before)}, {percent(worst)} at the worst, {percent(end)}; "
            f"at the worst {IP} {percent(ip)}, {EPOCH} {percent(epoch)}"
        )
    return graded(parts, f"{CUSTOM} before, meanwhile, after: {'; '.join(told)}")


def _panel(switches: int) -> str:
    return f"{switches} switches"


def _starts(name: str, lines: Sequence[str]) -> tuple[Point, ...]:
    return tuple(Point(name, _panel(size), line, size) for size in SHAPES for line in lines)


FIGURES = (
    Figure(
        name="001-6.3",
        title="Entries in the network while the index changes",
        x="milliseconds from the beginning of the update",
        y="entries in all switches",
        claim="versioning needs far more entries meanwhile than either multicast, and these are alike",
        settings=SETTINGS,
        starts=_starts("001-6.3", (VERSIONING, IP, CUSTOM, EPOCH)),
        rows=entry_rows,
        verdict=versioning_needs_more,
        rates=False,
        emulated=True,
    ),
    Figure(
        name="001-6.4",
        title="Packets in the network while the index changes",
        x="switches",
        y="links crossed, an event",
        claim="custom multicast puts much fewer packets into the network than IP multicast, whatever its size",
        settings=SETTINGS,
        starts=tuple(
            Point("001-6.4", panel, line) for panel in (MEAN, WORST) for line in (AT_REST, IP, CUSTOM, EPOCH)
        ),
        rows=size_rows,
        verdict=custom_sends_less,
        log="x",
        rates=False,
        emulated=True,
    ),
    Figure(
        name="001-6.6",
        title="Packets in the network by the order in which wide entries are removed",
        x="milliseconds from the beginning of the update",
        y="links crossed, an event",
        claim="in large networks removal by transmission or filter rate sends clearly less than other orders",
        settings=SETTINGS,
        starts=_starts("001-6.6", (*RATED, *UNRATED, EPOCH)),
        rows=packet_rows,
        verdict=rated_orders_send_less,
        rates=False,
        emulated=True,
    ),
    Figure(
        name="001-6.7",
        title="False positives before, during and after a change of the index",
        x="milliseconds from the beginning of the update",
        y="false positive rate at hosts",
        claim="custom multicast wastes more for a moment and then less than before; IP multicast wastes much more",
        settings=SETTINGS,
        starts=_starts("001-6.7", (IP, CUSTOM, EPOCH)),
        rows=waste_rows,
        verdict=a_spike_then_less,
        emulated=True,
    ),
)
