"""A content index as a JSON document that a publisher can be sent, with a version, and back."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import msgspec

from plerion.content.box import Box
from plerion.content.errors import quoted
from plerion.content.schema import Attribute, Number, Schema
from plerion.index.content_index import Cluster, ContentIndex
from plerion.index.cuts import ContentIndexError, Cuts, equal_cuts
from plerion.index.dz import MAX_LENGTH, Dz

FORMAT = "plerion-index"
VERSION = 1
MAX_BYTES = 64 << 20
MAX_CLUSTERS = 256


class _Cuts(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    low: float
    end: float
    at: list[float] | None = None


class _Cluster(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    id: str
    order: list[str]
    cuts: dict[str, _Cuts]
    box: dict[str, tuple[float | None, float | None]] = {}
    share: float | None = None


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    epoch: int
    schema: dict[str, Any]
    clusters: list[_Cluster]


def to_json(index: ContentIndex) -> bytes:
    """One line of JSON; `from_json` gives an equal index back, to the last bit of every cut."""
    clusters = [_cluster_out(index.schema, cluster) for cluster in index.clusters]
    return msgspec.json.encode(_Document(FORMAT, VERSION, index.epoch, index.schema.to_document(), clusters))


def from_json(text: bytes | str) -> ContentIndex:
    """The index in a document of this version; anything else is a `ContentIndexError`."""
    try:
        document = msgspec.json.decode(text, type=_Document)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ContentIndexError(f"not a content index: {error}") from None
    if document.format != FORMAT or document.version != VERSION:
        raise ContentIndexError(
            f"format {quoted(document.format)} version {quoted(document.version)}: "
            f"this release reads {FORMAT!r} version {VERSION}"
        )
    if len(document.clusters) > MAX_CLUSTERS:
        raise ContentIndexError(f"{len(document.clusters)} clusters: an index has at most {MAX_CLUSTERS}")
    try:
        schema = Schema.from_document(document.schema)
        clusters = tuple(_cluster_in(schema, cluster) for cluster in document.clusters)
        return ContentIndex(schema, clusters, document.epoch)
    except ContentIndexError:
        raise
    except ValueError as error:
        raise ContentIndexError(f"not a content index: {error}") from None


def read_index(path: str | Path) -> ContentIndex:
    """The index in a file; errors name the file."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ContentIndexError(f"larger than {MAX_BYTES >> 20} MiB, which no index is")
        return from_json(text)
    except OSError as error:
        raise ContentIndexError(f"{file}: {error.strerror}") from None
    except ContentIndexError as error:
        raise ContentIndexError(f"{file}: {error}") from None


def _cluster_out(schema: Schema, cluster: Cluster) -> _Cluster:
    names = schema.names
    cuts = {
        name: _Cuts(c.low, c.end, None if c.at is None else list(c.at))
        for name, c, attribute in zip(names, cluster.cuts, schema.attributes, strict=True)
        if c != equal_cuts(attribute, c.bits)  # what a reader takes when nothing is said
    }
    box = {
        name: (None if low == -inf else low, None if high == inf else high)
        for name, low, high in zip(names, cluster.box.lows, cluster.box.highs, strict=True)
        if (low, high) != (-inf, inf)
    }
    return _Cluster(str(cluster.id), [names[a] for a in cluster.order], cuts, box, cluster.share)


def _cluster_in(schema: Schema, cluster: _Cluster) -> Cluster:
    if len(cluster.order) > MAX_LENGTH:
        raise ContentIndexError(f"a bit order has at most {MAX_LENGTH} bits, not {len(cluster.order)}")
    order = tuple(schema.position(name) for name in cluster.order)
    known = set(schema.names)
    for name in (*cluster.cuts, *cluster.box):
        if name not in known:
            raise ContentIndexError(f"a cluster speaks of {quoted(name)}, which the schema does not have")
    cuts = tuple(
        _cuts_in(a, order.count(i), cluster.cuts.get(a.name)) for i, a in enumerate(schema.attributes)
    )
    ranges = [cluster.box.get(name, (None, None)) for name in schema.names]
    box = Box(
        tuple(-inf if low is None else low for low, _ in ranges),
        tuple(inf if high is None else high for _, high in ranges),
    )
    return Cluster(Dz.parse(cluster.id), box, order, cuts, cluster.share)


def _cuts_in(attribute: Attribute, bits: int, cuts: _Cuts | None) -> Cuts:
    if cuts is None:
        return equal_cuts(attribute, bits)
    discrete = not isinstance(attribute, Number) or attribute.integer
    log = isinstance(attribute, Number) and attribute.scale == "log"
    return Cuts(bits, cuts.low, cuts.end, log, discrete, None if cuts.at is None else tuple(cuts.at))
