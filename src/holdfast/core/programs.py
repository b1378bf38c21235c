"""Programs: what is known about the commands that people use, as tables.

Whatever is not here is not known, and is asked about.  Code of the workspace itself runs unasked (pytest, make, npm test,
python file.py, ./script): that is what an agent is for, and what such code does is for the sandbox to bound.  Code that
stands on the command line (python -c) is asked about, for nobody has seen it before.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BIN_FOLDERS = _words("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin")

SHELLS = _words("sh bash dash zsh ksh mksh ash fish rbash")
INTERPRETERS = _words("python pypy node deno bun ruby perl php lua Rscript tclsh")
BUN_INSTALLS = _words("install add i x upgrade create publish eval link")

# They open no file, and only say or compare.
WORDS_ONLY = _words(
    "echo printf true false : test [ [[ seq expr sleep pwd whoami id uname arch nproc uptime free groups "
    "logname tty basename dirname which type whereis exit return break continue wait shift read local jobs "
    "lscpu lsblk locale cal getconf tput clear ulimit dirs yes factor numfmt getopts "
)
# They read the files that they are given.
READERS = _words(
    "ls cat head tail wc grep egrep fgrep zgrep rg ag ack cut tr sort uniq diff cmp comm file stat du df tree "
    "realpath readlink nl od hexdump xxd strings column fold fmt paste join tac rev md5sum sha1sum sha256sum "
    "sha512sum b2sum cksum sum jq less more zcat bzcat xzcat cloc tokei bat fd ps lsof base64 iconv expand "
    "unexpand tsort pr colordiff nm objdump readelf size vmstat iostat who w last zipinfo pgrep exa eza "
    "shellcheck hostname date look "
)
# The options of readers that make more of them: what they write, what they run.
READER_RISKS: Mapping[str, Mapping[str, str]] = {
    "sort": {"-o": "writes", "--output": "writes", "--compress-program": "runs another program", "-T": "writes"},
    "tree": {"-o": "writes"},
    "rg": {"--pre": "runs another program", "--hostname-bin": "runs another program"},
    "fd": {"-x": "runs another program", "--exec": "runs another program", "-X": "runs another program",
           "--exec-batch": "runs another program"},
    "ag": {"--pager": "runs another program"},
    "ack": {"--pager": "runs another program"},
    "bat": {"--pager": "runs another program"},
    "less": {"-o": "writes", "-O": "writes", "--log-file": "writes"},
    "date": {"-s": "sets the clock", "--set": "sets the clock"},
    "hostname": {"-F": "names the machine anew", "-b": "names the machine anew"},
    "base64": {"-o": "writes", "--output": "writes"},
    "iconv": {"-o": "writes", "--output": "writes"},
    "cloc": {"--extract-with": "runs another program", "--diff-alignment": "writes", "--out": "writes"},
}  # fmt: skip
# The same for what writes.
WRITER_RUNS = (
    *("--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--rsh-command"),
    *("-F", "--info-script", "--new-volume-script", "--filter", "--unzip-command"),
)
# A second name that they are given is what they write.
WRITES_SECOND = frozenset({"uniq", "xxd"})
RECURSIVE_READERS = frozenset({"rg", "ag", "ack"})

# They write where they are told.
WRITERS = _words(
    "mkdir touch cp mv ln rm rmdir unlink tee truncate install mktemp mkfifo split csplit gzip gunzip bzip2 bunzip2 "
    "xz unxz zstd zip unzip tar patch chmod dos2unix "
)

# Tools of everyday development: they work on the code of the workspace, or run it.
DEVELOPMENT = _words(
    "pytest py.test tox nox make gmake cmake ninja meson bazel gradle gradlew mvn ruff black isort flake8 "
    "pylint mypy pyright bandit autopep8 yapf coverage pre-commit eslint prettier tsc jest vitest mocha ava "
    "stylelint webpack vite esbuild rollup gcc g++ cc c++ clang clang++ clang-format clang-tidy ld ar rustc "
    "rustfmt javac java kotlinc gofmt golint golangci-lint staticcheck rspec rubocop phpunit ctest sphinx- "
    "build mkdocs pandoc hadolint yamllint markdownlint basedpyright dot lint-imports "
)
# Options of theirs that take code, or the name of a program with its arguments.
CODE_OPTIONS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("make", "gmake"), _words("eval E")),
    "cmake": _words("E"),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _words("wrapper fplugin specs")),
    "go": _words("toolexec exec vettool"),
    "npm": _words("script-shell node-options shell"),
    "pnpm": _words("script-shell node-options shell"),
    "cloc": _words("extract-with"),
    **dict.fromkeys(("pytest", "py.test"), _words("pdb trace")),
}
# Targets and scripts whose names say that something leaves the machine, or is put into it.
OUTWARD_TARGETS = ("install", "deploy", "publish", "release", "push", "upload", "provision", "destroy", "uninstall")
MODULES = _words(
    "pytest unittest doctest json.tool compileall py_compile venv tokenize ast dis mypy ruff black "
    "isort flake8 pylint coverage build cProfile this calendar pyright tox nox sphinx mkdocs zipfile "
    "tabnanny site sysconfig platform trace "
)

# By program, the subcommands that only look, or do ordinary work.
SUBCOMMANDS: Mapping[str, frozenset[str]] = {
    "cargo": _words("build check test clippy fmt run doc bench tree metadata version b c t r clean"),
    "go": _words("build test vet fmt run list version env doc"),
    "npm": _words("test t run run-script start ls list view outdated audit version prefix root why explain"),
    "pnpm": _words("test t run start ls list outdated why"),
    "yarn": _words("test run start list why build lint"),
    "pip": _words("list show freeze check help debug inspect"),
    "pip3": _words("list show freeze check help debug inspect"),
    "conda": _words("list info search"),
    "apt": _words("list show search policy"),
    "apt-cache": _words("show search policy depends rdepends madison"),
    "brew": _words("list info search"),
    "rustup": _words("show which"),
    "dotnet": _words("build test run format"),
    "mix": _words("test compile format"),
    "swift": _words("build test run"),
    "zig": _words("build test fmt run"),
    "terraform": _words("fmt validate version"),
    "poetry": _words("check show version"),
    "systemctl": _words("status list-units list-timers is-active is-enabled show cat"),
    "docker": _words("ps images version info logs"),
    "gh": _words("status"),
}

# Those of them that build or run code.
CODE_RUNNERS = _words("cargo go npm pnpm yarn dotnet mix swift zig")

# What each of these is for, as the person who is asked should read it.
_ASKED_FOR: Mapping[str, str] = {
    "it runs with the rights of another user": "sudo doas su pkexec runuser",
    "it installs or publishes packages, or runs what is not part of the workspace": (
        "apt apt-get aptitude dpkg yum dnf rpm zypper apk pacman brew snap flatpak port pip pip3 pipx npm pnpm "
        "yarn gem bundle conda mamba poetry composer cargo go rustup nix nix-env easy_install npx bunx uvx mix "
        "luarocks cpan dotnet swift zig "
    ),
    "it talks to other machines": (
        "curl wget http https httpie xh aria2c ftp tftp lynx w3m nc ncat netcat socat telnet rsync scp sftp ping "
        "dig nslookup host openssl rclone s3cmd traceroute nmap "
    ),
    "it runs something on another machine": "ssh",
    "it ends processes": "kill pkill killall xkill skill",
    "it controls containers": "docker podman nerdctl docker-compose buildah kubectl helm",
    "it controls services": "systemctl service launchctl rc-service initctl journalctl",
    "it makes something run later": "crontab at batch systemd-run anacron",
    "it changes who may use files": "chown chgrp setfacl chattr setcap",
    "it changes the users of the machine": ("useradd userdel usermod groupadd passwd chpasswd chsh visudo adduser deluser "),
    "it changes disks": (
        "mount umount losetup fdisk parted gdisk sgdisk swapoff swapon lvremove vgremove cryptsetup zpool zfs hdparm "
    ),
    "it changes the system or its network": ("insmod modprobe rmmod sysctl iptables ip6tables nft ufw ip ifconfig route "),
    "it overwrites data": "dd shred srm wipe",
    "it shows the environment, which may hold secrets": "printenv",
    "it changes what later commands do": "alias trap complete bind enable mapfile readarray",
    "it acts on services elsewhere": (
        "aws gcloud az gh glab heroku vercel netlify fly flyctl terraform ansible ansible-playbook pulumi doctl twine "
    ),
    "it acts on a database": "psql mysql mariadb sqlite3 mongo mongosh redis-cli dropdb createdb",
    "it handles keys and secrets": "gpg pass op security secret-tool keyctl vault ssh-keygen ssh-add",
    "it runs something where it cannot be followed": (
        "chroot unshare nsenter bwrap firejail strace ltrace gdb script expect tmux screen "
    ),
    "it sends mail": "mail mailx sendmail mutt msmtp",
}
UNFOLLOWED = _words(_ASKED_FOR["it runs something where it cannot be followed"])
ALWAYS_ASKED: Mapping[str, str] = {name: reason for reason, names in _ASKED_FOR.items() for name in names.split()}

# What has no use here but to end the machine or its disks.
NEVER: Mapping[str, str] = {
    **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff", "telinit", "kexec"), "it stops the machine"),
    **dict.fromkeys(("wipefs", "blkdiscard", "mkswap", "mke2fs", "newfs"), "it erases a disk"),
}
MACHINE_STOPS = frozenset(
    {"reboot", "poweroff", "halt", "kexec", "suspend", "hibernate", "rescue", "emergency", "soft-reboot"}
)

# Long options of programs that run another which take no value, and of shells that change little.
PLAIN_LONG_OPTIONS = _words(
    "--foreground --preserve-status --verbose --null --no-run-if-empty --exit --interactive --fork --wait --nonblock "
    "--nb --exclusive --shared --portability --quiet --append --posix --norc --noprofile --login --replace --all-tasks "
)

# Programs that run another: the options that take a value, and how many words come before the other program.
WRAPPERS: Mapping[str, tuple[frozenset[str], int]] = {
    "nohup": (frozenset(), 0),
    "setsid": (frozenset(), 0),
    "time": (frozenset({"-o", "-f", "--output", "--format"}), 0),
    "command": (frozenset(), 0),
    "builtin": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "-p"}), 0),
    "chrt": (frozenset(), 1),
    "taskset": (frozenset(), 1),
    "stdbuf": (frozenset({"-i", "-o", "-e", "--input", "--output", "--error"}), 0),
    "timeout": (frozenset({"-s", "--signal", "-k", "--kill-after"}), 1),
    "sudo": (frozenset({"-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group"}), 0),
    "doas": (frozenset({"-u", "-C"}), 0),
    "xargs": (_words("-n -L -P -I -d -a -s -E --max-args --max-procs --delimiter --arg-file --process-slot-var"), 0),
    "env": (frozenset({"-u", "--unset", "-C", "--chdir"}), 0),
    "watch": (frozenset({"-n", "--interval"}), 0),
    "flock": (frozenset({"-w", "--timeout", "-E"}), 1),
    "busybox": (frozenset(), 0),
    "toybox": (frozenset(), 0),
    "strace": (frozenset({"-e", "-o", "-p", "-s", "-u"}), 0),
    "chroot": (frozenset(), 1),
    "unshare": (frozenset(), 0),
    "parallel": (frozenset({"-j", "--jobs"}), 0),
    "caffeinate": (frozenset({"-t"}), 0),
    "systemd-run": (frozenset({"-u", "-p", "--unit"}), 0),
    "proxychains": (frozenset(), 0),
}

GIT_LOOKS = _words(
    "status log diff show blame shortlog describe rev-parse rev-list ls-files ls-tree cat-file grep "
    "whatchanged name-rev merge-base for-each-ref count-objects version help check-ignore show-ref symbolic- "
    "ref diff-tree diff-index diff-files range-diff "
)
GIT_WORKS = _words("add commit init merge cherry-pick revert mv apply am notes format-patch")
# What may follow these without changing what cannot be had back.
GIT_PARTS: Mapping[str, frozenset[str]] = {
    "stash": frozenset({"", "list", "show", "push", "pop", "apply", "save"}),
    "remote": frozenset({"", "-v", "show", "get-url"}),
    "config": frozenset({"--get", "--list", "-l", "--get-all", "--get-regexp", "get", "list"}),
    "reflog": frozenset({"", "show", "exists"}),
    "worktree": frozenset({"list"}),
    "submodule": frozenset({"", "status", "summary"}),
    "bisect": frozenset({"start", "good", "bad", "reset", "log", "skip"}),
}
GIT_RISKS = ("--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--exec", "--upload-pack", "--receive-pack")

# Variables that decide what programs are run, or how.
STEERING = (
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_",
    "PERL5",
    "RUBY",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PROMPT_COMMAND",
    "PYTHONBREAKPOINT",
    "CARGO_",
    "RUSTC",
    "RUSTFLAGS",
    "GOFLAGS",
    "npm_config_",
    "NPM_CONFIG_",
    "PIP_",
    "UV_",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
)
STEERING_NAMES = _words(
    "PATH IFS ENV SHELLOPTS PAGER EDITOR VISUAL PS4 PS1 HOME BROWSER LESSOPEN LESS LESSCLOSE MANPAGER CDPATH "
    "SHELL MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES TAR_OPTIONS ZIPOPT ZIP UNZIP RIPGREP_CONFIG_PATH BAT_CONFIG_PATH "
    "PYTEST_ADDOPTS PYTEST_PLUGINS GRADLE_OPTS MAVEN_OPTS MAVEN_ARGS AWKPATH AWKLIBPATH ZDOTDIR BATS_OPTIONS TMOUT "
)
# Where programs look for parts of themselves.
SEARCHED = _words("PYTHONPATH NODE_PATH CLASSPATH LUA_PATH LUA_CPATH R_LIBS GEM_PATH GEM_HOME GOPATH GOROOT VIRTUAL_ENV")
