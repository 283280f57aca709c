"""Folders of labels to start from, and what is changed in them: bytes, words and headers of images."""

from __future__ import annotations

import re
import struct
from random import Random

from .mutate import NUMBERS, mutate_bytes

__all__ = ["LABEL_SEEDS", "data_yaml", "image_header", "label_folder"]

Files = dict[str, bytes]


def _png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0) + bytes(16)


def _jpeg(width: int, height: int, orientation: int) -> bytes:
    entry = struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0)
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4)
    app1 = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    return b"\xff\xd8" + app1 + b"\xff\xc0" + struct.pack(">HBHH", 11, 8, height, width) + bytes(8)


def _bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<IiiHH", 40, width, -height, 1, 24) + bytes(16)


def _webp(width: int, height: int) -> bytes:
    bits = (width - 1) | (height - 1) << 14
    return b"RIFF\x20\0\0\0WEBPVP8L\x10\0\0\0\x2f" + struct.pack("<I", bits) + bytes(8)


def _gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(8)


def _lossy_webp(width: int, height: int) -> bytes:
    frame = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF\x20\0\0\0WEBPVP8 \x10\0\0\0" + frame + bytes(8)


def _extended_webp(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + sides + bytes(8)


HEADERS = (
    _png(64, 32), _jpeg(20, 50, 6), _bmp(40, 30), _gif(30, 30), _webp(30, 30), _lossy_webp(30, 30),
    _extended_webp(30, 30),
)  # fmt: skip
"""How images begin, one of each kind."""


def image_header(rng: Random) -> Files:
    """Return the damaged beginning of an image."""
    return {"file": mutate_bytes(rng, rng.choice(HEADERS), HEADERS)}


def data_yaml(rng: Random) -> Files:
    """Return a changed ``data.yaml``."""
    data = _reworded(rng, _DATA_YAML) if rng.random() < 0.6 else mutate_bytes(rng, _DATA_YAML, [_DATA_YAML, *YAML])
    return {"data.yaml": data}


YAML = (
    b"&a [1]", b"*a", b"!!python/object:os.system x", b"- " * 200, b"{" * 300, b"[" * 3000, b"1: {2: {3: 4}}", b"? x",
    b"|\n  text\n", b"2024-13-45", b"0x1F", b"1_000", b".inf", b"<<: {a: 1}", b"%YAML 9.9\n", b"---\n", b"names: 3",
    b"0: a\n  0: b", b"99999999: x", b"'", b'"\\x', b"\t",
)  # fmt: skip

_DATA_YAML = (
    b"path: .\ntrain: images/train\nval: [images/val, more.txt]\ntest:\nnc: 3\nkpt_shape: [17, 3]\n"
    b"names:\n  0: cup\n  1: 'dog'\n  2: \"big cat\"\n"
)

_YOLO: Files = {
    "truth/data.yaml": b"path: .\ntrain: images/train\nval: [images/val, more.txt]\nnames: {0: cup, 1: dog}\nnc: 2\n",
    "truth/more.txt": b"./images/val/9.jpg\n",
    "truth/images/val/7.png": _png(64, 32),
    "truth/images/val/8.bmp": _bmp(40, 30),
    "truth/images/val/9.jpg": _jpeg(20, 50, 6),
    "truth/images/val/10.webp": _webp(30, 30),
    "truth/labels/val/7.txt": b"0 0.5 0.5 0.25 0.5\n1 0.1 0.1 0.9 0.2 0.5 0.8\n",
    "truth/labels/val/8.txt": b"1 0.25 0.25 0.5 0.125\n\n0 1 1 0 0\n",
    "truth/labels/val/10.txt": b"",
    "found/7.txt": b"0 0.5 0.5 0.25 0.5 0.875\n1 0.5 0.5 0.25 0.25 0.01\n",
    "found/8.txt": b"1 0.1 0.1 0.9 0.2 0.5 0.8 0.5\n",
    "found/10.txt": b"1 0.25 0.25 0.5 0.125 0.3\n",
}

_XML = (
    b"<annotation><filename>%s</filename><size><width>64</width><height>32</height></size>"
    b"<object><name>dog</name><difficult>0</difficult><bndbox><xmin>2</xmin><ymin>3</ymin><xmax>40</xmax>"
    b"<ymax>30</ymax></bndbox></object><object><name>cup</name><difficult>1</difficult><bndbox><xmin>1</xmin>"
    b"<ymin>1</ymin><xmax>9.5</xmax><ymax>12</ymax></bndbox></object></annotation>"
)

_VOC: Files = {
    "truth/Annotations/000007.xml": _XML % b"000007.jpg",
    "truth/Annotations/000008.xml": (_XML % b"000008.png").replace(b"64", b"0"),
    "truth/JPEGImages/000008.png": _png(64, 32),
    "truth/ImageSets/Main/test.txt": b"000007\n000008\n",
    "found/comp4_det_test_dog.txt": b"000007 0.9 2 3 41 30\n000008 0.25 5 5 9 9\n",
    "found/comp4_det_test_cat.txt": b"000007 0.5 1 1 8 8\n",
}

_REST = b"1.5 1.6 3.7 1 2 3 -1.5"
_KITTI: Files = {
    "truth/label_2/000000.txt": b"Car 0.00 0 -1.57 10 4.5 40 30 %s\nDontCare -1 -1 -10 1 1 9 9 %s\n" % (_REST, _REST),
    "truth/label_2/000001.txt": b"Van 0.00 0 -1.57 1 4.5 4 30 %s\n" % _REST,
    "truth/image_2/000000.png": _png(64, 32),
    "truth/image_2/000001.jpg": _jpeg(50, 40, 1),
    "found/000000.txt": b"Car -1 -1 -10 11 5 41 29 %s 0.75\n" % _REST,
    "found/000001.txt": b"Tram -1 -1 -10 1 2 3 4 %s 0.5\n" % _REST,
}

_OPEN_IMAGES: Files = {
    "truth/boxes.csv": (
        b"ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf\n"
        b"a1,xclick,/m/0k4j,1,0.1,0.5,0.25,0.75,0,0,0\nb2,xclick,/m/0bt9lr,1,0,1,0,1,0,0,1\n"
    ),
    "truth/class-descriptions.csv": b'/m/0k4j,Car\n/m/0bt9lr,"Dog, large"\n/m/02p5f1q,Cup\n',
    "truth/images/a1.jpg": _jpeg(64, 32, 1),
    "truth/images/b2.jpg": _png(40, 40),
    "found/found.csv": (
        b"ImageID,LabelName,Score,XMin,XMax,YMin,YMax\na1,/m/0k4j,0.75,0.1,0.5,0.25,0.75\nb2,/m/x,0.5,0,0.5,0,1\n"
    ),
}

LABEL_SEEDS: dict[str, Files] = {"yolo": _YOLO, "voc": _VOC, "kitti": _KITTI, "open-images": _OPEN_IMAGES}

_LEADS_OUT = re.compile(rb"(^|[^\w.])(/|~|\.\.)|^[^:]*:\s*['\"]?/", re.MULTILINE)
"""Paths that lead out of the folder are the user's own choice; here they would read somebody else's files."""


def label_folder(name: str, rng: Random) -> Files:
    """Return a folder of labels in which one file or two are changed."""
    files = dict(LABEL_SEEDS[name])
    for _ in range(rng.choice((1, 1, 2))):
        file = rng.choice(list(files))
        data = _reworded(rng, files[file]) if rng.random() < 0.5 else mutate_bytes(rng, files[file], [*files.values()])
        if file.endswith((".yaml", "more.txt")) and _LEADS_OUT.search(data.replace(b"./images", b"")):
            continue
        files[file] = data
    if rng.random() < 0.05:
        del files[rng.choice(list(files))]
    return files


def _reworded(rng: Random, data: bytes) -> bytes:
    """Replace a word by another one, or by a number at a border; or drop, repeat or swap words."""
    words = re.split(rb"([\s,<>:]+)", data)
    at = rng.randrange(0, len(words), 2)
    kind = rng.randrange(5)
    if kind == 0:
        words[at] = str(rng.choice(NUMBERS)).encode()
    elif kind == 1:
        words[at] = rng.choice((b"nan", b"-inf", b"1e999", b"", b"-1", b"0", b"1", b"0.5", b"2", b"x" * 300, b"\xff"))
    elif kind == 2:
        words[at] = words[rng.randrange(0, len(words), 2)]
    elif kind == 3:
        del words[at : at + 2]
    else:
        words[at:at] = words[at : at + 2] * rng.choice((1, 2, 50))
    return b"".join(words)
