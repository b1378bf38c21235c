"""The seccomp filter: which system calls a confined command does not have.

A pure function builds the program that the kernel runs before each system call.  Calls of ordinary programs are allowed.
Calls that reach other processes, change kernel settings, or open rarely used parts of the kernel are refused.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020080
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TIOCSTI, _TIOCLINUX, _TIOCSETD, _TIOCCONS = 0x5412, 0x541C, 0x5423, 0x541D


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A processor architecture: the kernel's number for it, and the numbers of its system calls."""

    arch: int
    calls: Mapping[str, int]


# From 424 on, the numbers are the same everywhere.
_SHARED = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "process_mrelease": 448,
    "open_tree_attr": 467,
}
_X86_64 = {
    "ioctl": 16, "shmget": 29, "socket": 41, "socketpair": 53, "clone": 56, "semget": 64, "msgget": 68, "ptrace": 101,
    "syslog": 103, "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153, "modify_ldt": 154,
    "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "sched_setaffinity": 203, "lookup_dcookie": 212,
    "clock_settime": 227, "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "ioprio_set": 251, "migrate_pages": 256, "unshare": 272, "move_pages": 279, "perf_event_open": 298,
    "fanotify_init": 300, "prlimit64": 302, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "sched_setattr": 314,
    "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = {
    "ioctl": 29, "ioprio_set": 30, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "vhangup": 58, "quotactl": 60,
    "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
    "syslog": 116, "ptrace": 117, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171,
    "lookup_dcookie": 18, "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "socketpair": 199,
    "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225, "migrate_pages": 238,
    "move_pages": 239, "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
    "sched_setattr": 274, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
ARCHITECTURES: Mapping[str, Architecture] = {
    "x86_64": Architecture(arch=0xC000003E, calls={**_X86_64, **_SHARED}),
    "aarch64": Architecture(arch=0xC00000B7, calls={**_AARCH64, **_SHARED}),
}

# Programs fall back to older calls if the kernel says that it does not know these.
_UNKNOWN = ("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree_attr")
# They act on the calling process if one argument is 0; the number is the position of that argument.
_OF_OTHERS = {
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setparam": 0,
    "sched_setscheduler": 0,
    "sched_setattr": 0,
    "setpriority": 1,
    "ioprio_set": 1,
}
# Without namespaces, these would be shared with other processes of the user.
_SHARED_MEMORY = ("shmget", "semget", "msgget", "mq_open")
_JUDGED = ("ioctl", "clone", "socket", "socketpair")


def program(*, namespaces: bool, machine: str | None = None) -> bytes:
    """Return the filter as the kernel reads it; empty for an architecture that has no table here.

    Without `namespaces` a command has no network at all, and cannot change the limits of other processes either.
    """
    found = ARCHITECTURES.get(machine or platform.machine())
    if found is None:
        return b""
    calls = found.calls
    refused = {name: errno.EPERM for name in calls if name not in {*_JUDGED, *_OF_OTHERS, *_SHARED_MEMORY}}
    refused |= dict.fromkeys(_UNKNOWN, errno.ENOSYS)
    code = [
        _step(_LOAD, _ARCH_AT),
        _step(_EQUAL, found.arch, 1, 0),
        _refuse(errno.ENOSYS),
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _X32, 0, 1),
        _refuse(errno.ENOSYS),
    ]
    if not namespaces:
        refused |= dict.fromkeys(_SHARED_MEMORY, errno.EPERM) | {"socket": errno.EACCES}
        for name, argument in _OF_OTHERS.items():
            code += _when(
                calls[name], [*_argument(argument), _step(_EQUAL, 0, 1, 0), _refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
            )
    else:
        code += _when(calls["socket"], _socket())
    # Other families lead nowhere either, but they make the kernel load a module.
    code += _when(calls["socketpair"], _socket())
    code += _when(
        calls["clone"],
        [*_argument(0), _step(_AND, _NEW_NAMESPACES), _step(_EQUAL, 0, 1, 0), _refuse(errno.EPERM), _step(_RETURN, _ALLOW)],
    )
    code += _when(calls["ioctl"], _ioctl())
    for name, number in refused.items():
        code += _when(calls[name], [_refuse(number)])
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _socket() -> list[bytes]:
    """Allow only families that stay in the sandbox's own network; of netlink, only the protocol that lists interfaces."""
    families = (_AF_UNIX, _AF_INET, _AF_INET6)
    own = [_step(_EQUAL, family, 0, 1) + _step(_RETURN, _ALLOW) for family in families]
    code = b"".join([*_argument(0), *own, _step(_EQUAL, _AF_NETLINK, 1, 0), _refuse(errno.EAFNOSUPPORT), *_argument(2)])
    code += _step(_EQUAL, 0, 1, 0) + _refuse(errno.EPROTONOSUPPORT) + _step(_RETURN, _ALLOW)
    return [code[at : at + 8] for at in range(0, len(code), 8)]


def _ioctl() -> list[bytes]:
    """Refuse the requests that type into a terminal or change its kind."""
    code = b"".join(_argument(1))
    for request in (_TIOCSTI, _TIOCLINUX, _TIOCSETD, _TIOCCONS):
        code += _step(_EQUAL, request, 0, 1) + _refuse(errno.EPERM)
    code += _step(_RETURN, _ALLOW)
    return [code[at : at + 8] for at in range(0, len(code), 8)]


def _when(number: int, then: Sequence[bytes]) -> list[bytes]:
    """Run some steps, which must end with a return, for one system call."""
    return [_step(_EQUAL, number, 0, len(then)), *then]


def _argument(number: int) -> list[bytes]:
    # The kernel itself reads only the lower half of each of these.
    return [_step(_LOAD, _ARGUMENTS_AT + 8 * number)]


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _ERRNO | number)


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
