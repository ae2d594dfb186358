"""The built site in a browser; skipped where there is no site or no browser."""

import shutil
import subprocess
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.skipif(not SITE.exists(), reason="the site is not built"),
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    # The search fetches pages, which browsers refuse for files.
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def seen(url, tmp_path):
    """What a page shows once its scripts have run, and what they complained of."""
    run = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            f"--user-data-dir={tmp_path}",
            "--dump-dom",
            url,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    complaints = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    return run.stdout, [c for c in complaints if "Uncaught" in c or "ERR_" in c]


@pytest.mark.parametrize(
    "page, wanted",
    [
        ("index.html", "How do I choose?"),
        ("start.html", "A rare class of 20 rows"),
        ("api/index.html", "generated/sklearn_pnl.PNLSampler.html"),
        ("search.html?q=raking", "sklearn_pnl.geometry.rake"),
        ("guide/control.html", "Theorem 1"),
        ("auto_examples/plot_1_row_and_code.html", "sphx_glr_plot_1_row_and_code"),
    ],
)
def test_page_works(page, wanted, address, tmp_path):
    shown, complaints = seen(f"{address}/{page}", tmp_path)
    assert wanted in shown
    assert not complaints
