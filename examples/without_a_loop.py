"""The same client in a program without an event loop. Run it in a host of a lab:

plerion lab exec h5 -- python examples/without_a_loop.py
"""

from typing import Any

from plerion.client import sync


def main(count: int = 3, **options: Any) -> None:
    with sync.connect(**options) as session, session.subscribe("wind > 30 OR temperature > 35") as rough:
        print(f"{session.host} is ready", flush=True)
        for number, delivered in enumerate(rough, 1):
            print(delivered.event)
            if number == count:
                break


if __name__ == "__main__":
    main()
