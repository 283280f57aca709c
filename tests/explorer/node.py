"""The page's scripts without a page: run by Node, told what to answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import probox
from probox.explorer.page import SCRIPTS, constants
from probox.explorer.payload import to_script_json

ASSETS = Path(probox.__file__).parent / "explorer" / "assets"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not on this machine")

SETTING = """
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
globalThis.window = globalThis;
globalThis.addEventListener = () => {};
globalThis.document = { getElementById: () => null };
globalThis.Path2D = class {
  constructor() { this.lines = []; this.rects = []; }
  moveTo(x, y) { this.at = [x, y]; }
  lineTo(x, y) { this.lines.push([...this.at, x, y]); this.at = [x, y]; }
  rect(...numbers) { this.rects.push(numbers); }
};
"""


def run(script: str, value: Any) -> Any:
    """Run the page's scripts and then one that gives `answer`; NaN comes back as null."""
    told = f"window.probox = {{ constants: {to_script_json(constants())} }};"
    files = [str(ASSETS / f"{name}.js") for name in SCRIPTS]
    load = f"for (const file of {json.dumps(files)}) require('vm').runInThisContext(require('fs').readFileSync(file));"
    text = "\n".join([SETTING, told, load, script, "process.stdout.write(JSON.stringify(answer));"])
    done = subprocess.run(
        [str(NODE), "--eval", text], input=json.dumps(value), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
