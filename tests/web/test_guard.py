"""Who is let in over TCP: hosts, origins, and what is shown."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from holdfast.app.gateway import serve
from holdfast.app.rehearsal import check_locked
from holdfast.config import Config, ServerConfig, load
from holdfast.core import proofs
from holdfast.core.keys import Key, Login, Purpose, digest
from holdfast.errors import ConfigInvalid, Exposed, Rejected
from holdfast.ids import KeyId
from holdfast.operations.keys import KeyPlan, check
from holdfast.passwords import hashed
from holdfast.store.opening import open_store
from holdfast.web.answers import Refused
from holdfast.web.guard import FAILURES_PER_MINUTE, NONCE, PROOF, Asked, Door, Rules, check_origin
from holdfast.web.keyring import Keyring
from holdfast.web.nonces import Nonces
from holdfast.web.principal import ANONYMOUS, GUEST, OPERATOR, STRANGER, How, Principal
from tests.engine.world import ManualClock
from tests.web.house import Log, open_house
from tests.web.signing import Signing

KEY = "a-key-for-the-operator"
TENANT = "hf_a-key-of-a-tenant"
OPEN = Rules()
NAMED = Rules(host="10.0.0.7", allowed_hosts=("gateway.example", "Other.Example:8443"))
HOST = {"host": "127.0.0.1:8420"}
PORT = 8420
ROOT = "what all secrets of browsers are made of"
LOGIN = "the-login-of-a-browser"
ME = os.geteuid()
OTHER = ME + 1
WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Shelf:
    """Keys and logins in memory, with everything that a door asks of a store."""

    def __init__(self, *keys: Key, logins: Mapping[str, str] | None = None) -> None:
        self.tell: Callable[[str], None] = lambda _topic: None
        self.keys = list(keys)
        self.logins = {digest(login): owner for login, owner in (logins or {}).items()}

    async def list(self) -> list[Key]:
        return self.keys

    async def find(self, digest: str, now_ms: int) -> Login | None:
        if digest not in self.logins:
            return None
        owner = self.logins[digest]
        return Login(digest=digest, purpose=Purpose.BROWSER, owner=owner, created_at=0, expires_at=now_ms + 1)

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        self.tell = listener
        return lambda: None


def key(shown: str = TENANT, *scopes: str, owner: str = "alice", **more: int) -> Key:
    return Key(
        id=KeyId(f"key_{shown}"), name="", owner=owner, digest=digest(shown), scopes=scopes or ("api",), created_at=0, **more
    )


async def door(
    rules: Rules,
    shelf: Shelf | None = None,
    api_key: str = "",
    clock: ManualClock | None = None,
    nonces: Nonces | None = None,
) -> Door:
    shelf, clock = shelf or Shelf(), clock or ManualClock()
    keyring = Keyring(shelf, shelf, clock, api_key)  # type: ignore[arg-type]  # The shelf has what is asked of it.
    await keyring.load()
    rules = replace(rules, closed=bool(api_key))
    return Door(rules, keyring, shelf, clock, ROOT, nonces or Nonces())  # type: ignore[arg-type]


async def judged(
    way_in: Door,
    *,
    method: str = "GET",
    path: str = "/api/status",
    port: int = PORT,
    uid: int | None = ME,
    **headers: str,
) -> Principal:
    titled = {title.replace("_", "-"): value for title, value in headers.items()}
    return await way_in.judge(Asked(method=method, target=path, headers={**HOST, **titled}, port=port, uid=lambda: uid))


def signing(nonces: Nonces, login: str = LOGIN, port: int = PORT) -> Signing:
    return Signing({"login": login, "secret": proofs.secret_of(ROOT, login, port), "nonce": nonces.current})


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8420", "127.8.8.8"]
)
async def test_while_nothing_is_asked_for_this_machine_is_let_in_as_a_guest(host: str) -> None:
    assert await judged(await door(OPEN), host=host) == GUEST


async def test_whoever_listens_for_others_has_no_guests_whatever_is_left_to_ask_for() -> None:
    """SECURITY 1: the last key may be revoked while the gateway runs."""
    assert await judged(await door(NAMED)) == ANONYMOUS


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "gateway.example"},
        {"x_forwarded_for": "203.0.113.7"},
        {"x_forwarded_host": "gateway.example"},
        {"forwarded": "for=203.0.113.7"},
        {"x_real_ip": "203.0.113.7"},
        {"via": "1.1 caddy"},
    ],
)
async def test_nobody_is_a_guest_behind_a_proxy(headers: dict[str, str]) -> None:
    """SECURITY 1: a proxy on this machine speaks for everybody."""
    way_in = await door(Rules(allowed_hosts=("gateway.example",)))
    assert await judged(way_in) == GUEST
    assert await judged(way_in, **headers) == ANONYMOUS
    assert await judged(way_in, authorization="Bearer none", **headers) == STRANGER


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8420",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "[::2]:8420",
        "a@b",
        "127.0.0.1:8420@evil.example",
        "evil.example#127.0.0.1",
        "0.0.0.0",
        "0.0.0.0:8420",
        "2130706433",
        "127.1",
        "::ffff:7f00:1.evil.example",
    ],
)
@pytest.mark.parametrize("rules", [OPEN, NAMED], ids=["open", "named"])
async def test_a_name_that_only_leads_here_is_misdirected_on_every_route(rules: Rules, host: str) -> None:
    """SECURITY 2, DNS rebinding: the browser believes to speak to the page's own host."""
    way_in = await door(rules, api_key=KEY)
    for path in ("/", "/health", "/ready", "/api/sessions/x/events", "/api/sign-in", "/v1/models"):
        with pytest.raises(Refused) as refused:
            await judged(way_in, path=path, host=host, authorization=f"Bearer {KEY}")
        assert refused.value.status == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8420",
        "localhost",
        "10.0.0.7",
        "10.0.0.7:8420",
        "gateway.example",
        "GATEWAY.example:443",
        "other.example:8443",
    ],
)
async def test_the_gateway_answers_under_its_own_names(host: str) -> None:
    way_in = await door(NAMED, api_key=KEY)
    assert await judged(way_in, host=host, authorization=f"bearer {KEY}", origin=f"https://{host}") == OPERATOR


