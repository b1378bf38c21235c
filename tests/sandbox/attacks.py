"""The corpus: what a hostile command would try.

A script prints `begun` when it runs, and `ACHIEVED` when it got what it wanted in a way that only it can see.  Everything else
is seen from outside.  It finds its targets in the environment: see `Arena.environment`.
"""
# ruff: noqa: E501 - A script is easier to read in one line.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.sandbox import SandboxKind

LANDLOCK = frozenset({SandboxKind.LANDLOCK})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attempt.  `weak` are the mechanisms that do not stop it, and therefore do not claim to confine."""

    script: str
    language: str = "sh"
    # Without a sandbox it works on any machine, and does no lasting harm: it shows that we would notice.
    works_outside: bool = False
    weak: frozenset[SandboxKind] = field(default_factory=frozenset[SandboxKind])


def shell(script: str, *, works_outside: bool = False, weak: frozenset[SandboxKind] = frozenset()) -> Attack:
    return Attack(script=f"echo begun\n{script}\n", works_outside=works_outside, weak=weak)


def python(script: str, *, works_outside: bool = False, weak: frozenset[SandboxKind] = frozenset()) -> Attack:
    head = "import ctypes, os, socket, struct, sys\nprint('begun', flush=True)\nE = os.environ\n"
    head += "call = ctypes.CDLL(None, use_errno=True).syscall\n"
    return Attack(script=head + script, language="python", works_outside=works_outside, weak=weak)


def syscall(number: str, arguments: str, setup: str = "") -> Attack:
    """A system call that must not succeed."""
    return python(f"{setup}\nif call({number}, {arguments}) >= 0: print('ACHIEVED')\n")


WRITES: Mapping[str, Attack] = {
    "overwrite a file": shell('echo evil > "$OUTSIDE/victim.txt"', works_outside=True),
    "append to a file": shell('echo evil >> "$OUTSIDE/victim.txt"', works_outside=True),
    "remove a file": shell('rm -f "$OUTSIDE/victim.txt"', works_outside=True),
    "move a file away": shell('mv "$OUTSIDE/victim.txt" ./taken', works_outside=True),
    "plant a file": shell('touch "$OUTSIDE/planted"', works_outside=True),
    "plant a folder": shell('mkdir "$OUTSIDE/planted"', works_outside=True),
    "plant a link": shell('ln -s /etc/passwd "$OUTSIDE/planted"', works_outside=True),
    "plant a pipe": shell('mkfifo "$OUTSIDE/planted"', works_outside=True),
    "write through a link": shell('ln -s "$OUTSIDE/victim.txt" link; echo evil > link', works_outside=True),
    "write through a link to a folder": shell('ln -s "$OUTSIDE" folder; echo evil > folder/planted', works_outside=True),
    "write through a hard link": shell('ln "$OUTSIDE/victim.txt" hard && echo evil >> hard', works_outside=True),
    "link a file of the workspace to the outside": shell('echo evil > own; ln own "$OUTSIDE/planted"', works_outside=True),
    "go up from the workspace": shell("echo evil > ../planted; echo evil > ../../planted", works_outside=True),
    "the root of the first process": shell('echo evil > "/proc/1/root$OUTSIDE/victim.txt"'),
    "the root of the parent": shell('echo evil > "/proc/$PPID/root$OUTSIDE/victim.txt"'),
    "the root of ourselves": shell('echo evil > "/proc/self/root$OUTSIDE/victim.txt"', works_outside=True),
    "the folders of every process": shell(
        'for each in /proc/[0-9]*; do echo evil > "$each/root$OUTSIDE/victim.txt"; echo evil > "$each/cwd/planted"; done 2>&1'
    ),
    "the files of every process": shell(
        'for each in /proc/[0-9]*/fd/*; do case $(readlink "$each") in "$OUTSIDE"*) echo evil > "$each";; esac; done 2>&1'
    ),
    "the shell's start file": shell('echo evil >> "$PERSON/.bashrc"', works_outside=True),
    "a program that starts with the desktop": shell(
        'mkdir -p "$PERSON/.config/autostart" && echo evil > "$PERSON/.config/autostart/x.desktop"', works_outside=True
    ),
    "an authorised key": shell('echo evil >> "$PERSON/.ssh/authorized_keys"', works_outside=True),
    "the gateway's settings": shell('echo evil >> "$GATEWAY/holdfast.toml"', works_outside=True),
    "a job of cron": shell("for each in /etc/cron.d /var/spool/cron /var/spool/cron/crontabs; do echo x > $each/hf-planted; done"),
    "folders of the system": shell("for each in /etc /usr /usr/bin /opt /var /boot /lib /srv; do echo x > $each/hf-planted; done"),
    "the settings of the kernel": shell("echo '|/bin/false' > /proc/sys/kernel/core_pattern && echo ACHIEVED"),
    "the magic key": shell("echo h > /proc/sysrq-trigger && echo ACHIEVED"),
    "a module of the kernel": shell("echo 1 > /sys/module/kernel/parameters/panic && echo ACHIEVED"),
    "a cgroup that runs a program": shell(
        "for each in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $each/hf-planted && echo ACHIEVED; done"
    ),
    "a mount over the outside": shell('mount -t tmpfs none "$OUTSIDE" && echo ACHIEVED'),
    "a mount of the outside": shell('mkdir -p m; mount --bind "$OUTSIDE" m && echo evil > m/victim.txt'),
    "the system made writable": shell("mount -o remount,rw / && echo ACHIEVED; mount -o remount,rw,bind /usr && echo ACHIEVED"),
    "what covers a secret taken away": shell("umount /etc/shadow && echo ACHIEVED; umount -l /proc && echo ACHIEVED"),
    "another root": shell("chroot / /bin/sh -c 'echo ACHIEVED'"),
    "the namespaces of the first process": shell("nsenter -t 1 -m -p -n /bin/sh -c 'echo ACHIEVED'"),
    "a user namespace": shell("unshare -r /bin/sh -c 'echo ACHIEVED'"),
    "a user namespace with mounts": shell("unshare -rm /bin/sh -c 'mount -t tmpfs none /mnt && echo ACHIEVED'"),
    "a device of the disk": shell("mknod disk b 254 0 && head -c 512 disk | wc -c && echo ACHIEVED; mknod m c 1 1 && head -c 1 m"),
    "truncation by name": python("os.truncate(E['OUTSIDE'] + '/victim.txt', 0)\n", works_outside=True),
    "an exchange of names": python(
        "open('own', 'w').write('evil')\n"
        "call(316, -100, b'own', -100, (E['OUTSIDE'] + '/victim.txt').encode(), 2)\n",
    ),
    "a file without a name": python(
        "number = os.open('.', os.O_TMPFILE | os.O_RDWR)\nos.write(number, b'evil')\n"
        "os.link(f'/proc/self/fd/{number}', E['OUTSIDE'] + '/planted')\n"
    ),
    "a folder kept open": python(
        "number = os.open(E['OUTSIDE'], os.O_PATH | os.O_DIRECTORY)\n"
        "os.open('victim.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=number)\n",
        works_outside=True,
    ),
    "a file by its handle": python(
        "import errno\nhandle = ctypes.create_string_buffer(struct.pack('II', 128, 0) + bytes(128))\n"
        "mount = ctypes.c_int()\n"
        "call(303, -100, b'/', handle, ctypes.byref(mount), 0)\n"
        "number = call(304, os.open('.', os.O_RDONLY), handle, os.O_RDONLY)\n"
        "print('ACHIEVED' if number >= 0 else '')\n"
    ),
    "a socket outside": python(
        "socket.socket(socket.AF_UNIX).bind(E['OUTSIDE'] + '/planted')\n", works_outside=True
    ),
    "the mode of a file": shell('chmod 777 "$OUTSIDE/victim.txt"', works_outside=True, weak=LANDLOCK),
    "the time of a file": shell('touch -c -d 2001-01-01 "$OUTSIDE/victim.txt"', works_outside=True, weak=LANDLOCK),
    "the mode of the home folder": shell('chmod 000 "$PERSON"', weak=LANDLOCK),
    "the socket of the proxy": shell('rm -f "$GATEWAY"/proxy/*; touch "$GATEWAY/proxy/planted"', works_outside=True),
}  # fmt: skip

READS: Mapping[str, Attack] = {
    "a private key": shell('cat "$PERSON/.ssh/id_rsa"', works_outside=True),
    "a document": shell('cat "$PERSON/Documents/diary.txt"', works_outside=True),
    "a password": shell('cat "$PERSON/.netrc"', works_outside=True),
    "the gateway's settings": shell('cat "$GATEWAY/holdfast.toml"', works_outside=True),
    "the whole home": shell('tar cf - "$PERSON" | cat', works_outside=True),
    "whatever is found": shell('find / -xdev \\( -name id_rsa -o -name diary.txt -o -name holdfast.toml \\) -exec cat {} + 2>&1'),
    "through a link": shell('ln -s "$PERSON/Documents" d; cat d/diary.txt', works_outside=True),
    "through a hard link": shell('ln "$PERSON/Documents/diary.txt" d; cat d', works_outside=True),
    "through the root of a process": shell('cat /proc/*/root"$PERSON/.ssh/id_rsa" 2>&1'),
    "the environment of a process": shell('tr "\\0" "\\n" < "/proc/$VICTIM/environ"', works_outside=True),
    "the environment of every process": shell('cat /proc/[0-9]*/environ 2>&1 | tr "\\0" "\\n"'),
    "the memory of a process": python(
        "pid = E['VICTIM']\nmaps = open(f'/proc/{pid}/maps').read().splitlines()\n"
        "memory = open(f'/proc/{pid}/mem', 'rb', buffering=0)\n"
        "for line in maps:\n"
        "    start, end = (int(each, 16) for each in line.split()[0].split('-'))\n"
        "    if '[stack]' in line:\n"
        "        memory.seek(start)\n        sys.stdout.buffer.write(memory.read(end - start))\n",
        works_outside=True,
    ),
    "the memory of a process by a system call": python(
        "buffer = ctypes.create_string_buffer(64)\n"
        "local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)\nremote = (ctypes.c_void_p * 2)(0x400000, 64)\n"
        "if call(310, int(E['VICTIM']), local, 1, remote, 1, 0) > 0: print('ACHIEVED')\n"
    ),
    "the memory of the machine": shell("head -c 16 /dev/mem && echo ACHIEVED; head -c 16 /proc/kcore && echo ACHIEVED"),
    "the passwords of the machine": shell("grep -q root /etc/shadow && echo ACHIEVED; grep -q root /etc/shadow- && echo ACHIEVED"),
    "the messages of the kernel": syscall("103", "3, ctypes.create_string_buffer(4096), 4096"),
    "files that were left open": shell('for each in /proc/self/fd/*; do case ${each##*/} in 0|1|2) ;; *) cat "$each";; esac; done'),
    "files that were left open, as they are": python(
        "for number in range(3, 200):\n"
        "    try: print(os.pread(number, 100, 0))\n"
        "    except OSError: pass\n",
        works_outside=True,
    ),
    "shared memory of others": python(
        "found = call(29, int(E['SHARED']), 0, 0)\n"
        "print('ACHIEVED' if found >= 0 else '')\n",
        works_outside=True,
    ),
    "what others keep in memory files": shell("cat /dev/shm/*/*/*/person/Documents/diary.txt /dev/shm/*/*/*/*/person/.netrc 2>&1"),
    "the environment of the gateway": shell("env", works_outside=False),
}  # fmt: skip

REACHES: Mapping[str, Attack] = {
    "TCP on loopback": python(
        "socket.create_connection(('127.0.0.1', int(E['PORT'])), 2).sendall(b'evil')\n", works_outside=True
    ),
    "TCP on loopback, version 6": python(
        "socket.create_connection(('::1', int(E['PORT6'])), 2).sendall(b'evil')\n", works_outside=True
    ),
    "TCP on no address": python(
        "socket.create_connection(('0.0.0.0', int(E['PORT'])), 2).sendall(b'evil')\n", works_outside=True
    ),
    "TCP on a mapped address": python(
        "socket.create_connection(('::ffff:127.0.0.1', int(E['PORT'])), 2).sendall(b'evil')\n", works_outside=True
    ),
    "TCP on every address of the machine": python(
        "last = ''\n"
        "for line in open('/proc/net/fib_trie'):\n"
        "    if '32 host' in line and socket.socket().connect_ex((last, int(E['ANYWHERE']))) == 0: print('ACHIEVED', last)\n"
        "    last = line.split()[-1]\n"
    ),
    "TCP by the shell": Attack(
        script="echo begun\nbash -c 'echo evil > /dev/tcp/127.0.0.1/$PORT'\n", works_outside=True
    ),
    "TCP by curl without the proxy": shell("curl -s -m 3 --noproxy '*' http://127.0.0.1:$PORT/ -d evil"),
    "the sink through the proxy": shell("curl -s -m 3 --noproxy '' http://127.0.0.1:$PORT/ -d evil"),
    "the sink through a tunnel": shell("curl -s -m 3 --noproxy '' -p http://127.0.0.1:$PORT/ -d evil"),
    "the sink by another spelling": shell(
        "for each in 127.1 2130706433 0x7f000001 localhost localhost. '[::ffff:7f00:1]' 0; do "
        "curl -s -m 3 --noproxy '' http://$each:$PORT/ -d evil; done"
    ),
    "the machinery of a cloud": shell("curl -s -m 3 http://169.254.169.254/latest/ | grep -i ami && echo ACHIEVED"),
    "UDP on loopback": python(
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'evil', ('127.0.0.1', int(E['UDP'])))\n", works_outside=True
    ),
    "a question for a name server": python(
        "query = struct.pack('>6H', 7, 256, 1, 0, 0, 0) + b'\\x04evil\\x04test\\0' + struct.pack('>2H', 1, 1)\n"
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(query, ('127.0.0.1', int(E['UDP'])))\n",
        works_outside=True,
    ),
    "an abstract socket": python(
        "socket.socket(socket.AF_UNIX).connect('\\0' + E['ABSTRACT'])\n", works_outside=True
    ),
    "an abstract socket without a connection": python(
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'evil', '\\0' + E['ABSTRACT'] + '-d')\n", works_outside=True
    ),
    "a socket with a file": python(
        "socket.socket(socket.AF_UNIX).connect(E['OUTSIDE'] + '/sink.sock')\n", works_outside=True
    ),
    "the gateway's socket": python(
        "socket.socket(socket.AF_UNIX).connect(E['GATEWAY'] + '/gateway.sock')\n", works_outside=True
    ),
    "the gateway's socket through a link": python(
        "os.symlink(E['GATEWAY'] + '/gateway.sock', 's')\nsocket.socket(socket.AF_UNIX).connect('s')\n", works_outside=True
    ),
    "sockets of the system": python(
        "import glob\nfor each in glob.glob('/run/**/*.sock', recursive=True) + glob.glob('/var/run/*.sock') + ['/run/docker.sock']:\n"
        "    if socket.socket(socket.AF_UNIX).connect_ex(each) == 0: print('ACHIEVED', each)\n"
    ),
    "a raw socket": python(
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)\nprint('ACHIEVED')\n"
    ),
    "a packet socket": python("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nprint('ACHIEVED')\n"),
    "a virtual machine's socket": python("socket.socket(40, socket.SOCK_STREAM)\nprint('ACHIEVED')\n"),
    "a netlink socket of the audit": python("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)\nprint('ACHIEVED')\n"),
    "a socket of the kernel's cryptography": python("socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)\nprint('ACHIEVED')\n"),
    "an address of its own": shell("ip link add evil type dummy && echo ACHIEVED; ip addr add 10.1.1.1/8 dev lo && echo ACHIEVED"),
    "a way out of its own": shell("ip route add default dev lo && echo ACHIEVED"),
}  # fmt: skip

POWERS: Mapping[str, Attack] = {
    "trace a process": python("if call(101, 16, int(E['VICTIM']), 0, 0) == 0: print('ACHIEVED')\n"),
    "trace oneself": syscall("101", "0, 0, 0, 0"),
    "kill a process": shell("kill -9 $VICTIM", works_outside=True),
    "kill everything": shell("kill -9 -1"),
    "kill the gateway": shell("kill -9 $RUNNER; kill -TERM $RUNNER"),
    "stop a process": shell("kill -STOP $VICTIM"),
    "kill a process by its descriptor": python(
        "number = os.pidfd_open(int(E['VICTIM']))\nimport signal\nsignal.pidfd_send_signal(number, 9)\n", works_outside=True
    ),
    "limit a process": shell("prlimit --pid $VICTIM --cpu=1 --nofile=3", works_outside=True),
    "slow a process down": shell("renice 19 $VICTIM", works_outside=True),
    "bind a process to a processor": shell("taskset -p 1 $VICTIM", works_outside=False),
    "take the files of a process": python(
        "number = os.pidfd_open(int(E['VICTIM']))\nif call(438, number, 0, 0) >= 0: print('ACHIEVED')\n"
    ),
    "type into a terminal": python(
        "import fcntl\none, other = os.openpty()\n"
        "os.setsid() if os.getpid() != os.getsid(0) else None\nfcntl.ioctl(other, 0x540E, 0)\n"
        "fcntl.ioctl(other, 0x5412, b'x')\nprint('ACHIEVED')\n"
    ),
    "type into a terminal with a long number": python(
        "import fcntl\none, other = os.openpty()\nlibc = ctypes.CDLL(None)\n"
        "print('ACHIEVED' if libc.syscall(16, other, ctypes.c_ulong(0x100005412), b'x') == 0 else '')\n"
    ),
    "paste into a console": python(
        "import fcntl\none, other = os.openpty()\nif call(16, other, 0x541C, b'\\3') == 0: print('ACHIEVED')\n"
    ),
    "keys of the kernel": syscall("250", "0, -3, 1"),
    "a key for the session": syscall("248", "b'user', b'evil', b'x', 1, -3"),
    "a ring of requests": syscall("425", "8, ctypes.create_string_buffer(256)"),
    "a program in the kernel": syscall("321", "0, ctypes.create_string_buffer(128), 128"),
    "faults handled by oneself": syscall("323", "1"),
    "events of the processor": syscall("298", "ctypes.create_string_buffer(struct.pack('II', 1, 112) + bytes(104)), 0, -1, -1, 0"),
    "a new user namespace": syscall("272", "0x10000000"),
    "a new mount namespace": syscall("272", "0x00020000"),
    "a new network namespace": syscall("272", "0x40000000"),
    "a child in a new namespace": python(
        "pid = call(56, 0x10000000 | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\nif pid > 0: print('ACHIEVED')\n"
    ),
    "a child in a new namespace, the new way": python(
        "arguments = ctypes.create_string_buffer(struct.pack('8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0))\n"
        "pid = call(435, arguments, 64)\nif pid == 0: os._exit(0)\nif pid > 0: print('ACHIEVED')\n"
    ),
    "another process's namespace": python(
        "if call(308, os.open('/proc/1/ns/net', os.O_RDONLY), 0) == 0: print('ACHIEVED')\n"
    ),
    "a detached mount": syscall("428", "-100, b'/', 1"),
    "a new file system": syscall("430", "b'tmpfs', 0"),
    "a mount made writable": syscall("442", "-100, b'/usr', 0, ctypes.create_string_buffer(struct.pack('4Q', 0, 1, 0, 0)), 32"),
    "a watch on all files": syscall("300", "0, 0"),
    "the name of the machine": syscall("170", "b'evil', 4"),
    "the clock of the machine": syscall("227", "0, ctypes.create_string_buffer(struct.pack('qq', 1, 0))"),
    "a module": syscall("175", "0, 0, b''"),
    "a new kernel": syscall("246", "0, 0, 0, 0"),
    "the ports of the machine": syscall("172", "3"),
    "accounting": syscall("163", "b'own'", "open('own', 'w').close()"),
    "the control of a restart": syscall("169", "0xfee1dead, 672274793, 0"),
    "the numbers of another machine": syscall("0x40000000 | 39", "0"),
    "a right": python(
        "status = dict(line.split(':\\t') for line in open('/proc/self/status') if ':\\t' in line)\n"
        # An ordinary user cannot empty the bounding set, and without new privileges it means nothing.
        "for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'):\n"
        "    if int(status[name], 16): print('ACHIEVED', name)\n"
        "if status['NoNewPrivs'].strip() != '1': print('ACHIEVED')\n"
        "if status['Seccomp'].strip() != '2': print('ACHIEVED')\n"
    ),
    "a right by a program that has it": shell(
        "cp /bin/sh own; chmod 6755 own; ./own -p -c 'grep -E \"CapEff:.*[1-9a-f]\" /proc/self/status && echo ACHIEVED'; "
        "su -c 'echo ACHIEVED' nobody < /dev/null; sudo -n true && echo ACHIEVED"
    ),
    "more processes than allowed": python(
        "import time\nmade = 0\n"
        "try:\n"
        "    while made < 2000:\n"
        "        if os.fork() == 0:\n            time.sleep(30)\n            os._exit(0)\n"
        "        made += 1\n"
        "except OSError:\n    pass\n"
        "print('made', made)\nif made >= 2000: print('ACHIEVED')\n",
        weak=LANDLOCK,
    ),
    "more memory than allowed": python(
        "try:\n    held = bytearray(1536 * 1024 * 1024)\n    print('ACHIEVED')\nexcept MemoryError:\n    pass\n"
    ),
    "a larger file than allowed": python(
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "with open('huge', 'wb') as file:\n    os.posix_fallocate(file.fileno(), 0, 64 * 1024 * 1024)\n    print('ACHIEVED')\n"
    ),
    "more files than allowed": python(
        "held = []\ntry:\n    while len(held) < 5000: held.append(os.open('/dev/null', os.O_RDONLY))\n    print('ACHIEVED')\n"
        "except OSError:\n    pass\n"
    ),
    "more time than allowed": shell("while :; do :; done"),
    "higher limits": shell("ulimit -H -n 100000 && echo ACHIEVED; ulimit -H -t unlimited && echo ACHIEVED"),
    "a daemon": shell("(setsid sleep 300 >/dev/null 2>&1 &) ; (nohup sleep 300 >/dev/null 2>&1 &)", works_outside=True),
    "a daemon of a daemon": python(
        "import subprocess, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.closerange(0, 3)\n        time.sleep(300)\n"
        "    os._exit(0)\n",
        works_outside=True,
    ),
}  # fmt: skip

# Each of these goes another way than those above: through what is inherited, shared, renamed or mounted.
FURTHER: Mapping[str, Attack] = {
    "a descriptor of those who started it": python(
        "for number in range(3, 1024):\n"
        "    try: os.fstat(number)\n"
        "    except OSError: continue\n"
        "    print('ACHIEVED', number, os.readlink(f'/proc/self/fd/{number}'))\n"
    ),
    "the folder above an inherited working folder": python(
        "os.chdir('/proc/self/cwd/../../..')\n"
        "for each in ('holdfast.toml', 'gateway/holdfast.toml', 'person/.netrc'):\n"
        "    try: print(open(each).read())\n"
        "    except OSError: pass\n"
    ),
    "a working folder that was moved": shell(
        'mkdir -p a/b; cd a/b; mv ../../a/b ../../moved; cat ../../holdfast.toml ../../../holdfast.toml ../holdfast.toml 2>&1'
    ),
    "the workspace under another name": shell(
        'mv "$GATEWAY/workspace" "$GATEWAY/w2" && echo ACHIEVED; mv "$GATEWAY/workspace/work" "$GATEWAY/planted"'
    ),
    "a whiteout": python("os.mknod('own', 0o020000, os.makedev(0, 0))\nos.rename('own', E['OUTSIDE'] + '/victim.txt')\n"),
    "a file made larger by its descriptor": python(
        "number = os.open(E['OUTSIDE'] + '/victim.txt', os.O_RDONLY)\n"
        "os.truncate(f'/proc/self/fd/{number}', 0)\n",
        works_outside=True,
    ),
    "an attribute of a file": python(
        "os.setxattr(E['OUTSIDE'] + '/victim.txt', 'user.evil', b'x')\nprint('ACHIEVED')\n", weak=LANDLOCK
    ),
    "an attribute that gives rights": python(
        "open('own', 'w').close()\n"
        "os.setxattr('own', 'security.capability', bytes.fromhex('0100000200002000000000000000000000000000'))\nprint('ACHIEVED')\n"
    ),
    "the maps of users": shell(
        "for each in uid_map gid_map setgroups; do echo '0 0 4294967295' > /proc/self/$each && echo ACHIEVED; done"
    ),
    "its own place in the order of ending": shell(
        "echo -1000 > /proc/self/oom_score_adj && echo ACHIEVED; "
        'test "$(cat /proc/self/oom_score_adj)" = 1000 || echo ACHIEVED'
    ),
    "what the kernel runs for it": shell(
        "for each in modprobe core_pattern hotplug poweroff_cmd; do echo /evil > /proc/sys/kernel/$each && echo ACHIEVED; done; "
        "echo 1 > /proc/sys/net/ipv4/ip_forward && echo ACHIEVED; echo :evil:M::x::/evil: > /proc/sys/fs/binfmt_misc/register && echo ACHIEVED"
    ),
    "a device by its number": shell(
        "for each in 'c 1 2' 'c 10 200' 'c 10 229' 'c 4 0' 'c 5 1' 'b 7 0'; do mknod dev$each $each 2>/dev/null && head -c 1 dev$each && echo ACHIEVED; done"
    ),
    "a file system of its own": shell(
        "fusermount3 -V >/dev/null 2>&1 && fusermount3 own && echo ACHIEVED; test -c /dev/fuse && (exec 3<> /dev/fuse) && echo ACHIEVED; "
        "mount -t overlay overlay -o lowerdir=/usr,upperdir=.,workdir=. /usr && echo ACHIEVED; mount -t proc proc . && echo ACHIEVED"
    ),
    "the hypervisor and other devices": shell(
        "for each in kvm vhost-net vhost-vsock net/tun loop-control mapper/control uinput userfaultfd snapshot ttyS0 console; do "
        "test -c /dev/$each && (exec 3<> /dev/$each) && echo ACHIEVED $each; done 2>&1; true"
    ),
    "the events of the kernel": shell(
        "ls /sys/kernel/debug /sys/kernel/tracing /sys/fs/bpf /sys/firmware /sys/kernel/security 2>/dev/null | grep . && echo ACHIEVED"
    ),
    "the processes of the machine": shell(
        'test -d "/proc/$VICTIM" && grep -q sleep "/proc/$VICTIM/comm" && echo ACHIEVED; '
        'for each in /proc/[0-9]*; do grep -qz TOKEN "$each/environ" 2>/dev/null && echo ACHIEVED; done',
        works_outside=True,
        weak=LANDLOCK,
    ),
    "the connections of the machine": shell(
        'grep -i ":$(printf %04X $PORT) " /proc/net/tcp /proc/self/net/tcp /proc/1/net/tcp 2>/dev/null && echo ACHIEVED; '
        'grep -F "$ABSTRACT" /proc/net/unix && echo ACHIEVED; true',
        works_outside=True,
        weak=LANDLOCK,
    ),
    "where the gateway is found in the table of mounts": shell(
        'grep -F "$PERSON/" /proc/self/mountinfo && echo ACHIEVED; grep -F "$OUTSIDE" /proc/self/mountinfo /proc/1/mountinfo && echo ACHIEVED; true'
    ),
    "messages between programs": python(
        "for number in (68, 64):\n"
        "    if call(number, int(E['SHARED']), 0, 0) >= 0: print('ACHIEVED')\n"
        "if call(240, b'hf-planted', 0, 0, 0) >= 0: print('ACHIEVED')\n"
    ),
    "a pair of sockets of another family": python(
        "pair = (ctypes.c_int * 2)()\n"
        "for family in (30, 31, 38, 40, 43, 44):\n"
        "    if call(53, family, 1, 0, pair) == 0: print('ACHIEVED', family)\n"
    ),
    "families that only modules have": python(
        "for family in (3, 4, 5, 9, 17, 21, 22, 23, 24, 29, 30, 31, 34, 38, 39, 40, 41, 42, 43, 44):\n"
        "    for kind in (1, 2, 3, 5):\n"
        "        if call(41, family, kind, 0) >= 0: print('ACHIEVED', family, kind)\n"
    ),
    "the listener of the proxy": python(
        "listener = socket.socket()\nlistener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
        "listener.bind(('127.0.0.1', 3128))\nlistener.listen()\n"
        "try: socket.create_connection(('127.0.0.1', int(E['PORT'])), 1).sendall(b'evil')\n"
        "except OSError: pass\n"
    ),
    "a broadcast": python(
        "out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nout.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)\n"
        "for each in ('255.255.255.255', '224.0.0.1', '127.255.255.255'):\n"
        "    try: out.sendto(b'evil', (each, int(E['UDP'])))\n"
        "    except OSError: pass\n"
    ),
    "a fast connection": python(
        "socket.socket().sendto(b'evil', 0x20000000, ('127.0.0.1', int(E['PORT'])))\n"
    ),
    "a socket handed over by a link of a process": shell(
        'for each in /proc/[0-9]*/fd/*; do case "$(readlink "$each")" in socket:*) echo ACHIEVED "$each";; esac; done'
    ),
    "a signal to its own group and session": python(
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for pid in (int(E['RUNNER']), int(E['VICTIM'])):\n"
        "    for send in (os.kill, os.killpg):\n"
        "        try: send(pid, 15)\n        except (ProcessLookupError, PermissionError): pass\n"
    ),
    "an owner for its files": shell('chown 65534 "$OUTSIDE/victim.txt"; chown 12345 . && test "$(stat -c %u .)" = 12345 && echo ACHIEVED', weak=LANDLOCK),
    "a lock on a file of others": python(
        "import fcntl\nfcntl.flock(os.open(E['GATEWAY'] + '/holdfast.toml', os.O_RDONLY), 6)\nprint('ACHIEVED')\n", works_outside=True
    ),
    "a watch on a file of others": python(
        "libc = ctypes.CDLL(None)\nwatch = libc.inotify_init()\n"
        "for each in ('PERSON', 'GATEWAY'):\n"
        "    if libc.inotify_add_watch(watch, (E[each] + '/' + {'PERSON': '.netrc', 'GATEWAY': 'holdfast.toml'}[each]).encode(), 0xfff) >= 0: print('ACHIEVED')\n",
        works_outside=True,
        weak=LANDLOCK,
    ),
    "a program that changes its interpreter": shell(
        "cp /bin/true own && printf '#!/proc/1/root/bin/sh\\necho evil > \"$OUTSIDE/victim.txt\"\\n' > run && chmod +x run && ./run"
    ),
    "a library that is loaded first": shell(
        "mkdir -p lib; for each in /etc/ld.so.preload /etc/ld.so.cache /usr/lib/hf-planted; do echo evil > $each && echo ACHIEVED; done"
    ),
    "a real-time priority": syscall("144", "0, 1, ctypes.create_string_buffer(struct.pack('i', 99))"),
    "a table of the processor": syscall("154", "1, ctypes.create_string_buffer(struct.pack('4I', 0, 0, 0xfffff, 0x51)), 16"),
    "memory of another node": syscall("256", "int(E['VICTIM']), 1, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)"),
    "a comparison of processes": syscall("312", "os.getpid(), os.getpid(), 0, 0, 1"),
    "a ring that exists": syscall("426", "0, 1, 0, 0, 0, 0"),
    "a file system picked by its mount": syscall("433", "-100, b'/', 0"),
    "the quota of a disk": syscall("179", "0, b'/dev/vda', 0, 0"),
    "a swap file": syscall("167", "b'own', 0", "open('own', 'w').close()"),
}  # fmt: skip

CORPUS: Mapping[str, Attack] = {
    f"{what}: {name}": attack
    for what, group in (("write", WRITES), ("read", READS), ("reach", REACHES), ("do", POWERS), ("use", FURTHER))
    for name, attack in group.items()
}
