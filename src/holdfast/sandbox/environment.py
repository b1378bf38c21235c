"""The environment of a confined command: only variables that are known to be harmless."""

from __future__ import annotations

import re
from collections.abc import Mapping

# A program needs these to find its files, its language and its terminal; none of them gives access to anything.
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
# Network access may need a proxy; one whose address holds a password is left out.
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_PASSWORD = re.compile(r"//[^/@]*@")


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command may see."""
    return {name: value for name, value in environment.items() if _is_kept(name, value)}


def _is_kept(name: str, value: str) -> bool:
    if name.lower() in _PROXIES:
        return not _PASSWORD.search(value)
    return name in KEPT or name.startswith(_KEPT_PREFIXES)
