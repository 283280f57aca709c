"""`probox --cite`: what to cite, as BibTeX."""

from __future__ import annotations

from probox.version import __version__

__all__ = ["bibliography"]

YEAR = 2026
"""Of this version, as in LICENSE."""

_ENTRIES = r"""
@misc{probox,
  author = {{The probox developers}},
  title = {probox: measure, make and show probabilistic object detections},
  year = {YEAR},
  note = {Version VERSION}
}

@inproceedings{hall2020probabilistic,
  author = {Hall, David and Dayoub, Feras and Skinner, John and Zhang, Haoyang and Miller, Dimity and Corke, Peter
            and Carneiro, Gustavo and Angelova, Anelia and S{\"u}nderhauf, Niko},
  title = {Probabilistic Object Detection: Definition and Evaluation},
  booktitle = {IEEE/CVF Winter Conference on Applications of Computer Vision (WACV)},
  year = {2020},
  eprint = {1811.10800},
  archiveprefix = {arXiv}
}

@inproceedings{lin2014microsoft,
  author = {Lin, Tsung-Yi and Maire, Michael and Belongie, Serge and Hays, James and Perona, Pietro
            and Ramanan, Deva and Doll{\'a}r, Piotr and Zitnick, C. Lawrence},
  title = {Microsoft {COCO}: Common Objects in Context},
  booktitle = {European Conference on Computer Vision (ECCV)},
  year = {2014}
}

@inproceedings{oksuz2018localization,
  author = {Oksuz, Kemal and Cam, Baris Can and Akbas, Emre and Kalkan, Sinan},
  title = {Localization Recall Precision ({LRP}): A New Performance Metric for Object Detection},
  booktitle = {European Conference on Computer Vision (ECCV)},
  year = {2018}
}
"""


def bibliography() -> str:
    """Return the entries for probox and for the papers of its standard measures.

    >>> print(bibliography().splitlines()[0])
    % PDQ: hall2020probabilistic. mAP: lin2014microsoft. moLRP: oksuz2018localization. The software: probox.
    """
    which = {"PDQ": "hall2020probabilistic", "mAP": "lin2014microsoft", "moLRP": "oksuz2018localization"}
    words = " ".join(f"{what}: {key}." for what, key in which.items())
    entries = _ENTRIES.replace("YEAR", str(YEAR)).replace("VERSION", __version__)
    return f"% {words} The software: probox.\n{entries}".rstrip()
