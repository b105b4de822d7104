"""One Spark session for all tests of this folder, started by the first that asks for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from plerion.pipeline.session import session

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("spark")
            item.add_marker("slow")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session("local[2]") as running:
        yield running.spark
