"""The launcher: a small program that confines a command, and then becomes it or waits for it.

It runs as `python -I -S -c BOOT KIND OPTION… -- COMMAND…` and imports little, because it delays every command:

    namespaces  builds a file tree of its own and runs the command in new user, mount, pid, network, ipc and uts namespaces
    landlock    leaves the file tree as it is and restricts the command with Landlock
    bubblewrap  prepares network, limits and seccomp filter, and becomes bubblewrap, which does the rest

The options describe the file tree, in any order.  Other paths do not exist for the command.

    --read PATH, --write PATH     visible at the same place, read-only or writable
    --hide PATH                   empty, inside a visible folder
    --blank PATH                  an empty writable folder, removed when the command ends
    --link PATH TARGET            a symbolic link
    --chdir PATH                  the working folder
    --proxy-socket PATH           the socket of the proxy, which is sent a listener of the command's network
    --network                     make the network namespace here; for `bubblewrap`, which otherwise makes one itself
    --limit NAME NUMBER           a resource limit; `processes`, `memory`, `file`, `files`, `cpu`
    --filter HEX                  the seccomp filter as the kernel reads it

Everything fails closed: if a step fails, the launcher ends with status 125 and one line on stderr.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from _socket import AF_INET, AF_UNIX, MSG_DONTWAIT, SCM_RIGHTS, SO_REUSEADDR, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGQUIT, SIGTERM, SIGXFSZ, signal
else:
    # `signal` builds enumerations when it is imported, which takes as long as the whole of this program.
    from _signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGQUIT, SIGTERM, SIGXFSZ, signal

FAILED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
PORT = 3128
BACKLOG = 128
FILES_MAX = 1_048_576
KINDS = ("namespaces", "landlock", "bubblewrap")
LIMITS = ("processes", "memory", "file", "files", "cpu")
# Bubblewrap reads the filter here.
FILTER_FD = 9

_NEW_NS, _NEW_CGROUP, _NEW_UTS, _NEW_IPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
_NEW_USER, _NEW_PID, _NEW_NET = 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_MNT_DETACH = 2
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_EMPTY_PATH = 4
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER, _PR_CAP_AMBIENT = 38, 36, 47
_SECCOMP_FILTER, _AMBIENT_CLEAR, _CAPABILITY_VERSION = 2, 4, 0x20080522
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
# Since this kernel, the processes of a user namespace are counted separately.
_COUNTS_PER_NAMESPACE = (5, 14)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_IGNORED = (SIGTERM, SIGINT, SIGHUP, SIGQUIT)

# Landlock's rights, and the version that introduced each.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_RIGHTS_SINCE = ((1, (1 << 13) - 1), (2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_SCOPES = 3
_SCOPES_SINCE, _NET_SINCE = 6, 4

_libc = ctypes.CDLL(None, use_errno=True)


class LaunchPlan:
    """The command to run, and how to confine it."""

    def __init__(self) -> None:
        self.kind = ""
        self.read: list[str] = []
        self.write: list[str] = []
        self.hide: list[str] = []
        self.blank: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.chdir = "/"
        self.proxy_socket = ""
        self.network = False
        self.limits: dict[str, int] = {}
        self.filter = b""
        self.command: list[str] = []


def parse(arguments: list[str]) -> LaunchPlan:
    """Return the plan that the arguments describe.  Raises `ValueError`."""
    plan = LaunchPlan()
    if not arguments or arguments[0] not in KINDS:
        raise ValueError(f"the first argument must be one of {', '.join(KINDS)}")
    plan.kind, rest = arguments[0], arguments[:0:-1]
    while rest:
        option = rest.pop()
        if option == "--":
            plan.command = rest[::-1]
            break
        _take(plan, option, rest)
    if not plan.command:
        raise ValueError("there is no command after --")
    return plan


def _take(plan: LaunchPlan, option: str, rest: list[str]) -> None:
    folders = {"--read": plan.read, "--write": plan.write, "--hide": plan.hide, "--blank": plan.blank}
    if option in folders:
        folders[option].append(_path(option, rest))
    elif option == "--link":
        plan.links.append((_path(option, rest), _next(option, rest)))
    elif option == "--chdir":
        plan.chdir = _path(option, rest)
    elif option == "--proxy-socket":
        plan.proxy_socket = _path(option, rest)
    elif option == "--network":
        plan.network = True
    elif option == "--limit":
        name, number = _next(option, rest), _next(option, rest)
        if name not in LIMITS or not (number.isascii() and number.isdigit()) or not 0 < int(number) < 1 << 62:
            raise ValueError(f"--limit {name!r} {number!r} is not a known limit and a positive number")
        plan.limits[name] = int(number)
    elif option == "--filter":
        plan.filter = bytes.fromhex(_next(option, rest))
        if len(plan.filter) % 8 or not 0 < len(plan.filter) // 8 <= 4096:
            raise ValueError("a filter has 1 to 4096 instructions of 8 bytes")
    else:
        raise ValueError(f"unknown option {option!r}")


def _next(option: str, rest: list[str]) -> str:
    if not rest:
        raise ValueError(f"{option} needs a value")
    return rest.pop()


def _path(option: str, rest: list[str]) -> str:
    value = _next(option, rest)
    if not value.startswith("/") or "\0" in value or ".." in value.split("/"):
        raise ValueError(f"{option} needs an absolute path without .., not {value!r}")
    return os.path.normpath(value)


def main() -> None:
    """Run the command as the arguments describe.  Never returns."""
    try:
        plan = parse(sys.argv[1:])
        os.closerange(3, FILES_MAX)
        _prctl(_PR_SET_PDEATHSIG, SIGKILL)
        _prefer_oom_kill()
        if plan.kind == "bubblewrap":
            _become_bubblewrap(plan)
        elif plan.kind == "namespaces":
            _in_namespaces(plan)
        else:
            _in_landlock(plan)
    except (OSError, ValueError) as error:
        _fail(error)


def _prefer_oom_kill() -> None:
    """Let the kernel kill this command first when memory runs out: no limit counts memory folders and all processes."""
    try:
        _write("/proc/self/oom_score_adj", "1000")
    except OSError:
        # The file does not exist or is not writable on every system.
        return


def _fail(error: Exception) -> None:
    os.write(2, f"the sandbox cannot be set up: {error}\n".encode("utf-8", "replace"))
    os._exit(FAILED)


def _become_bubblewrap(plan: LaunchPlan) -> None:
    if plan.network:
        # Root needs no user namespace for this; other users get one, in which bubblewrap makes its own.
        _unshare((_NEW_NET,) if os.geteuid() == 0 else (), _NEW_USER | _NEW_NET)
        _open_network(plan.proxy_socket)
    _join_cgroup(plan.limits.get("processes", 0))
    _limit(plan.limits, counts=plan.network)
    if plan.filter:
        # The command inherits only the copy, which bubblewrap closes.
        filter_fd = os.memfd_create("filter", os.MFD_CLOEXEC)
        os.write(filter_fd, plan.filter)
        os.lseek(filter_fd, 0, os.SEEK_SET)
        os.dup2(filter_fd, FILTER_FD)
    _exec(plan.command)


def _in_namespaces(plan: LaunchPlan) -> None:
    spaces = _NEW_NS | _NEW_PID | _NEW_NET | _NEW_IPC | _NEW_UTS | _NEW_CGROUP
    _join_cgroup(plan.limits.get("processes", 0))
    _unshare((), _NEW_USER | spaces, *((spaces,) if os.geteuid() == 0 else ()))
    _open_network(plan.proxy_socket)
    alive, held = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    first = os.fork()
    if first:
        _wait(first)
    try:
        os.close(held)
        _prctl(_PR_SET_PDEATHSIG, SIGKILL)
        if _has_ended(alive):
            os._exit(FAILED)
        _furnish(plan)
        os.chdir(plan.chdir)
        _limit(plan.limits, counts=True)
        _drop_capabilities()
        _landlock(["/"], [*plan.write, *plan.blank, "/dev"], required=False)
        _seal(plan.filter)
        command = os.fork()
    except (OSError, ValueError) as error:
        _fail(error)
        return
    if command:
        _reap(command)
    _prctl(_PR_SET_PDEATHSIG, SIGKILL)
    _exec(plan.command)


def _in_landlock(plan: LaunchPlan) -> None:
    private = f"/tmp/hf-{os.urandom(12).hex()}"  # noqa: S108 - The name is random, and `mkdir` fails if it exists.
    os.mkdir(private, 0o700)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    command = os.fork()
    if command:
        try:
            status = _wait_all(command)
        finally:
            _remove(private)
        os._exit(status)
    try:
        _prctl(_PR_SET_PDEATHSIG, SIGKILL)
        os.environ["TMPDIR"] = os.environ["HOME"] = private
        os.chdir(plan.chdir)
        devices = [f"/dev/{name}" for name in (*_DEVICES, "ptmx", "pts") if os.path.exists(f"/dev/{name}")]
        _limit(plan.limits, counts=False)
        _drop_capabilities()
        _landlock([*plan.read, "/proc"], [*plan.write, *devices, private], required=True)
        _seal(plan.filter)
    except (OSError, ValueError) as error:
        _fail(error)
    _exec(plan.command)


def _exec(command: list[str]) -> None:
    for number in (SIGPIPE, SIGXFSZ):
        signal(number, SIG_DFL)
    # `os.execvp` would import a module, and the interpreter's files may not be visible any more.
    folders = [""] if "/" in command[0] else os.environ.get("PATH", "/usr/bin:/bin").split(":")
    problem: OSError = FileNotFoundError(2, "No such file or directory")
    for folder in folders:
        try:
            os.execv(os.path.join(folder, command[0]), command)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    os.write(2, f"cannot run {command[0]}: {problem.strerror}\n".encode("utf-8", "replace"))
    os._exit(NOT_FOUND if isinstance(problem, FileNotFoundError) else NOT_EXECUTABLE)


def _wait(first: int) -> None:
    """Wait for the first process of the sandbox, and exit with its status.  Signals to the group are for the command."""
    for number in _IGNORED:
        signal(number, SIG_IGN)
    os._exit(_code(os.waitpid(first, 0)[1]))


def _reap(command: int) -> None:
    """Be the init process of the namespace: reap children, and exit with the command, which ends all other processes."""
    for number in (0, 1, 2):
        os.close(number)
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == command:
            os._exit(_code(status))


def _wait_all(command: int) -> int:
    """Wait for a command, then kill every process that it left behind.  They have become children of this process."""
    for number in _IGNORED:
        signal(number, SIG_IGN)
    code = FAILED
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return code
        if ended == command:
            code, command = _code(status), 0
        if not command:
            _kill_children()


def _remove(folder: str) -> None:
    for place, folders, files in os.walk(folder, topdown=False):
        for names, remove in ((files, os.unlink), (folders, _remove_folder)):
            for name in names:
                try:
                    remove(os.path.join(place, name))
                except OSError:
                    continue
    os.rmdir(folder)


def _remove_folder(path: str) -> None:
    (os.unlink if os.path.islink(path) else os.rmdir)(path)


def _kill_children() -> None:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            for pid in file.read().split():
                os.kill(int(pid), SIGKILL)
    except OSError:
        return


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _has_ended(pipe: int) -> bool:
    """Return whether the process that holds the other end is gone.  It has no pid in this namespace."""
    try:
        return not os.read(pipe, 1)
    except BlockingIOError:
        return False


def _unshare(without_user: tuple[int, ...], *with_user: int) -> None:
    """Enter the first set of namespaces that the kernel allows.  In a new user namespace the user keeps its uid."""
    uid, gid = os.geteuid(), os.getegid()
    for flags in (*without_user, *with_user):
        if _libc.unshare(flags) == 0:
            if flags & _NEW_USER:
                _write("/proc/self/setgroups", "deny")
                _write("/proc/self/uid_map", f"{uid} {uid} 1")
                _write("/proc/self/gid_map", f"{gid} {gid} 1")
            return
    raise _error("namespaces are not allowed here")


def _open_network(proxy_socket: str) -> None:
    """Bring up the loopback device, and send the proxy a listener of this network."""
    with _Closing(socket(AF_INET, SOCK_DGRAM)) as device:
        flags = _Interface(b"lo", _IFF_UP)
        if _libc.ioctl(device.fileno(), _SIOCSIFFLAGS, ctypes.byref(flags)) < 0:
            raise _error("lo cannot be brought up")
    if not proxy_socket:
        return
    with _Closing(socket(AF_INET, SOCK_STREAM)) as listener, _Closing(socket(AF_UNIX, SOCK_DGRAM)) as out:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", PORT))
        listener.listen(BACKLOG)
        number = listener.fileno().to_bytes(4, sys.byteorder)
        try:
            out.sendmsg([b"1"], [(SOL_SOCKET, SCM_RIGHTS, number)], MSG_DONTWAIT, proxy_socket)
        except (ConnectionRefusedError, FileNotFoundError, BlockingIOError):
            # The gateway is gone or does not listen: the command runs without network access.
            return


class _Closing:
    """Closes a socket; importing contextlib would take longer than the whole of this program."""

    def __init__(self, held: socket) -> None:
        self._held = held

    def __enter__(self) -> socket:
        return self._held

    def __exit__(self, *_: object) -> None:
        self._held.close()


class _Interface(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 16), ("flags", ctypes.c_short), ("rest", ctypes.c_char * 22))


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user", ctypes.c_uint64),
    )


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _furnish(plan: LaunchPlan) -> None:
    """Build the file tree of the plan, and make it the only one."""
    _mount(None, "/", None, _MS_REC | _MS_SLAVE)
    # Every mount is cloned before the new tree covers any path.
    found = [(path, _clone(path, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV)) for path in plan.read]
    found += [(path, _clone(path, _ATTR_NOSUID | _ATTR_NODEV)) for path in plan.write]
    devices = [(name, _clone(f"/dev/{name}", _ATTR_NOSUID)) for name in _DEVICES if os.path.exists(f"/dev/{name}")]
    nothing = _clone("/dev/null", _ATTR_RDONLY | _ATTR_NOSUID)
    base = next(each for each in ("/tmp", "/var", "/mnt") if os.path.isdir(each))  # noqa: S108 - Only covered, never used.
    _mount("tmpfs", base, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")
    os.chdir(base)
    _furnish_devices(devices)
    _furnish_proc(plan.limits.get("processes", 0))
    places = [(path, number, "") for path, number in found] + [(path, -1, path) for path in plan.blank]
    # Parents first: a parent that is mounted later would cover its children.
    for path, number, blank in sorted(places, key=lambda each: each[0].count("/") if each[0] != "/" else 0):
        here = path.lstrip("/")
        if blank:
            os.makedirs(here, exist_ok=True)
            mode = "1777" if here.endswith("tmp") else "755"
            _mount("tmpfs", here, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode={mode},size={plan.limits.get('memory', 1 << 32)}")
        else:
            _put(number, here)
    for path, target in plan.links:
        os.makedirs(os.path.dirname(path).lstrip("/") or ".", exist_ok=True)
        os.symlink(target, path.lstrip("/"))
    for path in plan.hide:
        here = path.lstrip("/")
        if os.path.isdir(here):
            _mount("tmpfs", here, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_RDONLY, "mode=755,size=4096")
        elif os.path.exists(here):
            _put(_clone("", 0, nothing), here)
    _set_attributes(os.open(".", os.O_PATH), _ATTR_RDONLY, recursive=False)
    if _libc.pivot_root(b".", b".") < 0 or _libc.umount2(b".", _MNT_DETACH) < 0:
        raise _error("the new file tree cannot be entered")
    os.chdir("/")
    # Close the file descriptors of the old tree.
    os.closerange(3, FILES_MAX)


def _furnish_devices(devices: list[tuple[str, int]]) -> None:
    os.makedirs("dev", exist_ok=True)
    _mount("tmpfs", "dev", "tmpfs", _MS_NOSUID | _MS_NOEXEC, "mode=755")
    for name, number in devices:
        _put(number, f"dev/{name}")
    for name, target in _LINKS.items():
        os.symlink(target, f"dev/{name}")
    os.mkdir("dev/pts")
    _mount("devpts", "dev/pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir("dev/shm")
    _mount("tmpfs", "dev/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")


def _furnish_proc(processes: int) -> None:
    os.makedirs("proc", exist_ok=True)
    _mount("proc", "proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    if processes:
        try:
            # Since Linux 6.14 each pid namespace has its own limit; before, this is refused.
            if _release() >= (6, 14):
                _write("proc/sys/kernel/pid_max", str(max(processes, 400)))
        except OSError:
            pass
    # Root owns the kernel's settings and could change them without any capability.
    _mount(None, "proc", None, _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _clone(path: str, attributes: int, folder: int = _AT_FDCWD) -> int:
    """Return a detached copy of the mount at a path, with restrictions.  An empty path means `folder` itself."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC | (0 if path else _AT_EMPTY_PATH)
    number = _libc.syscall(_OPEN_TREE, folder, os.fsencode(path), flags)
    if number < 0:
        raise _error(f"{path or 'a copy'} cannot be shown")
    if attributes:
        _set_attributes(number, attributes, recursive=True)
    return number


