"""Every way in which a model server fails, played by a real one: bounded, named, and without a secret."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from holdfast.agent.models.client import ModelClient
from holdfast.agent.models.failures import ModelEndpoint, retry_after_s
from holdfast.agent.models.openai import OpenAI
from holdfast.agent.models.port import Model, TextDelta
from holdfast.errors import ContextTooLong, HoldfastError, ModelRejected, ModelUnavailable, ModelUnusable
from tests.models.scenes import FACTS, FORMATS, KEY, heard, request, scene, text_of
from tests.models.servers import ModelServer


async def failure(script: str, format_: str = "openai", *, stall_timeout_s: float = 5) -> HoldfastError:
    """Return the error that a script ends in."""
    async with scene(script) as here:
        with pytest.raises(HoldfastError) as raised:
            await heard(here.model(format_, stall_timeout_s=stall_timeout_s), "hi")
    assert KEY not in str(raised.value)
    return raised.value


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("status 401", ModelUnusable, "check model.api_key"),
        ("status 403", ModelUnusable, "check model.api_key"),
        ("status 404", ModelUnusable, "check model.name and model.base_url"),
        ("status 402", ModelUnusable, "no credit"),
        ("says 429 You exceeded your current quota, please check your plan", ModelUnusable, "no credit"),
        ("says 400 Your credit balance is too low", ModelUnusable, "no credit"),
        ("status 301 location https://elsewhere.example/", ModelUnusable, "model.base_url"),
        ("status 400", ModelRejected, "refuses this request"),
        ("status 422", ModelRejected, "refuses this request"),
        ("status 413", ContextTooLong, "too long"),
        ("status 429", ModelUnavailable, "429"),
        ("status 500", ModelUnavailable, "500"),
        ("status 529", ModelUnavailable, "529"),
        ("html", ModelUnusable, "web page"),
        ("say half; cut", ModelUnavailable, "cut"),
        ("cut", ModelUnavailable, "cut"),
        ("garbage 6", ModelUnavailable, "malformed"),
        ("say half; error overloaded_error", ModelUnavailable, "overloaded_error"),
        ("error api_error", ModelUnavailable, "api_error"),
        ("error invalid_request_error", ModelRejected, "invalid_request_error"),
    ],
)
async def test_each_failure_has_its_name(format_: str, script: str, kind: type[HoldfastError], words: str) -> None:
    """The model catalogue of failures: retried, or failed visibly, with what to change."""
    error = await failure(script, format_)
    assert type(error) is kind
    assert words in str(error)


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "prompt is too long: 208310 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "Please reduce the length of the messages or completion.",
        "request (2419 tokens) exceeds the available context size (256 tokens), try increasing it",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    ],
)
async def test_a_conversation_that_is_too_long_is_recognised(said: str) -> None:
    """Each vendor has its own words for it, under the same status as everything else."""
    assert type(await failure(f"says 400 {said}")) is ContextTooLong


async def test_another_bad_request_is_not_taken_for_a_long_one() -> None:
    """Compacting would not help it."""
    assert type(await failure("says 400 max_tokens is too large: this model supports at most 16384 tokens")) is ModelRejected


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("retry-after 7", 7),
        ("retry-after 1.5", 1.5),
        ("retry-after-ms 250", 0.25),
        ("retry-after soon", None),
        ("x-nothing here", None),
    ],
)
async def test_how_long_a_server_wants_to_be_left_alone_is_kept(header: str, wait_s: float | None) -> None:
    """429 retry_after: exactly that wait."""
    error = await failure(f"status 429 {header}")
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after_s == wait_s


def test_a_date_to_come_back_at_is_a_wait() -> None:
    """By the server's clock where it shows one, else by ours."""
    until = "Wed, 21 Oct 2026 07:28:30 GMT"
    assert retry_after_s({"retry-after": until, "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0) == 30
    now = datetime.datetime(2026, 10, 21, 7, 28, 20, tzinfo=datetime.UTC).timestamp() * 1000
    assert retry_after_s({"retry-after": until}, int(now)) == 10
    assert retry_after_s({"retry-after": until}, int(now) + 60_000) == 0


async def test_a_key_that_the_server_repeats_is_not_shown() -> None:
    """K1: no secret in an error, not even where the vendor puts it there."""
    for status in (400, 401, 403, 404, 500):
        error = await failure(f"says {status} Incorrect API key provided: {KEY}")
        assert KEY not in str(error)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("script", ["hang", "stall", "say half; stall"])
async def test_a_server_that_says_nothing_more_is_given_up(format_: str, script: str) -> None:
    """A stall ends after its timeout, before the answer, at its start and in its middle."""
    error = await failure(script, format_, stall_timeout_s=0.2)
    assert isinstance(error, ModelUnavailable)
    assert "sent nothing for 0.2 s" in str(error)


@pytest.mark.parametrize("format_", FORMATS)
async def test_signs_of_life_are_not_believed_for_ever(format_: str) -> None:
    """Comments and pings keep a stream open, but not without end."""
    error = await failure("pings 1000 every 0.02", format_, stall_timeout_s=0.5)
    assert "keep-alives" in str(error)


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_slow_answer_with_signs_of_life_arrives(format_: str) -> None:
    """A server that thinks for longer than the stall timeout, and says so, is waited for."""
    async with scene("pings 24 every 0.05; say done") as here:
        assert text_of(await heard(here.model(format_, stall_timeout_s=1), "hi")) == "done"


@pytest.mark.parametrize("format_", FORMATS)
async def test_a_little_garbage_is_passed_over(format_: str) -> None:
    """A few events that are none do not cost an answer."""
    async with scene("say a; garbage 5; say b") as here:
        assert text_of(await heard(here.model(format_), "hi")) == "ab"


async def test_what_was_said_before_a_cut_has_been_heard() -> None:
    """J1: the failure comes after the words, not instead of them."""
    async with scene("say half; cut") as here:
        events = here.model("openai").stream(request("hi"))
        assert await anext(events) == TextDelta("half")
        with pytest.raises(ModelUnavailable):
            await anext(events)


async def test_a_line_without_end_is_bounded() -> None:
    """A server cannot fill the memory with one line."""
    assert "line without end" in str(await failure("endless"))


async def test_an_answer_without_end_is_bounded() -> None:
    """Nor with many."""
    assert "larger than 64 MB" in str(await failure("huge"))


def at(url: str, client: ModelClient) -> Model:
    endpoint = ModelEndpoint(name="here:m", url=url, headers={}, secret=KEY, stall_timeout_s=5)
    return OpenAI(client=client, endpoint=endpoint, model="m", facts=FACTS)


async def test_a_server_that_is_not_there_is_named() -> None:
    """Connection refused; what the address holds besides the host is not shown."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        client = ModelClient()
        with pytest.raises(ModelUnavailable) as raised:
            await heard(at(f"http://user:{KEY}@127.0.0.1:{port}/v1", client), "hi")
        await client.close()
    assert f"cannot reach http://127.0.0.1:{port}" in str(raised.value)
    assert "refused" in str(raised.value)
    assert KEY not in str(raised.value)


async def test_a_name_that_nobody_has_is_named() -> None:
    """DNS failure."""
    client = ModelClient()
    with pytest.raises(ModelUnavailable, match=r"cannot reach http://nobody\.invalid"):
        await heard(at("http://nobody.invalid/v1", client), "hi")
    await client.close()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a certificate of this machine that nobody has signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem, secret = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return pem, secret


async def test_tls_is_checked_and_works_where_it_is_trusted(tmp_path: Path) -> None:
    """A certificate that nobody trusts is refused, the same one works where it is trusted, and connections are kept."""
    pem, secret = certificate(tmp_path)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(pem, secret)
    strange, trusted = ModelClient(), ModelClient(verify=ssl.create_default_context(cafile=str(pem)))
    async with ModelServer("stream 50 at 0").running(tls=served) as server:
        url = f"https://127.0.0.1:{server.port}/v1/chat/completions"
        with pytest.raises(ModelUnavailable, match="certificate is not trusted"):
            await heard(at(url, strange), "hi")
        for _ in range(3):
            assert text_of(await heard(at(url, trusted), "hi")).endswith("word49")
        assert len(server.requests) == 3
        await strange.close()
        await trusted.close()


async def test_a_server_that_speaks_no_tls_is_named() -> None:
    """A wrong scheme in the address."""

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    client = ModelClient(verify=ssl.create_default_context())
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ModelUnavailable, match="TLS handshake failed"):
            await heard(at(f"https://127.0.0.1:{port}/v1/chat/completions", client), "hi")
    await client.close()


async def test_many_streams_share_one_client() -> None:
    """Fifty at once, each with its own words."""
    async with scene() as here:
        models = [here.model(format_) for format_ in FORMATS]
        said = await asyncio.gather(*[heard(models[each % 2], f"nonce {each}") for each in range(50)])
        assert [text_of(events) for events in said] == [f"nonce {each}" for each in range(50)]


@pytest.mark.parametrize(
    "scenario",
    [
        test_tls_is_checked_and_works_where_it_is_trusted,
        lambda _: test_a_server_that_speaks_no_tls_is_named(),
        lambda _: test_a_server_that_is_not_there_is_named(),
        lambda _: test_a_name_that_nobody_has_is_named(),
        lambda _: test_a_server_that_says_nothing_more_is_given_up("openai", "say half; stall"),
        lambda _: test_what_was_said_before_a_cut_has_been_heard(),
        lambda _: test_an_answer_without_end_is_bounded(),
        lambda _: test_many_streams_share_one_client(),
    ],
)
def test_the_loop_of_a_gateway_behaves_the_same(
    scenario: Callable[[Path], Coroutine[None, None, None]], tmp_path: Path
) -> None:
    """A gateway runs on another event loop than these tests, with other sockets and other TLS."""
    uvloop.run(scenario(tmp_path))
