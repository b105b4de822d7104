"""Publishes made-up weather, an event at a time and then many at once. Run it in a host of a lab:

plerion lab exec h1 -- python examples/publisher.py
"""

import asyncio
from typing import Any

import numpy as np

import plerion


async def main(**options: Any) -> None:
    async with plerion.connect(**options) as session:
        await session.advertise("temperature > 0")
        await session.publish({"airport": "JFK", "temperature": 21.5, "humidity": 40, "hour": 12})
        # Columns, or an array of rows in the order of the schema, cost next to nothing an event.
        random = np.random.default_rng(1)
        sent = await session.publish(
            {
                "airport": random.choice(["EWR", "JFK", "LGA"], 1000),
                "temperature": random.uniform(10, 40, 1000),
                "hour": random.integers(0, 24, 1000),
            }
        )
        print(f"{session.host} published {sent + 1} events")


if __name__ == "__main__":
    asyncio.run(main())
