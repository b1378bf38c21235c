"""The outfit: the agent as the operator chose it, with its model, its tools, and whatever must run beside them."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.agent import budget, plugins
from holdfast.agent.demonstration import demonstration
from holdfast.agent.files import TextFiles
from holdfast.agent.loop import ModelAgent
from holdfast.agent.mcp.confinement import Confinement
from holdfast.agent.mcp.servers import McpServers
from holdfast.agent.models.catalog import BUILT_IN, ModelMaker, open_model
from holdfast.agent.models.gate import Gates
from holdfast.agent.models.port import Model
from holdfast.agent.processes.control import Control
from holdfast.agent.processes.keeping import Keeping
from holdfast.agent.processes.watcher import Watcher
from holdfast.agent.prompt import Prompt, names_file
from holdfast.agent.skills import Skills
from holdfast.agent.smart import SmartJudge
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools import delegate
from holdfast.agent.tools.ask_user import ask_user_tool
from holdfast.agent.tools.fetch import fetch_tool
from holdfast.agent.tools.files import Workspace, file_tools
from holdfast.agent.tools.hosts import Hosts
from holdfast.agent.tools.memory import memory_tool
from holdfast.agent.tools.port import Site, Tool
from holdfast.agent.tools.process import ProcessTool
from holdfast.agent.tools.schedule import schedule_tool
from holdfast.agent.tools.send_message import send_message_tool
from holdfast.agent.tools.session_search import session_search_tool
from holdfast.agent.tools.skills import skill_tool
from holdfast.agent.tools.terminal import Smart, Terminal, unsure
from holdfast.agent.tools.todo import todo_tool
from holdfast.agent.tools.web_search import search_host, searcher, web_search_tool
from holdfast.agent.uploads import WorkspaceUploads
from holdfast.channels import github, url
from holdfast.channels.file import FOLDER, FileCarrier
from holdfast.clock import Clock
from holdfast.config import ChannelsConfig, Config, ModelConfig, keep_apart
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.redaction import Redaction
from holdfast.desk.views import AgentView
from holdfast.desk.webhooks import answers_secret, told_of
from holdfast.egress import Egress, Guard
from holdfast.errors import ConfigInvalid, Rejected
from holdfast.memory.bindings import Bindings
from holdfast.memory.builtin.extraction import Extractor, ModelExtractor
from holdfast.memory.builtin.plain import PlainExtractor
from holdfast.memory.builtin.provider import Builtin
from holdfast.memory.opening import open_bindings
from holdfast.offload.pool import Pool
from holdfast.ports import Agent, Carrier, ProcessControl, Store, Turns, Uploads
from holdfast.sandbox import Sandbox, scrubbed, terminal_profile
from holdfast.sandbox.proxy import Network

log = logging.getLogger(__name__)

NOTES = "demonstration-notes.txt"
DEMONSTRATION = "demonstration"
# Tools that are there only where the configuration has something for them to work with.
SOMETIMES = frozenset({"memory", "send_message", "web_search"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an agent is fitted out for."""

    config: Config
    home: Path
    home_id: str
    store: Store
    carriers: Mapping[str, Carrier]
    accept: Callable[[Inbound], Awaitable[Receipt]]
    redaction: Redaction
    clock: Clock
    pool: Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """An agent, and what goes with it."""

    agent: Agent
    memory: Bindings
    components: Mapping[str, Callable[[], Awaitable[None]]]
    control: ProcessControl
    uploads: Uploads
    describe: Callable[[], AgentView]


@contextlib.asynccontextmanager
async def carriers_of(
    config: ChannelsConfig, home: Path, store: Store, redaction: Redaction, clock: Clock
) -> AsyncGenerator[Mapping[str, Carrier]]:
    """Yield who takes answers out, by channel, for as long as the context lasts.  Raises `ConfigInvalid`."""
    secret = config.url.secret or await answers_secret(store.secrets)
    redaction.learn(told_of(secret))
    async with carriers_signing(secret, config, home, clock) as carriers:
        yield carriers


@contextlib.asynccontextmanager
async def carriers_signing(
    secret: str, config: ChannelsConfig, home: Path, clock: Clock
) -> AsyncGenerator[Mapping[str, Carrier]]:
    """Yield them, with the secret that answers are signed with.  Raises `ConfigInvalid`."""
    guard = Guard(config.url.allow_hosts, setting="channels.url.allow_hosts", encrypted=True)
    token, base_url = os.environ.get(config.github.token_env, ""), config.github.base_url
    async with contextlib.AsyncExitStack() as stack:
        web, hub = Egress(guard, config.url.timeout), Egress.to(base_url)
        stack.push_async_callback(web.close)
        stack.push_async_callback(hub.close)
        yield {
            "file": FileCarrier(home / FOLDER),
            url.CHANNEL: url.UrlCarrier(web, secret, clock),
            github.CHANNEL: github.GithubCarrier(hub, base_url, token, config.github.token_env, clock),
        }


