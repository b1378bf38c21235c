"""The child process: runs one call after the other until its input ends.

It has no open files but its pipes, no environment, little memory, and a lower priority than the gateway.  If the gateway
dies during a call, the limit on CPU time ends the child.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys

import msgspec

from holdfast.offload.function import HEAD_BYTES, OUT_OF_MEMORY, OUTPUT_MAX_BYTES, OffloadCall, OffloadReply, failure, find

MEMORY_MAX_BYTES = 1024 * 1024 * 1024
FILES_MAX = 65_536
NICENESS = 5
# A service manager may signal every process of the gateway, but a turn that is still draining needs its call's result.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_decoder = msgspec.msgpack.Decoder(OffloadCall)
_encoder = msgspec.msgpack.Encoder()


def main() -> None:
    # Some event loops leak their file descriptors to child processes.
    os.closerange(3, FILES_MAX)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    for limit, most in ((resource.RLIMIT_AS, MEMORY_MAX_BYTES), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        # Not every system supports every limit.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    # The first frame says that the child is ready, so that its start does not count towards a call's timeout.
    _write(b"")
    while head := sys.stdin.buffer.read(HEAD_BYTES):
        call = _decoder.decode(sys.stdin.buffer.read(int.from_bytes(head, "big")))
        _limit_cpu(call.cpu_s)
        _write(_encoder.encode(_run(call)))


def _limit_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds, hard))


def _run(call: OffloadCall) -> OffloadReply:
    try:
        found = find(call.function)
        argument, _ = found.types()
        result = _encoder.encode(found(msgspec.msgpack.decode(call.argument, type=argument)))
    except MemoryError:
        return OffloadReply(error=OUT_OF_MEMORY)
    except Exception as error:  # The edge of the process: the parent raises or logs it.
        return failure(error)
    if len(result) > OUTPUT_MAX_BYTES:
        return OffloadReply(error=OUT_OF_MEMORY)
    return OffloadReply(result=result)


def _write(content: bytes) -> None:
    sys.stdout.buffer.write(len(content).to_bytes(HEAD_BYTES, "big") + content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
