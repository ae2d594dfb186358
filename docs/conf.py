"""Configuration of the site: ``python -m sphinx -W --keep-going -b html docs out``.

Nothing is read from the network. ``SKLEARN_PNL_INTERSPHINX=1`` adds links to the pages
of scikit-learn, NumPy and SciPy, and needs it; ``SKLEARN_PNL_GALLERY=0`` leaves the
examples unrun. Those on MNIST and CIFAR-10 run where ``SKLEARN_PNL_DATA`` names the
folder with the images.
"""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


os.environ.setdefault("OMP_NUM_THREADS", "1")
import claims  # noqa: E402
import drawings  # noqa: E402
import measured  # noqa: E402

import sklearn_pnl  # noqa: E402

GENERATED = HERE / "_generated"
drawings.draw_all(GENERATED)
measured.write_tables(GENERATED)
claims.write_table(GENERATED)

project = "sklearn_pnl"
author = copyright = "The sklearn_pnl developers"
version = release = sklearn_pnl.__version__
html_title = "sklearn_pnl"

extensions = [
    "_mathml",
    "_docstrings",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_generated",
    "auto_examples/*.md5",
    "auto_examples/*.ipynb",
]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(sklearn|imblearn|numpy|scipy|joblib|matplotlib|pandas)\..*")
]
default_role = None

myst_enable_extensions = ["colon_fence", "dollarmath", "substitution", "deflist"]
myst_heading_anchors = 3
myst_substitutions = measured.figures()
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_use_plots = False

with_images = bool(os.environ.get("SKLEARN_PNL_DATA"))
with_gallery = os.environ.get("SKLEARN_PNL_GALLERY", "1") != "0"
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "plot_gallery": with_gallery,
    "filename_pattern": "/(plot|mnist|cifar)_" if with_images else "/plot_",
    "doc_module": ("sklearn_pnl",),
    "backreferences_dir": "_generated/backreferences",
    "inspect_global_variables": True,
    "show_memory": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}
# Pictures are written into the page; no window could be shown.
warnings.filterwarnings("ignore", message=".*non-interactive.*")

if os.environ.get("SKLEARN_PNL_INTERSPHINX", "0") == "1":
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "imblearn": ("https://imbalanced-learn.org/stable", None),
    }

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "sklearn_pnl"},
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
alone = ("start", "choose", "recipes", "scale", "when_not", "benchmarks", "errors")
alone += ("paper", "paper_figures")
html_sidebars = {page: [] for page in (*alone, "citing", "changelog")}
html_sidebars["auto_examples/*"] = []
toc_object_entries_show_parents = "hide"