def test_a_page_behind_a_proxy_that_asks_under_another_name_is_our_own() -> None:
    """The proxy may speak to us as 127.0.0.1, while the browser knows its own name only."""

    def look(origin: str) -> None:
        check_origin(NAMED, Asked(method="GET", target="/api/me", headers={**HOST, "origin": origin}, port=PORT))

    for origin in ("https://gateway.example", "https://other.example:8443"):
        look(origin)
    for origin in ("https://gateway.example:8443", "https://other.example", "https://10.0.0.7", "https://evil.example"):
        with pytest.raises(Refused) as refused:
            look(origin)
        assert refused.value.status == 403


async def test_a_link_may_lead_to_the_page_from_anywhere_and_to_nothing_else() -> None:
    """The file that the browser is opened through is such a place; a frame in another page is none."""
    way_in = await door(OPEN, api_key=KEY)
    followed = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert await judged(way_in, path="/", **followed) == ANONYMOUS
    for change in (
        {"path": "/api/sessions"},
        {"method": "POST"},
        {"sec_fetch_dest": "iframe"},
        {"sec_fetch_mode": "no-cors"},
        {"host": "evil.example"},
    ):
        with pytest.raises(Refused):
            await judged(way_in, **{"path": "/", **followed, **change})


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "http://localhost:8420"},
        {"origin": "http://127.0.0.1"},
        {"origin": "http://127.0.0.1:8420.evil.example"},
        {"origin": "http://evil.example/127.0.0.1:8420"},
        {"origin": "127.0.0.1:8420"},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "odd"},
        {"sec_fetch_site": ""},
        {"sec_fetch_site": "cross-site", "origin": "http://127.0.0.1:8420"},
    ],
)
async def test_another_site_is_refused_whatever_it_knows(headers: dict[str, str]) -> None:
    """SECURITY 2: on every route and for every method, streams and whoever is signed in included."""
    nonces = Nonces()
    way_in = await door(OPEN, Shelf(logins={LOGIN: "local"}), KEY, nonces=nonces)
    paths = ("/", "/health", "/api/sessions/x/events", "/api/sign-in")
    for method, path in product(("GET", "HEAD", "OPTIONS", *WRITES), paths):
        signed = {"x_holdfast_proof": signing(nonces).proof(method, path)}
        for known in ({}, {"authorization": f"Bearer {KEY}"}, signed):
            await _is_refused(way_in, method, path, {**known, **headers})


