"""Names, schemas and configurations of servers: whatever comes in, what goes on to a model is bounded and unmistakable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.mcp.naming import tool_names
from holdfast.agent.mcp.schemas import SCHEMA_MAX_CHARS, sanitised
from holdfast.agent.mcp.servers import McpServers
from holdfast.agent.tools.port import NAME
from holdfast.clock import SystemClock
from holdfast.config import McpConfig
from holdfast.errors import ConfigInvalid

COMMAND = ("server",)
KEYS = st.sampled_from(["type", "properties", "$ref", "$defs", "items", "anyOf", "title", "required"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.text(min_size=1, max_size=120), max_size=20, unique=True))
def test_every_tool_gets_a_name_of_its_own(tools: list[str]) -> None:
    """Security 12: a name is what every vendor takes, and no two tools of a server share one."""
    names = tool_names("files", tools)
    assert set(names) == set(tools)
    assert len(set(names.values())) == len(tools)
    assert all(NAME.fullmatch(name) and name.startswith("files__") for name in names.values())
    assert tool_names("files", tools[::-1]) == names


def test_a_name_that_fits_is_kept_even_beside_one_that_becomes_the_same() -> None:
    names = tool_names("s", ["a_b", "a.b", "c.d"])
    assert names["a_b"] == "s__a_b"
    assert names["a.b"].startswith("s__a_b_")
    assert names["c.d"] == "s__c_d"


def test_a_schema_is_written_out_and_refers_to_nothing() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"title": {"$ref": "#/$defs/Title"}, "elsewhere": {"$ref": "https://example.org/x.json"}},
        "required": ["title"],
        "$defs": {"Title": {"type": "string", "title": "Title"}},
    }
    properties = {"title": {"type": "string"}, "elsewhere": {}}
    assert sanitised(schema) == {"type": "object", "properties": properties, "required": ["title"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"description": "x" * SCHEMA_MAX_CHARS}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "properties": {"a": {"default": float("nan")}}},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/d0"}},
            "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(20)},
        },
    ],
)
def test_a_schema_that_is_no_object_or_has_no_end_is_not_passed_on(schema: dict[str, object]) -> None:
    """Security 12: a schema cannot grow beyond its bounds, however it refers to itself."""
    assert sanitised(schema) is None


@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_whatever_a_schema_is_what_is_passed_on_is_a_bounded_object(schema: dict[str, object]) -> None:
    """Security 12: no schema of a stranger breaks a request to a model."""
    if (found := sanitised(schema)) is not None:
        assert found["type"] == "object"
        assert isinstance(found["properties"], dict)
        assert len(json.dumps(found)) <= SCHEMA_MAX_CHARS


@pytest.mark.parametrize(
    ("name", "config", "word"),
    [
        ("a", McpConfig(), "either a command"),
        ("a", McpConfig(command=COMMAND, url="http://localhost/mcp"), "not both"),
        ("a b", McpConfig(command=COMMAND), "a name is"),
        ("a__b", McpConfig(command=COMMAND), "a name is"),
        ("a_", McpConfig(command=COMMAND), "a name is"),
        ("a" * 33, McpConfig(command=COMMAND), "a name is"),
        ("a", McpConfig(command=("",)), "begin with a program"),
        ("a", McpConfig(url="ftp://localhost/mcp"), "http://"),
        ("a", McpConfig(url="http://localhost:99999/"), "not an address"),
        ("a", McpConfig(command=COMMAND, env={"A=B": "c"}), "without ="),
        ("a", McpConfig(command=COMMAND, headers={"a": "b"}), "only for a url"),
        ("a", McpConfig(url="http://localhost", headers={"a": "b\r\nc: d"}), "one line"),
        ("a", McpConfig(url="http://localhost", env={"a": "b"}), "only for a command"),
        ("a", McpConfig(command=COMMAND, timeout=0), "more than 0"),
    ],
)
def test_a_wrong_configuration_is_refused_with_what_to_change(name: str, config: McpConfig, word: str) -> None:
    with pytest.raises(ConfigInvalid, match=word) as refused:
        McpServers({name: config}, SystemClock(), {})
    assert str(refused.value).startswith(f"mcp.{name}: ")
