"""What axe-core finds in a page that is open: names, roles and contrasts that a reader with a disability would miss."""

import gzip
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.reports.page.browser import Tab

SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
_GRAVE = ("serious", "critical")
_RUN = """
window.found = null;
axe.run(document, {resultTypes: ['violations']}).then(({violations}) => {
  window.found = violations.map(({id, impact, nodes}) => ({id, impact, at: nodes.slice(0, 3).map(node => node.html)}));
}), 0
"""


def grave_violations(tab: Tab) -> list[dict[str, Any]]:
    """Those that axe calls serious or critical, each with three places."""
    tab.run(f"{_axe()}; 0")
    tab.run(_RUN)
    tab.wait("window.found !== null")
    found: list[dict[str, Any]] = tab.run("window.found")
    return [violation for violation in found if violation["impact"] in _GRAVE]


@cache
def _axe() -> str:
    packed = Path(__file__).parent / "vendor" / "axe.min.js.gz"
    text = gzip.decompress(packed.read_bytes())
    assert sha256(text).hexdigest() == SHA256
    return text.decode()
