"""Real events, and subscribers who ask for what resembles some of them.

The files are read from a directory that the caller names. Each becomes an event space of its numeric columns: bounds
are the lowest and highest value there is, a column of whole numbers is an integer attribute, and one that is positive
and crowded at its low end has a logarithmic scale. A missing value stands at MISSING.

Nobody published what people subscribe to in these data, so subscriptions are drawn. A subscriber picks a *group* (a
symbol, a sensor, a station, a destination) by Zipf's law, a real event of it, and two to five of the attributes that
the event has. On each he asks for a window around the event's value that holds a drawn share of all values: windows
are narrow where events are dense. On a *threshold* attribute (a volume, a delay) the window is open above. All other
attributes are free. So every subscription matches at least one event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from plerion.content.schema import MAX_WHOLE, MISSING, Number, Schema
from plerion.content.table import Kind, Table, read_table
from plerion.learning.workload import Floats, Ints, Workload

CROWDED: Final = 0.05  # a median this low in the range of positive values calls for a logarithmic scale


@dataclass(frozen=True, slots=True)
class Settings:
    """What is kept of the events and drawn of the subscriptions; equal settings give equal workloads.

    `events` is the most events to keep, evenly thinned, or None for all. A window holds between `shares` of the values.
    """

    subscriptions: int = 1_000
    events: int | None = None
    shares: tuple[float, float] = (0.02, 0.4)
    hosts: int = 256
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.shares[0] <= self.shares[1] <= 1:
            raise ValueError(f"shares are {self.shares}: give two shares of the values, the smaller first")
        if self.hosts < 1 or (self.events is not None and self.events < 1):
            raise ValueError(f"{self.hosts} hosts and {self.events} events: give at least 1 of each")


@dataclass(frozen=True, slots=True)
class Source:
    """Files with the same columns: which are attributes, by which subscribers choose, and which are thresholds."""

    files: tuple[str, ...]
    group: tuple[str, ...]
    attributes: tuple[str, ...]
    thresholds: tuple[str, ...] = ()


Reader: TypeAlias = Callable[[Path, Settings], Workload]

STOCKS: Final = Source(
    ("stocks/sp500_daily_2013_2018_a.csv.gz",),
    ("symbol",),
    ("open", "high", "low", "close", "volume"),
    ("volume",),
)
ROOM_CLIMATE: Final = Source(
    ("sensors/room_climate_A.csv.gz", "sensors/room_climate_B.csv.gz"),
    ("location", "node"),
    ("temp", "rh", "light1", "light2", "occ", "act", "door", "win"),
    ("occ", "act"),
)
BEIJING_AIR: Final = Source(
    ("sensors/beijing_air_6stations_a_2013_2015.csv.gz",),
    ("station",),
    ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM"),
    ("RAIN", "WSPM"),
)
QUAKES: Final = Source(
    ("events/usgs_quakes_2015_2021.csv.gz",),
    ("net",),
    (
        *("latitude", "longitude", "depth", "mag", "nst", "gap", "dmin", "rms"),
        *("horizontalError", "depthError", "magError", "magNst"),
    ),
    ("mag",),
)
FLIGHTS: Final = Source(
    ("events/nyc_flights_2013H1.csv.gz",),
    ("dest",),
    (
        *("month", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"),
        *("flight", "air_time", "distance", "hour"),
    ),
    ("dep_delay", "arr_delay"),
)


def stocks(directory: Path, settings: Settings = Settings()) -> Workload:
    """Five years of daily prices and volumes; the four prices of a day are nearly one."""
    return read(STOCKS, directory, settings)


def room_climate(directory: Path, settings: Settings = Settings()) -> Workload:
    """Climate, light and people in two rooms; the two lights follow each other, and the windows hardly ever open."""
    return read(ROOM_CLIMATE, directory, settings)


def beijing_air(directory: Path, settings: Settings = Settings()) -> Workload:
    """Two years of hourly air quality and weather at six stations, with missing values."""
    return read(BEIJING_AIR, directory, settings)


def quakes(directory: Path, settings: Settings = Settings()) -> Workload:
    """Earthquakes: twelve attributes that say little about each other, a sixth of the values missing."""
    return read(QUAKES, directory, settings)


def flights(directory: Path, settings: Settings = Settings()) -> Workload:
    """Half a year of departures from New York; air time follows distance, and the times of a flight each other."""
    return read(FLIGHTS, directory, settings)


DATASETS: Final[Mapping[str, Reader]] = {
    "stocks": stocks,
    "room-climate": room_climate,
    "beijing-air": beijing_air,
    "quakes": quakes,
    "flights": flights,
}


def read(source: Source, directory: Path, settings: Settings) -> Workload:
    """The source's events and drawn subscriptions; the schema is the same however many events are kept."""
    kinds: dict[str, Kind] = dict.fromkeys(source.group, "text")
    kinds |= dict.fromkeys(source.attributes, "number")
    tables = [read_table(directory / file, kinds) for file in source.files]
    values = np.concatenate([_values(table, source.attributes) for table in tables])
    names = np.concatenate([_group_names(table, source.group) for table in tables])
    attributes = tuple(map(fitted, source.attributes, values.T))
    if settings.events is not None and settings.events < len(values):
        kept = np.linspace(0, len(values) - 1, settings.events).astype(np.int64)
        values, names = values[kept], names[kept]
    random = np.random.default_rng(settings.seed)
    rows = _popular(np.unique(names, return_inverse=True)[1], settings.subscriptions, random)
    points = np.where(np.isnan(values), MISSING, values)
    boxes = _boxes(attributes, points, rows, source.thresholds, settings.shares, random)
    hosts = random.integers(0, settings.hosts, settings.subscriptions)
    return Workload(Schema(attributes), points, np.arange(settings.subscriptions + 1), boxes, hosts)


