"""Interests in clusters of neighbours, whose bounding rectangles a selective index is made of (seed 004 §III-A).

Two ways with one answer, a cluster from 0 on for each interest: k-means on the centres and widths of the rectangles, by
Spark's MLlib, and packing (`learning.packing`). Both put equal rectangles together and may find fewer clusters than
asked for. The table has a row an interest: it grows with the subscriptions, never with the events.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.ml.clustering import KMeans
from pyspark.ml.functions import array_to_vector
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own documents use

from plerion.learning.packing import packed
from plerion.pipeline import schemas
from plerion.pipeline.steps.batches import Floats, Ints, column_arrays

ITERATIONS = 20


def by_kmeans(spark: SparkSession, rectangles: Floats, clusters: int, seed: int = 0) -> DataFrame:
    """Clusters of rectangles (`learning.packing.rectangles`) that are near each other and of about the same size."""
    count = len(np.unique(rectangles.reshape(len(rectangles), -1), axis=0)) if len(rectangles) else 0
    if min(clusters, count) < 2:
        return _table(spark, np.zeros(len(rectangles), np.int64))
    centres, widths = rectangles.mean(axis=2), np.diff(rectangles, axis=2)[:, :, 0]
    features = np.concatenate((centres, widths), axis=1)
    rows = pa.table({"interest": np.arange(len(features), dtype=np.int32), "features": list(features)})
    # One partition: what k-means finds depends on how the rows are dealt out.
    vectors = spark.createDataFrame(rows).coalesce(1)
    vectors = vectors.select("interest", array_to_vector(F.col("features")).alias("features"))
    model = KMeans(k=min(clusters, count), seed=seed, maxIter=ITERATIONS, predictionCol="cluster").fit(
        vectors
    )
    return _numbered(model.transform(vectors).select("interest", "cluster"))


def by_packing(spark: SparkSession, rectangles: Floats, clusters: int) -> DataFrame:
    """Clusters of about equal numbers of rectangles."""
    return _table(spark, packed(rectangles, clusters))


def cluster_numbers(table: DataFrame) -> Ints:
    """The table on the driver: for each interest its cluster."""
    rows = column_arrays(table)
    return rows["cluster"][np.argsort(rows["interest"])].astype(np.int64)


def _numbered(table: DataFrame) -> DataFrame:
    """The clusters counted from 0 without gaps: k-means may leave one empty."""
    used = sorted(row["cluster"] for row in table.select("cluster").distinct().collect())
    place = F.array_position(F.lit(used), F.col("cluster")) - 1
    return table.select("interest", place.cast("int").alias("cluster"))


def _table(spark: SparkSession, clusters: Ints) -> DataFrame:
    rows = {"interest": np.arange(len(clusters), dtype=np.int32), "cluster": clusters.astype(np.int32)}
    return spark.createDataFrame(pa.table(rows), schemas.CLUSTERS)