async def _is_refused(way_in: Door, method: str, path: str, headers: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        await judged(way_in, method=method, path=path, **headers)
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "headers",
    [{}, {"sec_fetch_site": "same-origin", "origin": "http://127.0.0.1:8420"}, {"sec_fetch_site": "none"}],
)
async def test_the_own_page_and_tools_are_not_foreign(headers: dict[str, str]) -> None:
    assert await judged(await door(OPEN), **headers) == GUEST


@pytest.mark.parametrize(
    "authorization",
    ["", KEY, "Bearer", "Bearer ", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", "Bearer clé",
     f"Bearer {digest(KEY)}", f"Bearer {digest(TENANT)}"],
)  # fmt: skip
async def test_what_is_wrong_opens_nothing_where_something_is_asked_for(authorization: str) -> None:
    way_in = await door(OPEN, Shelf(key()), KEY)
    assert await judged(way_in, authorization=authorization) == STRANGER
    assert await judged(way_in, path="/ready", authorization=authorization) == ANONYMOUS


async def test_where_nothing_is_asked_for_any_word_is_a_guest_and_a_key_is_still_judged() -> None:
    """The client of OpenAI cannot help showing something."""
    way_in = await door(OPEN, Shelf(key(TENANT, revoked_at=1)))
    assert await judged(way_in, authorization="Bearer none") == GUEST
    assert await judged(way_in, authorization=f"Bearer {TENANT}") == STRANGER
    assert await judged(way_in, authorization="Bearer hf_never-made") == STRANGER
    for nothing in ("", "Bearer", "Bearer ", "Basic none"):
        assert await judged(way_in, authorization=nothing) == STRANGER


async def test_with_something_to_ask_for_nobody_comes_in_with_nothing() -> None:
    assert await judged(await door(OPEN, api_key=KEY)) == ANONYMOUS
    assert await judged(await door(OPEN, Shelf(key()))) == ANONYMOUS
    assert await judged(await door(OPEN, Shelf(key(TENANT, "admin")))) == ANONYMOUS
    # These open no part of the API, so nothing depends on them.
    assert await judged(await door(OPEN, Shelf(key(TENANT, "webhook:alerts")))) == GUEST
    assert await judged(await door(OPEN, Shelf(key(revoked_at=1)))) == GUEST


async def test_a_key_is_whose_it_is_and_opens_what_it_says() -> None:
    way_in = await door(OPEN, Shelf(key(), key("hf_other", "webhook:alerts", owner="bob"), key("hf_old", revoked_at=5)))
    alice = await judged(way_in, authorization=f"Bearer {TENANT}")
    assert (alice.owner, alice.scopes, alice.how) == ("alice", frozenset({"api"}), How.KEY)
    assert (alice.may("api"), alice.may("admin"), alice.may("webhook:alerts")) == (True, False, False)
    bob = await judged(way_in, authorization="Bearer hf_other")
    assert (bob.owner, bob.may("api"), bob.may("webhook:alerts"), bob.may("webhook:other")) == ("bob", False, True, False)
    assert await judged(way_in, authorization="Bearer hf_old") == STRANGER


