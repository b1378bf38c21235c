"""The way out leads to the public internet, by name to more, and to exactly the address that was checked."""

from __future__ import annotations

import contextlib
import gzip
import ipaddress
import itertools
import ssl
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from holdfast.egress import AddressScope, Egress, Guard, GuardedTransport, literal, scope_of
from holdfast.errors import Rejected, Unavailable
from tests.http_server import Request
from tests.tools.servers import Reply, serving

PUBLIC = "93.184.216.34"
KIB = 1024


class Names:
    """A resolver with a script for each name; the last answer is given again."""

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self.asked: list[str] = []
        self._names = {
            name.replace("_", "."): iter([*script, *itertools.repeat(script[-1], 9)]) for name, script in names.items()
        }

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._names:
            raise OSError("Name or service not known")
        return next(self._names[host])


@pytest.mark.parametrize(
    ("address", "led"),
    [
        (PUBLIC, AddressScope.PUBLIC),
        ("8.8.8.8", AddressScope.PUBLIC),
        ("2606:2800:220:1:248:1893:25c8:1946", AddressScope.PUBLIC),
        ("64:ff9b::808:808", AddressScope.PUBLIC),
        ("127.0.0.1", AddressScope.LOCAL),
        ("127.255.255.254", AddressScope.LOCAL),
        ("10.0.0.1", AddressScope.LOCAL),
        ("172.16.0.1", AddressScope.LOCAL),
        ("172.31.255.255", AddressScope.LOCAL),
        ("192.168.1.1", AddressScope.LOCAL),
        ("100.64.0.1", AddressScope.LOCAL),
        ("::1", AddressScope.LOCAL),
        ("fd12:3456::1", AddressScope.LOCAL),
        ("::ffff:127.0.0.1", AddressScope.LOCAL),
        ("::ffff:10.0.0.1", AddressScope.LOCAL),
        ("::127.0.0.1", AddressScope.LOCAL),
        ("64:ff9b::7f00:1", AddressScope.LOCAL),
        ("64:ff9b:1::a00:1", AddressScope.LOCAL),
        ("2002:7f00:1::", AddressScope.LOCAL),
        ("0.0.0.0", AddressScope.FORBIDDEN),
        ("0.1.2.3", AddressScope.FORBIDDEN),
        ("169.254.169.254", AddressScope.FORBIDDEN),
        ("169.254.0.1", AddressScope.FORBIDDEN),
        ("168.63.129.16", AddressScope.FORBIDDEN),
        ("192.0.0.192", AddressScope.FORBIDDEN),
        ("192.0.2.1", AddressScope.FORBIDDEN),
        ("192.88.99.1", AddressScope.FORBIDDEN),
        ("198.18.0.1", AddressScope.FORBIDDEN),
        ("224.0.0.1", AddressScope.FORBIDDEN),
        ("239.255.255.255", AddressScope.FORBIDDEN),
        ("240.0.0.1", AddressScope.FORBIDDEN),
        ("255.255.255.255", AddressScope.FORBIDDEN),
        ("::", AddressScope.FORBIDDEN),
        ("fe80::1", AddressScope.FORBIDDEN),
        ("fe80::1%eth0", AddressScope.FORBIDDEN),
        ("fec0::1", AddressScope.FORBIDDEN),
        ("ff02::1", AddressScope.FORBIDDEN),
        ("fd00:ec2::254", AddressScope.FORBIDDEN),
        ("2001:db8::1", AddressScope.FORBIDDEN),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", AddressScope.FORBIDDEN),
        ("100::1", AddressScope.FORBIDDEN),
        ("::ffff:169.254.169.254", AddressScope.FORBIDDEN),
        ("64:ff9b::a9fe:a9fe", AddressScope.FORBIDDEN),
        ("2002:a9fe:a9fe::1", AddressScope.FORBIDDEN),
    ],
)
def test_every_address_leads_somewhere_known(address: str, led: AddressScope) -> None:
    assert scope_of(ipaddress.ip_address(address)) is led


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0X7F.0.0.0x1"],
)
def test_an_address_is_one_in_every_spelling(host: str) -> None:
    assert literal(host) == ipaddress.ip_address("127.0.0.1")


