"""Draws the PNG icons from public/icon.svg, with the browser that the tests use.

python page/icons.py
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PUBLIC = Path(__file__).parent / "public"
SOURCE = PUBLIC / "icon.svg"
GROUND = "#0f6b66"
# Systems crop the corners of a maskable icon; a circle of four fifths is always visible.
INNER = 0.72
WHOLE = 1.0


def draw(page: Page, name: str, size: int, share: float) -> None:
    """Draw one icon; if it takes only a share of the picture, the rest has the icon's colour."""
    ground = "transparent" if share == WHOLE else GROUND
    inner = round(size * share)
    page.set_viewport_size({"width": size, "height": size})
    page.set_content(
        f'<body style="margin:0;display:grid;place-items:center;height:{size}px;background:{ground}">'
        f'<div style="width:{inner}px;height:{inner}px">{SOURCE.read_text()}</div>'
    )
    page.screenshot(path=PUBLIC / name, omit_background=True)


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("HOLDFAST_BROWSER") or shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page()
        draw(page, "icon-192.png", 192, WHOLE)
        draw(page, "icon-512.png", 512, WHOLE)
        draw(page, "icon-maskable-512.png", 512, INNER)
        # A phone rounds the corners itself, and shows transparent parts in black.
        draw(page, "icon-touch-180.png", 180, INNER)
        browser.close()


if __name__ == "__main__":
    main()
