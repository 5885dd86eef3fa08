"""A cluster on this machine listens on the loopback address alone, and answers nobody there who lacks its token."""

import os
import re
import socket
import struct
import sys
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest

from onlooker.clusters.link import Link

from .conftest import processes_with, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads sockets from /proc"),
]

GRPC_METHODS = (
    "NodeInfoGcsService/GetAllNodeInfo",
    "InternalKVGcsService/InternalKVPut",
    "NodeManagerService/GetNodeStats",
    "ObjectManagerService/Push",
    "CoreWorkerService/GetCoreWorkerStats",
    "CoreWorkerService/PushTask",
)
"""Of every server of a cluster at least one, to read and to write."""

STATUS = re.compile(rb"grpc-status(?:\x01(\d)|\x02(\d\d))")
UNIMPLEMENTED, UNAUTHENTICATED = 12, 16


@pytest.fixture(scope="module")
def listening():
    """What the processes of a cluster of our own listen on: pairs of address and port."""
    # As on a machine whose user allows Ray clusters of several machines.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
        with Link(None, 1) as link:
            session = os.getsid(processes_with(Path(link.folder).name)[0])
            wait_for(lambda: len(sockets_of(session)) >= 5, 30)
            yield sockets_of(session)


def sockets_of(session):
    """Addresses and ports that processes of a session listen on."""
    inodes = set()
    for folder in Path("/proc").glob("[0-9]*"):
        # Processes end, and files are closed, while they are looked at.
        with suppress(OSError):
            if os.getsid(int(folder.name)) != session:
                continue
            for opened in (folder / "fd").iterdir():
                with suppress(OSError):
                    inodes.add(str(opened.readlink()).removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                words = struct.unpack(f">{len(address) // 8}I", bytes.fromhex(address))
                found.append((ip_address(struct.pack(f"={len(words)}I", *words)), int(port, 16)))
    return found


def test_every_port_is_on_the_loopback_address(listening):
    for address, port in listening:
        plain = getattr(address, "ipv4_mapped", None) or address
        assert plain.is_loopback, (address, port)


def test_no_port_answers_without_the_token(listening):
    for _, port in listening:
        first = exchange(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        if first.startswith(b"HTTP/1.1"):
            assert first.startswith(b"HTTP/1.1 401")
            continue
        statuses = {grpc_status(port, method) for method in GRPC_METHODS}
        assert UNAUTHENTICATED in statuses
        assert statuses <= {UNAUTHENTICATED, UNIMPLEMENTED}


def grpc_status(port, method):
    """Status of a call with an empty message and no token."""
    headers = {":method": "POST", ":scheme": "http", ":path": f"/ray.rpc.{method}", ":authority": "127.0.0.1"}
    headers |= {"te": "trailers", "content-type": "application/grpc"}
    packed = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in headers.items()
    )
    frames = frame(4, 0, 0, b"") + frame(1, 4, 1, packed) + frame(0, 1, 1, b"\0" * 5)
    answer = exchange(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frames, until=STATUS)
    found = STATUS.search(answer)
    assert found is not None, answer
    return int(found[1] or found[2])


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def exchange(port, message, until=None):
    """What comes back, until it ends or holds what is looked for."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(message)
        with suppress(ConnectionResetError):
            while (until is None or not until.search(answer)) and (more := line.recv(65536)):
                answer += more
    return answer
