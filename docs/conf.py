"""Sphinx settings of the site; docs/build.sh builds it. docs/machinery extends Sphinx."""

import sys
from pathlib import Path

from probox.version import __version__

MACHINERY = Path(__file__).parent / "machinery"
sys.path.insert(0, str(MACHINERY))

project = "probox"
author = "The probox developers"
copyright = "the probox developers, BSD-3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docstrings",
    "mathml",
    "pages",
    "twins",
]
exclude_patterns = ["machinery"]
nitpicky = True
# Names of other packages and aliases have no page here; names of probox must have one, except internal types.
nitpick_ignore_regex = [
    ("py:.*", r"(?!probox\.).*"),
    ("py:.*", r"probox\..*\.(Self|Some\w+|Rows|Heatmaps|Passes|NumberColumn|Mapper|ImageState)"),
    (
        "py:.*",
        r"probox\..*\.(BoxMatches|BoxColumns|BoxRules|LazyMeasure|Ranges|Totals|Scene|MaskCost|Graph|FlatTable|FamilyInputs|Metadata|Placement|Kept|PrototypeMasks|DemoScene)",
    ),
    ("py:.*", r"probox\..*\.(CornerMap|LabelMap|PhotoResult|Tensor)"),
]
default_role = "code"
smartquotes = False
highlight_language = "text"
pygments_style = "default"
pygments_dark_style = "monokai"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
html_math_renderer = "mathml"

# torch is never imported, so the site does not depend on whether it is installed.
autodoc_mock_imports = ["torch"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {
    "members": True,
    "inherited-members": "object,BaseException,Exception,Module,tuple,dict,Mapping",
}
napoleon_google_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"probox {version}"
html_static_path = [str(MACHINERY / "static")]
templates_path = [str(MACHINERY / "templates")]
html_css_files = ["probox.css"]
html_favicon = html_logo = str(MACHINERY / "static" / "logo.svg")
html_theme_options = {"top_of_page_buttons": ["view"]}
html_copy_source = False
html_show_sourcelink = False
html_use_index = True
