"""Reading and placing photos."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from probox.detect.candidates import place_image, read_image, resize
from probox.detect.families.base import channels_first
from probox.detect.image_files import choose_images, find_images
from probox.errors import InputError

from .conftest import Run


@pytest.mark.parametrize("content", [b"", b"not an image", b"\xff\xd8\xff\xe0" + b"\0" * 40, None])
def test_a_bad_image_is_named(tmp_path: Path, photos: Path, content: bytes | None) -> None:
    path = tmp_path / "bad.jpg"
    Image.open(photos / "12.png").save(path)
    path.write_bytes(path.read_bytes()[:-200] if content is None else content)  # cut off
    with pytest.raises(InputError, match=r"bad\.jpg"):
        read_image(path)


@pytest.mark.parametrize("from_origin", [False, True])
@pytest.mark.parametrize("size", [(7, 5), (30, 41), (13, 11)])
def test_resizing_is_bilinear_at_the_stated_points(size: tuple[int, int], from_origin: bool) -> None:
    image = np.random.default_rng(0).integers(0, 255, (17, 23, 3), dtype=np.uint8)
    resized = resize(image, size, from_origin=from_origin)

    def at(number: int, old: int, new: int) -> float:
        point = number * old / new if from_origin else (number + 0.5) * old / new - 0.5
        return min(max(point, 0.0), old - 1.0)

    for row in range(size[1]):
        for column in range(size[0]):
            y, x = at(row, 17, size[1]), at(column, 23, size[0])
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, 16), min(x0 + 1, 22)
            pixels = image.astype(float)
            above = pixels[y0, x0] * (1 - x + x0) + pixels[y0, x1] * (x - x0)
            below = pixels[y1, x0] * (1 - x + x0) + pixels[y1, x1] * (x - x0)
            assert np.abs(above * (1 - y + y0) + below * (y - y0) - resized[row, column]).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("centred", [False, True])
def test_a_box_finds_its_way_back(centred: bool) -> None:
    image = np.full((100, 200, 3), 50, np.uint8)
    image[30:60, 40:120] = 250
    placed, placement = place_image(image, (64, 64), keep_aspect=True, centred=centred, fill=0)
    assert placed.shape == (64, 64, 3)
    bright = np.argwhere(placed[:, :, 0] > 200)
    (y1, x1), (y2, x2) = bright.min(axis=0), bright.max(axis=0) + 1
    box = placement.boxes_to_image(np.array([[x1, y1, x2, y2]]))[0]
    assert np.abs(box - [40, 30, 120, 60]).max() <= 200 / 64
    top = (64 - 32) // 2 if centred else 0
    assert (placed[:top] == 0).all()
    assert (placed[top + 32 :] == 0).all()


@pytest.mark.parametrize("round_down", [False, True])
def test_an_odd_pixel_is_below_and_scales_are_those_of_whole_pixels(round_down: bool) -> None:
    # 100 x 61 fits 64 x 64 at 0.64, as 64 x 39.04; 100 x 65 as 64 x 41.6.
    image = np.full((61, 100, 3), 50, np.uint8)
    placed, placement = place_image(image, (64, 64), keep_aspect=True, centred=True, fill=114, round_down=round_down)
    assert (placed[:, :, 0] == 50).any(axis=1).nonzero()[0].tolist() == list(range(12, 51))  # 12 above, 13 below
    assert placement.offset == (0.0, 12.0)
    assert placement.scale == ((0.64, 0.64) if round_down else (0.64, 39 / 61))
    higher, _ = place_image(np.full((65, 100, 3), 50, np.uint8), (64, 64), keep_aspect=True, round_down=round_down)
    assert (higher[:, 0, 0] == 50).sum() == (41 if round_down else 42)


@pytest.mark.parametrize("bgr", [False, True])
@pytest.mark.parametrize(("mean", "std"), [(0.0, 255.0), ((1.0, 2.0, 3.0), (4.0, 5.0, 7.0))])
def test_channels_come_first_by_their_definition(bgr: bool, mean: object, std: object) -> None:
    image = np.random.default_rng(4).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    found = channels_first(image, bgr=bgr, mean=mean, std=std)
    assert (found.shape, found.dtype) == ((1, 3, 5, 7), np.float32)
    pixels = ((image[:, :, ::-1] if bgr else image).astype(np.float32) - np.float32(mean)) / np.float32(std)
    np.testing.assert_array_equal(found[0], pixels.transpose(2, 0, 1))


def test_covariances_scale_with_the_square() -> None:
    image = np.zeros((50, 200, 3), np.uint8)
    _, placement = place_image(image, (100, 100), keep_aspect=False)  # x halves, y doubles
    covariances = placement.covariances_to_image(np.array([[[[4.0, 2.0], [2.0, 4.0]]] * 2]))
    np.testing.assert_allclose(covariances[0, 0], [[16.0, 2.0], [2.0, 1.0]])


def shown(*places: Path | str, truth: Path | None = None) -> list[tuple[int, str]]:
    return [(image.image_id, image.path.name) for image in find_images(places, truth)]


def coco(path: Path, *entries: dict[str, object], **others: object) -> Path:
    path.write_text(json.dumps({"images": list(entries), **others}))
    return path


ALL = [(3, "3.png"), (7, "7.png"), (12, "12.png"), (20, "20.png")]


def test_ids_are_the_numbers_in_the_names(photos: Path) -> None:
    assert shown(photos) == ALL
    assert choose_images(photos).notes == ()


def test_a_photo_a_pattern_and_a_list_name_them_too(photos: Path, tmp_path: Path) -> None:
    assert shown(photos / "7.png") == ALL[1:2]
    assert shown(str(photos / "*2*.png")) == ALL[2:]
    assert shown(str(tmp_path / "**" / "*.png")) == ALL
    (photos / "list").write_text("\ufeff12.png\r\n\n  7.png  \n../photos/3.png\n", encoding="utf-8")
    assert shown(photos / "list") == ALL[:3]
    assert shown(photos / "3.png", str(photos / "1*.png"), photos / "list") == ALL[:3]


def test_text_called_like_a_photo_is_one_unless_it_names_others(photos: Path) -> None:
    (photos / "5.jpg").write_text("<!DOCTYPE html>\nNot found\n")  # what a failed download leaves
    assert shown(photos / "5.jpg") == [(5, "5.jpg")]


def test_a_list_is_told_by_its_content(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "1.jpg").write_text(f"{photos / '7.png'}\n")
    assert shown(tmp_path / "1.jpg") == ALL[1:2]
    (tmp_path / "photo").write_bytes((photos / "7.png").read_bytes())
    assert [image.path.name for image in find_images(tmp_path / "photo")] == ["photo"]
    (tmp_path / "5.pgm").write_text("P2 2 1 255\n0 255\n")  # a picture that is text
    assert shown(tmp_path / "5.pgm") == [(5, "5.pgm")]
    (tmp_path / "6.png").write_bytes(b"")  # a photo that is damaged, and will be said to be
    assert shown(tmp_path / "6.png") == [(6, "6.png")]
    (tmp_path / "umlauts.txt").write_text("a" + "ü" * 40_000)  # a character is cut in two
    with pytest.raises(InputError, match="line 1: no such photo"):
        find_images(tmp_path / "umlauts.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("7.png\nnone.png\nnor.png\n", r"list: line 2: no such photo: 'none.png' \(and 1 more\)"),
        ("\n \n", "list: expected a list of photos, but it is empty"),
        ("a\0.png\n", None),
        ("", "list: expected a list of photos, but it is empty"),
    ],
)
def test_lists_that_name_nothing(photos: Path, content: str, message: str | None) -> None:
    (photos / "list").write_text(content)
    if message is None:  # not text, so it passes for a photo
        assert [image.path.name for image in find_images(photos / "list")] == ["list"]
        return
    with pytest.raises(InputError, match=message):
        find_images(photos / "list")


def test_nothing_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: no such file or folder; name a photo, a folder"):
        find_images(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no images in this folder"):
        find_images(tmp_path)
    with pytest.raises(InputError, match=r"x\*\.jpg: no photo matches this pattern"):
        find_images(tmp_path / "x*.jpg")
    with pytest.raises(InputError, match="expected at least one image"):
        find_images([])


def test_photos_in_subfolders_are_not_taken_and_said(photos: Path) -> None:
    for name in ("more", "other"):
        (photos / name).mkdir()
    assert choose_images(photos).notes == ()
    (photos / "12.png").rename(photos / "more" / "12.png")
    chosen = choose_images(photos)
    assert len(chosen.images) == 3
    assert str(chosen.notes[0]).startswith(f"photos in 1 subfolder of {photos} are excluded (the first: more)")
    for name in ("3", "7", "20"):
        (photos / f"{name}.png").rename(photos / "other" / f"{name}.png")
    with pytest.raises(
        InputError, match=r"in 2 subfolders of it \(the first: more\); name the subfolders, or a pattern"
    ):
        find_images(photos)
    assert shown(str(photos / "**" / "*.png")) == ALL


def test_names_that_are_no_numbers_are_counted_and_said(photos: Path) -> None:
    (photos / "3.png").rename(photos / "cat.png")
    chosen = choose_images(photos)
    assert [(image.image_id, image.path.name) for image in chosen.images] == [
        (0, "12.png"), (1, "20.png"), (2, "7.png"), (3, "cat.png"),
    ]  # fmt: skip
    assert all(image.counted for image in chosen.images)
    assert tuple(map(str, chosen.notes)) == (
        "images are numbered from 0 in order of their paths, because cat.png is not a number; "
        "give the ground truth to use its image ids (truth)",
    )


def test_names_with_the_same_number_are_counted_and_said(photos: Path) -> None:
    (photos / "3.png").rename(photos / "007.png")
    chosen = choose_images(photos)
    assert [image.image_id for image in chosen.images] == [0, 1, 2, 3]
    assert f"because {photos / '007.png'} and {photos / '7.png'} have the same number" in str(chosen.notes[0])


def test_numbers_too_long_for_an_id_are_none(photos: Path) -> None:
    (photos / "3.png").rename(photos / f"{'9' * 18}.png")
    assert not choose_images(photos).images[0].counted
    (photos / f"{'9' * 18}.png").rename(photos / f"{'9' * 19}.png")
    assert choose_images(photos).images[0].counted


def test_a_photo_named_twice_is_looked_at_once_and_said(photos: Path) -> None:
    chosen = choose_images([photos, photos / "7.png", photos / ".." / "photos" / "3.png"])
    assert [(image.image_id, image.path.name) for image in chosen.images] == ALL
    assert tuple(map(str, chosen.notes)) == (
        f"2 photos named more than once are processed once (the first: {photos / '7.png'})",
    )


def test_ids_names_sizes_and_categories_come_from_the_truth(photos: Path, tmp_path: Path) -> None:
    truth = coco(
        tmp_path / "truth.json",
        {"id": 900, "file_name": "12.png", "width": 64, "height": 48},
        {"id": 5, "file_name": "val/7.png"},
        {"id": 6, "file_name": "no.png"},
        categories=[{"id": 4, "name": "cup"}],
    )
    chosen = choose_images(photos, truth)
    assert [(image.image_id, image.path.name, image.name) for image in chosen.images] == [
        (5, "7.png", "val/7.png"),
        (900, "12.png", "12.png"),
    ]
    assert [image.size for image in chosen.images] == [None, (64, 48)]
    assert not any(image.counted for image in chosen.images)
    assert chosen.categories == {4: "cup"}
    assert tuple(map(str, chosen.notes)) == (
        f"2 photos not in {truth}: excluded (the first: 20.png)",
        f"1 image of {truth} without a photo here (the first: no.png)",
    )
    with pytest.raises(
        InputError, match=r"none of its images is among the photos \(first image: no.png, first photo: 12"
    ):
        find_images(photos, coco(truth, {"id": 6, "file_name": "no.png"}))


def test_images_of_one_name_are_told_apart_by_their_folders(photos: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "7.png").write_bytes((photos / "7.png").read_bytes())
    entries = [{"id": 1, "file_name": "other/7.png"}, {"id": 2, "file_name": "photos/7.png"}]
    truth = coco(tmp_path / "truth.json", *entries)
    pairs = [(image.image_id, image.path) for image in find_images([photos, other], truth)]
    assert pairs == [(1, other / "7.png"), (2, photos / "7.png")]
    assert [(image.image_id, image.path) for image in find_images(photos, truth)] == pairs[1:]
    beside = coco(tmp_path / "beside.json", {"id": 1, "file_name": "7.png"}, {"id": 2, "file_name": "photos/7.png"})
    assert (2, photos / "7.png") in [(image.image_id, image.path) for image in find_images([photos, other], beside)]
    one = coco(tmp_path / "one.json", {"id": 1, "file_name": "7.png"})
    with pytest.raises(InputError, match=r"one\.json: .*7\.png and .*7\.png both fit the image 7\.png; name one"):
        find_images([photos, other], one)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"images": [{"id": "x", "file_name": "7.png"}]}', "list of images"),
        ('{"images": 5}', "list of images"),
        ("{}", "list of images"),
        ('{"images": [{"id": 1, "file_name": "7.png"}, {"id": 1, "file_name": "3.png"}]}', "two images have this id"),
        ("[]", "expected COCO ground truth, but got a list"),
    ],
)
def test_truth_that_is_none(photos: Path, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "truth.json").write_text(content)
    with pytest.raises(InputError, match=message):
        find_images(photos, tmp_path / "truth.json")


def test_any_truth_will_do(tmp_path: Path) -> None:
    for name in ("images", "labels"):
        (tmp_path / "set" / name).mkdir(parents=True)
    for number, name in enumerate(("cat", "dog")):
        Image.fromarray(np.zeros((20, 30 + number, 3), np.uint8)).save(tmp_path / "set" / "images" / f"{name}.png")
        (tmp_path / "set" / "labels" / f"{name}.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "set" / "data.yaml").write_text("val: images\nnames: [animal]\n")
    chosen = choose_images(tmp_path / "set" / "images", tmp_path / "set" / "data.yaml")
    assert [(image.image_id, image.path.name, image.size) for image in chosen.images] == [
        (1, "cat.png", (30, 20)),
        (2, "dog.png", (31, 20)),
    ]
    assert chosen.categories == {1: "animal"}


def test_truth_without_file_names_goes_by_numbers(photos: Path, tmp_path: Path) -> None:
    (photos / "3.png").rename(photos / "cat.png")
    truth = coco(tmp_path / "truth.json", {"id": 7}, {"id": 20}, {"id": 21})
    assert shown(photos, truth=truth) == [(7, "7.png"), (20, "20.png")]


def test_videos_and_pictures_that_cannot_be_read_are_named(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        choose_images(photos / "clip.mp4")
    for name in ("clip.MP4", "other.mkv", "4.heic", "notes.txt"):
        (photos / name).write_bytes(bytes(100))
    chosen = choose_images(photos)
    assert [image.image_id for image in chosen.images] == [3, 7, 12, 20]
    assert tuple(map(str, chosen.notes)) == (
        f"{photos}: 2 videos excluded (the first: clip.MP4); extract the frames first, for example: ffmpeg -i VIDEO "
        "frames/%06d.png",
        f"{photos}: 1 HEIC or JPEG XL picture excluded (the first: 4.heic); save them as PNG or JPEG",
    )
    named = tmp_path / "list.txt"
    named.write_text("photos/3.png\nphotos/clip.MP4\n")
    for place in (photos / "clip.MP4", named):
        with pytest.raises(InputError, match=r"clip\.MP4: expected a photo, but got a video; extract the frames"):
            choose_images(place)
    for place in (photos / "*.MP4", photos / "*.heic"):
        with pytest.raises(InputError, match="expected photos, but got 1"):
            choose_images(place)


def test_avif_in_a_folder_is_a_photo(photos: Path, run: Run, ssd: Path, names: Path) -> None:
    (photos / "9.avif").write_bytes(b"\0\0\0\x1cftypavif" + bytes(20))  # no release of Pillow reads this
    assert [image.image_id for image in find_images(photos)] == [3, 7, 9, 12, 20]
    said = run(ssd, "--images", photos, "--classes", names, "--out", photos / "x.json")[2]
    assert "9.avif: expected an image that Pillow reads, but got an AVIF image; save it as PNG or JPEG" in said
