"""Builds the page into the package, so that no Node is needed where it is installed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Page(BuildHookInterface[Any]):  # The type of a configuration that this hook has none of.
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - The shape of a hook.
        script = Path(self.root) / "page" / "build.py"
        # A source distribution has the built page, and not what it was built from.
        if script.exists():
            subprocess.run([sys.executable, script], check=True)