async def test_a_key_that_asks_too_often_is_told_exactly_how_long_to_wait() -> None:
    """SECURITY, over the rate: 429 with Retry-After; what is refused uses nothing up."""
    clock = ManualClock()
    way_in = await door(OPEN, Shelf(key(rate_limit=3), key("hf_other")), clock=clock)
    for _ in range(3):
        await judged(way_in, authorization=f"Bearer {TENANT}")
    for _ in range(5):
        with pytest.raises(Refused) as refused:
            await judged(way_in, authorization=f"Bearer {TENANT}")
        assert (refused.value.status, refused.value.response().headers["retry-after"]) == (429, "20")
    # Another key has a rate of its own, or none.
    for _ in range(10):
        await judged(way_in, authorization="Bearer hf_other")
    await clock.advance(19_000)
    with pytest.raises(Refused) as refused:
        await judged(way_in, authorization=f"Bearer {TENANT}")
    assert refused.value.retry_after_s == 1
    await clock.advance(1_000)
    await judged(way_in, authorization=f"Bearer {TENANT}")


async def test_a_burst_of_wrong_keys_has_to_wait_and_the_right_one_does_not() -> None:
    clock = ManualClock()
    way_in = await door(OPEN, Shelf(key()), api_key=KEY, clock=clock)
    for _ in range(FAILURES_PER_MINUTE):
        assert (await judged(way_in, authorization="Bearer guess")).wait_s == 0
    assert (await judged(way_in, authorization="Bearer guess")).wait_s == 60 // FAILURES_PER_MINUTE
    assert await judged(way_in, authorization=f"Bearer {KEY}") == OPERATOR
    assert (await judged(way_in, authorization=f"Bearer {TENANT}")).owner == "alice"
    await clock.advance(60_000)
    assert (await judged(way_in, authorization="Bearer guess")).wait_s == 0


async def test_a_change_that_was_heard_of_counts_from_the_very_next_request_on() -> None:
    """Whoever was told that a key is revoked must not see it open anything any more."""
    shelf, clock = Shelf(), ManualClock()
    keyring = Keyring(shelf, shelf, clock)  # type: ignore[arg-type]  # The shelf has what is asked of it.
    running = asyncio.create_task(keyring.run())
    await asyncio.sleep(0)
    way_in = Door(OPEN, keyring, shelf, clock, ROOT, Nonces())  # type: ignore[arg-type]
    # Nothing lets the keyring's own task run between the change and the request.
    for keys, owner in (([key()], "alice"), ([key(revoked_at=1)], "local")):
        shelf.keys = keys
        shelf.tell("turns")
        shelf.tell("keys")
        assert (await judged(way_in, authorization=f"Bearer {TENANT}")).owner == owner
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_whoever_shows_nothing_is_known_by_their_user() -> None:
    """S4: loopback says only that a client is on this machine."""
    refusing, sharing = await door(OPEN), await door(replace(OPEN, guests="own"))
    for shown in ({}, {"authorization": "Bearer none"}):
        assert await judged(refusing, **shown) == GUEST
        assert await judged(sharing, **shown) == GUEST
        theirs = await judged(sharing, uid=OTHER, **shown)
        assert (theirs.owner, theirs.scopes, theirs.how) == (f"guest#{OTHER}", frozenset({"api"}), How.GUEST)
        # Nobody is trusted because it cannot be told who they are.
        for way_in, uid in ((refusing, OTHER), (refusing, None), (sharing, None)):
            assert (await judged(way_in, uid=uid, **shown)).scopes == frozenset()
    assert await judged(await door(replace(OPEN, guests="own"), Shelf(key())), uid=OTHER) == ANONYMOUS


async def test_no_key_can_be_made_for_the_owner_of_a_guest() -> None:
    with pytest.raises(Rejected):
        check(KeyPlan(owner=f"guest#{OTHER}"))


