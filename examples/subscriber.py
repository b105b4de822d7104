"""Receives warm hours at two airports, and says at the end what was counted. Run it in a host of a lab:

plerion lab exec h5 -- python examples/subscriber.py
"""

import asyncio
from typing import Any

import plerion


async def main(count: int = 10, **options: Any) -> None:
    async with plerion.connect(**options) as session:
        # From here on, and not before, no event is missed.
        async with session.subscribe("temperature > 20 AND airport IN ('JFK', 'LGA')") as warm:
            print(f"{session.host} is ready", flush=True)
            for _ in range(count):
                delivered = await anext(warm)
                print(delivered["airport"], delivered["temperature"], f"{delivered.latency_seconds:.4f} s")
        print(warm.counts.to_json())


if __name__ == "__main__":
    asyncio.run(main())
