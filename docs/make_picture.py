"""Makes docs/summary.svg: what `inferometer summary samples/decode.json.gz` prints on a terminal.

The command runs on a pseudo-terminal, and rich turns what it printed into SVG. The picture fetches nothing.
"""

import io
import tempfile
from pathlib import Path

from pages import ROOT, WIDTH, copy_project, run_on_terminal
from rich.console import Console
from rich.text import Text

PICTURE = ROOT / "docs" / "summary.svg"
COMMAND = "inferometer summary samples/decode.json.gz"

# Rich's own template names a font on a server, which a page that shows the picture would not load.
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="a terminal">
<!-- Made by docs/make_picture.py: do not edit. -->
<style>
.{unique_id}-matrix {{
  font-family: "Fira Code", "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def make_picture() -> str:
    """The SVG."""
    with tempfile.TemporaryDirectory(prefix="inferometer-docs-") as folder:
        copy_project(Path(folder))
        output, code = run_on_terminal(COMMAND, Path(folder), term="xterm-256color")
    if code:
        raise SystemExit(f"{COMMAND} ended with {code}:\n{output}")
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.from_ansi(f"$ {COMMAND}\n{output.rstrip()}"))
    svg = console.export_svg(title="", code_format=_SVG, unique_id="inferometer")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(make_picture(), encoding="utf-8")