@pytest.mark.parametrize("host", ["example.com", "1.2.3.4.5", "0x7g.1", "", ":::ffff", "999999999999"])
def test_a_name_is_no_address(host: str) -> None:
    assert literal(host) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.0.0.1./",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://localhost.localdomain/",
        "http://127.0.0.1.nip.example/",
        "http://mixed.example/",
        "http://inside.example/",
        "http://six.example/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.example/computeMetadata/v1/",
        "http://0/",
        "http://0.0.0.0:8420/",
        "http://①②⑦.⓪.⓪.①/",
        "http://user:secret@public.example/",
        "http://user@public.example/",
        "http://public.example@127.0.0.1/",
        "http://public.example:0/",
        "http://public.example:22/",
        "http://public.example:25/",
        "http://public.example:6379/",
        "ftp://public.example/",
        "file:///etc/passwd",
        "gopher://public.example/",
        "javascript:alert(1)",
        "//public.example/",
        "public.example",
        "http:///path",
        "http://",
        "http://public.example:99999/",
        "http://[::1",
        "http://exa mple/",
        "http://%31%32%37.0.0.1/",
        "http://public%2eexample/",
        "http://public.example\\@127.0.0.1/",
        "",
    ],
)
async def test_what_does_not_lead_out_is_refused(url: str) -> None:
    names = Names(
        localhost=[["127.0.0.1", "::1"]],
        localhost_localdomain=[["127.0.0.1"]],
        mixed_example=[[PUBLIC, "10.0.0.7"]],
        inside_example=[["192.168.0.2"]],
        six_example=[["::ffff:10.1.1.1"]],
        metadata_example=[["169.254.169.254"]],
        public_example=[[PUBLIC]],
        **{"127_0_0_1_nip_example": [["127.0.0.1"]]},
    )
    egress = Egress(Guard(resolver=names), timeout_s=1)
    with pytest.raises(Rejected):
        await egress.request("GET", url)
    await egress.close()


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("http://public.example/", [PUBLIC]),
        ("https://PUBLIC.example./a?b", [PUBLIC]),
        ("http://public.example:8080/", [PUBLIC]),
        (f"http://{PUBLIC}/", [PUBLIC]),
        ("http://[2606:2800:220:1:248:1893:25c8:1946]/", ["2606:2800:220:1:248:1893:25c8:1946"]),
    ],
)
async def test_what_leads_out_is_pinned_to_its_address(url: str, addresses: list[str]) -> None:
    assert await Guard(resolver=Names(public_example=[[PUBLIC]])).addresses(httpx2.URL(url)) == addresses


@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        ("inside.example", "http://inside.example/", True),
        ("inside.example", "http://INSIDE.example.:8080/", True),
        ("inside.example:8080", "http://inside.example:8080/", True),
        ("inside.example:8080", "http://inside.example:8081/", False),
        ("inside.example:22", "http://inside.example:22/", True),
        ("inside.example", "http://inside.example:22/", False),
        ("inside.example", "http://other.inside.example/", False),
        ("127.0.0.1", "http://127.0.0.1/", True),
        ("127.0.0.1", "http://inside.example/", False),
        ("[::1]:8080", "http://[::1]:8080/", True),
        ("::1", "http://[::1]:8080/", True),
        ("metadata.example", "http://metadata.example/", False),
        ("169.254.169.254", "http://169.254.169.254/", False),
    ],
)
async def test_local_addresses_are_reached_by_allowed_names_only(allowed: str, url: str, is_allowed: bool) -> None:
    """Whatever is allowed by name, the machinery of a cloud stays out of reach."""
    local, metadata = [["10.0.0.1"]], [["169.254.169.254"]]
    names = Names(inside_example=local, other_inside_example=local, metadata_example=metadata)
    guard = Guard([allowed], names)
    if is_allowed:
        assert await guard.addresses(httpx2.URL(url))
    else:
        with pytest.raises(Rejected):
            await guard.addresses(httpx2.URL(url))


async def test_the_address_that_was_checked_is_the_one_that_is_used() -> None:
    """A name that points elsewhere a moment later changes nothing: it is asked for once, and the answer is pinned."""
    async with serving(lambda asked: Reply(b"here")) as here:
        names = Names(inside_example=[["127.0.0.1"], ["127.0.0.2"]])
        egress = Egress(Guard([f"inside.example:{here.port}"], names))
        answer = await egress.request("GET", here.url(host="inside.example"))
        await egress.close()
    assert (answer.body, names.asked) == (b"here", ["inside.example"])
    assert here.asked[0].headers["host"] == f"inside.example:{here.port}"


