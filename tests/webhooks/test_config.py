"""Routes in the configuration: what cannot be meant is refused at its line, before anything starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from holdfast.channels.webhook.route import misconfigured
from holdfast.config import BODY_LIMIT, RouteConfig, load, secrets, signing_weakness
from holdfast.errors import ConfigInvalid

GOOD = """
[channels.webhook.routes.alerts]
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
prompt = "Alert: {message}"
deliver = "file:alerts"
events = ["alert.fired"]
filters = { all = [{ field = "severity", in = ["high"] }, { not = { field = "test", exists = true } }] }
rate_limit = 600

[channels.webhook.routes.open]
insecure_no_auth = true
enabled = false
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "holdfast.toml"
    file.write_text(text, "utf-8")
    file.chmod(0o600)
    return file


def test_routes_stand_in_the_configuration(tmp_path: Path) -> None:
    """W1: a route is {secret, prompt, deliver, events?, filters?, enabled?}."""
    routes = load(written(tmp_path, GOOD), {}, further=misconfigured).channels.webhook.routes
    assert routes["alerts"] == RouteConfig(
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        prompt="Alert: {message}",
        deliver="file:alerts",
        events=("alert.fired",),
        filters={"all": [{"field": "severity", "in": ["high"]}, {"not": {"field": "test", "exists": True}}]},
        rate_limit=600,
    )
    assert (routes["open"].insecure_no_auth, routes["open"].enabled, routes["open"].body_limit) == (True, False, BODY_LIMIT)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('prompt = "{__class__}"', "6: channels.webhook.routes.alerts.prompt: {__class__}: '__class__' is not a field"),
        ('prompt = "{a!r}"', "6: channels.webhook.routes.alerts.prompt: "),
        ('prompt = ""', "6: channels.webhook.routes.alerts.prompt: is empty"),
        ('filters = { field = "a" }', "6: channels.webhook.routes.alerts.filters: needs exactly one of"),
        ('filters = { field = "a", regex = "(" }', "6: channels.webhook.routes.alerts.filters: has a wrong regex"),
        ("filters = 7", "6: channels.webhook.routes.alerts.filters: must be a condition"),
        ('deliver = "somewhere"', "6: channels.webhook.routes.alerts.deliver: 'somewhere' is not a target"),
        (
            'deliver = "url:https://{host}/"',
            "6: channels.webhook.routes.alerts.deliver: the payload must not choose the url",
        ),
        ("deliver_only = true", "6: channels.webhook.routes.alerts.deliver_only: needs a target in deliver"),
        ("body_limit = 100_000_000", "6: channels.webhook.routes.alerts.body_limit: must be between 1 and"),
        ("insecure_no_auth = true", "6: channels.webhook.routes.alerts.insecure_no_auth: accepts unsigned deliveries"),
        ('secret_env = "HOOK"', "6: channels.webhook.routes.alerts.secret_env: names a second secret"),
        ('enabled = "yes"', "6: channels.webhook.routes.alerts.enabled: must be true or false"),
        ("rate_limit = -1", "6: channels.webhook.routes.alerts.rate_limit: must be a number, not negative"),
        ('scheme = "md5"', "6: channels.webhook.routes.alerts.scheme: must be one of 'any', 'standard'"),
        ('promt = "x"', "6: channels.webhook.routes.alerts.promt: unknown key; did you mean prompt?"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_line(tmp_path: Path, line: str, hint: str) -> None:
    text = f'[server]\nport = 8420\n\n[channels.webhook.routes.alerts]\nsecret = "a secret of some length"\n{line}\n'
    with pytest.raises(ConfigInvalid) as refused:
        load(written(tmp_path, text), {}, further=misconfigured)
    assert f"holdfast.toml:{hint}" in str(refused.value)


@pytest.mark.parametrize(
    ("table", "hint"),
    [
        ("[channels.webhook.routes.alerts]", ":1: channels.webhook.routes.alerts.secret: is missing; generate one"),
        ("[channels.webhook.routes.alerts]\nsecret = 'short'", ":2: channels.webhook.routes.alerts.secret: is too short"),
        ("[channels.webhook.routes.alerts]\nsecret = 'whsec_…'", ":2: channels.webhook.routes.alerts.secret: is "),
        ("[channels.webhook.routes.x]\nsecret_env = 'the secret itself'", ":2: channels.webhook.routes.x.secret_env: "),
        (
            "[channels.webhook.routes.x]\ninsecure_no_auth = true\n[server]\nhost = '0.0.0.0'\napi_key = '0123456789abcdef'",
            ":2: channels.webhook.routes.x.insecure_no_auth: would accept deliveries from everyone",
        ),
        ("[channels.webhook.routes.'a b']\nsecret = 'a secret of some length'", "is not a valid name of a route"),
    ],
)  # fmt: skip
def test_a_route_needs_a_secret_that_protects_it(tmp_path: Path, table: str, hint: str) -> None:
    """A short or placeholder secret is refused; unsigned webhooks only on loopback, and only when asked for by name."""
    with pytest.raises(ConfigInvalid) as refused:
        load(written(tmp_path, table), {}, further=misconfigured)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    "secret",
    ["changeme", "change-me-please-now", "secret", "whsec_…", "whsec_...", "xxxxxxxxxxxxxxxxxxxxxxxx",
     "whsec_xxxxxxxxxxxxxxxxxxxx", "your-secret-goes-here", "<put a secret here>",
     "placeholder-placeholder", "0000000000000000", "fifteen-letters"],
)  # fmt: skip
def test_what_everybody_would_try_is_no_secret(secret: str) -> None:
    assert signing_weakness(secret)


@pytest.mark.parametrize(
    "secret",
    ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "0123456789abcdef", "test-secret-0123456789abcdef", "sixteen letters!"],
)
def test_what_nobody_would_guess_is_one(secret: str) -> None:
    assert not signing_weakness(secret)


def test_the_mask_knows_the_secrets_of_routes(tmp_path: Path) -> None:
    """K1: whole, and without the prefix that everybody knows."""
    text = f"{GOOD}\n[channels.webhook.routes.other]\nsecret_env = 'HOOK'\n"
    found = secrets(load(written(tmp_path, text), {}), {"HOOK": "a secret of the environment"})
    assert found >= {
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a secret of the environment"
    }  # fmt: skip


def test_a_secret_that_others_can_read_is_refused() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = written(Path(folder), GOOD)
        file.chmod(0o644)
        with pytest.raises(ConfigInvalid, match="chmod 600"):
            load(file, {})


def test_the_environment_may_hold_a_secret(tmp_path: Path) -> None:
    variables = {"HOLDFAST_CHANNELS__WEBHOOK__ROUTES__ALERTS__SECRET": "0123456789abcdef-0123"}
    assert load(written(tmp_path, GOOD), variables).channels.webhook.routes["alerts"].secret == "0123456789abcdef-0123"
