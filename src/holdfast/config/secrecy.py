"""Secrets: whether a secret is strong enough, and which secrets a configuration holds, so that they can be masked."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from holdfast import configfile
from holdfast.config.tree import ChannelsConfig, Config

# A shorter secret can be guessed, and would not be masked in the log.
KEY_LENGTH_MIN = 8
DIFFERENT_MIN = 4
# An attacker who has seen one signed delivery can try secrets offline, without a limit.
SIGNING_LENGTH_MIN = 16
SIGNING_PREFIX = "whsec_"
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|AUTHORIZATION|COOKIE|CREDENTIALS?)$", re.IGNORECASE)
# Words that examples use, in small letters and without punctuation.
_PLACEHOLDERS = frozenset(
    {"password", "password1", "password123", "passw0rd", "12345678", "123456789", "1234567890", "qwertyuiop", "abcdefgh",
     "apikey", "mykey", "mysecret", "secretkey", "supersecret", "insertkeyhere", "apikeyhere", "keyhere", "secrethere"}
)  # fmt: skip
_PLACEHOLDER = re.compile(r"change[-_ ]?(?:me|this)|replace[-_ ]?(?:me|this)|^your[-_ ]|placeholder|^<.*>$|…|\.\.\.")
_SECRET_SETTINGS = frozenset({"api_key", "password", "secret"})
_NO_ACCOUNTS = frozenset(field.name for field in dataclasses.fields(ChannelsConfig)) - {"accounts"}
_SECRET_VARIABLE = re.compile(r".+_(?:API_KEY|TOKEN|SECRET|PASSWORD)")


def weakness(secret: str) -> str:
    """Return why a secret is too weak; empty if it is strong enough."""
    if len(secret) < KEY_LENGTH_MIN:
        return f"is too short to be a secret; it needs {KEY_LENGTH_MIN} characters or more"
    word = re.sub(r"[^a-z0-9]", "", secret.lower())
    if len(set(word)) < DIFFERENT_MIN or word in _PLACEHOLDERS or _PLACEHOLDER.search(secret.lower()):
        return "is a placeholder that is easy to guess; generate a secret, for example with: openssl rand -hex 24"
    return ""


def signing_weakness(secret: str) -> str:
    """Return why a secret is too weak to sign deliveries; empty if it is strong enough."""
    told = secret.removeprefix(SIGNING_PREFIX)
    if problem := weakness(told):
        return problem
    if len(told) < SIGNING_LENGTH_MIN:
        return f"is too short to sign with; it needs {SIGNING_LENGTH_MIN} characters or more"
    return ""


def secrets(config: Config, environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return every secret of the configuration and of the environment, so that they can be masked."""
    # Not every variable and header of a server is a secret: masking "C.UTF-8" would only hide useful text.
    found = {value for path, value in held(config).items() if not _is_of_server(path) or _SECRET_NAME.search(path[-1])}
    # Texts may hold a header without its scheme ("Bearer"), and the password of a URL without percent signs.
    found |= {value.partition(" ")[2] for value in found} | {unquote(value) for value in found}
    found |= {value.removeprefix(SIGNING_PREFIX) for value in found}
    found |= {value for name, value in environment.items() if _SECRET_VARIABLE.fullmatch(name)}
    found |= {environment.get(name, "") for name in key_variables(config).values()}
    return frozenset(found - {""})


def held(config: Config) -> Mapping[configfile.Where, str]:
    """Return the secrets of a configuration, by their path."""
    found: dict[configfile.Where, str] = {
        ("server", "api_key"): config.server.api_key,
        ("server", "password"): config.server.password,
        ("store", "url"): _password(config.store.url),
        ("model", "api_key"): config.model.api_key,
        ("memory", "api_key"): config.memory.api_key,
        ("tools", "web_search", "api_key"): config.tools.web_search.api_key,
        ("channels", "url", "secret"): config.channels.url.secret,
    }
    found |= {("providers", name, "api_key"): each.api_key for name, each in config.providers.items()}
    found |= {
        ("channels", "webhook", "routes", name, "secret"): each.secret
        for name, each in config.channels.webhook.routes.items()
    }
    for path, value in _of_accounts(config).items():
        if is_secret(path):
            found[path] = value
    # Some services take the key as the user name of the URL.
    found |= {path: _password(address) or (urlsplit(address).username or "") for path, address in addresses(config).items()}
    for name, server in config.mcp.items():
        found |= {("mcp", name, "env", variable): value for variable, value in server.env.items()}
        found |= {("mcp", name, "headers", header): value for header, value in server.headers.items()}
    return {path: value for path, value in found.items() if value}


def is_secret(path: configfile.Where) -> bool:
    """Return whether the setting at a path is a secret."""
    *_, name = path
    if is_of_account(path):
        return bool(_SECRET_NAME.search(name))
    return name in _SECRET_SETTINGS or (len(path) > 2 and _is_of_server(path))


def shown(address: str) -> str:
    """Return a URL without the parts that may be secret: user, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.scheme else address


def _is_of_server(path: configfile.Where) -> bool:
    return path[0] == "mcp" and path[2] in ("env", "headers")


def is_of_account(path: configfile.Where) -> bool:
    """Return whether a setting is one of an account of a chat platform."""
    match path:
        case ("channels", name, _):
            return name not in _NO_ACCOUNTS
        case _:
            return False


def _of_accounts(config: Config) -> Mapping[configfile.Where, str]:
    """Return the settings of accounts that are texts, by their path.  Platforms of other packages have any settings."""
    return {
        ("channels", name, field.name): value
        for name, account in config.channels.accounts.items()
        for field in dataclasses.fields(account)
        if isinstance(value := getattr(account, field.name), str)
    }


def _password(address: str) -> str:
    return urlsplit(address).password or ""


def key_variables(config: Config) -> Mapping[configfile.Where, str]:
    """Return the environment variables that hold keys, by the path of the setting that names each."""
    named: dict[configfile.Where, str] = {
        ("model", "api_key_env"): config.model.api_key_env,
        ("memory", "api_key_env"): config.memory.api_key_env,
        ("tools", "web_search", "api_key_env"): config.tools.web_search.api_key_env,
        ("channels", "github", "token_env"): config.channels.github.token_env,
    }
    named |= {("providers", name, "api_key_env"): each.api_key_env for name, each in config.providers.items()}
    named |= {
        ("channels", "webhook", "routes", name, "secret_env"): each.secret_env
        for name, each in config.channels.webhook.routes.items()
    }
    named |= {path: variable for path, variable in _of_accounts(config).items() if path[-1].endswith("_env")}
    return {path: variable for path, variable in named.items() if variable}


def addresses(config: Config) -> Mapping[configfile.Where, str]:
    """Return the URLs of a configuration, by their path."""
    return {
        ("model", "base_url"): config.model.base_url,
        ("memory", "url"): config.memory.url,
        ("tools", "web_search", "url"): config.tools.web_search.url,
        ("channels", "github", "base_url"): config.channels.github.base_url,
        **{("providers", name, "base_url"): each.base_url for name, each in config.providers.items()},
        **{("mcp", name, "url"): each.url for name, each in config.mcp.items()},
        **{path: value for path, value in _of_accounts(config).items() if path[-1].endswith(("_url", "_base"))},
    }
