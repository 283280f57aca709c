"""Readers and writers of files: a module or package per format, all listed in `registry`; content tells formats."""

import lazy_loader

# Names are imported on first use, so that no format needs the modules of others. `__init__.pyi` lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
