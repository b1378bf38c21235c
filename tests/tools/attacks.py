"""Commands that look like something else: each of them runs `evil.sh`, which leaves a proof, or would if it could."""

from __future__ import annotations

from pathlib import Path

PROOF = "proof"

# Each of these once ran unasked, because a judge of shell text took it for harmless.
ONCE_UNASKED = (
    "env '-Ssh evil.sh x=echo hi'",
    "sed '1e sh evil.sh' notes.txt",
    "echo --pre=./evil.sh x | xargs rg",
    "printf '%s\\0' -O./evil.sh x | xargs -0 git grep",
    "a='x[$(sh evil.sh)]'; [[ a -eq 0 ]]",
    "read a < payload; [[ a -eq 0 ]]",
    "tar cIf 'sh evil.sh' out.tar notes.txt",
    "install --strip --strip-program=./evil.sh notes.txt copy",
    "install -s --strip-program=./evil.sh notes.txt copy",
    "git init --template=template repo",
    "git status",
    "cd bare && git status",
    "git -C bare status",
    "XDG_CONFIG_HOME=conf git status",
    "cp evil.sh .gi[t]/hooks/pre-commit && git commit --allow-empty -qm x",
    "mv evil.sh .gi?/hooks/pre-commit; git commit --allow-empty -qm x",
    "less notes.txt",
)

OTHERS = (
    # A program of our short list, and something behind it.
    "ls; sh evil.sh",
    "ls && sh evil.sh",
    "ls || sh evil.sh",
    "ls | sh evil.sh",
    "ls & sh evil.sh",
    "ls\nsh evil.sh",
    "ls\rsh evil.sh",
    "ls $(sh evil.sh)",
    "ls `sh evil.sh`",
    "ls <(sh evil.sh)",
    "ls > /dev/null; sh evil.sh",
    "echo $(sh evil.sh)",
    "echo ${x:=$(sh evil.sh)}",
    "echo $((x[$(sh evil.sh)]))",
    "cat notes.txt > evil.sh",
    "cat notes.txt >> evil.sh",
    "cat < notes.txt",
    "cat <<< $(sh evil.sh)",
    "(ls)",
    "{ ls; }",
    "! ls",
    "time ls",
    "exec ls",
    "command ls",
    "builtin pwd",
    "ls # $(sh evil.sh)",
    "ls -l --hyperlink",
    "ls --color=always",
    "ls *",
    "ls ?",
    "ls [a-z]*",
    "ls ~",
    "ls ~root",
    "ls $HOME",
    "ls 'notes.txt'",
    'ls "notes.txt"',
    "ls notes\\.txt",
    "\\ls",
    "'ls'",
    "l''s",
    "/bin/ls",
    "./ls",
    "bin/ls",
    "../bin/ls",
    "PATH=. ls",
    "LD_PRELOAD=./evil.so ls",
    "IFS=x ls",
    "A=b",
    "ls {a,b}",
    "\x01ls",
    "ls\x00",
    "ls\u2028sh evil.sh",
    "ls\u00a0-l",
    # A program of our short list, asked for more than it may do.
    "cat /etc/passwd",
    "cat ../secret",
    "cat link",
    "cat folder/../../secret",
    "cat -",
    "cat /dev/stdin",
    "cat /proc/self/environ",
    "head /etc/passwd",
    "tail -f notes.txt",
    "tail --pid=1 -f notes.txt",
    "tail --retry notes.txt",
    "wc --files0-from=list",
    "wc --files0-from list",
    "ls /",
    "ls ..",
    "ls link-to-root",
    "date -s 2001-01-01",
    "date --set=2001-01-01",
    "date -f payload",
    "date -r /etc/passwd",
    "id root",
    "uname --help",
    "echo -e x",
    "pwd x",
    "head -n",
    "head -n x notes.txt",
    "cat",
    # Programs that are not on it.
    "sh evil.sh",
    "bash -c 'sh evil.sh'",
    ". ./evil.sh",
    "source evil.sh",
    "eval 'sh evil.sh'",
    "./evil.sh",
    "python3 -c 'import os'",
    "perl -e 1",
    "awk 'BEGIN{system(\"sh evil.sh\")}'",
    "find . -exec sh evil.sh ';'",
    "find . -name x",
    "sort --compress-program=./evil.sh notes.txt",
    "sort notes.txt",
    "grep x notes.txt",
    "env",
    "xargs",
    "tee evil.sh",
    "vim -es",
    "man ls",
    "git log -p",
    "git diff --ext-diff",
    "git -c core.fsmonitor=./evil.sh status",
    "git commit -qm x",
    "make",
    "pytest",
    "npm test",
    "rsync -e 'sh evil.sh' a b:",
    "ssh -o ProxyCommand='sh evil.sh' x",
    "curl file:///etc/passwd",
    "split --filter='sh evil.sh' notes.txt",
    "dd if=evil.sh of=copy",
    "timeout 5 ls",
    "nohup ls",
    "nice ls",
    "watch ls",
    "script -c 'sh evil.sh'",
    "trap 'sh evil.sh' EXIT",
    "alias ls='sh evil.sh'; ls",
    "hash -p ./evil.sh ls; ls",
    "ls() { sh evil.sh; }; ls",
    "enable -f ./evil.so x",
    "printf -v 'x[$(sh evil.sh)]' hi",
    "test -v 'x[$(sh evil.sh)]'",
    "declare -n a='x[$(sh evil.sh)]'; echo $a",
    "mapfile -C 'sh evil.sh' -c 1 a < notes.txt",
    "",
    " ",
    "é",
)


def prepare(workspace: Path) -> None:
    """Put everything into a workspace that the commands above need to do harm."""
    evil = workspace / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {workspace}/{PROOF}\n")
    evil.chmod(0o755)
    (workspace / "notes.txt").write_text("some notes\n")
    (workspace / "payload").write_text("x[$(sh evil.sh)]\n")
    (workspace / "list").write_text("notes.txt\0")
    (workspace / "folder").mkdir()
    (workspace / "link").symlink_to("/etc/passwd")
    (workspace / "link-to-root").symlink_to("/")
    # A program of the same name in the workspace.
    for name in ("ls", "bin/ls"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(evil.read_text())
        (workspace / name).chmod(0o755)
    (workspace.parent / "secret").write_text("the treasure")
    hooks = workspace / "template" / "hooks"
    hooks.mkdir(parents=True)
    (workspace / "conf" / "git").mkdir(parents=True)
    (workspace / "conf" / "git" / "config").write_text(f"[core]\n\tfsmonitor = {evil}\n")
    for folder in (workspace / "bare", workspace / ".git"):
        (folder / "objects").mkdir(parents=True)
        (folder / "refs").mkdir()
        (folder / "hooks").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / "config").write_text(f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {evil}\n")