async def test_a_name_that_turns_inwards_is_refused_the_next_time() -> None:
    names = Names(public_example=[[PUBLIC], ["127.0.0.1"]])
    guard = Guard(resolver=names)
    assert await guard.addresses(httpx2.URL("http://public.example/")) == [PUBLIC]
    with pytest.raises(Rejected, match=r"public\.example is 127\.0\.0\.1"):
        await guard.addresses(httpx2.URL("http://public.example/"))


@pytest.mark.parametrize(
    "where",
    [
        "http://localhost:1/",
        "http://169.254.169.254/",
        "//127.0.0.2:1/",
        "file:///etc/passwd",
        "http://u:p@inside.example/",
        "http://[::1",
    ],
)
async def test_every_redirect_is_checked(where: str) -> None:
    async with serving(lambda asked: Reply(status="302 Found", headers={"Location": where})) as there:
        egress = Egress(
            Guard([f"inside.example:{there.port}"], Names(inside_example=[["127.0.0.1"]], localhost=[["127.0.0.1"]]))
        )
        with pytest.raises(Rejected):
            await egress.request("GET", there.url(host="inside.example"))
        await egress.close()
    assert len(there.asked) == 1


async def test_redirects_are_followed_so_far_and_keys_stay_behind() -> None:
    async with serving(lambda asked: Reply(b"end")) as end:

        def script(asked: Request) -> Reply:
            onward = {"/a": "/b", "/b": end.url("/c", host="other.example")}
            return Reply(status="302 Found", headers={"Location": onward[asked.path]})

        async with serving(script) as start:
            allowed = [f"inside.example:{start.port}", f"other.example:{end.port}"]
            names = Names(inside_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
            egress = Egress(Guard(allowed, names))
            answer = await egress.request("GET", start.url("/a", host="inside.example"), headers={"X-Key": "secret"})
            with pytest.raises(Rejected, match="more than 1 times"):
                await egress.request("GET", start.url("/a", host="inside.example"), redirects_max=1)
            await egress.close()
    assert (answer.body, answer.url) == (b"end", end.url("/c", host="other.example"))
    assert [asked.headers.get("x-key") for asked in start.asked[:2]] == ["secret", "secret"]
    assert "x-key" not in end.asked[0].headers


async def test_an_endless_answer_is_cut() -> None:
    async with serving(lambda asked: Reply(b"x" * KIB, endless=True)) as there:
        egress = Egress(Guard([f"127.0.0.1:{there.port}"]))
        answer = await egress.request("GET", there.url(), bytes_max=10 * KIB)
        await egress.close()
    assert (len(answer.body), answer.cut) == (10 * KIB, True)


async def test_a_compressed_bomb_does_not_go_off() -> None:
    bomb = gzip.compress(b"\0" * (64 * KIB * KIB), compresslevel=9)
    async with serving(lambda asked: Reply(bomb, headers={"Content-Encoding": "gzip"})) as there:
        egress = Egress(Guard([f"127.0.0.1:{there.port}"]))
        answer = await egress.request("GET", there.url(), bytes_max=100 * KIB)
        await egress.close()
    assert (len(answer.body), answer.cut) == (100 * KIB, True)


async def test_what_comes_behind_the_end_of_compressed_content_is_not_read() -> None:
    """S7: a decoder would keep all of it, however little the answer may hold, and copy it again for every piece."""
    content = gzip.compress(b"content")
    body = b"%x\r\n%b\r\n" % (len(content), content) + b"10000\r\n%b\r\n" % (b"x" * 64 * KIB)
    headers = {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
    async with serving(lambda asked: Reply(body, headers=headers, endless=True)) as there:
        egress = Egress(Guard([f"127.0.0.1:{there.port}"]), timeout_s=5)
        answer = await egress.request("GET", there.url(), bytes_max=100 * KIB)
        await egress.close()
    assert (answer.body, answer.cut) == (b"content", False)


@pytest.mark.parametrize("window", [-15, 15], ids=["bare", "with a header"])
async def test_content_may_be_deflated_in_both_ways_that_servers_use(window: int) -> None:
    content = b"content " * KIB
    packer = zlib.compressobj(wbits=window)
    body = packer.compress(content) + packer.flush()
    async with serving(lambda asked: Reply(body, headers={"Content-Encoding": "deflate"})) as there:
        egress = Egress(Guard([f"127.0.0.1:{there.port}"]))
        answer = await egress.request("GET", there.url())
        await egress.close()
    assert answer.body == content


async def test_what_is_compressed_twice_is_refused() -> None:
    body = gzip.compress(gzip.compress(b"x" * KIB))
    async with serving(lambda asked: Reply(body, headers={"Content-Encoding": "gzip, gzip"})) as there:
        egress = Egress(Guard([f"127.0.0.1:{there.port}"]))
        with pytest.raises(Rejected, match="more than once"):
            await egress.request("GET", there.url())
        await egress.close()


async def test_garbage_that_calls_itself_compressed_is_a_failure_that_says_so() -> None:
    async with serving(lambda asked: Reply(b"not gzip", headers={"Content-Encoding": "gzip"})) as there:
        egress = Egress(Guard([f"127.0.0.1:{there.port}"]))
        with pytest.raises(Unavailable, match="cannot be read"):
            await egress.request("GET", there.url())
        await egress.close()


async def test_a_server_that_stalls_is_left() -> None:
    async with serving(lambda asked: Reply(b"slow", hangs=True)) as there:
        egress = Egress(Guard([f"127.0.0.1:{there.port}"]), timeout_s=0.2)
        with pytest.raises(Unavailable, match="did not answer"):
            await egress.request("GET", there.url())
        await egress.close()


async def test_nobody_there_is_said_plainly() -> None:
    async with serving(lambda asked: Reply()) as gone:
        pass
    egress = Egress(Guard([f"127.0.0.1:{gone.port}"]))
    with pytest.raises(Unavailable, match="cannot be read"):
        await egress.request("GET", gone.url())
    with pytest.raises(Unavailable, match=r"nowhere\.example has no address"):
        await Egress(Guard(resolver=Names())).request("GET", "http://nowhere.example/")
    await egress.close()


async def test_the_next_address_is_tried_where_the_first_is_dead() -> None:
    async with serving(lambda asked: Reply(b"second")) as there:
        names = Names(inside_example=[["127.0.0.99", "127.0.0.1"]])
        egress = Egress(Guard([f"inside.example:{there.port}"], names))
        answer = await egress.request("GET", there.url(host="inside.example"))
        await egress.close()
    assert answer.body == b"second"


@pytest.mark.parametrize(
    ("host", "vouched", "is_right"),
    [("inside.example", True, True), ("other.example", True, False), ("inside.example", False, False)],
)
async def test_a_certificate_is_checked_against_the_name_and_not_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, vouched: bool, is_right: bool
) -> None:
    """A pinned connection still proves who it is: the name goes into the handshake, and the certificate must be its own."""
    certificate, key = _self_signed(tmp_path)
    if vouched:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    seen: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    async with serving(lambda asked: Reply(b"hello"), context=context) as there:
        names = Names(inside_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
        egress = Egress(Guard([f"{host}:{there.port}"], names))
        with contextlib.nullcontext() if is_right else pytest.raises(Unavailable, match=r"(?i)certificate"):
            assert (await egress.request("GET", there.url(host=host, scheme="https"))).body == b"hello"
        await egress.close()
    assert seen == [host]
    assert len(there.asked) == int(is_right)


async def test_any_client_can_go_through_the_guard() -> None:
    async with serving(lambda asked: Reply(b"hello")) as there:
        guard = Guard([f"inside.example:{there.port}"], Names(inside_example=[["127.0.0.1"]]))
        async with httpx2.AsyncClient(transport=GuardedTransport(guard)) as client:
            assert (await client.get(there.url(host="inside.example"))).text == "hello"
            with pytest.raises(Rejected):
                await client.get("http://169.254.169.254/")


async def test_connections_are_kept_to_the_only_host_that_is_reached() -> None:
    """Connections are pooled by address, so a kept one must never carry a request for another name."""
    async with serving(lambda asked: Reply(b"hello")) as there:
        egress = Egress.to(there.url(), keeps=True)
        assert (await egress.request("GET", there.url())).body == b"hello"
        with pytest.raises(Rejected, match=r"only 127\.0\.0\.1 is asked here, not localhost"):
            await egress.request("GET", there.url(host="localhost"))
        await egress.close()
    assert len(there.asked) == 1


def _self_signed(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "inside.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, secret.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("inside.example")]), critical=False)
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key
