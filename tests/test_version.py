"""The version stands once, in `probox.version`."""

from importlib.metadata import version

import probox
import probox.version


def test_metadata_and_package_tell_the_same_version() -> None:
    assert probox.__version__ == probox.version.__version__ == version("probox")
