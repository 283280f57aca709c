"""Random masks on torch modules: by seed, image, pass and layer, and nothing left behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests import frameworks

from probox.detect import Candidates, Dropout, draw_mask
from probox.detect.torch_model import choose_layers, mask_layers, sample_masked
from probox.errors import InputError

torch: Any = None
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
IMAGES = [np.full((4, 4, 3), value, np.uint8) for value in (10, 20, 30)]


@pytest.fixture(autouse=True, scope="module")
def _torch() -> None:
    global torch
    torch = frameworks.torch()
    torch.set_num_threads(1)


def _shared_head(**own: Any) -> Any:
    """A head that looks at two maps, after a dropout module if there is one."""

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem = torch.nn.Conv2d(3, 60, 1, bias=False)
            self.drop = torch.nn.Dropout(**own) if own else torch.nn.Identity()
            self.head = torch.nn.Conv2d(60, 60, 1, bias=False)
            torch.nn.init.constant_(self.stem.weight, 0.3)
            torch.nn.init.dirac_(self.head.weight)

        def forward(self, pixels: Any) -> Any:
            fine = self.drop(self.stem(pixels))
            return self.head(fine), self.head(fine[:, :, ::2, ::2])

    return Model().eval()


def _runner(model: Any) -> Any:
    def run(images: Any) -> list[Candidates]:
        assert len(images) == 1
        with torch.no_grad():
            fine, coarse = model(torch.from_numpy(images[0].transpose(2, 0, 1).copy())[None].float())
        rows = np.concatenate([fine.numpy().reshape(60, -1).T, coarse.numpy().reshape(60, -1).T])
        return [Candidates(np.zeros((len(rows), 4)), rows)]

    return run


def _chosen(model: Any, layers: str = "heads") -> list[tuple[str, Any]]:
    return choose_layers(model, layers, heads=lambda name: name == "head", backbone=lambda name: name == "stem")


def _sample(model: Any, dropout: Dropout, rows: list[int], passes: int = 3) -> list[list[np.ndarray]]:
    ids = [100 + row for row in rows]
    chosen = _chosen(model, dropout.layers)
    drawn = sample_masked(chosen, dropout, _runner(model), [IMAGES[row] for row in rows], passes, ids)
    for row, own in zip(rows, drawn, strict=True):
        assert own.plain is not None
        np.testing.assert_array_equal(own.plain.scores, _runner(model)([IMAGES[row]])[0].scores)
    return [[found.scores for found in own] for own in drawn]


def test_masks_keep_the_expected_input() -> None:
    layer = torch.nn.Conv2d(400, 400, 1, bias=False)
    torch.nn.init.dirac_(layer.weight)
    ones = torch.ones(1, 400, 2, 2)
    drawn = []
    for number in range(20):
        with torch.no_grad(), mask_layers([("head", layer)], Dropout(rate=0.25, masks="channels"), 7, number):
            drawn.append(layer(ones))
            assert torch.equal(layer(ones), drawn[-1])  # a second call is the same network
    stacked = torch.stack(drawn)
    assert stacked.mean().item() == pytest.approx(1.0, abs=0.03)
    assert (stacked == stacked[..., :1, :1]).all()
    assert len({one.numpy().tobytes() for one in drawn}) == 20
    wanted = draw_mask((1, 400, 1, 1), 0.25, "float32", seed=0, image_id=7, number=3, layer="head")
    np.testing.assert_array_equal(drawn[3][:, :, :1, :1].numpy(), wanted)
    torch.testing.assert_close(layer(ones), ones)


def test_elements_differ_from_cell_to_cell_and_from_call_to_call_in_any_type() -> None:
    layer = torch.nn.Linear(500, 500, bias=False).to(torch.bfloat16)
    torch.nn.init.eye_(layer.weight)
    ones = torch.ones(4, 500, dtype=torch.bfloat16)
    with torch.no_grad(), mask_layers([("head", layer)], Dropout(rate=0.25, masks="elements"), 7, 0):
        first, second = layer(ones), layer(ones)
    assert first.dtype == torch.bfloat16
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first, second)
    assert (first == 0).float().mean().item() == pytest.approx(0.25, abs=4 * np.sqrt(0.19 / 2000))


@pytest.mark.parametrize(
    "dropout",
    [Dropout(rate=0.3, masks="channels"), Dropout(rate=0.3, masks="elements"), Dropout(layers="existing")],
    ids=["channels", "elements", "existing"],
)
def test_masks_belong_to_seed_image_and_pass_and_to_nothing_else(dropout: Dropout) -> None:
    model = _shared_head(p=0.4)
    state = torch.get_rng_state()
    both = _sample(model, dropout, [0, 2])
    assert len({scores.tobytes() for own in both for scores in own}) == 6
    # Another order, one alone, fewer passes: the same.
    again = _sample(model, dropout, [2, 1, 0])
    np.testing.assert_array_equal(again[2], both[0])
    np.testing.assert_array_equal(again[0], both[1])
    np.testing.assert_array_equal(_sample(model, dropout, [2], 2)[0], both[1][:2])
    other = _sample(model, Dropout(rate=dropout.rate, masks=dropout.masks, layers=dropout.layers, seed=1), [0])
    assert not any(np.array_equal(a, b) for a, b in zip(other[0], both[0], strict=True))
    # Nothing is left behind.
    assert torch.equal(torch.get_rng_state(), state)
    assert model.drop.p == 0.4
    assert not any(module.training or module._forward_pre_hooks for module in model.modules())


def test_the_models_own_dropout_comes_first_at_its_own_rate() -> None:
    model = _shared_head(p=0.4)
    assert [name for name, _ in _chosen(model, "auto")] == ["drop"]
    for rate, wanted in ((None, 0.4), (0.1, 0.1)):
        drawn = np.array(_sample(model, Dropout(rate=rate), [0], 20)[0])[:, :16]
        assert (drawn == 0).mean() == pytest.approx(wanted, abs=0.03)
    # Each image, pass and seed has masks of its own, and the same ones whenever it comes.
    first, second = _sample(model, Dropout(), [0, 1], 2)
    others = [*np.array(first), *np.array(second), *np.array(_sample(model, Dropout(seed=1), [0], 1)[0])]
    assert len({(one == 0).tobytes() for one in others}) == 5
    np.testing.assert_array_equal(np.array(_sample(model, Dropout(), [1], 2)[0]) == 0, np.array(second) == 0)
    # One that drops nothing is not there.
    assert [name for name, _ in _chosen(_shared_head(p=0.0), "auto")] == ["head"]
    assert [name for name, _ in _chosen(_shared_head(), "auto")] == ["head"]
    with pytest.raises(InputError, match="no layer of the model is 'existing'"):
        _chosen(_shared_head(), "existing")
    with pytest.raises(InputError, match="regular expression"):
        _chosen(model, "(")
