"""The proxy: what it understands, whom it reaches, and what it says about the rest."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Rejected
from holdfast.sandbox import Sandbox, SandboxKind, policy, profile, scrubbed
from holdfast.sandbox.launcher import PORT
from holdfast.sandbox.proxy import (
    CONNECTIONS_MAX,
    HEAD_MAX_BYTES,
    HostRules,
    Network,
    NetworkAccess,
    is_named,
    parse,
)
from tests import machine

CONFINING = pytest.mark.parametrize("kind", machine.CONFINING)

PATIENCE_S = 30


async def everywhere_is_loopback(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@asynccontextmanager
async def upstream() -> AsyncGenerator[tuple[int, list[bytes]]]:
    """Run a server that keeps the heads it was sent, and answers each with its first line."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        body = heads[-1].split(b"\r\n")[0]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heads


@asynccontextmanager
async def proxy(
    rules: HostRules, tmp_path: Path, local: Sequence[str] = (), own_port: int = 0
) -> AsyncGenerator[tuple[NetworkAccess, int]]:
    """Open network access, and hand it a listener as the launcher would; give out where that listens."""
    network = Network(tmp_path, everywhere_is_loopback, local, own_port=own_port)
    async with network.opened(rules) as access:
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            number = struct.pack("i", listener.fileno())
            out.sendmsg([b"1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, number)], 0, str(access.path))
            yield access, listener.getsockname()[1]


async def gone(access: NetworkAccess) -> None:
    while access.path.exists():  # noqa: ASYNC110 - Nobody tells of a file that is removed.
        await asyncio.sleep(0)


async def said(port: int, request: bytes, then: bytes = b"") -> bytes:
    """Return all that the proxy answers to a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if then:
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(then)
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return answer


def naming(*names: str) -> HostRules:
    return HostRules(allowed=lambda host, port: is_named(host, port, names))


async def test_an_allowed_host_is_reached_and_the_server_sees_an_ordinary_request(tmp_path: Path) -> None:
    """SECURITY 6: under the name that was allowed; what is between client and proxy stays there."""
    async with (
        upstream() as (there, heads),
        proxy(naming(f"shop.test:{there}"), tmp_path, [f"shop.test:{there}"]) as (access, port),
    ):
        head = f"GET http://shop.test:{there}/a?b=c HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\nA: b\r\n\r\n"
        assert (await said(port, head.encode())).endswith(b"\r\n\r\nGET /a?b=c HTTP/1.1")
        assert heads == [f"GET /a?b=c HTTP/1.1\r\nHost: shop.test:{there}\r\nA: b\r\nConnection: close\r\n\r\n".encode()]
        assert access.refused == set()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "shop.test", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"])
async def test_the_gateway_itself_is_reached_under_no_name_even_if_it_was_allowed(tmp_path: Path, name: str) -> None:
    """S4: the proxy has the gateway's user, which needs no key."""
    async with (
        upstream() as (there, heads),
        proxy(naming(f"{name}:{there}"), tmp_path, [f"{name}:{there}"], own_port=there) as (access, port),
    ):
        answer = await said(port, f"CONNECT {name}:{there} HTTP/1.1\r\n\r\n".encode())
        assert b"this is the gateway itself" in answer, answer
        assert (heads, len(access.refused)) == ([], 1)


async def test_a_tunnel_passes_bytes_on_as_they_are(tmp_path: Path) -> None:
    async with (
        upstream() as (there, heads),
        proxy(naming(f"shop.test:{there}"), tmp_path, [f"shop.test:{there}"]) as (_, port),
    ):
        answer = await said(port, f"CONNECT shop.test:{there} HTTP/1.1\r\n\r\n".encode(), then=b"HI / HTTP/1.1\r\n\r\n")
        assert answer.endswith(b"\r\n\r\nHI / HTTP/1.1")
        assert heads == [b"HI / HTTP/1.1\r\n\r\n"]


@pytest.mark.parametrize("form", ["CONNECT {} HTTP/1.1\r\n\r\n", "GET http://{}/ HTTP/1.1\r\n\r\n"])
async def test_a_host_that_nobody_allowed_is_refused_by_name_and_remembered(form: str, tmp_path: Path) -> None:
    """SECURITY 6, S3: model and person can be told what the command wanted."""
    async with upstream() as (there, heads), proxy(naming("shop.test"), tmp_path) as (access, port):
        place = f"evil.test:{there}"
        answer = await said(port, form.format(place).encode())
        assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert f"does not let this command reach {place}: it is not allowed yet; ask for it".encode() in answer
        assert (access.refused, heads) == ({place}, [])


@pytest.mark.parametrize(
    "name", ["inner.test", "127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]
)
async def test_an_allowed_name_that_leads_to_this_machine_is_refused(name: str, tmp_path: Path) -> None:
    """SECURITY 6: a name that was allowed for the internet does not open what is inside."""
    everything = HostRules(allowed=lambda _host, _port: True)
    async with upstream() as (there, heads), proxy(everything, tmp_path) as (access, port):
        answer = await said(port, f"CONNECT {name}:{there} HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 "), answer
        assert b"not on the public internet" in answer
        assert (heads, len(access.refused)) == ([], 1)


@pytest.mark.parametrize("port", [22, 25, 6379])
async def test_services_that_do_not_belong_to_the_web_are_not_reached(port: int, tmp_path: Path) -> None:
    async with proxy(HostRules(allowed=lambda _host, _port: True), tmp_path) as (_, at):
        assert b"is not a web port" in await said(at, f"CONNECT shop.test:{port} HTTP/1.1\r\n\r\n".encode())


async def test_loopback_is_reached_when_it_was_allowed_by_that_name(tmp_path: Path) -> None:
    """SECURITY 6: such as a server of the person's own."""
    async with upstream() as (there, heads):
        rules = HostRules.of([f"localhost:{there}"])
        async with proxy(rules, tmp_path) as (access, port):
            assert b" 200 OK" in await said(port, f"GET http://localhost:{there}/ HTTP/1.1\r\n\r\n".encode())
            assert access.direct == "127.0.0.1,::1"
        assert len(heads) == 1


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET https://shop.test/ HTTP/1.1\r\n\r\n",
        b"GET ftp://shop.test/ HTTP/1.1\r\n\r\n",
        b"GET http:// HTTP/1.1\r\n\r\n",
        b"GET http://user:word@shop.test/ HTTP/1.1\r\n\r\n",
        b"GET http://shop.test:0/ HTTP/1.1\r\n\r\n",
        b"GET http://shop.test:99999/ HTTP/1.1\r\n\r\n",
        b"GET http://shop.test/ HTTP/2\r\n\r\n",
        b"CONNECT shop.test HTTP/1.1\r\n\r\n",
        b"CONNECT shop.test:443/path HTTP/1.1\r\n\r\n",
        b"CONNECT [::1 HTTP/1.1\r\n\r\n",
        b"CONNECT shop.test:443 HTTP/1.1\r\nno header\r\n\r\n",
        b"CONNECT shop.test:443 HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET http://shop.test/ HTTP/1.1\r\nA: b\nB: c\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    ],
)
async def test_what_is_no_request_for_a_proxy_is_answered_with_400(request_: bytes, tmp_path: Path) -> None:
    async with proxy(HostRules(allowed=lambda _host, _port: True), tmp_path) as (access, port):
        assert (await said(port, request_)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert access.refused == set()


async def test_a_head_that_does_not_end_is_refused(tmp_path: Path) -> None:
    """SECURITY 12: limits on everything."""
    async with proxy(HostRules(), tmp_path) as (_, port):
        answer = await said(port, b"GET http://shop.test/ HTTP/1.1\r\nA: " + b"a" * 2 * HEAD_MAX_BYTES)
        assert answer.startswith(b"HTTP/1.1 431 ")


async def test_more_connections_than_allowed_are_refused(tmp_path: Path) -> None:
    """SECURITY 12."""
    async with proxy(HostRules(), tmp_path) as (_, port):
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
        assert (await said(port, b"")).startswith(b"HTTP/1.1 503 ")
        for _, writer in held:
            writer.close()


async def test_only_a_listener_is_taken_and_only_once(tmp_path: Path) -> None:
    """Access that was opened by its launcher takes nothing more."""
    async with Network(tmp_path).opened(HostRules()) as access:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out, socket.socket() as other:
            number = struct.pack("i", other.fileno())
            out.sendmsg([b"1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, number)], 0, str(access.path))
            await gone(access)
            with pytest.raises(OSError, match="No such file"):
                out.sendto(b"1", str(access.path))


async def test_a_door_that_was_never_used_leaves_nothing(tmp_path: Path) -> None:
    async with Network(tmp_path).opened(HostRules()) as access:
        assert access.path.exists()
    assert [*access.path.parent.iterdir()] == []


async def test_a_long_path_to_the_home_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    async with Network(deep).opened(HostRules()) as access:
        assert access.path.exists()
    assert not access.path.parent.exists() or not access.path.exists()


async def test_the_door_of_a_background_command_closes_when_it_has_ended(tmp_path: Path) -> None:
    network = Network(tmp_path)
    over = asyncio.Event()

    async def begun(access: NetworkAccess) -> NetworkAccess:
        return access

    async def ended(_: NetworkAccess) -> None:
        await over.wait()

    access = await network.keep(HostRules(), begun, ended)
    assert access.path.exists()
    over.set()
    await gone(access)
    other = await network.keep(HostRules(), begun, lambda _: asyncio.Event().wait())
    await network.close()
    assert not other.path.exists()


@pytest.mark.parametrize(
    ("host", "port", "names", "named"),
    [
        ("pypi.org", 443, ["pypi.org"], True),
        ("pypi.org", 80, ["pypi.org"], True),
        ("pypi.org", 8443, ["pypi.org"], False),
        ("pypi.org", 8443, ["pypi.org:8443"], True),
        ("pypi.org", 443, ["pypi.org:8443"], False),
        ("a.pypi.org", 443, ["pypi.org"], False),
        ("a.pypi.org", 443, ["*.pypi.org"], True),
        ("pypi.org", 443, ["*.pypi.org"], False),
        ("evilpypi.org", 443, ["*.pypi.org", "pypi.org"], False),
        ("pypi.org.evil.test", 443, ["*.pypi.org", "pypi.org"], False),
        ("::1", 443, ["[::1]"], True),
        ("::1", 8080, ["[::1]:8080"], True),
    ],
)
def test_a_host_is_named_exactly_or_by_its_domain(host: str, port: int, names: list[str], named: bool) -> None:
    assert is_named(host, port, names) is named


@given(st.binary(max_size=400))
def test_any_bytes_are_parsed_or_rejected(data: bytes) -> None:
    """Fuzzing: nothing but `Rejected` comes out, and what is understood names a host and a port."""
    try:
        head = parse(data)
    except Rejected:
        return
    assert head.host
    assert 0 < head.port < 65_536
    # Otherwise nobody could ask for it, and saying that it was refused would fail.
    assert policy.host(head.place)


@pytest.mark.parametrize("place", ["a..b:443", "a.-b:443", "a-.b:443", "[fe80::1%x]:443", "[fe80::1%x\ty]:443"])
def test_what_nobody_could_allow_is_no_host(place: str) -> None:
    with pytest.raises(Rejected):
        parse(f"CONNECT {place} HTTP/1.1".encode())


_WORDS = st.text("abz019.-:[]%@/?# \t\r\n\x00\u00e9", max_size=40)


@given(
    method=st.sampled_from(["GET", "CONNECT", "POST", "get", ""]),
    scheme=st.sampled_from(["http://", "HTTP://", "https://", "", "//"]),
    host=_WORDS,
    port=st.sampled_from(["", ":", ":80", ":0", ":65536", ":-1", ":٣", ":" + "9" * 5000]),
    path=_WORDS,
    headers=st.lists(_WORDS, max_size=3),
)
def test_what_is_forwarded_is_one_head_for_the_host_that_was_judged(
    method: str, scheme: str, host: str, port: str, path: str, headers: list[str]
) -> None:
    """Fuzzing: no line of the client's becomes a second request or another host."""
    data = f"{method} {scheme}{host}{port}{path} HTTP/1.1\r\n" + "\r\n".join(headers)
    try:
        head = parse(data.encode("utf-8"))
    except Rejected:
        return
    assert not set(head.host) & set(" /@?#%\r\n\t\0")
    assert policy.host(head.place)
    if head.tunnel:
        assert head.forwarded == b""
        return
    first, *lines = head.forwarded.split(b"\r\n")
    assert first.startswith(method.encode() + b" /")
    assert first.count(b" ") == 2
    assert [line for line in lines if line.lower().startswith(b"host:")] == [lines[0]]
    assert head.host.encode() in lines[0]
    assert lines[-2:] == [b"", b""]
    assert b"" not in lines[:-2]
    assert b"\n" not in head.forwarded.replace(b"\r\n", b"")


async def run(box: Sandbox, access: NetworkAccess, *argv: str) -> tuple[int | None, str]:
    whole, variables = box.wrap(argv, box.workspace, access)
    environment = {**scrubbed(os.environ), **variables}
    running = await asyncio.create_subprocess_exec(
        *whole, stdout=PIPE, stderr=STDOUT, env=environment, cwd=box.workspace, start_new_session=True
    )
    output, _ = await running.communicate()
    return running.returncode, output.decode()


@CONFINING
async def test_a_command_in_the_sandbox_reaches_what_was_allowed_and_nothing_else(kind: SandboxKind, tmp_path: Path) -> None:
    """SECURITY 6, S3: the variables that programs know lead to the proxy."""
    (tmp_path / "work").mkdir()
    box = await Sandbox.find("on", profile(tmp_path / "work"), kinds=[kind])
    script = (
        "import urllib.request, urllib.error, sys\n"
        "print(urllib.request.urlopen(sys.argv[1]).read())\n"
        "try:\n    urllib.request.urlopen('http://evil.test/')\n"
        "except urllib.error.HTTPError as error:\n    print(error.code, error.read().decode())\n"
    )
    async with upstream() as (there, _):
        name = f"shop.test:{there}"
        async with Network(tmp_path, everywhere_is_loopback, [name]).opened(naming(name)) as access:
            code, output = await run(box, access, "python3", "-c", script, f"http://{name}/x")
        assert (code, access.refused) == (0, {"evil.test:80"}), output
        assert "b'GET /x HTTP/1.1'" in output
        assert "403 Holdfast does not let this command reach evil.test:80" in output


@CONFINING
async def test_the_way_out_is_gone_when_the_gateway_is(kind: SandboxKind, tmp_path: Path) -> None:
    """S2: a command that outlives the gateway has nobody to ask."""
    (tmp_path / "work").mkdir()
    box = await Sandbox.find("on", profile(tmp_path / "work"), kinds=[kind])
    async with Network(tmp_path).opened(HostRules()) as access:
        pass
    code, output = await run(box, access, "python3", "-c", f"import socket; socket.create_connection(('127.0.0.1', {PORT}))")
    assert code == 1
    assert "Connection refused" in output