def fitted(name: str, values: Floats) -> Number:
    """The attribute that just holds the values; NaN is none."""
    present = values[~np.isnan(values)]
    low, high = float(present.min()), float(present.max())
    integer = bool((present == np.floor(present)).all()) and max(-low, high) <= MAX_WHOLE
    crowded = low > 0 and np.median(present) - low < CROWDED * (high - low)
    return Number(name, low, high, integer, "log" if crowded else "linear")


def _values(table: Table, attributes: tuple[str, ...]) -> Floats:
    return np.stack([table.numbers(name) for name in attributes], axis=1)


def _group_names(table: Table, group: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    return np.array([" ".join(cells) for cells in zip(*map(table.texts, group), strict=True)])


def _popular(group: Ints, count: int, random: np.random.Generator) -> Ints:
    """Rows that are drawn evenly from groups, and groups whose popularity is 1/1, 1/2, 1/3 …"""
    sizes = np.bincount(group)
    popularity = 1 / (1 + random.permutation(len(sizes)))
    chosen = random.choice(len(sizes), count, p=popularity / popularity.sum())
    starts = np.cumsum(sizes) - sizes
    rows: Ints = np.argsort(group, kind="stable")[starts[chosen] + random.integers(0, sizes[chosen])]
    return rows


def _boxes(
    attributes: Sequence[Number],
    points: Floats,
    rows: Ints,
    thresholds: tuple[str, ...],
    shares: tuple[float, float],
    random: np.random.Generator,
) -> Floats:
    """Half-open windows around the given rows, on two to five of the attributes that the row has."""
    around = points[rows]
    keys = np.where(np.isneginf(around), np.inf, random.random(around.shape))
    wanted = random.integers(2, 6, (len(rows), 1))
    asked = (np.argsort(np.argsort(keys, axis=1), axis=1) < wanted) & np.isfinite(keys)
    halves = shares[0] * (shares[1] / shares[0]) ** random.random(around.shape) / 2
    found = np.empty((*around.shape, 2))
    found[:] = (-np.inf, np.inf)
    for at, attribute in enumerate(attributes):
        column = np.sort(points[np.isfinite(points[:, at]), at])
        held = asked[:, at]
        windows = _windows(column, around[held, at], halves[held, at])
        if attribute.name in thresholds:
            windows[:, 1] = column[-1]
        top = windows[:, 1] + 1 if attribute.integer else np.nextafter(windows[:, 1], np.inf)
        found[held, at] = np.stack((windows[:, 0], top), axis=1)
    return found


def _windows(column: Floats, values: Floats, halves: Floats) -> Floats:
    """The values that stand the given shares of the sorted column below and above each value, both included."""
    rank, reach = np.searchsorted(column, values), (halves * len(column)).astype(np.int64)
    found: Floats = column[np.clip(np.stack((rank - reach, rank + reach), axis=1), 0, len(column) - 1)]
    return found
