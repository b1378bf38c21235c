"""Runs the two commands of the README on a fresh machine: a minimal Debian with Python and make, and nothing else.

    make fresh

The machine is a folder that debootstrap fills and chroot enters, with an ordinary user, a copy of HEAD and the network of
this machine.  The settings with which this machine finds its packages (pip, uv, npm, apt, proxies, certificates) hold there
as well.  Everything is mounted in a namespace of its own: nothing stays mounted or running, however this ends.

Variables: FRESH_TEST_ARGS is passed to pytest, to run a part of the tests; FRESH_SUITE and FRESH_MIRROR choose another
Debian; FRESH_USER=root runs as root; FRESH_KEEP=1 keeps the folder.  `.fresh/` keeps the Debian for the next time.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
KEPT = REPOSITORY / ".fresh"
PACKAGES = "python3,python3-venv,make"
USER = os.environ.get("FRESH_USER", "newcomer")
HOME = Path("/root" if USER == "root" else f"/home/{USER}")
PROGRAM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN_MAX_S = 900
STOP_MAX_S = 60
LOOK_S = 0.2
CTRL_C = b"\x03"
STOPPED = "Stopped: nothing was interrupted"

# How this machine finds its packages.  Where it keeps caches and environments is not carried in.
CARRIED = re.compile(
    r"(?i:https?_proxy|all_proxy|no_proxy|npm_config_(?!cache|prefix|userconfig|globalconfig).*)"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    r"|PIP_(INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CERT|CLIENT_CERT|TRUSTED_HOST|PROXY|RETRIES|TIMEOUT|DEFAULT_TIMEOUT)"
    r"|UV_((DEFAULT_|EXTRA_)?INDEX.*|FIND_LINKS|NO_INDEX|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT)"
)
SYSTEM_SETTINGS = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/etc/uv/uv.toml", "/etc/npmrc")
OWN_SETTINGS = (".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", ".npmrc")


class Failed(Exception):
    """The message says what is missing or went wrong, and what to do."""


def main() -> int:
    # As with Ctrl-C, the folder is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("fresh: FAILED: it was stopped"))
    try:
        _check()
        _warn_of_changes()
        debian = _debian()
        root = Path(tempfile.mkdtemp(prefix="holdfast-fresh-"))
        try:
            root.chmod(0o755)
            with _step("unpack the Debian"):
                _run("tar", "-xpf", str(debian), "-C", str(root))
            with _step("copy HEAD and the settings of the package registries"):
                _furnish(root)
            _enter(root)
        finally:
            if os.environ.get("FRESH_KEEP"):
                print(f"the machine is kept in {root}")
            else:
                shutil.rmtree(root)
    except Failed as problem:
        print(f"fresh: FAILED: {problem}")
        return 1
    print("fresh: PASSED: `make run` answered and stopped, `make test` passed")
    return 0


def _check() -> None:
    if os.geteuid() != 0:
        raise Failed("chroot and mount need root; run it as root, for instance with `sudo make fresh`")
    for package, programs in {"git": ["git"], "util-linux": ["unshare", "setpriv"], "debootstrap": ["debootstrap"]}.items():
        if not all(map(shutil.which, programs)):
            raise Failed(f"{package} is missing; install it with `apt-get install {package}`")


def _warn_of_changes() -> None:
    if _git("status", "--porcelain"):
        print("fresh: HEAD is tried; changes that are not committed are not part of it", flush=True)


def _debian() -> Path:
    """Return a packed minimal Debian, made once."""
    suite = os.environ.get("FRESH_SUITE") or _codename()
    packed = KEPT / f"{suite}-{PACKAGES.replace(',', '-')}.tar"
    if packed.exists():
        print(f"fresh: {packed.relative_to(REPOSITORY)} is used; remove it to have a new one", flush=True)
        return packed
    KEPT.mkdir(exist_ok=True)
    with _step(f"make a minimal {suite} with {PACKAGES}"), tempfile.TemporaryDirectory(prefix="holdfast-debian-") as folder:
        root = Path(folder) / "root"
        mirror = os.environ.get("FRESH_MIRROR") or _mirror(suite)
        environment = os.environ | _apt_proxies()
        log = Path(folder) / "log"
        with log.open("wb") as written:
            words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(root), *mirror.split()]
            done = subprocess.run(words, env=environment, stdout=written, stderr=written)
        if done.returncode:
            raise Failed(f"debootstrap ended with {done.returncode}:\n{log.read_text(errors='replace')[-3_000:]}")
        shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
        partial = packed.with_suffix(".partial")
        _run("tar", "-cpf", str(partial), "-C", str(root), "--exclude=./dev/*", "--exclude=./proc/*", ".")
        partial.rename(packed)
    return packed


def _codename() -> str:
    with contextlib.suppress(OSError):
        if found := re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE):
            return found[1]
    raise Failed("this is no Debian; choose one with FRESH_SUITE=bookworm FRESH_MIRROR=URL")


def _mirror(suite: str) -> str:
    """Return where apt of this machine finds a suite; without an answer, debootstrap asks its own default."""
    words = ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"]
    with contextlib.suppress(OSError):
        for line in subprocess.run(words, capture_output=True, text=True).stdout.splitlines():
            release, _, address = line.partition(" ")
            if release == suite:
                return address
    return ""


def _apt_proxies() -> dict[str, str]:
    """Return the proxies of apt, as the environment of debootstrap."""
    proxies: dict[str, str] = {}
    for scheme in ("http", "https"):
        with contextlib.suppress(OSError):
            words = ["apt-config", "shell", "PROXY", f"Acquire::{scheme}::Proxy"]
            if found := re.search(r"PROXY='(\w+:.+)'", subprocess.run(words, capture_output=True, text=True).stdout):
                proxies[f"{scheme}_proxy"] = found[1]
    return proxies


def _furnish(root: Path) -> None:
    """Make the user and the copy, and carry in what finds packages and hosts."""
    if USER != "root":
        _run("chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", USER)
    copy = _below(root, HOME) / "holdfast"
    copy.mkdir()
    with subprocess.Popen(["git", "archive", "HEAD"], cwd=REPOSITORY, stdout=subprocess.PIPE) as archive:
        _run("tar", "-x", "-C", str(copy), stdin=archive.stdout)
    if archive.returncode:
        raise Failed(f"git archive ended with {archive.returncode}")
    for place in ("/etc/resolv.conf", "/etc/hosts", *SYSTEM_SETTINGS):
        _carry(Path(place), _below(root, Path(place)))
    for name in OWN_SETTINGS:
        _carry(Path.home() / name, _below(root, HOME / name))
    _run("chroot", str(root), "chown", "-R", f"{USER}:", str(HOME))


def _carry(place: Path, target: Path) -> None:
    if place.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(place, target)


def _enter(root: Path) -> None:
    """Do the rest in namespaces of its own, which end with this process."""
    apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    words = ["setpriv", "--pdeathsig", "KILL", *apart, sys.executable, __file__, str(root)]
    if subprocess.run(words).returncode:
        raise Failed("see above")


def inside(root: Path) -> int:
    """Be the first process of the namespaces, which takes in the orphans as any first process does."""
    working = os.fork()
    if not working:
        os._exit(_work(root))
    while True:
        ended, status = os.wait()
        if ended == working:
            return os.waitstatus_to_exitcode(status)


def _work(root: Path) -> int:
    """Mount what a machine has, and run the two commands."""
    try:
        _mount(root)
        environment = _environment()
        with _step("make run, until it answers and is stopped"):
            _make_run(root, environment)
        arguments = os.environ.get("FRESH_TEST_ARGS", "")
        with _step(f"make test {arguments}".rstrip()):
            _make_test(root, environment, arguments)
    except Failed as problem:
        print(f"fresh: {problem}", flush=True)
        return 1
    return 0


def _mount(root: Path) -> None:
    _run("mount", "-t", "proc", "proc", str(root / "proc"))
    _run("mount", "--rbind", "/dev", str(root / "dev"))
    _run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(root / "dev/shm"))
    _run("mount", "--rbind", "/sys", str(root / "sys"))
    for place in sorted(_named_places(root)):
        target = _below(root, place)
        if place.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        _run("mount", "--bind", "-o", "ro", str(place), str(target))


def _named_places(root: Path) -> set[Path]:
    """Return the files and folders of this machine that its settings name: certificates, indexes without a server.

    The fresh machine keeps its own folders, and gets no programs.
    """
    texts = [value for name, value in os.environ.items() if CARRIED.fullmatch(name)]
    for place in (*map(Path, SYSTEM_SETTINGS), *(Path.home() / name for name in OWN_SETTINGS)):
        with contextlib.suppress(OSError):
            texts.append(place.read_text())
    named = [each for text in texts for each in re.findall(r"(?:^|[\s=,'\"])((?:file://)?/[^\s,'\"]+)", text)]
    # An index without a server links to the files beside it.
    found = {Path(each[7:]).parent if each.startswith("file://") else Path(each) for each in named}
    files = {each for each in found if each.is_file() and not os.access(each, os.X_OK)}
    places = files | {each for each in found if each.is_dir() and not _below(root, each).exists()}
    return {each for each in places if not any(other in each.parents for other in places)}


def _environment() -> dict[str, str]:
    carried = {name: value for name, value in os.environ.items() if CARRIED.fullmatch(name)}
    return {**carried, "HOME": str(HOME), "USER": USER, "PATH": PROGRAM_PATH, "LANG": "C.UTF-8", "TERM": "xterm"}


def _make_run(root: Path, environment: dict[str, str]) -> None:
    """Start the gateway on a terminal, see that it answers, and press Ctrl-C there."""
    port = _free_port()
    making, screen = pty.fork()
    if not making:
        words = _at_home(root, "make", "run")
        os.execvpe(words[0], words, environment | {"HOLDFAST_SERVER__PORT": str(port)})
    shown = answer = ""
    deadline = time.monotonic() + RUN_MAX_S
    while (piece := _read(screen)) is not None:
        shown += piece
        print(piece, end="", flush=True)
        if time.monotonic() > deadline:
            raise Failed(f"`make run` did not {'stop after Ctrl-C' if answer else 'answer on /health'} in time")
        if not answer and (answer := _health(port)):
            print(f"\nfresh: /health says {answer}", flush=True)
            os.write(screen, CTRL_C)
            deadline = time.monotonic() + STOP_MAX_S
    os.waitpid(making, 0)
    if not answer:
        raise Failed("`make run` ended before it answered on /health")
    if STOPPED not in shown:
        raise Failed("`make run` ended with Ctrl-C, but not in peace")


def _read(screen: int) -> str | None:
    """Return what has been shown meanwhile; None when the last process has left its terminal."""
    if not select.select([screen], [], [], LOOK_S)[0]:
        return ""
    try:
        return os.read(screen, 65_536).decode(errors="replace")
    except OSError:
        return None


def _make_test(root: Path, environment: dict[str, str], arguments: str) -> None:
    words = _at_home(root, "make", "test", *([f"ARGS={arguments}"] if arguments else []))
    if status := subprocess.run(words, env=environment, stdin=subprocess.DEVNULL).returncode:
        raise Failed(f"`make test` ended with {status}")


def _health(port: int) -> str:
    """Return what the gateway says of its health; nothing while it does not."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return json.dumps(json.load(answer))
    except OSError:
        return ""


def _at_home(root: Path, *words: str) -> list[str]:
    """Return the command that runs another one as the user, in the copy."""
    return ["chroot", f"--userspec={USER}:", str(root), "sh", "-c", 'cd "$HOME/holdfast" && exec "$@"', "sh", *words]


@contextlib.contextmanager
def _step(what: str) -> Iterator[None]:
    print(f"fresh: {what}", flush=True)
    began = time.monotonic()
    yield
    print(f"fresh: done in {time.monotonic() - began:.0f} s", flush=True)


def _below(root: Path, place: Path) -> Path:
    return root / place.relative_to("/")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _run(*words: str, stdin: object = subprocess.DEVNULL) -> None:
    done = subprocess.run(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failed(f"`{' '.join(words)}` ended with {done.returncode}: {done.stdout[-2_000:]}")


if __name__ == "__main__":
    sys.exit(inside(Path(sys.argv[1])) if len(sys.argv) > 1 else main())
