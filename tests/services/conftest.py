"""A PostgreSQL and an S3 endpoint of our own. Run by `make services`, not with the other tests."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from place_logs import log_table, parts

SECRET = "planted-S3cr3t/+word"  # noqa: S105  it is looked for
"""The password of the database, and the key of the store."""
_PATIENCE = 60


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def wait_for(port, process):
    for _ in range(10 * _PATIENCE):
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}")
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the server does not answer")


@dataclass
class Server:
    process: subprocess.Popen
    address: str
    environment: dict[str, str]

    def kill(self):
        """At once, with all of its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def unprivileged():
    """Whom to run a server as: root may not run PostgreSQL."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return pytest.fail("there is no ordinary user to run PostgreSQL as")


def start_postgresql(folder):
    """A server with a password, on a port and a socket of its own."""
    programs, port, owner = Path(os.environ["PG_BIN"]), free_port(), unprivileged()
    folder.chmod(0o755)
    data, word = folder / "data", folder / "word"
    word.write_text(SECRET)
    for path in (folder, word):
        os.chown(path, owner.get("user", -1), owner.get("group", -1))
    made = ["--username=bob", "--auth=scram-sha-256", f"--pwfile={word}", "--no-sync", "--locale=C"]
    subprocess.run([programs / "initdb", "-D", data, *made], check=True, cwd=folder, capture_output=True, **owner)
    word.unlink()
    quick = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
    process = subprocess.Popen(
        [programs / "postgres", "-D", data, "-p", str(port), *quick],
        **owner,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for(port, process)
    return Server(process, f"127.0.0.1:{port}/postgres", {"PGPASSWORD": SECRET})


def start_s3(folder):
    """An endpoint on loopback that keeps its objects in memory."""
    port = free_port()
    with open(folder / "moto.log", "wb") as log:
        process = subprocess.Popen(
            [os.environ["MOTO_SERVER"], "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    wait_for(port, process)
    keys = {"AWS_ACCESS_KEY_ID": "bob", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
    return Server(process, f"127.0.0.1:{port}", {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})


@contextmanager
def running(start):
    """Start a server in a folder of its own, and clean up after it."""
    folder = Path(tempfile.mkdtemp(prefix="services-"))
    try:
        server = start(folder)
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fill_postgresql(server):
    from adbc_driver_postgresql import dbapi

    for _ in range(10 * _PATIENCE):
        try:
            connection = dbapi.connect(f"postgresql://bob:{quote(SECRET, safe='')}@{server.address}")
            break
        except dbapi.OperationalError:
            # It listens before it answers.
            time.sleep(0.1)
    with connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("log", log_table(), mode="create")
        connection.commit()


def fill_s3(server, table=None):
    import pyarrow.parquet as pq
    from pyarrow import fs

    store = fs.S3FileSystem(
        access_key="bob",
        secret_key=SECRET,
        region="us-east-1",
        scheme="http",
        endpoint_override=server.address,
        allow_bucket_creation=True,
    )
    store.create_dir("bucket")
    table = log_table() if table is None else table
    pq.write_table(table, "bucket/log.parquet", filesystem=store)
    for number, part in enumerate(parts(table)):
        pq.write_table(part, f"bucket/hive/year=2024/month={9 + number:02}/part 0.parquet", filesystem=store)
    with store.open_output_stream("bucket/hive/_SUCCESS") as empty:
        empty.write(b"")
    return store


@pytest.fixture(scope="session")
def postgresql():
    with running(start_postgresql) as server:
        fill_postgresql(server)
        yield server


@pytest.fixture(scope="session")
def s3():
    with running(start_s3) as server:
        fill_s3(server)
        yield server
