"""Values to bytes and back; the only module that knows os_ken.

What we send is encoded by os_ken's OpenFlow 1.3. What we receive is decoded by `decode`, whose docstring says why.
On the hot path `flowmod` writes many flow-mods at once, byte for byte what `encode` would write.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Network
from typing import Any

from os_ken.ofproto import ofproto_v1_3 as of  # type: ignore[import-untyped]  # ships no types
from os_ken.ofproto import ofproto_v1_3_parser as parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc  # type: ignore[import-untyped]  # ships no types

from plerion.southbound.openflow.decode import decode
from plerion.southbound.openflow.messages import (
    BarrierRequest,
    BundleAdd,
    BundleControl,
    Command,
    EchoReply,
    EchoRequest,
    Error,
    FeaturesRequest,
    FlowMod,
    Hello,
    MultipartRequest,
    PacketOut,
    Part,
    Sent,
)
from plerion.southbound.openflow.pipeline import (
    OURS_TO_DELETE,
    VLAN,
    Action,
    Entry,
    Match,
    Output,
    PopTag,
    PushTag,
)

__all__ = ["ATOMIC_AND_ORDERED", "decode", "encode"]

ATOMIC_AND_ORDERED = of.ONF_BF_ATOMIC | of.ONF_BF_ORDERED

_PROTOCOL = ProtocolDesc(version=of.OFP_VERSION)


def encode(message: Sent, xid: int) -> bytes:
    """One message as bytes."""
    made = _WRITERS[type(message)](message)
    made.set_xid(xid)
    made.serialize()
    return bytes(made.buf)


def _echo(made: Any, body: bytes) -> Any:
    made.data = body
    return made


def _packet_out(message: PacketOut) -> Any:
    return parser.OFPPacketOut(
        _PROTOCOL,
        buffer_id=of.OFP_NO_BUFFER,
        in_port=of.OFPP_CONTROLLER,
        actions=[_action(action) for action in message.actions],
        data=message.payload,
    )


def _multipart(message: MultipartRequest) -> Any:
    if message.part is Part.TABLES:
        return parser.OFPTableStatsRequest(_PROTOCOL, 0)
    if message.part is Part.PORTS:
        return parser.OFPPortStatsRequest(_PROTOCOL, 0, of.OFPP_ANY)
    if message.part is Part.PORT_DESCRIPTIONS:
        return parser.OFPPortDescStatsRequest(_PROTOCOL, 0)
    return parser.OFPFlowStatsRequest(
        _PROTOCOL, 0, of.OFPTT_ALL, of.OFPP_ANY, of.OFPG_ANY, message.cookie, message.cookie_mask
    )


def _flow_mod(message: FlowMod) -> Any:
    entry, deletes = message.entry, message.command is Command.DELETE_STRICT
    return parser.OFPFlowMod(
        _PROTOCOL,
        cookie=entry.cookie,
        cookie_mask=OURS_TO_DELETE if deletes else 0,
        table_id=entry.table,
        command=int(message.command),
        priority=entry.priority,
        buffer_id=of.OFP_NO_BUFFER,
        out_port=of.OFPP_ANY,
        out_group=of.OFPG_ANY,
        match=_match(entry.match),
        instructions=[] if deletes else _instructions(entry),
    )


def _match(match: Match) -> Any:
    """Names are the same here and there; a whole address goes without a mask, as a switch gives it back."""
    given = {name: getattr(match, name) for name in Match.__slots__ if getattr(match, name) is not None}
    if match.ipv6_src is not None:
        given["ipv6_src"] = str(match.ipv6_src)
    if isinstance(match.ipv6_dst, IPv6Network):
        address, mask = str(match.ipv6_dst.network_address), str(match.ipv6_dst.netmask)
        given["ipv6_dst"] = address if match.ipv6_dst.prefixlen == 128 else (address, mask)
    elif match.ipv6_dst is not None:
        given["ipv6_dst"] = tuple(map(str, match.ipv6_dst))
    return parser.OFPMatch(**given)


def _instructions(entry: Entry) -> list[Any]:
    found = []
    if entry.actions:
        steps = [_action(action) for action in entry.actions]
        found.append(parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, steps))
    if entry.goto is not None:
        found.append(parser.OFPInstructionGotoTable(entry.goto))
    return found


def _action(action: Action) -> Any:
    if isinstance(action, Output):
        return parser.OFPActionOutput(action.port, action.max_len)
    if isinstance(action, PushTag):
        return parser.OFPActionPushVlan(VLAN)
    if isinstance(action, PopTag):
        return parser.OFPActionPopVlan()
    return parser.OFPActionSetField(**{action.name: action.value})


def _bundle_add(message: BundleAdd) -> Any:
    return parser.ONFBundleAddMsg(
        _PROTOCOL, message.bundle, ATOMIC_AND_ORDERED, _flow_mod(message.change), []
    )


_WRITERS: dict[type, Callable[[Any], Any]] = {
    Hello: lambda _: parser.OFPHello(_PROTOCOL),
    EchoRequest: lambda m: _echo(parser.OFPEchoRequest(_PROTOCOL), m.body),
    EchoReply: lambda m: _echo(parser.OFPEchoReply(_PROTOCOL), m.body),
    Error: lambda m: parser.OFPErrorMsg(_PROTOCOL, m.type, m.code, m.body),
    FeaturesRequest: lambda _: parser.OFPFeaturesRequest(_PROTOCOL),
    BarrierRequest: lambda _: parser.OFPBarrierRequest(_PROTOCOL),
    PacketOut: _packet_out,
    MultipartRequest: _multipart,
    FlowMod: _flow_mod,
    BundleControl: lambda m: parser.ONFBundleCtrlMsg(
        _PROTOCOL, m.bundle, int(m.step), ATOMIC_AND_ORDERED, []
    ),
    BundleAdd: _bundle_add,
}
