"""Credentials: keys of programs, logins of people, and secrets that Holdfast generated itself."""

from __future__ import annotations

from holdfast.core.keys import Key, Login
from holdfast.errors import NotFound
from holdfast.ids import KeyId
from holdfast.store import removal, rows
from holdfast.store.database import Database, Params, Row, Run, Transaction

_KEY = "id, name, owner, digest, scopes, created_at, rate_limit, revoked_at"
_ADD_KEY = f"""
    INSERT INTO keys ({_KEY}) VALUES (:id, :name, :owner, :digest, :scopes, :created_at, :rate_limit, :revoked_at)
"""
_KEYS = f"SELECT {_KEY} FROM keys ORDER BY created_at, id"
_REVOKE = f"UPDATE keys SET revoked_at = COALESCE(revoked_at, :now) WHERE id = :id RETURNING {_KEY}"

_LOGIN = "digest, purpose, owner, created_at, expires_at"
_ADD_LOGIN = f"INSERT INTO logins ({_LOGIN}) VALUES (:digest, :purpose, :owner, :created_at, :expires_at)"
# Looking and taking are one statement, so that of two concurrent requests only one gets the code.
_TAKE = f"""
    DELETE FROM logins WHERE digest = :digest AND purpose = 'code' AND expires_at > :now RETURNING {_LOGIN}
"""
_FIND = f"SELECT {_LOGIN} FROM logins WHERE digest = :digest AND purpose = 'cookie' AND expires_at > :now"
_REMOVE = "DELETE FROM logins WHERE digest = :digest RETURNING digest"

_KEEP = "INSERT INTO secrets (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"
_KEPT = "SELECT value FROM secrets WHERE name = :name"


class KeyStore:
    """Keys that were given out, revoked ones included."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: Key) -> None:
        """Store a key.  Raises `Stale` if its id or its digest is taken."""
        params: Params = {
            "id": key.id,
            "name": key.name,
            "owner": key.owner,
            "digest": key.digest,
            "scopes": rows.encode(key.scopes),
            "created_at": key.created_at,
            "rate_limit": key.rate_limit,
            "revoked_at": key.revoked_at,
        }
        await self._database.write(lambda: _run(_ADD_KEY, params), wakes=lambda _: ("keys",))

    async def list(self) -> list[Key]:
        """Return all keys, the oldest first."""
        return [_key(row) for row in await self._database.read(lambda: _run(_KEYS, {}))]

    async def revoke(self, key_id: KeyId, now_ms: int) -> Key:
        """Revoke a key.  A key that is revoked already keeps its time.  Raises `NotFound`."""
        params = {"id": key_id, "now": now_ms}
        revoked = await self._database.write(lambda: _run(_REVOKE, params), wakes=lambda _: ("keys",))
        if not revoked:
            raise NotFound(f"there is no key {key_id}")
        return _key(revoked[0])


class LoginStore:
    """Browsers that people have signed in with, and the codes to do so."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, login: Login) -> None:
        """Store a login.  Raises `Stale` if its digest is taken."""
        params: Params = {
            "digest": login.digest,
            "purpose": login.purpose.value,
            "owner": login.owner,
            "created_at": login.created_at,
            "expires_at": login.expires_at,
        }
        await self._database.write(lambda: _run(_ADD_LOGIN, params))

    async def take(self, digest: str, now_ms: int) -> Login | None:
        """Use up the code with this digest and return it; None when it is unknown, used or expired."""
        taken = await self._database.write(lambda: _run(_TAKE, {"digest": digest, "now": now_ms}))
        return _login(taken[0]) if taken else None

    async def find(self, digest: str, now_ms: int) -> Login | None:
        """Return the browser session with this digest, never a code; None when it is unknown or expired."""
        found = await self._database.read(lambda: _run(_FIND, {"digest": digest, "now": now_ms}))
        return _login(found[0]) if found else None

    async def remove(self, digest: str) -> bool:
        """Sign a browser out, or withdraw a code; False when the digest is unknown."""
        return bool(await self._database.write(lambda: _run(_REMOVE, {"digest": digest})))

    async def forget(self, now_ms: int) -> int:
        """Delete what has expired."""
        return await removal.forget(self._database, "logins", ("digest",), "expires_at <= :now", {"now": now_ms})


class SecretStore:
    """Secrets that Holdfast generated itself, and that must be the same after a restart and on every node."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_or_add(self, name: str, value: str) -> str:
        """Return the secret of a name; `value` becomes the secret if there is none yet."""
        return await self._database.write(lambda: _get_or_add(name, value))


def _get_or_add(name: str, value: str) -> Transaction[str]:
    yield Run(_KEEP, {"name": name, "value": value})
    ((kept,),) = yield Run(_KEPT, {"name": name})
    return kept


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


_key = rows.reader(Key, _KEY, scopes=rows.texts)
_login = rows.reader(Login, _LOGIN)
