"""The examples of the client run, and say what they should."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plerion.content.schema import read_schema
from plerion.index.propose import regular
from tests.unit.client_network import Network

EXAMPLES = Path(__file__).parents[2] / "examples"
INDEX = regular(read_schema(EXAMPLES / "schema.yaml"), 24)
PATIENCE_SECONDS = 60.0


def example(name: str) -> Callable[..., Any]:
    main: Callable[..., Any] = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    return main


async def until_subscribed(network: Network) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not network.state.subscriptions:
            await asyncio.sleep(0.01)


def test_what_the_publisher_sends_the_subscriber_prints(capsys: pytest.CaptureFixture[str]) -> None:
    async def scene() -> None:
        async with Network.open(INDEX) as network:
            options = {"controller": network.target}
            reading = asyncio.create_task(
                example("subscriber")(count=100, transport=network.expect("h5"), **options)
            )
            await until_subscribed(network)
            await example("publisher")(transport=network.expect("h1"), **options)
            await asyncio.wait_for(reading, PATIENCE_SECONDS)

    asyncio.run(scene())
    said = capsys.readouterr().out
    assert "h5 is ready" in said
    assert "JFK 21.5" in said
    assert "h1 published 1001 events" in said
    assert "'doubles': 0" in said


def test_a_program_without_a_loop_receives(capsys: pytest.CaptureFixture[str]) -> None:
    async def scene() -> None:
        async with Network.open(INDEX) as network:
            options: Any = {"controller": network.target}
            reading = asyncio.create_task(
                asyncio.to_thread(example("without_a_loop"), transport=network.expect("h5"), **options)
            )
            await until_subscribed(network)
            await example("publisher")(transport=network.expect("h1"), **options)
            await asyncio.wait_for(reading, PATIENCE_SECONDS)

    asyncio.run(scene())
    assert capsys.readouterr().out.count("'airport'") == 3
