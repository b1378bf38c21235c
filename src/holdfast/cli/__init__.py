"""The command line: one module per command group; each parses, makes one call and prints."""

from __future__ import annotations

import click

from holdfast import __version__
from holdfast.cli.approvals import approvals
from holdfast.cli.ask import ask
from holdfast.cli.channels import channels
from holdfast.cli.chat import chat
from holdfast.cli.control import restart, status, stop
from holdfast.cli.deliveries import deliveries
from holdfast.cli.doctor import Visit, doctor
from holdfast.cli.drill import drill
from holdfast.cli.frame import Frame, Group
from holdfast.cli.jobs import jobs
from holdfast.cli.keys import keys
from holdfast.cli.link import link
from holdfast.cli.memory import memory
from holdfast.cli.pair import pair
from holdfast.cli.processes import processes
from holdfast.cli.serve import serve
from holdfast.cli.sessions import sessions
from holdfast.cli.store import store
from holdfast.cli.turns import turns
from holdfast.cli.webhooks import webhooks
from holdfast.config import home_folder


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="holdfast")
@click.option("--home", metavar="DIR", help="The folder with all state (default: $HOLDFAST_HOME, else ~/.holdfast).")
@click.option("--config", metavar="FILE", help="The configuration file (default: HOME/holdfast.toml).")
@click.pass_context
def main(context: click.Context, home: str | None, config: str | None) -> None:
    """An always-on AI-agent gateway that never loses a turn."""
    folder = home_folder(home)
    # `doctor` reports a wrong configuration as a finding.
    visiting = context.invoked_subcommand == doctor.name
    context.obj = Visit(home=folder, config_file=config) if visiting else Frame.at(folder, config)


for command in (
    serve,
    status,
    stop,
    restart,
    ask,
    chat,
    sessions,
    turns,
    deliveries,
    approvals,
    processes,
    jobs,
    memory,
    webhooks,
    channels,
    pair,
    keys,
    link,
    store,
    doctor,
    drill,
):
    main.add_command(command)
