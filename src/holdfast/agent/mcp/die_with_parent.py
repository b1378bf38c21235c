"""Runs a command that dies with its parent process, so that a gateway killed with -9 leaves no server behind.

It is run as a script, `python -I -S die_with_parent.py PID COMMAND…`, and replaces itself with the command.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent died before the death signal was set.
        sys.exit("the gateway has ended")
    # Python ignores SIGPIPE, and the command would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - The operator's own command, with no shell.
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
