"""The environment of a confined command: names that are known to be harmless, and no others."""

from __future__ import annotations

import re
from collections.abc import Mapping

# What a program needs to find its files, its words and its terminal, and nothing that opens a door.
KEPT = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "COLORTERM",
        "COLUMNS",
        "LINES",
        "PAGER",
        "EDITOR",
        "VIRTUAL_ENV",
        "PYENV_ROOT",
        "CONDA_PREFIX",
        "NVM_DIR",
        "GOPATH",
        "GOROOT",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "JAVA_HOME",
        "NODE_PATH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "NO_PROXY",
        "no_proxy",
        "CI",
        "NO_COLOR",
        "FORCE_COLOR",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUTF8",
        "PYTHONIOENCODING",
    }
)
_KEPT_PREFIXES = ("LC_",)
# A proxy is needed to get anywhere, unless its address holds a password.
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_PASSWORD = re.compile(r"//[^/@]*@")


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a command may know of the environment: a few names that are known to be harmless."""
    return {name: value for name, value in environment.items() if _is_kept(name, value)}


def _is_kept(name: str, value: str) -> bool:
    if name.lower() in _PROXIES:
        return not _PASSWORD.search(value)
    return name in KEPT or name.startswith(_KEPT_PREFIXES)