async def test_a_signature_is_that_of_one_request() -> None:
    """S2: over the method, the path with its query, the body and the port."""
    nonces = Nonces()
    way_in = await door(OPEN, Shelf(logins={LOGIN: "local"}), KEY, nonces=nonces)
    shown = signing(nonces).proof("POST", "/api/turns?session=a", b"{}")
    for change in (
        {"method": "PUT"},
        {"path": "/api/turns"},
        {"path": "/api/turns?session=b"},
        {"path": "/api/turns/?session=a"},
        {"port": PORT + 1},
        {"x_holdfast_proof": shown.replace(digest("{}"), digest("other"))},
        {"x_holdfast_proof": shown.replace(LOGIN, f"{LOGIN}-2")},
        {"x_holdfast_proof": shown.replace(nonces.current, "x" * len(nonces.current))},
        {"x_holdfast_proof": shown[:-1]},
        {"x_holdfast_proof": ""},
    ):
        asked = {"method": "POST", "path": "/api/turns?session=a", "port": PORT, "x_holdfast_proof": shown, **change}
        assert await judged(way_in, **asked) == STRANGER, change  # type: ignore[arg-type]
    found = await judged(way_in, method="POST", path="/api/turns?session=a", x_holdfast_proof=shown)
    assert (found.owner, found.how, found.operator, found.body) == ("local", How.BROWSER, True, digest("{}"))


async def test_a_login_alone_opens_nothing() -> None:
    way_in = await door(OPEN, Shelf(logins={LOGIN: "local"}), KEY)
    for headers in ({PROOF.replace("-", "_"): LOGIN}, {"cookie": f"holdfast_8420={LOGIN}"}, {"authorization": LOGIN}):
        assert (await judged(way_in, **headers)).scopes == frozenset()


async def test_a_signature_is_good_once() -> None:
    """S2: who has recorded a request cannot make it again, and the page is told how to."""
    nonces = Nonces()
    way_in = await door(OPEN, Shelf(logins={LOGIN: "local"}), KEY, nonces=nonces)
    shown = signing(nonces).proof("GET", "/api/status")
    assert (await judged(way_in, x_holdfast_proof=shown)).operator
    with pytest.raises(Refused) as refused:
        await judged(way_in, x_holdfast_proof=shown)
    assert (refused.value.status, refused.value.code) == (401, "sign_again")
    assert refused.value.response().headers[NONCE] == nonces.current


async def test_a_signature_is_good_in_one_process() -> None:
    """S2: what was signed while the gateway was down opens nothing in the one that comes back."""
    shown = signing(Nonces()).proof("GET", "/api/status")
    way_in = await door(OPEN, Shelf(logins={LOGIN: "local"}), KEY)
    with pytest.raises(Refused) as refused:
        await judged(way_in, x_holdfast_proof=shown)
    assert refused.value.code == "sign_again"


def test_what_is_remembered_of_signatures_is_bounded() -> None:
    nonces = Nonces(uses_max=6)
    first = nonces.current
    assert [nonces.use(first, str(each)) for each in (1, 2, 2, 3)] == [True, True, False, True]
    second = nonces.current
    # Requests that were on their way are still taken, and none of them twice.
    assert (second != first, nonces.use(first, "4"), nonces.use(first, "1")) == (True, True, False)
    assert all(nonces.use(second, str(each)) for each in range(3))
    assert (nonces.use(first, "5"), nonces.use(second, "5")) == (False, True)


def test_the_nonce_before_remembers_no_more_signatures_than_it_may() -> None:
    """A page that never hears of the new nonce signs with the one before, for as long as that is taken."""
    nonces = Nonces(uses_max=6)
    first = nonces.current
    taken = [nonces.use(first, str(each)) for each in range(100)]
    assert taken == [True] * 6 + [False] * 94
    assert nonces.use(nonces.current, "a fresh one")


