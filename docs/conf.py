"""Configure the site: ``python -m sphinx -W --keep-going -b html docs out``.

The build reads nothing from the network, except for ``SKLEARN_PNL_INTERSPHINX=1``,
which adds links to the pages of scikit-learn, NumPy and SciPy.
``SKLEARN_PNL_GALLERY=0`` does not run the examples. If ``SKLEARN_PNL_DATA`` names the
folder with the images, the examples on MNIST and CIFAR-10 run as well.
``SKLEARN_PNL_SITE`` is the address of all versions, and ``SKLEARN_PNL_SITE_VERSION``
the version of this build.
"""

import os
import sys
import tomllib
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


os.environ.setdefault("OMP_NUM_THREADS", "1")
from sklearn.experimental import enable_iterative_imputer  # noqa: E402, F401

import sklearn_pnl  # noqa: E402

PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["project"]

project = "sklearn_pnl"
author = copyright = "The sklearn_pnl developers"
version = release = sklearn_pnl.__version__
html_title = "sklearn_pnl"

extensions = [
    "_mathml",
    "_docstrings",
    "_plain",
    "_llms",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
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
# The arguments of Draws.start, which only a class of your own meets.
nitpick_ignore = [("py:class", "NewCodes"), ("py:class", "Request")]
default_role = None

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# What code prints is not to be copied.
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"
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
    "default_thumb_file": str(HERE / "_static" / "pictures" / "codes.svg"),
    "ignore_pattern": "paper_images",
    "download_all_examples": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "within_subsection_order": "_gallery.Order",
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
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": "sklearn_pnl",
    },
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "github_url": PROJECT["urls"]["Source"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
if site := os.environ.get("SKLEARN_PNL_SITE"):
    shown = os.environ.get("SKLEARN_PNL_SITE_VERSION", "dev").removeprefix("v")
    html_baseurl = f"{site.rstrip('/')}/{shown}/"
    html_theme_options |= {
        "navbar_start": ["navbar-logo", "version-switcher"],
        "switcher": {
            "json_url": f"{site.rstrip('/')}/switcher.json",
            "version_match": shown,
        },
        # It is written after this build.
        "check_switcher": False,
    }
ogp_site_url = html_baseurl if site else ""
ogp_social_cards = {"enable": False}
llms_summary = PROJECT["description"]
without_sidebar = (
    "index",
    "getting_started",
    "when_to_oversample",
    "parameters",
    "recipes",
    "benchmarks",
    "comparison",
    "large_data",
    "troubleshooting",
    "paper",
    "from_the_paper",
    "citing",
    "changelog",
)
html_sidebars = {page: [] for page in without_sidebar}
html_sidebars["auto_examples/*"] = []
toc_object_entries_show_parents = "hide"
