"""The paper's controlled experiments: functions that return a table, with claims that are checked.

>>> import probox_experiments as experiments
>>> table = experiments.duplicates(times=[1, 2, 4])
>>> table["PDQ"].tolist(), table["mAP"].round(6).tolist()
([1.0, 0.5, 0.25], [1.0, 1.0, 1.0])

`probox experiment run all` runs all of them, draws figures and checks every claim. Use `SimulatedDetector` for your own
studies.
"""

import lazy_loader

# Names are imported on first use, so that `probox --help` does not wait for NumPy. `__init__.pyi` lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