async def test_a_key_wins_over_a_signature() -> None:
    nonces = Nonces()
    way_in = await door(OPEN, Shelf(key(), logins={LOGIN: "local"}), nonces=nonces)
    both = {"x_holdfast_proof": signing(nonces).proof("POST", "/api/status"), "authorization": f"Bearer {TENANT}"}
    assert (await judged(way_in, method="POST", **both)).owner == "alice"
    assert await judged(way_in, **{**both, "authorization": "Bearer wrong"}) == STRANGER


async def test_the_server_refuses_what_the_guard_refuses(home: Path) -> None:
    async with open_house(home) as house:
        for path in ("/health", "/api/sessions", "/nowhere"):
            foreign = await house.web.get(path, headers={"host": "evil.example"})
            assert (foreign.status_code, foreign.json()["error"]["code"]) == (421, "foreign_host")
            crossed = await house.web.get(path, headers={"origin": "https://evil.example"})
            assert (crossed.status_code, crossed.json()["error"]["code"]) == (403, "foreign_origin")
        # A guest may look, but only the operator may end the gateway.
        stopped = await house.web.post("/api/stop", json={})
        assert (stopped.status_code, stopped.json()["error"]["code"]) == (403, "operator_only")
        assert (await house.get("/ready"))["ready"]


async def test_a_configured_key_is_asked_for(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        assert (await house.get("/api/status"))["ready"]
        house.web.headers.pop("authorization")
        refused = await house.web.get("/api/status")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await house.web.get("/health")).status_code == 200
        assert (await house.web.get("/health", headers={"host": "evil.example"})).status_code == 421
        # Whoever can open the socket is the operator, key or not.
        assert (await house.services.gateway.status()).ready


async def test_the_socket_belongs_to_its_owner_alone_and_is_taken_away_at_the_end(home: Path) -> None:
    async with open_house(home) as house:
        mode = (home / "gateway.sock").stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
        await house.stop()
        assert not (home / "gateway.sock").exists()


async def test_a_home_too_deep_for_a_socket_works_all_the_same(home: Path) -> None:
    deep = home / ("deep" * 20) / ("deeper" * 10)
    async with open_house(deep) as house:
        assert (await house.services.gateway.status()).home == str(deep)


@pytest.mark.parametrize(
    ("server", "key"),
    [
        ('api_key = "short"', "server.api_key"),
        ('api_key = "change-me-please"', "server.api_key"),
        ('api_key = "your-api-key"', "server.api_key"),
        ('api_key = "xxxxxxxxxxxx"', "server.api_key"),
        ('api_key = "<a long secret>"', "server.api_key"),
        ('password = "a password as it is"', "server.password"),
        ('password = "scrypt$1$abc$def"', "server.password"),
        ("port = 70000", "server.port"),
    ],
)
def test_a_door_left_open_is_refused_with_its_line(tmp_path: Path, server: str, key: str) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f"[gateway]\n\n[server]\n{server}\n")
    with pytest.raises(ConfigInvalid, match=rf"holdfast\.toml:4: {key}: "):
        load(file, {})


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine can walk into."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        (f'[server]\napi_key = "{KEY}"', "server.api_key"),
        (f'[server]\npassword = "{hashed(KEY, bytes(16))}"', "server.password"),
        ('[store]\nurl = "postgresql://me:word@db/x"', "store.url"),
    ],
)
def test_a_secret_that_others_can_read_is_refused_with_what_to_do(public: Path, secret: str, key: str) -> None:
    """K1"""
    file = public / "holdfast.toml"
    file.write_text(secret + "\n")
    file.chmod(0o644)
    with pytest.raises(ConfigInvalid, match=rf"holdfast\.toml:2: {key}: .*chmod 600") as refused:
        load(file, {})
    assert KEY not in str(refused.value)
    file.chmod(0o600)
    load(file, {})
    # In a folder that nobody else can enter, the file's own mode does not matter.
    file.chmod(0o644)
    public.chmod(0o700)
    load(file, {})