@contextlib.asynccontextmanager
async def outfit(setting: Setting) -> AsyncGenerator[Outfit]:
    """Fit an agent out for as long as the context lasts.  Raises `ConfigInvalid`."""
    config, clock = setting.config, setting.clock
    await asyncio.to_thread(_check_persona, config, setting.home)
    environment = scrubbed(os.environ)
    workspace = Workspace(await _workspace(setting.home, config.agent.workspace))
    await asyncio.to_thread(_check_instructions, config, setting.home, workspace)
    terminal = config.tools.terminal
    profile = await asyncio.to_thread(terminal_profile, terminal, workspace.root, setting.home)
    sandbox = await Sandbox.find(terminal.sandbox, profile)
    local = [*terminal.hosts, *(host for each in config.mcp.values() for host in each.hosts)]
    network = Network(setting.home, local=local, own_port=config.server.port)
    servers = McpServers(config.mcp, clock, environment, confinement=Confinement(sandbox, network, setting.home))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(network.close)
        found = plugins.load(providers=BUILT_IN | set(config.providers))
        gates = Gates(clock)
        model: Model | None = None
        if config.model.name:
            model = open_model(config.model, config.providers, os.environ, clock=clock, gates=gates, makers=found.models)
            stack.push_async_callback(model.close)
        memory = await _memory(stack, setting, model, gates, found)
        keeping = Keeping(
            setting.store.processes,
            setting.home,
            setting.home_id,
            clock=clock,
            redaction=setting.redaction,
            pool=setting.pool,
        )
        tools = _with_plugins(_tools(setting, workspace, sandbox, network, environment, keeping, model, memory), found.tools)
        _check_disabled(config, {tool.name for tool in tools} | SOMETIMES)
        toolbox = Toolbox(
            tools,
            [servers],
            config.tools.disabled,
            {delegate.NAME: delegate.may_delegate(config.tools.delegate)},
            config.tools.trusted_owners,
        )
        watcher = Watcher(setting.store.processes, setting.store.sessions, keeping, setting.accept, clock=clock)
        components: dict[str, Callable[[], Awaitable[None]]] = {"watcher": watcher.run}
        if config.mcp:
            components["mcp"] = servers.run

        runs_unasked = terminal.approval == "allow" and "terminal" not in config.tools.disabled

        def describe() -> AgentView:
            return AgentView(
                model=model.name if model else DEMONSTRATION,
                demonstration=model is None,
                tools=sorted(tool.name for tool in tools if tool.name not in config.tools.disabled),
                sandbox=sandbox.description,
                unsafe=runs_unasked and not sandbox.confines,
                mcp=servers.status,
            )

        yield Outfit(
            agent=_agent(setting, model, toolbox, memory),
            memory=memory,
            components=components,
            control=Control(setting.store.processes, keeping),
            uploads=WorkspaceUploads(workspace),
            describe=describe,
        )


def makers() -> Mapping[str, ModelMaker]:
    """Return the models that plugins bring, by provider."""
    return plugins.load(providers=BUILT_IN).models


async def _memory(
    stack: contextlib.AsyncExitStack, setting: Setting, model: Model | None, gates: Gates, found: plugins.Plugins
) -> Bindings:
    """Open memory, to be closed with the stack.  Raises `ConfigInvalid`."""
    config = setting.config
    if config.memory.model:
        chosen = extracting(config.model, config.memory.model)
        try:
            model = open_model(chosen, config.providers, os.environ, clock=setting.clock, gates=gates, makers=found.models)
        except ConfigInvalid as error:
            raise ConfigInvalid(f"memory.model: {str(error).removeprefix('model.name: ')}") from error
        stack.push_async_callback(model.close)
    extractor: Extractor = ModelExtractor(model, config.memory.commit_timeout) if model else PlainExtractor()
    bindings = open_bindings(
        config.memory,
        builtin=lambda: Builtin(
            setting.store,
            extractor,
            limits=budget.limits(config.budget),
            redaction=setting.redaction,
            clock=setting.clock,
        ),
        plugins=found,
        redaction=setting.redaction,
        clock=setting.clock,
    )
    stack.push_async_callback(bindings.close)
    return bindings


def extracting(answering: ModelConfig, name: str) -> ModelConfig:
    """Return how the model that extracts is reached: where it has another provider, nothing of the first one's is told."""
    chosen = ModelConfig(name=name, stall_timeout=answering.stall_timeout, retries=answering.retries)
    if name.partition(":")[0] != answering.name.partition(":")[0]:
        return chosen
    keys = {"api_key": answering.api_key, "api_key_env": answering.api_key_env}
    return replace(chosen, base_url=answering.base_url, **keys)


