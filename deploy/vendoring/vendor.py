"""Download the browser's pinned dependencies into static/; run by hand, result committed.

    python -m venv build/cut && build/cut/bin/pip install fonttools brotli
    build/cut/bin/python deploy/vendoring/vendor.py

Needs npm for the download only. Nothing is downloaded at run time and there is no bundler.
"""

import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from fontTools.subset import main as pyftsubset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

HERE = Path(__file__).parent
STATIC = HERE.parent.parent / "static"
VENDOR = STATIC / "vendor"
AXE = HERE.parent.parent / "tests" / "browser" / "vendor"

INTER, MONO, HTMX, SSE, IDIOMORPH, UPLOT, XTERM, XTERM_FIT, TABLER, AXE_CORE = (
    "inter-ui@4.1.1",
    "@fontsource-variable/jetbrains-mono@5.3.0",
    "htmx.org@2.0.11",
    "htmx-ext-sse@2.2.4",
    "idiomorph@0.8.0",
    "uplot@1.6.32",
    "@xterm/xterm@6.0.0",
    "@xterm/addon-fit@0.11.0",
    "@tabler/icons@3.51.0",
    "axe-core@4.14.1",
)
# Latin with central European letters, and the symbols that pages use.
LETTERS = "U+0020-007E,U+00A0-017F,U+0218-021B,U+2009,U+2010-2015,U+2018-201E,U+2022,U+2026,U+2030,U+2032"
SIGNS = "U+2033,U+2039,U+203A,U+20AC,U+2190-2193,U+21B5,U+2212,U+2248,U+2260,U+2264,U+2265,U+2303,U+2318"
FEATURES = "tnum,kern,calt,case,zero,cv05,ss03,ccmp,locl,liga,mark,mkmk"


def download_package(package: str, into: Path) -> Path:
    name = subprocess.run(
        ["npm", "pack", package, "--silent"], cwd=into, check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    target = into / re.sub(r"\W+", "-", package)
    with tarfile.open(into / name) as archive:
        archive.extractall(target, filter="data")
    return target / "package"


def subset_font(source: Path, target: Path, axes: dict[str, object], *options: str) -> None:
    """Fix or narrow the axes of a variable font, and subset its glyphs and features."""
    font = instantiateVariableFont(TTFont(source), axes)
    with tempfile.NamedTemporaryFile(suffix=".ttf") as narrowed:
        font.flavor = None
        font.save(narrowed.name)
        pyftsubset([narrowed.name, f"--output-file={target}", "--flavor=woff2", *options])


def sprite(tabler: Path) -> str:
    """Return an SVG sprite of the icons in icons.txt and our own state shapes."""
    symbols = []
    for name in sorted((HERE / "icons.txt").read_text().split()):
        drawing = (tabler / "icons" / "outline" / f"{name}.svg").read_text()
        strokes = "".join(re.findall(r"<(?:path|circle|rect|line|polyline)\b[^>]*/>", drawing))
        strokes = re.sub(r'<path stroke="none"[^>]*/>', "", strokes).replace(" />", "/>")
        symbols.append(f'<symbol id="i-{name}" viewBox="0 0 24 24">{strokes}</symbol>')
    shapes = (HERE / "shapes.svg").read_text().strip()
    return '<svg xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(symbols) + f"\n{shapes}\n</svg>\n"


def main() -> None:
    for folder in (VENDOR / "fonts", AXE):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        wanted = (INTER, MONO, HTMX, SSE, IDIOMORPH, UPLOT, XTERM, XTERM_FIT, TABLER, AXE_CORE)
        got = {p: download_package(p, Path(scratch)) for p in wanted}
        subset_font(
            got[INTER] / "variable" / "InterVariable.woff2",
            VENDOR / "fonts" / "inter-v.woff2",
            {"opsz": 14, "wght": (400, 650)},
            f"--unicodes={LETTERS},{SIGNS}",
            f"--layout-features={FEATURES}",
        )
        subset_font(
            got[MONO] / "files" / "jetbrains-mono-latin-wght-normal.woff2",
            VENDOR / "fonts" / "mono.woff2",
            {"wght": 430},
            "--unicodes=U+0020-007E,U+00A0,U+00B7,U+00D7,U+00F7,U+2026",
            "--layout-features=",
        )
        for package, file, name in (
            (HTMX, "dist/htmx.min.js", "htmx.min.js"),
            (SSE, "dist/sse.min.js", "htmx-sse.min.js"),
            (IDIOMORPH, "dist/idiomorph-ext.min.js", "idiomorph-ext.min.js"),  # swaps that keep focus and what is open
            (UPLOT, "dist/uPlot.iife.min.js", "uPlot.iife.min.js"),
            (UPLOT, "dist/uPlot.min.css", "uPlot.min.css"),
            (XTERM, "lib/xterm.mjs", "xterm.mjs"),  # only the page of a web terminal loads it
            (XTERM, "css/xterm.css", "xterm.css"),
            (XTERM_FIT, "lib/addon-fit.mjs", "addon-fit.mjs"),
        ):
            shutil.copyfile(got[package] / file, VENDOR / name)
        shutil.copyfile(got[AXE_CORE] / "axe.min.js", AXE / "axe.min.js")
        for package, name in (
            (INTER, "LICENSE.inter.txt"),
            (MONO, "LICENSE.jetbrains-mono.txt"),
            (HTMX, "LICENSE.htmx.txt"),
            (SSE, "LICENSE.htmx-sse.txt"),
            (IDIOMORPH, "LICENSE.idiomorph.txt"),
            (UPLOT, "LICENSE.uplot.txt"),
            (XTERM, "LICENSE.xterm.txt"),
            (XTERM_FIT, "LICENSE.xterm-addon-fit.txt"),
            (TABLER, "LICENSE.tabler-icons.txt"),
        ):
            shutil.copyfile(next(got[package].glob("LICENSE*")), VENDOR / name)
        shutil.copyfile(got[AXE_CORE] / "LICENSE", AXE / "LICENSE.axe-core.txt")
        (STATIC / "icons.svg").write_text(sprite(got[TABLER]))


if __name__ == "__main__":
    main()
