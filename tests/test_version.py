"""The version stands once, in `probox.version`."""

import subprocess
import sys
from importlib.metadata import version

import probox
import probox.version


def test_metadata_and_package_tell_the_same_version() -> None:
    assert probox.__version__ == probox.version.__version__ == version("probox")


def test_the_command_line_without_its_script() -> None:
    done = subprocess.run([sys.executable, "-m", "probox", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"probox, version {probox.__version__}\n"
