"""What the tests of registered measures share."""

from __future__ import annotations

import pytest
from tests.measures.scoring.packages import NAMES, world

import probox
from probox import Evaluation


@pytest.fixture(scope="module")
def golden() -> Evaluation:
    return probox.evaluate(*world(), measures=NAMES)
