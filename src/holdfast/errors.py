"""Every error Holdfast raises on purpose.

The family decides the answer.  Anything outside this tree is a bug: it crashes its task and the lease recovers the turn.

    HoldfastError
    ├── Rejected            the caller must change something: 4xx, exit 2
    │   ├── AccountRefused  a chat platform does not accept the token of an account
    │   ├── BadParameter    a parameter of the request is missing or cannot be used: 400
    │   ├── ConfigInvalid   the configuration is wrong: exit 78, with file and line
    │   │   ├── Exposed     others could reach the gateway, and nothing is asked of them
    │   │   └── KindUnusable  the package of a chat platform has a fault: its accounts stay closed
    │   ├── IllegalMove     the table of states has no such move: 409
    │   ├── KeyReused       the dedupe key came before with another body: 422
    │   ├── ModelRejected   the model will not take this request: it is not repeated
    │   │   ├── ContextTooLong  the conversation does not fit into the model
    │   │   └── ModelUnusable  its key, name or address is wrong: another model may answer
    │   ├── NotFound        no such thing, or not yours: 404
    │   ├── NotTrusted      it touches the machine, and the caller may not: 403
    │   ├── OutcomeUnknown  it is unknown whether it was done, and it is not repeated
    │   ├── OverQuota       a tenant has used up a quota: 429
    │   ├── QueueFull       the session has too many turns waiting: 429
    │   ├── Overridden      something else decides it: 409
    │   ├── Repeated        it came before with the same key, and was done then
    │   ├── ScopeMissing    the key of the caller does not cover it: 403
    │   ├── SessionBusy     the session is at an earlier message, and this one is not to wait: 409
    │   ├── TooLarge        more was sent than is taken at once: 413
    │   └── TooManyCommits  a tenant has too many commits of memory under way: 429
    ├── Stale               it was moved by another caller first: 409, reload
    ├── Unavailable         try again later: 503, back off
    │   ├── AccountTaken    another program receives the messages of a chat account
    │   ├── Damaged         the rows that it needs cannot be read or written; others can
    │   ├── DiskFull        no room for new work; what was accepted is safe
    │   ├── ModelUnavailable  the model did not answer, or not to the end: ask again, or another
    │   ├── NotReady        the gateway is starting or draining, or its store does not answer
    │   ├── NotRunning      no gateway runs in this home: exit 69
    │   └── StoreDown       the database does not answer
    │       └── Unconfirmed  it was lost while it committed: what was asked may have been done
    └── Fatal               this process must not go on
        ├── Owned           another process owns this home: exit 75
        ├── StoreBroken     the disk failed or the files were moved under us
        ├── StoreRefused    not ours to open: foreign file, newer schema, network filesystem
        │   └── StoreDamaged  the file is damaged so that nothing can be done with it
        └── NodeLost        the other nodes declared this one dead
"""

from __future__ import annotations


class HoldfastError(Exception):
    """The root: catch a family below it, never this."""


class Rejected(HoldfastError):
    """The caller must change something before asking again."""


class AccountRefused(Rejected):
    """A chat platform does not accept the token of an account."""


class BadParameter(Rejected):
    """A parameter of the request is missing or cannot be used; the message says which."""


class ConfigInvalid(Rejected):
    """The configuration is wrong; the message says where and what is allowed."""


class Exposed(ConfigInvalid):
    """Others could reach the gateway, and nothing is asked of them."""

    def __init__(self, host: str) -> None:
        advice = "set server.api_key or server.password, make a key with: holdfast keys create, or listen on 127.0.0.1"
        self.problem = f"{host!r} can be reached by others, who would need no key; {advice}"
        super().__init__(f"server.host: {self.problem}")


class KindUnusable(ConfigInvalid):
    """The package of a chat platform has a fault, which the message names.  Only its accounts stay closed."""


class IllegalMove(Rejected):
    """The table of states has no such move."""

    def __init__(self, subject: str, state: str, event: str) -> None:
        super().__init__(f"{subject} is {state}: it cannot {event}")
        self.state = state


class KeyReused(Rejected):
    """The dedupe key came before with another body."""

    def __init__(self, key: str, turn_id: str) -> None:
        super().__init__(f"key {key!r} was used before, with another body, for turn {turn_id}")
        self.turn_id = turn_id


class ModelRejected(Rejected):
    """The model will not take this request, however often it is sent."""


class ContextTooLong(ModelRejected):
    """The conversation does not fit into the model."""


class ModelUnusable(ModelRejected):
    """Nothing can be asked of this model until its settings or its account change; another model may answer."""


class NotFound(Rejected):
    """No such thing, or not yours."""


class NotTrusted(Rejected):
    """It touches the machine, and the caller may not."""


class OutcomeUnknown(Rejected):
    """It is unknown whether it was done, and repeating it could do it twice."""


class OverQuota(Rejected):
    """A tenant has used up a quota; the message says which, and what makes room."""


class QueueFull(Rejected):
    """The session has too many turns waiting already."""


class Overridden(Rejected):
    """Something else decides it, so it cannot be changed here."""


class Repeated(Rejected):
    """It came before with the same key, and was done then."""


class ScopeMissing(Rejected):
    """The key of the caller does not cover a scope."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"this key has not the scope {scope!r}")
        self.scope = scope


class SessionBusy(Rejected):
    """The session is at an earlier message, and this one is not to wait."""


class TooLarge(Rejected):
    """More was sent than is taken at once."""


class TooManyCommits(Rejected):
    """A tenant has too many commits of memory under way."""


class Stale(HoldfastError):
    """Another caller moved it first: what you hold is old."""


class Unavailable(HoldfastError):
    """Try again later, in `retry_after_s` where that was said; nothing was changed, or the same request again is safe."""

    def __init__(self, message: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AccountTaken(Unavailable):
    """Another program receives the messages of a chat account."""


class Damaged(Unavailable):
    """The store is damaged where this is kept; what is kept elsewhere is served."""

    def __init__(self, found: object) -> None:
        super().__init__(f"the store is damaged where this is kept ({found}); run: holdfast doctor")


class DiskFull(Unavailable):
    """No room for new work; everything accepted so far is safe."""


class ModelUnavailable(Unavailable):
    """The model did not answer, or not to the end."""


class NotReady(Unavailable):
    """The gateway takes no new work now; the message says why."""


class NotRunning(Unavailable):
    """No gateway runs in this home."""

    def __init__(self, home: object) -> None:
        super().__init__(f"no gateway runs in {home}; start one with `holdfast serve`")


class StoreDown(Unavailable):
    """The database does not answer."""


class Unconfirmed(StoreDown):
    """The database was lost while it committed: what was asked may have been done or not."""


class Fatal(HoldfastError):
    """This process must stop: going on could lose or repeat work."""


class Owned(Fatal):
    """Another process owns this home."""

    def __init__(self, path: str, pid: int | None) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{owner} already owns {path}; stop it first, or choose another --home")
        self.pid = pid


class StoreBroken(Fatal):
    """The disk failed, or the files were moved under us."""


class StoreRefused(Fatal):
    """The store is not ours to open; it was left untouched."""


class StoreDamaged(StoreRefused):
    """The file of the store is damaged; it was left as it is."""

    def __init__(self, path: object, found: object) -> None:
        super().__init__(
            f"{path} is damaged ({found}) and was left as it is; "
            "keep a copy of it and of its -wal, and restore the last backup; holdfast doctor says more"
        )


class NodeLost(Fatal):
    """The other nodes declared this one dead; its turns are theirs now."""
