"""Builds the adapters around an engine: the agent with its model and tools, memory, carriers and webhook routes."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.agent.demonstration import demonstration
from holdfast.agent.files import TextFiles
from holdfast.agent.loop import ModelAgent
from holdfast.agent.mcp.confinement import Confinement
from holdfast.agent.mcp.servers import McpServers
from holdfast.agent.models.choice import ModelChoices
from holdfast.agent.models.port import Model
from holdfast.agent.processes.background import BackgroundProcesses
from holdfast.agent.processes.control import Control
from holdfast.agent.processes.monitor import ProcessMonitor
from holdfast.agent.prompt import Prompt, names_file
from holdfast.agent.second_opinion import CommandJudge
from holdfast.agent.skills import Skills
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools import delegate
from holdfast.agent.tools.ask_user import ask_user_tool
from holdfast.agent.tools.fetch import fetch_tool
from holdfast.agent.tools.files import Workspace, file_tools
from holdfast.agent.tools.hosts import Hosts
from holdfast.agent.tools.memory import memory_tool
from holdfast.agent.tools.port import CallContext, Tool
from holdfast.agent.tools.process import ProcessTool
from holdfast.agent.tools.schedule import schedule_tool
from holdfast.agent.tools.send_file import send_file_tool
from holdfast.agent.tools.send_message import send_message_tool
from holdfast.agent.tools.session_search import session_search_tool
from holdfast.agent.tools.skills import skill_tool
from holdfast.agent.tools.terminal import SecondOpinion, Terminal, always_ask
from holdfast.agent.tools.todo import todo_tool
from holdfast.agent.tools.web_search import search_host, searcher, web_search_tool
from holdfast.agent.uploads import WorkspaceUploads
from holdfast.app.build import Builder
from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.channel import ChatSurroundings, ask_in, at_work, homes_of
from holdfast.channels.chat.home_news import HomeNews
from holdfast.channels.registry import carriers_of
from holdfast.channels.webhook.routes import Routes
from holdfast.channels.webhook.signatures import answers_secret, spellings
from holdfast.clock import Clock
from holdfast.config import Config, keep_apart
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.trust import trusts
from holdfast.egress import Egress, Guard
from holdfast.errors import ConfigInvalid, Rejected
from holdfast.ids import NodeId
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.builtin.extraction import ModelExtractor
from holdfast.memory.builtin.plain import PlainExtractor
from holdfast.offload.pool import Pool
from holdfast.operations.gateway import AgentView
from holdfast.ports import Agent, AskOperator, Carrier, ProcessControl, Uploads
from holdfast.sandbox import Sandbox, scrubbed
from holdfast.sandbox.proxy import Network
from holdfast.store.store import Store
from holdfast.store.trusted import TrustedOwners
from holdfast.store.turns import TurnStore
from holdfast.targets import Targets

log = logging.getLogger(__name__)

NOTES = "demonstration-notes.txt"
DEMONSTRATION = "demonstration"
# Tools that are there only where the configuration has something for them to work with.
SOMETIMES = frozenset({"memory", "send_file", "send_message", "web_search"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What adapters use and do not own: a running gateway shares it with the rehearsal of other settings."""

    store: Store
    clock: Clock
    pool: Pool
    home_id: str
    node_id: NodeId
    # What can be chosen for a conversation.
    models: ModelChoices
    # Takes a message in, as a channel does.
    accept: Callable[[Inbound], Awaitable[Receipt]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Everything around the engine of one gateway."""

    agent: Agent
    memory: MemoryBindings
    carriers: Mapping[str, Carrier]
    ask_operator: AskOperator
    # The accounts of chat platforms, by name.
    accounts: Mapping[str, ChatAccount]
    targets: Targets
    routes: Routes
    control: ProcessControl
    uploads: Uploads
    # The owners who may use what is the operator's.
    trusted_owners: Container[str]
    # What runs beside the engine, and is restarted when it crashes.
    components: Mapping[str, Callable[[], Awaitable[None]]]
    describe: Callable[[], AgentView]


@contextlib.asynccontextmanager
async def adapters(builder: Builder, resources: Resources) -> AsyncGenerator[Adapters]:
    """Yield the adapters that a configuration describes, and close them afterwards.  Raises `ConfigInvalid`."""
    config, store, clock = builder.config, resources.store, resources.clock
    async with contextlib.AsyncExitStack() as stack:
        secret = config.channels.url.secret or await answers_secret(store.secrets)
        builder.redaction.learn(spellings(secret))
        channels = await stack.enter_async_context(builder.channels(secret))
        accounts = await stack.enter_async_context(builder.accounts())
        place = await stack.enter_async_context(_place(builder))
        trusted = TrustedOwners(config.tools.trusted_owners, store.people, store.wakes)
        await trusted.load()
        uploads = WorkspaceUploads(place.workspace)
        chats = at_work(
            accounts,
            ChatSurroundings(
                store=store,
                clock=clock,
                node_id=resources.node_id,
                accept=resources.accept,
                trusts=partial(trusts, owners=trusted),
                uploads=uploads,
                pool=resources.pool,
            ),
        )
        carriers = {**carriers_of(channels), **{name: chat.carrier for name, chat in chats.items()}}
        model = builder.model()
        if model:
            stack.push_async_callback(model.close)
        memory = await _memory(stack, builder, store, model)
        background = BackgroundProcesses(
            store.processes, builder.home, resources.home_id, clock=clock, redaction=builder.redaction, pool=resources.pool
        )
        own = _tools(builder, resources, carriers, place, background, model, memory)
        tools = _with_plugins(own, builder.plugins.tools)
        disabled = config.tools.disabled
        _check_disabled(disabled, {tool.name for tool in tools} | SOMETIMES)
        toolbox = Toolbox(
            tools,
            [place.servers],
            disabled,
            {delegate.NAME: delegate.may_delegate(config.tools.delegate)},
            trusted,
        )
        targets = Targets(carriers)
        routes = await builder.routes(store, targets, resources.pool)
        monitor = ProcessMonitor(store.processes, store.sessions, background, resources.accept, clock=clock)
        components: dict[str, Callable[[], Awaitable[None]]] = {
            "processes": monitor.run,
            "webhooks": routes.run,
            "people": trusted.run,
        }
        components |= {name: partial(channel.run, resources.accept) for name, channel in channels.items() if channel.run}
        components |= {name: chat.run for name, chat in chats.items()}
        homes = homes_of(chats)
        if homes:
            components["news"] = HomeNews(store, homes, clock).run
        if config.mcp:
            components["mcp"] = place.servers.run

        def describe() -> AgentView:
            runs_unasked = config.tools.terminal.approval == "allow" and "terminal" not in disabled
            return AgentView(
                model=model.name if model else DEMONSTRATION,
                demonstration=model is None,
                tools=sorted(tool.name for tool in tools if tool.name not in disabled),
                sandbox=place.sandbox.description,
                unsafe=runs_unasked and not place.sandbox.confines,
                mcp=place.servers.status,
            )

        yield Adapters(
            agent=_agent(builder, resources, model, toolbox, memory, trusted),
            memory=memory,
            carriers=carriers,
            ask_operator=ask_in(homes),
            accounts=accounts,
            targets=targets,
            routes=routes,
            control=Control(store.processes, background),
            uploads=uploads,
            trusted_owners=trusted,
            components=components,
            describe=describe,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the agent works, and what contains it."""

    workspace: Workspace
    environment: Mapping[str, str]
    sandbox: Sandbox
    network: Network
    servers: McpServers


@contextlib.asynccontextmanager
async def _place(builder: Builder) -> AsyncGenerator[_Place]:
    config, home = builder.config, builder.home
    await asyncio.to_thread(_check_persona, config, home)
    environment = scrubbed(builder.environment)
    workspace = Workspace(await _workspace(home, config.agent.workspace))
    await asyncio.to_thread(_check_instructions, config, home, workspace)
    sandbox = await builder.sandbox(workspace.root)
    local = [*config.tools.terminal.hosts, *(host for each in config.mcp.values() for host in each.hosts)]
    network = Network(home, local=local, own_port=config.server.port)
    servers = McpServers(config.mcp, builder.clock, environment, confinement=Confinement(sandbox, network, home))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(network.close)
        yield _Place(workspace=workspace, environment=environment, sandbox=sandbox, network=network, servers=servers)


async def _memory(stack: contextlib.AsyncExitStack, builder: Builder, store: Store, model: Model | None) -> MemoryBindings:
    """Open memory, to be closed with the stack."""
    if extracting := builder.extracting_model():
        stack.push_async_callback(extracting.close)
    model = extracting or model
    extractor = ModelExtractor(model, builder.config.memory.commit_timeout) if model else PlainExtractor()
    bindings = builder.memory(store, extractor)
    stack.push_async_callback(bindings.close)
    return bindings


def _agent(
    builder: Builder,
    resources: Resources,
    model: Model | None,
    toolbox: Toolbox,
    memory: MemoryBindings,
    trusted: Container[str],
) -> Agent:
    config, store, clock = builder.config, resources.store, resources.clock
    if model is None:
        return demonstration(builder.home / NOTES, clock, toolbox)
    memories = store.memories if memory.current else None
    prompt = Prompt(config.agent, builder.home, memories, clock, trusted)
    return ModelAgent(
        model,
        toolbox,
        prompt,
        store.spending,
        agent=config.agent,
        budget=config.budget,
        clock=clock,
        is_granted=store.questions.is_granted,
        chosen=resources.models.of,
    )


def _tools(
    builder: Builder,
    resources: Resources,
    carriers: Mapping[str, Carrier],
    place: _Place,
    background: BackgroundProcesses,
    model: Model | None,
    memory: MemoryBindings,
) -> Sequence[Tool]:
    config, store, clock, redaction = builder.config.tools, resources.store, resources.clock, builder.redaction
    workspace, sandbox = place.workspace, place.sandbox
    second_opinion = _second_opinion(CommandJudge(model), store.turns, workspace.root) if model else always_ask
    try:
        hosts = Hosts(store.questions.is_granted, clock, config.terminal.hosts)
        # A host that the operator lets the agent fetch from is no new host either.
        fetched = Hosts(store.questions.is_granted, clock, (*config.terminal.hosts, *config.fetch.allow_hosts))
    except Rejected as error:
        raise ConfigInvalid(f"tools.terminal.hosts, tools.fetch.allow_hosts: {error}") from error
    terminal = Terminal(
        config.terminal,
        workspace,
        background,
        sandbox,
        place.environment,
        hosts,
        second_opinion=second_opinion,
        network=place.network,
        clock=clock,
    )
    tools: list[Tool] = [
        terminal.tool(),
        ProcessTool(
            store.processes,
            store.sessions,
            background,
            confines=sandbox.confines,
            approval=config.terminal.approval,
            clock=clock,
        ).tool(),
        *file_tools(workspace, resources.pool),
        fetch_tool(Egress(Guard(allow_hosts=config.fetch.allow_hosts), config.fetch.timeout), resources.pool, fetched),
        delegate.delegate_tool(store, resources.accept, config.delegate),
        session_search_tool(store.passages),
        todo_tool(store.journal),
        ask_user_tool(),
        schedule_tool(store.jobs, store.sessions.find, carriers, redaction, clock),
        skill_tool(Skills(builder.home / builder.config.agent.skills, TextFiles())),
    ]
    if memory.current:
        tools.append(memory_tool(store.memories, redaction, clock, memory.current))
    if carriers:
        tools.append(send_message_tool(store.deliveries, store.sessions.find, carriers, redaction, clock))
    if any(carrier.takes_files for carrier in carriers.values()):
        tools.append(
            send_file_tool(workspace, store.deliveries, store.kept_files, store.sessions.find, carriers, redaction, clock)
        )
    if provider := searcher(config.web_search):
        tools.append(web_search_tool(provider, hosts, search_host(config.web_search)))
    return tools


def _with_plugins(own: Sequence[Tool], others: Sequence[Tool]) -> list[Tool]:
    """Return all tools.  A plugin cannot replace one of ours, because a person is asked about tools by their name."""
    names = {tool.name for tool in own} | SOMETIMES
    for each in others:
        if each.name in names:
            log.error("The tool %s of a plugin is left out: Holdfast has one of that name", each.name)
    return [*own, *(each for each in others if each.name not in names)]


def _second_opinion(judge: CommandJudge, turns: TurnStore, workspace: Path) -> SecondOpinion:
    async def allows(command: str, reasons: Sequence[str], hosts: Sequence[str], context: CallContext) -> bool:
        asked = await turns.asked(context.turn.id)
        return await judge.allows(command, reasons, asked=asked, workdir=str(workspace), hosts=hosts, spend=context.spend)

    return allows


def _check_persona(config: Config, home: Path) -> None:
    persona = config.agent.persona
    if names_file(persona) and not (home / persona.strip()).is_file():
        raise ConfigInvalid(
            f"agent.persona: there is no file {home / persona.strip()}; write one, or put the text itself in its place"
        )


def _check_instructions(config: Config, home: Path, workspace: Workspace) -> None:
    """Refuse files of the operator that the agent could write itself: its instructions and the gateway's program."""
    places = {"agent.skills": config.agent.skills}
    if names_file(config.agent.persona):
        places["agent.persona"] = config.agent.persona.strip()
    for setting, name in places.items():
        if (home / name).resolve().is_relative_to(workspace.root):
            raise ConfigInvalid(
                f"{setting}: {name!r} is in the workspace, where the agent could change it; choose another place"
            )
    keep_apart("the program of the gateway", _program(), config, home)


def _program() -> list[Path]:
    """Return the files that this process runs: the virtual environment, and the places where modules are found."""
    return [Path(sys.prefix), Path(sys.executable), Path(__file__).parents[1], *(Path(each) for each in sys.path if each)]


def _check_disabled(disabled: Sequence[str], known: Set[str]) -> None:
    """Refuse a name that no tool has: the operator would believe that a tool is switched off."""
    for name in disabled:
        # The tools of an MCP server are known only once it is connected.
        if name in known or "__" in name:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
        raise ConfigInvalid(f"tools.disabled: there is no tool {name!r}; {hint}")


async def _workspace(home: Path, name: str) -> Path:
    folder = home / name
    if await asyncio.to_thread(lambda: home.resolve().is_relative_to(folder.resolve())):
        # The agent's tools could then read and change keys, conversations and grants.
        raise ConfigInvalid(f"agent.workspace: {name!r} holds the gateway's own home; choose a folder below or beside it")
    await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
    return folder
