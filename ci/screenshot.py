"""Pictures of a report's page in headless Chromium: `python ci/screenshot.py` makes docs/pictures/report.png anew.

The report is of a real run: the greedy example, and a faulty kernel of the self-tests, judged on this machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "report.png"
LARGEST = 300_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 120


def browser() -> str | None:
    """Chromium on the PATH, else the newest that playwright has fetched; None where there is neither."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    fetched = sorted(cache.glob("chromium-*/chrome-linux*/chrome")) + sorted(
        cache.glob("chromium-*/chrome-mac*/Chromium.app/Contents/MacOS/Chromium")
    )
    return str(fetched[-1]) if fetched else None


def chromium(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it without a window, on a profile of its own and without a network."""
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--enable-logging=stderr",
                f"--user-data-dir={profile}",
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )


def picture(program: str, page: Path, target: Path, width: int, height: int, dark: bool = False) -> str:
    """Writes a PNG of the page's top; what the browser logged."""
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    done = chromium(program, *scheme, f"--window-size={width},{height}", f"--screenshot={target}", page.as_uri())
    return done.stderr


def judged(folder: Path, query: str, implementation: str, where: Path) -> Path:
    """The page of a run of an implementation that stands in the folder `where`."""
    report, page = folder / "report.json", folder / "report.html"
    judge = ["mlx-assay", "run", query, "--implementation", implementation, "--without", "stock-metal", "-n", "0"]
    ran = subprocess.run([*judge, "--report", str(report)], cwd=where, capture_output=True, text=True)
    if ran.returncode != 1:
        raise SystemExit(f"Expected a run that differs but it ended with {ran.returncode}: {ran.stderr or ran.stdout}")
    subprocess.run(["mlx-assay", "report", str(report), "--html", str(page)], check=True)
    return page


def main() -> int:
    """Takes the picture; 1 where no browser is found or the picture is too large."""
    parser = argparse.ArgumentParser(prog="python ci/screenshot.py", description=__doc__)
    parser.add_argument("--implementation", default="bad.tail_unwritten", help="module in ci/selftest")
    parser.add_argument("--query", default="apply_token_bitmask/bfloat16")
    parser.add_argument("--output", type=Path, default=PICTURE)
    parser.add_argument("--size", default="1200x1500", help="width and height in pixels")
    arguments = parser.parse_args()
    program = browser()
    if program is None:
        print("Expected Chromium on the PATH or fetched by playwright but found neither", file=sys.stderr)
        return 1
    width, height = map(int, arguments.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        page = judged(Path(folder), arguments.query, arguments.implementation, ROOT / "ci" / "selftest")
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        picture(program, page, arguments.output.resolve(), width, height)
    size = arguments.output.stat().st_size
    print(f"{arguments.output}: {size:,} bytes")
    return 0 if size <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
