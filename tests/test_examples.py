"""The examples run; examples with external data run if the data are available."""

import multiprocessing
import os
import runpy
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path

import pytest

pytestmark = pytest.mark.starting

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
ON_IMAGES = [
    path
    for pattern in ("mnist_*.py", "cifar_*.py")
    for path in sorted((ROOT / "examples" / "paper").glob(pattern))
]
# This module needs "pytest", and the process of an example loads this module.
LIBRARIES = ["imblearn", "matplotlib.pyplot", "pandas", "pytest", "sklearn_pnl"]


@pytest.fixture(scope="module")
def claims():
    """Return the module with which the site reads claims of the paper."""
    spec = spec_from_file_location("claims", ROOT / "docs" / "claims.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run():
    """Return the output of an example, in a process in which warnings are errors."""
    # Loading the libraries takes longer than most examples, so that processes are
    # forked from a process that has loaded them, if the system can fork.
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    context.set_forkserver_preload(LIBRARIES)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        environment.setenv("PYTHONWARNINGS", "error")
        # Without a display, matplotlib opens no window.
        environment.delenv("DISPLAY", raising=False)

        def run(example, folder):
            with ProcessPoolExecutor(1, context) as process:
                return process.submit(printed_by, example, folder).result()

        yield run


def printed_by(example, folder):
    """Run an example in this process, which ends afterwards."""
    os.chdir(folder)
    sys.path.insert(0, str(example.parent))
    with redirect_stdout(StringIO()) as printed:
        runpy.run_path(str(example), run_name="__main__")
    return printed.getvalue()


def check(claims, example, printed):
    """Check that the site has the claims and verdicts that an example prints."""
    found = [(paper, verdict) for paper, _, verdict in claims.claims_in(printed)]
    rows = [row for row in claims.kept() if row["figure"] == example.stem]
    assert found == [(row["paper"], row["verdict"]) for row in rows]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_without_a_warning(example, tmp_path, claims, run):
    printed = run(example, tmp_path)
    if example.parent.name == "paper":
        check(claims, example, printed)


@pytest.mark.skipif(
    not os.environ.get("SKLEARN_PNL_DATA"),
    reason="SKLEARN_PNL_DATA does not name a folder with mnist.npz and cifar10.npz",
)
@pytest.mark.parametrize("example", ON_IMAGES, ids=lambda path: path.stem)
def test_example_on_images_runs_without_a_warning(example, tmp_path, claims, run):
    check(claims, example, run(example, tmp_path))


def test_every_figure_of_the_paper_has_its_claims(claims):
    figures = {row["figure"] for row in claims.kept()}
    scripts = {path.stem for path in claims.EXAMPLES.glob("*.py")}
    assert figures == set(claims.FIGURES) == scripts - {"paper_images"}
