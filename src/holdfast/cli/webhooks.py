"""`holdfast webhooks`: addresses that take deliveries, and how to test them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import click
import msgspec

from holdfast.channels.webhook.signatures import ANY, Scheme
from holdfast.cli.answer import conclude
from holdfast.cli.cards import shortened
from holdfast.cli.frame import (
    EXIT_FAILED,
    Frame,
    print_json,
    print_outcome,
    print_table,
    print_view,
    say,
    visible,
    with_json,
)
from holdfast.client.contact import running_gateway
from holdfast.core.intake import Receipt
from holdfast.core.turns import SETTLED, TurnState
from holdfast.errors import NotFound, Rejected, Unavailable
from holdfast.ids import SessionId, TurnId
from holdfast.operations.services import Services
from holdfast.operations.webhooks import NewRoute, RoutePlan, RouteView, Signed, Signing

SAMPLE = '{"message": "a test delivery of holdfast webhooks test"}'
SEND_TIMEOUT_S = 30
# A list has a line for each; `show` has all of it.
PROMPT_MAX_CHARS = 40
_IGNORED = "ignored"
_LOOK_S = 0.05
_EVENT_HEADER = "X-GitHub-Event"

_SCHEMES = [each.value for each in Scheme]

_payload_option = click.option(
    "--payload", metavar="JSON|@FILE", default=SAMPLE, help="The body; @FILE reads it from a file, @- from stdin."
)
_event_option = click.option("--event", help="The event type.")
_scheme_option = click.option(
    "--scheme", type=click.Choice(_SCHEMES), help="The kind of signature (default: that of the route)."
)


class _Answer(msgspec.Struct):
    status: str = ""
    delivery_id: str = ""
    session_id: str | None = None
    turn_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response:
    status: int
    content: bytes


@click.group()
def webhooks() -> None:
    """Addresses that take deliveries.  Each delivery becomes a turn."""


@webhooks.command("list")
@with_json
async def list_(frame: Frame, as_json: bool) -> None:
    """List all routes by name, including those of the configuration."""
    async with frame.reading_services() as services:
        page = await services.webhooks.list()
    if as_json:
        print_json(page)
        return
    lines = [
        (each.name, each.source.value, _state(each), each.deliver, shortened(each.prompt, PROMPT_MAX_CHARS))
        for each in page.items
    ]
    print_table(("route", "from", "state", "deliver", "prompt"), lines, "No routes yet. Try: holdfast webhooks add alerts")


@webhooks.command()
@click.argument("name")
@with_json
async def show(frame: Frame, name: str, as_json: bool) -> None:
    """Show the route NAME, without its secret."""
    async with frame.reading_services() as services:
        route = await services.webhooks.get(name)
    print_view("route", route, as_json)


@webhooks.command()
@click.argument("name")
@click.option(
    "--prompt", default="{__raw__}", show_default=True, help="The prompt for the agent; {a.b} is a field of the payload."
)
@click.option(
    "--deliver", default="log", show_default=True, help="The target of the answers, like url:https://…; log keeps them here."
)
@click.option("--deliver-only", is_flag=True, help="Send the filled prompt itself, without an agent.")
@click.option("--event", "events", multiple=True, help="Accept only events of this type.  Can be repeated.")
@click.option(
    "--filter", "filters", metavar="JSON", help='Take only what fits, like {"field": "action", "equals": "opened"}.'
)
@click.option("--secret", default="", help="The secret of the sender (default: a new one, which is shown once).")
@click.option(
    "--scheme", type=click.Choice([ANY, *_SCHEMES]), default=ANY, show_default=True, help="The kind of signature to accept."
)
@click.option("--rate-limit", type=click.IntRange(0), default=0, help="Deliveries per minute (default: no limit).")
@click.option("--insecure-no-auth", is_flag=True, help="Accept unsigned deliveries.  Only for a gateway on loopback.")
@with_json
async def add(
    frame: Frame,
    name: str,
    filters: str | None,
    as_json: bool,
    **said: object,
) -> None:
    """Add or change the route NAME.  No restart is needed."""
    asked = {"name": name, "filters": _json(filters, "--filter") if filters else None, **said}
    plan = msgspec.convert(asked, RoutePlan)
    async with frame.services() as services:
        new = await services.webhooks.add(plan)
    if as_json:
        print_json(new)
    else:
        _tell(new)


@webhooks.command()
@click.argument("name")
@with_json
async def remove(frame: Frame, name: str, as_json: bool) -> None:
    """Remove the route NAME; its sessions stay."""
    async with frame.services() as services:
        await services.webhooks.remove(name)
    print_outcome({"removed": name}, f"{name} is removed.", as_json)


@webhooks.command()
@click.argument("name")
@_payload_option
@_event_option
@_scheme_option
@with_json
async def sign(frame: Frame, name: str, payload: str, event: str | None, scheme: str | None, as_json: bool) -> None:
    """Print the headers that sign a delivery to NAME; they are valid for five minutes."""
    async with frame.services() as services:
        signed = await _signed(services, name, payload, event, scheme)
    if as_json:
        print_json(signed)
        return
    for title, value in signed.headers.items():
        click.echo(f"{title}: {value}")


@webhooks.command()
@click.argument("name")
@_payload_option
@_event_option
@_scheme_option
@with_json
async def test(frame: Frame, name: str, payload: str, event: str | None, scheme: str | None, as_json: bool) -> None:
    """Send a signed delivery to NAME, and show its turn."""
    async with running_gateway(frame.home) as services:
        signed = await _signed(services, name, payload, event, scheme)
        response = await _send(signed)
        answer = _parsed(response)
        if not as_json:
            say(f"POST {signed.url} → {response.status} {answer.status or _problem(response)}", soft_wrap=True)
        if answer.turn_id is None:
            if as_json:
                print_json({"status_code": response.status, "answer": _content(response)})
            elif answer.status == _IGNORED:
                say(_why_ignored(await services.webhooks.get(name)), "dim")
            if response.status >= 400:
                sys.exit(EXIT_FAILED)
            return
        if as_json:
            await _conclude_as_json(services, response, TurnId(answer.turn_id))
        else:
            say(f"turn {answer.turn_id} · delivery {answer.delivery_id}", "dim", soft_wrap=True)
            await _conclude(services, answer)


@webhooks.command()
@with_json
async def secret(frame: Frame, as_json: bool) -> None:
    """Show the secret that signs answers to url: targets."""
    async with frame.services() as services:
        found = await services.webhooks.secret()
    if as_json:
        print_json(found)
    else:
        click.echo(found.secret)


def _state(route: RouteView) -> str:
    if not route.enabled:
        return "off"
    return "signed" if route.signed else "unsigned"


def _why_ignored(route: RouteView) -> str:
    wanted = [f"events of the type {' or '.join(route.events)} (--event)"] if route.events else []
    wanted += [f"what fits {msgspec.json.encode(route.filters).decode()}"] if route.filters else []
    return f"The route takes only {', and of these '.join(wanted)}."


def _tell(new: NewRoute) -> None:
    say(f"{new.route.name} takes deliveries at {new.url or new.route.path}")
    if new.secret:
        say(f"secret: {new.secret}", soft_wrap=True)
        say("Keep it now: it is not shown again.", "dim")
    say(f"Try it: holdfast webhooks test {new.route.name}", "dim")
    if new.route.signed and new.url != new.route.path:
        if new.secret:
            say("GitHub: Settings, Webhooks, Add webhook, with this address, this secret and application/json.", "dim")
        body = '{"message": "hello"}'
        curl = f"holdfast webhooks sign {new.route.name} --payload '{body}' | curl -H @- -d '{body}' {new.url}"
        say(f"curl: {curl}", "dim", soft_wrap=True)


async def _signed(services: Services, name: str, payload: str, event: str | None, scheme: str | None) -> Signed:
    body = _read(payload)
    _json(body, "--payload")
    if event and scheme != Scheme.GITHUB:
        body = _with_type(body, event)
    signed = await services.webhooks.sign(name, Signing(body=body, scheme=Scheme(scheme) if scheme else None))
    if event and scheme == Scheme.GITHUB:
        return replace(signed, headers={**signed.headers, _EVENT_HEADER: event})
    return signed


def _read(payload: str) -> str:
    if not payload.startswith("@"):
        return payload
    if payload == "@-":
        return sys.stdin.read()
    try:
        return Path(payload[1:]).read_text("utf-8")
    except UnicodeDecodeError:
        raise Rejected(f"{payload[1:]} is not UTF-8") from None


def _json(text: str, option: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected(f"{option} is not JSON: {error}") from None


def _with_type(body: str, event: str) -> str:
    """Return a payload with its event type, for senders that have no header for it."""
    said = _json(body, "--payload")
    if not isinstance(said, dict):
        return body
    return msgspec.json.encode({**cast("Mapping[str, object]", said), "type": event}).decode()


async def _send(signed: Signed) -> _Response:
    # The other commands do not import an HTTP client.
    import httpx2

    try:
        # A proxy of the environment is for other machines.
        async with httpx2.AsyncClient(timeout=SEND_TIMEOUT_S, trust_env=False) as client:
            found = await client.post(signed.url, content=signed.body.encode(), headers=dict(signed.headers))
    except httpx2.TransportError as error:
        raise Unavailable(f"the gateway does not answer at {signed.url}: {error}") from error
    return _Response(status=found.status_code, content=found.content)


def _parsed(response: _Response) -> _Answer:
    try:
        return msgspec.json.decode(response.content, type=_Answer)
    except msgspec.DecodeError:
        return _Answer()


def _content(response: _Response) -> object:
    try:
        return msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        return response.content.decode(errors="replace")


def _problem(response: _Response) -> str:
    match _content(response):
        case {"error": {"message": str(message)}}:
            return visible(message)
        case _:
            return ""


async def _conclude(services: Services, answer: _Answer) -> None:
    """Stream the turn of a delivery from its first entry."""
    try:
        session = await services.sessions.get(SessionId(answer.session_id or ""))
    except NotFound:
        say("what became of it has been pruned", "dim")
        return
    turn = await services.turns.get(TurnId(answer.turn_id or ""))
    receipt = Receipt(turn_id=turn.id, session_id=session.id, state=turn.state, accepted_at=turn.accepted_at)
    await conclude(services, replace(session, seq=0), receipt, as_json=False)


async def _conclude_as_json(services: Services, response: _Response, turn_id: TurnId) -> None:
    turn = await services.turns.get(turn_id)
    while turn.state not in SETTLED and turn.state is not TurnState.WAITING:
        await asyncio.sleep(_LOOK_S)
        turn = await services.turns.get(turn_id)
    print_json({"status_code": response.status, "answer": _content(response), "turn": turn})
    if turn.state is not TurnState.COMPLETED:
        sys.exit(EXIT_FAILED)
