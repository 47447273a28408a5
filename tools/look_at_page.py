"""Open a page in a headless Chromium, photograph it in four forms, and fail on any complaint of the console.

    python tools/look_at_page.py runs/digits-1/report.html pictures/

It is not part of the test suite, because it needs a browser and a pair of eyes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FORMS = {
    "desktop": (1200, []),
    "phone": (375, []),
    "dark": (1200, ["--blink-settings=preferredColorScheme=0"]),
    "phone-dark": (375, ["--blink-settings=preferredColorScheme=0"]),
}
NARROWEST = 500  # a headless window is never narrower, so that a phone is a frame inside of it


def main() -> int:
    """Take the pictures; 1 when the console complained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--height", type=int, default=7000)
    arguments = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium on this machine", file=sys.stderr)
        return 1
    arguments.pictures.mkdir(parents=True, exist_ok=True)
    complaints = [
        line
        for name, (width, options) in FORMS.items()
        for line in photograph(
            browser,
            arguments.page.resolve(),
            arguments.pictures / f"{arguments.page.stem}-{name}.png",
            width=width,
            height=arguments.height,
            options=options,
        )
    ]
    print("\n".join(complaints) or "no complaints")
    return int(bool(complaints))


def photograph(
    browser: str, page: Path, picture: Path, *, width: int, height: int, options: list[str]
) -> list[str]:
    """One picture; what the console said."""
    with tempfile.TemporaryDirectory() as scratch:
        address = page.as_uri()
        if width < NARROWEST:
            frame = Path(scratch) / "frame.html"
            frame.write_text(
                f'<body style="margin:0"><iframe src="{address}" width="{width}" height="{height}" '
                'style="border:0"></iframe>'
            )
            address = frame.as_uri()
        command = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={scratch}/profile",
            f"--window-size={max(width, NARROWEST)},{height}",
            f"--screenshot={picture.resolve()}",
            *options,
            address,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


if __name__ == "__main__":
    sys.exit(main())
