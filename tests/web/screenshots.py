"""Pictures of all screens, or of some, in both themes, wide and narrow: `tests/web/screenshots.py OUTPUT [NAME …]`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from screens import SCREENS, make_judged, set_stage, stop_work
from workbench import NARROW, WIDE, find_browser, launch, open_desk, owner, serving

HEIGHTS = {WIDE: 900, NARROW: 780}


def main(output: Path, names: Collection[str]) -> None:
    """Make a small workspace, open its screens, and write `NAME-THEME-WIDTH.png`."""
    if strange := set(names) - SCREENS.keys():
        sys.exit(f"There is no screen {', '.join(sorted(strange))}. There is: {', '.join(SCREENS)}.")
    path = find_browser()
    if path is None:
        sys.exit("No Chromium is installed; `apt-get install chromium` or the like brings one.")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        templates = make_judged(Path(folder), examples=400, explained=200)
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        with (
            serving(workspace) as server,
            owner(server) as boss,
            set_stage(server, boss, templates, Path(folder) / "files", "films") as stage,
        ):
            boss.ask("PUT", "api/me/preferences", json={"tour_seen": True})
            people = {"boss": boss, "ann": stage.ann, "guest": stage.guest, "nobody": None}
            browser = launch(playwright, path)
            for name in names:
                who, way = SCREENS[name]
                for width, height in HEIGHTS.items():
                    for theme in ("light", "dark"):
                        looks = {"viewport": {"width": width, "height": height}, "color_scheme": theme}
                        desk = open_desk(browser, server.address, people[who], **looks)
                        way(desk, stage)
                        if not name.endswith(("menu", "dialog")):  # these belong to the window as it is
                            tall = int(desk.page.evaluate("() => document.documentElement.scrollHeight"))
                            desk.page.set_viewport_size({"width": width, "height": min(6000, max(height, tall))})
                            desk.page.evaluate("() => window.scrollTo(0, 0)")
                        desk.page.screenshot(path=output / f"{name}-{theme}-{width}.png")
                        desk.page.context.close()
                stop_work(stage)
                print(name, flush=True)  # noqa: T201
            browser.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:] or SCREENS.keys())