def _set_attributes(number: int, attributes: int, *, recursive: bool) -> None:
    given = _Attributes(attributes, 0, 0, 0)
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    if _libc.syscall(_MOUNT_SETATTR, number, b"", flags, ctypes.byref(given), ctypes.sizeof(given)) < 0:
        raise _error("a mount cannot be restricted")


def _put(number: int, here: str) -> None:
    """Mount a detached copy at a place below the new tree."""
    if os.path.isdir(f"/proc/self/fd/{number}"):
        os.makedirs(here or ".", exist_ok=True)
    elif not os.path.lexists(here):
        os.makedirs(os.path.dirname(here) or ".", exist_ok=True)
        os.close(os.open(here, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    if _libc.syscall(_MOVE_MOUNT, number, b"", _AT_FDCWD, os.fsencode(here or "."), _MOVE_EMPTY_PATH) < 0:
        raise _error(f"/{here} cannot be shown")


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    words = [None if each is None else os.fsencode(each) for each in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None) < 0:
        raise _error(f"{target} cannot be mounted")


def _limit(limits: dict[str, int], *, counts: bool) -> None:
    """Set the limits.  With `counts`, the kernel counts the processes of this sandbox, not those of the whole user."""
    named = {
        "memory": resource.RLIMIT_DATA,
        "file": resource.RLIMIT_FSIZE,
        "files": resource.RLIMIT_NOFILE,
        "cpu": resource.RLIMIT_CPU,
    }
    if counts and _release() >= _COUNTS_PER_NAMESPACE:
        named["processes"] = resource.RLIMIT_NPROC
    for name, which in named.items():
        if name in limits:
            hard = resource.getrlimit(which)[1]
            most = limits[name] if hard == resource.RLIM_INFINITY else min(limits[name], hard)
            resource.setrlimit(which, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _join_cgroup(processes: int) -> None:
    """Limit the number of processes with a cgroup, if one can be made: no other limit binds root.

    Memory is not limited this way: the kernel would keep each group for as long as one of its pages is cached.
    """
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next((line.split(":", 2)[2].strip() for line in file if ":pids:" in line), "")
        folder = f"/sys/fs/cgroup/pids{path.rstrip('/')}"
        if not path or not processes or os.path.basename(folder).startswith("holdfast-"):
            return
        _sweep(folder)
        own = f"{folder}/holdfast-{os.getpid()}"
        os.mkdir(own)
        _write(f"{own}/pids.max", str(processes))
        _write(f"{own}/cgroup.procs", "0")
    except OSError:
        return


def _sweep(folder: str) -> None:
    """Remove the groups of commands that have ended.  The kernel refuses to remove a group that is in use."""
    for name in os.listdir(folder):
        if name.startswith("holdfast-"):
            try:
                os.rmdir(f"{folder}/{name}")
            except OSError:
                continue


def _drop_capabilities() -> None:
    _prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR)
    number = 0
    # The call fails after the last capability.
    while _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    if _libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())) < 0:
        raise _error("capabilities cannot be dropped")