def _agent(setting: Setting, model: Model | None, toolbox: Toolbox, memory: Bindings) -> Agent:
    config, clock = setting.config, setting.clock
    if model is None:
        return demonstration(setting.home / NOTES, clock, toolbox)
    memories = setting.store.memories if memory.current else None
    prompt = Prompt(config.agent, setting.home, memories, clock, config.tools.trusted_owners)
    return ModelAgent(
        model,
        toolbox,
        prompt,
        setting.store.spending,
        agent=config.agent,
        budget=config.budget,
        clock=clock,
        is_granted=setting.store.questions.is_granted,
    )


def _tools(
    setting: Setting,
    workspace: Workspace,
    sandbox: Sandbox,
    network: Network,
    environment: Mapping[str, str],
    keeping: Keeping,
    model: Model | None,
    memory: Bindings,
) -> Sequence[Tool]:
    config, store, clock = setting.config.tools, setting.store, setting.clock
    smart = _second_opinion(SmartJudge(model), store.turns, workspace.root) if model else unsure
    try:
        hosts = Hosts(store.questions.is_granted, clock, config.terminal.hosts)
        # What the operator lets the agent fetch by name is no new host either.
        fetched = Hosts(store.questions.is_granted, clock, (*config.terminal.hosts, *config.fetch.allow_hosts))
    except Rejected as error:
        raise ConfigInvalid(f"tools.terminal.hosts, tools.fetch.allow_hosts: {error}") from error
    terminal = Terminal(
        config.terminal, workspace, keeping, sandbox, environment, hosts, smart=smart, network=network, clock=clock
    )
    tools: list[Tool] = [
        terminal.tool(),
        ProcessTool(
            store.processes,
            store.sessions,
            keeping,
            confines=sandbox.confines,
            approval=config.terminal.approval,
            clock=clock,
        ).tool(),
        *file_tools(workspace, setting.pool),
        fetch_tool(Egress(Guard(allow_hosts=config.fetch.allow_hosts), config.fetch.timeout), setting.pool, fetched),
        delegate.delegate_tool(store, setting.accept, config.delegate),
        session_search_tool(store.passages),
        todo_tool(store.journal),
        ask_user_tool(),
        schedule_tool(store.jobs, setting.carriers, setting.redaction, clock),
        skill_tool(Skills(setting.home / setting.config.agent.skills, TextFiles())),
    ]
    if memory.current:
        tools.append(memory_tool(store.memories, setting.redaction, clock, memory.current))
    if setting.carriers:
        tools.append(send_message_tool(store.deliveries, setting.carriers, setting.redaction, clock))
    if provider := searcher(config.web_search):
        tools.append(web_search_tool(provider, hosts, search_host(config.web_search)))
    return tools


def _with_plugins(own: Sequence[Tool], others: Sequence[Tool]) -> list[Tool]:
    """Return all tools; one of ours keeps its name, and with it what is asked before it runs."""
    names = {tool.name for tool in own} | SOMETIMES
    for each in others:
        if each.name in names:
            log.error("The tool %s of a plugin is left out: Holdfast has one of that name", each.name)
    return [*own, *(each for each in others if each.name not in names)]


def _second_opinion(judge: SmartJudge, turns: Turns, workspace: Path) -> Smart:
    async def allows(command: str, reasons: Sequence[str], hosts: Sequence[str], site: Site) -> bool:
        asked = await turns.asked(site.turn.id)
        return await judge.allows(command, reasons, asked=asked, workdir=str(workspace), hosts=hosts, spend=site.spend)

    return allows


def _check_persona(config: Config, home: Path) -> None:
    persona = config.agent.persona
    if names_file(persona) and not (home / persona.strip()).is_file():
        raise ConfigInvalid(
            f"agent.persona: there is no file {home / persona.strip()}; write one, or put the text itself in its place"
        )


def _check_instructions(config: Config, home: Path, workspace: Workspace) -> None:
    """Refuse instructions and programs of the operator that the agent could write itself."""
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
    """Return what this process runs, and its next start will: a virtual environment, and where modules are looked for."""
    return [Path(sys.prefix), Path(sys.executable), Path(__file__).parent, *(Path(each) for each in sys.path if each)]


def _check_disabled(config: Config, known: Set[str]) -> None:
    """Refuse a name that no tool has: whoever wrote it believes that something is switched off."""
    for name in config.tools.disabled:
        # What a server has to offer is known only once it is connected.
        if name in known or "__" in name:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
        raise ConfigInvalid(f"tools.disabled: there is no tool {name!r}; {hint}")


async def _workspace(home: Path, name: str) -> Path:
    folder = home / name
    if await asyncio.to_thread(lambda: home.resolve().is_relative_to(folder.resolve())):
        # The agent's tools read and write all of it: keys, conversations, and what it is allowed.
        raise ConfigInvalid(f"agent.workspace: {name!r} holds the gateway's own home; choose a folder below or beside it")
    await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
    return folder
