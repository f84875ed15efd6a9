"""Pictures of a report's page in headless Chromium: `python ci/screenshot.py` makes docs/pictures/report.png anew.

The report is of a real run: the greedy example, and a faulty kernel of the self-tests, judged on this machine.
"""

from __future__ import annotations

import argparse
import os
import re
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
WIDTH, HEIGHT, SCALE, GAP = 760, 1180, 0.85, 20
SHOWN = round(WIDTH * SCALE), round(HEIGHT * SCALE)
ALONE = """body>header,main>section:not([aria-labelledby=h-failing]),.filters,h2,footer{display:none}
main{padding:20px!important}section{margin:0!important}"""
"""Hides all but the cases that fail."""
BOTH = f"""<!doctype html><title>both</title><style>
body{{margin:0;padding:{GAP}px;background:#8a93a3;display:flex;gap:{GAP}px}}
img{{display:block;width:{SHOWN[0]}px;height:{SHOWN[1]}px;border-radius:14px}}
</style><img src="top.png" alt=""><img src="case.png" alt="">"""


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


def picture(
    program: str, page: Path, target: Path, width: int, height: int, dark: bool = False, scale: float = 1
) -> str:
    """Writes a PNG of the page's top, so many CSS pixels of it; what the browser logged."""
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    scheme.append(f"--force-device-scale-factor={scale}")
    done = chromium(program, *scheme, f"--window-size={width},{height}", f"--screenshot={target}", page.as_uri())
    return done.stderr


def altered(page: Path, style: str = "", script: str = "") -> Path:
    """A copy of the page beside it, with style or script of one's own, which the page itself allows nobody."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"), count=1)
    copy = page.with_name(f"altered-{page.name}")
    copy.write_text(
        text.replace("</body>", f"<style>{style}</style><script>{script}</script></body>"), encoding="utf-8"
    )
    return copy


def judged(folder: Path, query: str, implementation: str, where: Path) -> Path:
    """The page of a run of an implementation that stands in the folder `where`."""
    report, page = folder / f"{implementation}.json", folder / f"{implementation}.html"
    judge = ["mlx-assay", "run", query, "--implementation", implementation, "--without", "stock-metal", "-n", "0"]
    ran = subprocess.run([*judge, "--report", str(report)], cwd=where, capture_output=True, text=True)
    if ran.returncode != 1:
        raise SystemExit(f"Expected a run that differs but it ended with {ran.returncode}: {ran.stderr or ran.stdout}")
    subprocess.run(["mlx-assay", "report", str(report), "--html", str(page)], check=True)
    return page


def montage(program: str, folder: Path, target: Path) -> None:
    """The page's top after a run of the greedy example, and a case that fails of a kernel that forgets a wrap."""
    top = judged(folder, "normalized_argmax", "greedy", ROOT / "ci" / "examples")
    case = judged(folder, "trellis_decode/bfloat16", "bad.trellis_wrap_lost", ROOT / "ci" / "selftest")
    picture(program, top, folder / "top.png", WIDTH, HEIGHT, scale=SCALE)
    picture(program, altered(case, ALONE), folder / "case.png", WIDTH, HEIGHT, dark=True, scale=SCALE)
    both = folder / "both.html"
    both.write_text(BOTH, encoding="utf-8")
    picture(program, both, target, 2 * SHOWN[0] + 3 * GAP, SHOWN[1] + 2 * GAP)


def main() -> int:
    """Takes the picture; 1 where no browser is found or the picture is too large."""
    parser = argparse.ArgumentParser(prog="python ci/screenshot.py", description=__doc__)
    parser.add_argument("--output", type=Path, default=PICTURE, help="default: docs/pictures/report.png")
    output = parser.parse_args().output.resolve()
    program = browser()
    if program is None:
        print("Expected Chromium on the PATH or fetched by playwright but found neither", file=sys.stderr)
        return 1
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        montage(program, Path(folder), output)
    size = output.stat().st_size
    print(f"{output}: {size:,} bytes")
    return 0 if size <= LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
