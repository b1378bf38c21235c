"""The launcher of the real PostgreSQL that other tests and benchmarks rely on."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from tests.postgres import Server, StopMode, find_installation, is_alive

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the launcher needs Unix sockets and signals")


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Server]:
    # It is durable because some tests crash it and then look for committed rows.
    with Server(durable=True) as server:
        yield server


@pytest.fixture
def server(shared_server: Server) -> Server:
    if shared_server.pid is None:
        shared_server.start()
    return shared_server


@pytest.fixture
def url(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the test's own."""
    yield server.create_database(request.node.name)
    if server.pid is not None:
        server.drop_database(request.node.name)


def ask(url: str, *statements: str) -> Any:
    """Execute the statements one by one and return the single value of the last."""

    async def connect_and_ask() -> Any:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return await connection.fetchval(statements[-1])
        finally:
            await connection.close()

    return asyncio.run(connect_and_ask())


def run_python(source: str) -> "subprocess.Popen[str]":
    """Start a Python process which can import the tests and is not itself a test run."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def insert_row(url: str) -> None:
    ask(url, "CREATE TABLE kept (value int)", "INSERT INTO kept VALUES (42)", "SELECT 1")


def test_the_newest_installation_of_the_wheel_is_chosen(server: Server) -> None:
    package = find_installation().parent
    newest = max(int(path.name.removeprefix("pginstall") or 0) for path in package.glob("pginstall*"))
    assert find_installation().name == f"pginstall{newest}"
    assert int(ask(server.url(), "SHOW server_version_num")) // 10000 == newest


def test_a_started_server_answers_through_its_url(server: Server) -> None:
    assert ask(server.url(), "SELECT current_user || '@' || current_database()") == "holdfast@postgres"


def test_the_url_is_not_bent_by_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATABASE", "elsewhere")
    server.restart()
    assert ask(server.url(), "SELECT 1") == 1


def test_a_server_listens_on_no_network_address(server: Server) -> None:
    assert ask(server.url(), "SHOW listen_addresses") == ""


@pytest.mark.parametrize(("durable", "fsync"), [(False, "off"), (True, "on")])
def test_only_a_durable_server_syncs_to_disk(durable: bool, fsync: str) -> None:
    with Server(durable=durable) as server:
        for setting in ("fsync", "full_page_writes"):
            assert ask(server.url(), f"SHOW {setting}") == fsync


@pytest.mark.parametrize("mode", ["smart", "fast", "immediate"])
def test_a_stopped_server_keeps_committed_rows(server: Server, url: str, mode: StopMode) -> None:
    insert_row(url)
    server.stop(mode)
    assert server.pid is None
    server.start()
    assert ask(url, "SELECT value FROM kept") == 42


def test_a_server_restarts_under_a_new_process(server: Server, url: str) -> None:
    insert_row(url)
    before = server.pid
    server.restart()
    assert server.pid not in (None, before)
    assert ask(url, "SELECT value FROM kept") == 42


def test_a_killed_server_leaves_no_process_and_starts_again_with_its_rows(server: Server, url: str) -> None:
    insert_row(url)
    assert server.pid is not None
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    assert len(processes) > 3
    server.kill()
    assert server.pid is None
    assert not [process for process in processes if is_alive(process)]
    assert (server.folder / "data" / "postmaster.pid").exists()
    server.start()
    assert ask(url, "SELECT value FROM kept") == 42
    assert "automatic recovery in progress" in server.read_log()


def test_a_server_can_be_killed_while_a_query_runs(server: Server) -> None:
    async def kill_under_query() -> None:
        connection = await asyncpg.connect(server.url())
        query = asyncio.create_task(connection.execute("SELECT pg_sleep(60)"))
        await asyncio.sleep(0.1)
        server.kill()
        with pytest.raises((asyncpg.PostgresConnectionError, OSError)):
            await query
        server.start()

    asyncio.run(kill_under_query())
    assert ask(server.url(), "SELECT 1") == 1


def test_stopping_and_killing_a_stopped_server_do_nothing(server: Server) -> None:
    server.stop()
    server.stop()
    server.kill()


def test_a_running_server_is_not_started_twice(server: Server) -> None:
    with pytest.raises(RuntimeError, match="running already"):
        server.start()


def test_a_server_that_cannot_start_shows_its_log(server: Server) -> None:
    server.stop()
    configuration = server.folder / "data" / "postgresql.conf"
    before = configuration.read_text()
    configuration.write_text(before + "no_such_setting = 1\n")
    try:
        with pytest.raises(RuntimeError, match="no_such_setting"):
            server.start()
    finally:
        configuration.write_text(before)


def test_each_created_database_is_empty_and_apart(server: Server) -> None:
    first, second = server.create_database("first"), server.create_database('odd "name"/?')
    ask(first, "CREATE TABLE mine (value int)", "SELECT 1")
    assert ask(first, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 1
    assert ask(second, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    assert ask(second, "SELECT current_database()") == 'odd "name"/?'


def test_a_database_is_dropped_under_its_connections(server: Server) -> None:
    async def drop_under_connection() -> None:
        connection = await asyncpg.connect(server.create_database("doomed"))
        server.drop_database("doomed")
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await connection.fetchval("SELECT 1")
        server.drop_database("doomed")

    asyncio.run(drop_under_connection())


def test_a_server_outlives_the_thread_that_started_it() -> None:
    server = Server()
    try:
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        time.sleep(0.2)
        assert ask(server.url(), "SELECT 1") == 1
    finally:
        server.close()


def test_the_folder_is_private_and_goes_with_the_server() -> None:
    with Server() as server:
        assert server.folder.stat().st_mode & 0o777 == 0o700
    assert not server.folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent-death signal")
def test_a_server_ends_when_its_parent_is_killed() -> None:
    parent = run_python(
        "import time; from tests.postgres import Server\n"
        "with Server() as server: print(server.pid, server.folder, flush=True); time.sleep(600)"
    )
    assert parent.stdout is not None
    pid, folder = parent.stdout.readline().split()
    postmaster = psutil.Process(int(pid))
    parent.kill()
    parent.communicate()
    try:
        deadline = time.monotonic() + 10
        while is_alive(postmaster):
            assert time.monotonic() < deadline, "the postmaster outlived its parent"
            time.sleep(0.01)
    finally:
        if is_alive(postmaster):
            postmaster.send_signal(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)  # A parent that is killed cannot remove it.


def test_a_server_runs_from_a_copy_when_its_user_cannot_execute_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = find_installation()
    wheel = tmp_path / "wheel"  # pytest makes tmp_path with mode 0700, so nobody cannot enter it either.
    package = wheel / installation.parent.name
    shutil.copytree(installation, package / installation.name, ignore=shutil.ignore_patterns("*.a"))
    (package / "__init__.py").touch()
    libraries = installation.parent.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, wheel / libraries.name)
    for binary in (package / installation.name / "bin").iterdir():
        binary.chmod(0o600)
    monkeypatch.syspath_prepend(wheel)
    assert find_installation() == package / installation.name
    with Server() as server:
        assert ask(server.url(), "SELECT 1") == 1
        assert (server.folder / "installation").exists()


def test_a_server_runs_for_a_user_who_is_not_root() -> None:
    # Python itself may live where nobody cannot read it. So the process imports everything first, as root where the
    # test runs as root, and becomes nobody only then.
    initdb = find_installation() / "bin" / "initdb"
    drop = ""
    if os.geteuid() == 0:
        try:
            subprocess.run([initdb, "--version"], check=True, capture_output=True, cwd="/", user="nobody")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"nobody cannot read the wheel, so only root can copy it: {error}")
        drop = (
            "import pwd\n"
            "nobody = pwd.getpwnam('nobody')\n"
            "os.setgroups([]); os.setgid(nobody.pw_gid); os.setuid(nobody.pw_uid)\n"
        )
    process = run_python(
        "import os\n"
        "from tests.postgres import Server\n"
        f"{drop}"
        "assert os.geteuid() != 0\n"
        "with Server() as server:\n"
        "    server.create_database('mine')\n"
        "    server.kill()\n"
        "    server.restart('immediate')\n"
        "    server.drop_database('mine')\n"
        "    print('worked', os.stat(server.folder).st_uid == os.geteuid())\n"
    )
    output, errors = process.communicate(timeout=60)
    assert output.split() == ["worked", "True"], errors