def test_a_store_address_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text('[store]\nurl = "postgresql://[half/x"\n')
    with pytest.raises(ConfigInvalid, match=r"holdfast\.toml:2: store\.url: is not a valid URL"):
        load(file, {})


def test_a_secret_from_the_environment_needs_no_private_file(public: Path) -> None:
    file = public / "holdfast.toml"
    file.write_text("[server]\nport = 9000\n")
    assert load(file, {"HOLDFAST_SERVER__API_KEY": KEY}).server.api_key == KEY


@pytest.mark.parametrize("hosts", ['"gateway.example"', "[7]", "{ a = 1 }"])
def test_names_that_are_no_list_are_refused_with_their_line(tmp_path: Path, hosts: str) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f"[server]\nallowed_hosts = {hosts}\n")
    with pytest.raises(ConfigInvalid, match=r"holdfast\.toml:2: server\.allowed_hosts: "):
        load(file, {})
    assert load(tmp_path / "none.toml", {"HOLDFAST_SERVER__ALLOWED_HOSTS": '["a", "b"]'}).server.allowed_hosts == ("a", "b")


@pytest.mark.parametrize(
    "setting",
    [
        "gateway.drain_timeout = inf",
        "gateway.drain_timeout = nan",
        "gateway.drain_timeout = 1e306",
        "gateway.stall_timeout = -1",
        "gateway.max_running = inf",
        "gateway.max_running = 1.5",
        "gateway.max_running = 0",
        "sessions.idle_minutes = 1e18",
        "sessions.retention_days.web = 1e306",
    ],
)
def test_a_number_beyond_all_reason_is_refused_with_its_line(tmp_path: Path, setting: str) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f"{setting}\n")
    with pytest.raises(ConfigInvalid, match=rf"holdfast\.toml:1: {setting.partition(' ')[0]}: must be"):
        load(file, {})


EXPOSED = [
    ("0.0.0.0", {}, True),
    ("::", {}, True),
    ("10.0.0.7", {}, True),
    ("gateway.example", {}, True),
    ("0.0.0.0", {"api_key": KEY}, False),
    ("0.0.0.0", {"password": "a long enough one"}, False),
    ("127.0.0.1", {}, False),
    ("::1", {}, False),
    ("localhost", {}, False),
]


@pytest.mark.parametrize(("host", "more", "exposed"), EXPOSED)
async def test_others_are_let_near_only_where_something_is_asked_of_them(
    home: Path, host: str, more: dict[str, str], exposed: bool
) -> None:
    """SECURITY 1: the table of refusals at start, with nothing in the store."""
    locked = check_locked(ServerConfig(host=host, **more))
    store = await open_store("sqlite", home)
    try:
        if exposed:
            with pytest.raises(Exposed, match=r"server\.host: .*holdfast keys create"):
                await locked(store)
            # A key for webhooks opens nothing else, and one that was revoked nothing at all.
            await store.keys.add(key("hf_hook", "webhook:alerts"))
            await store.keys.add(key("hf_old", revoked_at=1))
            with pytest.raises(Exposed):
                await locked(store)
            await store.keys.add(key())
        await locked(store)
    finally:
        await store.close()


async def test_an_open_door_is_refused_before_anything_moves(home: Path) -> None:
    config = Config(server=ServerConfig(host="0.0.0.0", port=0))
    with pytest.raises(Exposed):
        await serve(config, home, Log())
    store = await open_store("sqlite", home)
    try:
        assert not await store.nodes.beats()
    finally:
        await store.close()


def test_another_host_is_allowed_with_a_key(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f'[server]\nhost = "0.0.0.0"\napi_key = "{KEY}"\n')
    assert load(file, {}).server == ServerConfig(host="0.0.0.0", api_key=KEY)
    assert Config().server == ServerConfig()
