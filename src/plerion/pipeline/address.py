"""Whether somebody is there to talk to, found out before Spark is started to wait for them."""

from __future__ import annotations

import os
import re
import socket
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path
from shutil import which

from plerion.content.errors import quoted
from plerion.pipeline.errors import PipelineError

CONNECT_PORT = 15002
_PATIENCE_SECONDS = 5.0
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,\d+)?\])?")
_ELSEWHERE = ("yarn", "k8s://")


def check_master(master: str) -> None:
    """Refuses a master that Spark could not use: a wrong word, nobody there, or no Java to start Spark with."""
    _check_java()
    if _LOCAL.fullmatch(master) or master.startswith(_ELSEWHERE):
        return
    if not master.startswith("spark://"):
        raise PipelineError(f"{quoted(master)} is no master", "use local[*], local[2] or spark://host:port")
    check_answers(master)


def check_answers(url: str) -> None:
    """Refuses the URL of a master or a Connect server unless somebody listens there; takes seconds at most."""
    hosts = _hosts(url)
    refused = [f"{host}:{port} {why}" for host, port in hosts if (why := _silence(host, port)) is not None]
    if len(refused) == len(hosts):
        kind = "Spark Connect server" if url.startswith("sc://") else "Spark master"
        raise PipelineError(f"no {kind} answers: {', '.join(refused)}", "start it or correct the URL")


def on_loopback(master: str) -> bool:
    """Whether driver and workers are on this machine and can talk over its loopback address."""
    if _LOCAL.fullmatch(master):
        return True
    return master.startswith("spark://") and all(_is_loopback(host) for host, _ in _hosts(master))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _hosts(url: str) -> list[tuple[str, int]]:
    """The (host, port) pairs of spark://host:port,host:port or sc://host:port/;key=value."""
    scheme, _, rest = url.partition("://")
    form = "sc://host:port" if scheme == "sc" else "spark://host:port"
    found = []
    for place in rest.split("/")[0].split(","):
        host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "")
        if scheme == "sc" and not port:
            port = str(CONNECT_PORT)
        if scheme not in ("sc", "spark") or not host or not port or not 0 < int(port) < 1 << 16:
            raise PipelineError(f"{quoted(url)} is no address", f"write {form}")
        found.append((host.strip("[]"), int(port)))
    return found


def _silence(host: str, port: int) -> str | None:
    """Why nobody answers, or None when somebody does."""
    try:
        with closing(socket.create_connection((host, port), _PATIENCE_SECONDS)):
            return None
    except TimeoutError:
        return f"gave no sign within {_PATIENCE_SECONDS:.0f} s"
    except socket.gaierror:
        return "has no known address"
    except OSError as error:
        return f"said: {(error.strerror or 'no').lower()}"


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise PipelineError(
            f"JAVA_HOME is {home}, which has no bin/java", "point it to Java 17 or later, or unset it"
        )
    if not home and which("java") is None:
        raise PipelineError(
            "there is no Java, which Spark runs on", "install Java 17 or later, or set JAVA_HOME"
        )