def _seal(program: bytes) -> None:
    """Install the filter.  It cannot be removed afterwards, and no program gains privileges by being executed."""
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if program:
        given = _Program(len(program) // 8, program)
        if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(given), 0, 0) < 0:
            raise _error("the filter cannot be installed")


def landlock_version() -> int:
    """Return the version of Landlock; 0 if the kernel has none."""
    return max(0, _libc.syscall(_LANDLOCK_CREATE, None, 0, 1))


def _landlock(read: list[str], write: list[str], *, required: bool) -> None:
    version = landlock_version()
    if not version:
        if required:
            raise OSError("this kernel has no Landlock")
        return
    handled = 0
    for since, rights in _RIGHTS_SINCE:
        handled |= rights if version >= since else 0
    attributes = _Ruleset(handled, 0, _SCOPES if version >= _SCOPES_SINCE else 0)
    size = 24 if version >= _SCOPES_SINCE else 16 if version >= _NET_SINCE else 8
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    rules = _libc.syscall(_LANDLOCK_CREATE, ctypes.byref(attributes), size, 0)
    if rules < 0:
        raise _error("Landlock refuses")
    for paths, rights in ((read, _READING), (write, handled)):
        for path in paths:
            _allow(rules, path, rights & handled)
    if _libc.syscall(_LANDLOCK_RESTRICT, rules, 0) < 0:
        raise _error("Landlock refuses")
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        number = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    given = _Beneath(rights if os.path.isdir(path) else rights & _OF_FILES, number)
    if _libc.syscall(_LANDLOCK_ADD, rules, 1, ctypes.byref(given), 0) < 0:
        raise _error(f"Landlock refuses {path}")
    os.close(number)


def _prctl(what: int, value: int) -> None:
    if _libc.prctl(what, value, 0, 0, 0) < 0:
        raise _error("a process attribute cannot be set")


def _write(path: str, text: str) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(number, text.encode())
    finally:
        os.close(number)


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdigit())


def _error(what: str) -> OSError:
    return OSError(f"{what}: {os.strerror(ctypes.get_errno())}")
