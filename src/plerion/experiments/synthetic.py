"""The papers' synthetic workloads (seed 000 §6.1 and §6.4, seed 004 §VI), each a pure function of its settings.

The papers name the properties of a workload and leave the arithmetic open. It is laid down here. Positions are drawn
in the unit cube, shaped there, and only then become whole numbers from 0 to `high`.

- *Uniform model*: events and the middles of subscriptions are uniform and independent of each other.
- *Interest popularity model* (`zipf`): both lie around the same hotspots; hotspot k is drawn with a probability
  proportional to 1/k, and what is drawn lies normally around it with the deviation `spread`.
- *Variance factor*: `uniform` leaves all attributes alone. `random` shrinks the events on each attribute towards a
  point by a factor of its own; the factors run geometrically from 1 to `HARDLY` and are dealt out at random. The
  middles of subscriptions shrink with them, their widths do not: where events hardly vary, nearly all match.
- *Correlation factor*: an attribute follows another with weight w, and is itself with 1 - w. `high`: all but two
  attributes follow one of these two with w = 0.9. `low`: one attribute follows one other with w = 0.3, which is a
  correlation of about 0.3. Hotspots alone would correlate all attributes by chance, so with either factor each
  independent attribute draws its hotspot for itself.
- *Selectivity*: a subscription's width on an attribute, as a share of the range, lies between `widths`. With the
  `random` selectivity factor each attribute has a width of its own; they run evenly from the first of
  `widths` to the second and are dealt out at random, and a subscription stays within a quarter of them.
- *Redundancy*: `copies` attributes hold exactly what another attribute holds, in events and in subscriptions, and
  `idle` ones vary although nobody asks for them.
- *Hosts*: with hotspots a host subscribes to one hotspot alone (seed 000 §6.2), else to anything.

Which attribute plays which part is drawn, too, so that the order of the schema tells nothing. Layout, events and
subscriptions come from separate streams: more events leave the subscriptions as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from plerion.content.schema import Number, Schema
from plerion.learning.workload import Floats, Ints, Workload

HARDLY: Final = 0.01  # how much is left of the spread of the attribute that varies least
WEIGHTS: Final[Mapping[str, float]] = {"low": 0.3, "high": 0.9}


@dataclass(frozen=True, slots=True)
class Settings:
    """What is drawn; equal settings give equal workloads."""

    attributes: int = 8
    high: int = 4095
    subscriptions: int = 1_000
    events: int = 20_000
    distribution: Literal["uniform", "zipf"] = "zipf"
    hotspots: int = 8
    spread: float = 0.07
    variance: Literal["uniform", "random"] = "uniform"
    correlation: Literal["none", "low", "high"] = "none"
    selectivity: Literal["uniform", "random"] = "uniform"
    widths: tuple[float, float] = (0.05, 0.35)
    copies: int = 0
    idle: int = 0
    hosts: int = 256
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.copies + self.idle < self.attributes:
            raise ValueError(
                f"{self.copies} copies and {self.idle} idle ones of {self.attributes}: leave one"
            )
        if not 0 < self.widths[0] <= self.widths[1] <= 1:
            raise ValueError(f"widths are {self.widths}: give two shares of the range, the smaller first")
        if min(self.attributes, self.high, self.hotspots, self.hosts) < 1:
            raise ValueError("attributes, high, hotspots and hosts must be at least 1")


PRESETS: Final[Mapping[str, Settings]] = {
    "uniform": Settings(distribution="uniform", widths=(0.5, 0.9)),
    "zipf": Settings(),
    "zipf-random-variance": Settings(variance="random", widths=(0.02, 0.2)),
    "zipf-uniform-variance": Settings(selectivity="random", widths=(0.05, 0.8)),
    "high-correlation": Settings(correlation="high"),
    "low-correlation": Settings(correlation="low", widths=(0.3, 0.8)),
    # Tuned to start where seed 004 Fig. 14(a) does: regular indexing with 23 bits and 32 cells is wrong at 80 %.
    "random-selectivity": Settings(selectivity="random", widths=(0.08, 1.0), seed=4),
    "redundant-2": Settings(copies=4, idle=2, widths=(0.02, 0.2)),
    "redundant-3": Settings(copies=3, idle=2, widths=(0.02, 0.2)),
}
"""The workloads of the figures; `dataclasses.replace` gives other numbers of subscriptions, events and hosts."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What holds for each attribute of a workload, and where its hotspots are.

    Attribute j follows `source[j]` with `weight[j]`; `source[j]` follows nobody.
    """

    source: Ints
    weight: Floats
    idle: Ints
    scale: Floats
    focus: Floats
    narrowest: Floats
    widest: Floats
    centres: Floats

    def mixed(self, own: Floats) -> Floats:
        """Columns that each follow their source."""
        return (1 - self.weight) * own + self.weight * own[:, self.source]

    def shrunk(self, positions: Floats) -> Floats:
        """Positions drawn towards the focus, as the events of the attribute vary."""
        return self.focus + self.scale * (positions - self.focus)


def schema(settings: Settings) -> Schema:
    return Schema(tuple(Number(f"a{i}", 0, settings.high, integer=True) for i in range(settings.attributes)))


def workload(settings: Settings) -> Workload:
    """Events on whole numbers, and subscriptions of one box each."""
    plan = layout(settings)
    boxes, hosts = _subscriptions(settings, plan)
    offsets = np.arange(settings.subscriptions + 1)
    return Workload(schema(settings), _events(settings, plan), offsets, boxes, hosts)


def layout(settings: Settings) -> Layout:
    """The parts that the attributes play, the same for any number of events and subscriptions."""
    random = np.random.default_rng((settings.seed, 0))
    count = settings.attributes
    source, weight, idle = _followers(settings, random)
    scale, focus = np.ones(count), random.uniform(0.2, 0.8, count)
    if settings.variance == "random":
        scale = random.permutation(np.geomspace(HARDLY, 1, count))[source]
    narrowest, widest = (np.full(count, width) for width in settings.widths)
    if settings.selectivity == "random":
        typical = random.permutation(np.linspace(*settings.widths, count))[source]
        narrowest, widest = 0.75 * typical, np.minimum(1.25 * typical, 1)
    centres = random.uniform(0, 1, (settings.hotspots, count))
    return Layout(source, weight, idle, scale, focus[source], narrowest, widest, centres)


def _followers(settings: Settings, random: np.random.Generator) -> tuple[Ints, Floats, Ints]:
    """(source, weight, idle attributes): the parts are dealt to the attributes in a random order."""
    dealt = random.permutation(settings.attributes)
    source, weight = np.arange(settings.attributes), np.zeros(settings.attributes)
    useful = settings.attributes - settings.copies - settings.idle
    idle, copies, own = np.split(dealt, [settings.idle, settings.idle + settings.copies])
    leaders = own[:2] if settings.correlation == "high" else own
    following = {"none": own[:0], "low": own[useful - 1 :], "high": own[2:]}[settings.correlation]
    if useful > 1:
        source[following] = np.resize(leaders, len(following))
        weight[following] = WEIGHTS.get(settings.correlation, 0)
    source[copies], weight[copies] = np.resize(leaders, len(copies)), 1
    return source, weight, idle


def _events(settings: Settings, plan: Layout) -> Floats:
    random = np.random.default_rng((settings.seed, 1))
    positions, _ = _drawn(settings, plan, settings.events, random)
    return np.floor(plan.shrunk(positions) * settings.high + 0.5)


def _subscriptions(settings: Settings, plan: Layout) -> tuple[Floats, Ints]:
    """Boxes as `content.read` makes them of ranges with both ends included, and the host of each."""
    random = np.random.default_rng((settings.seed, 2))
    positions, hotspot = _drawn(settings, plan, settings.subscriptions, random)
    middle = plan.shrunk(positions)
    half = plan.mixed(random.uniform(plan.narrowest, plan.widest, middle.shape)) / 2
    low = np.floor(np.clip(middle - half, 0, 1) * settings.high + 0.5)
    high = np.floor(np.clip(middle + half, 0, 1) * settings.high + 0.5) + 1
    boxes = np.stack((low, high), axis=-1)
    boxes[:, plan.idle] = (-np.inf, np.inf)
    return boxes, _hosts(settings, hotspot, random)


def _drawn(settings: Settings, plan: Layout, count: int, random: np.random.Generator) -> tuple[Floats, Ints]:
    """(positions in the unit cube that follow each other as planned, the hotspot of each row)."""
    own = random.uniform(0, 1, (count, settings.attributes))
    hotspot = np.zeros(count, np.int64)
    if settings.distribution == "zipf":
        popularity = 1 / np.arange(1, settings.hotspots + 1)
        popularity /= popularity.sum()
        choices = settings.attributes if settings.correlation != "none" else 1
        chosen = random.choice(settings.hotspots, (count, choices), p=popularity)
        own = random.normal(plan.centres[chosen, np.arange(settings.attributes)], settings.spread)
        own = 1 - np.abs(1 - np.abs(own))  # the walls reflect, so no events pile up on them
        hotspot = chosen[:, 0]
    return np.clip(plan.mixed(own), 0, 1), hotspot


def _hosts(settings: Settings, hotspot: Ints, random: np.random.Generator) -> Ints:
    """Any host in the uniform model; else host h asks for hotspot h modulo the number of hotspots."""
    if settings.distribution == "uniform" or settings.hosts < settings.hotspots:
        return random.integers(0, settings.hosts, len(hotspot))
    share = (settings.hosts - 1 - hotspot) // settings.hotspots + 1
    return hotspot + settings.hotspots * random.integers(0, share)
