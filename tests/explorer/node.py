"""The page's scripts without a page: run by Node, told what to answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from probox.explorer import page
from probox.measures.boxes.matching import COCO_RULES, BoxRules

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not on this machine")

SETTING = """
const { page, input } = JSON.parse(require("fs").readFileSync(0, "utf8"));
globalThis.window = globalThis;
globalThis.addEventListener = () => {};
globalThis.document = { getElementById: () => null };
globalThis.Path2D = class {
  constructor() { this.lines = []; this.rects = []; }
  moveTo(x, y) { this.at = [x, y]; }
  lineTo(x, y) { this.lines.push([...this.at, x, y]); this.at = [x, y]; }
  rect(...numbers) { this.rects.push(numbers); }
};
require("vm").runInThisContext(page);
"""


def run(script: str, value: Any, rules: BoxRules = COCO_RULES) -> Any:
    """Run the page's scripts and then one that gives `answer`; NaN comes back as null."""
    text = "\n".join([SETTING, script, "process.stdout.write(JSON.stringify(answer));"])
    told = json.dumps({"page": page.script(rules), "input": value})
    done = subprocess.run(
        [str(NODE), "--eval", text], input=told, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
