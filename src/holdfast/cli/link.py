"""`holdfast link`: a link that signs a browser in."""

from __future__ import annotations

import click

from holdfast.cli.frame import Frame, moment, print_json, say, with_json
from holdfast.client.contact import running_gateway


@click.command()
@with_json
async def link(frame: Frame, as_json: bool) -> None:
    """Print a link that signs one browser in."""
    async with running_gateway(frame.home) as services:
        made = await services.logins.link()
    if as_json:
        print_json(made)
        return
    # Not wrapped, so that it can be clicked and copied.
    click.echo(made.url)
    say(f"It is good once, until {moment(made.expires_at)}.", "dim")
