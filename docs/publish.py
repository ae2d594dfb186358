"""Add a built site to the folder of all versions, and update the list of versions.

Run ``python docs/publish.py SITE PAGES VERSION ADDRESS``. SITE is the output of Sphinx,
PAGES the checkout of the published branch, VERSION ``dev`` or a tag ``v1.2.3``, and
ADDRESS the address of PAGES. The address redirects to the newest release, or to ``dev``
if there is no release. The pages read the list of versions from ``switcher.json``.
"""

import json
import re
import shutil
import sys
from pathlib import Path

REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>sklearn_pnl</title>
<meta http-equiv="refresh" content="0; url={name}/">
<link rel="canonical" href="{name}/">
<a href="{name}/">sklearn_pnl</a>
"""


def publish(site, pages, version, address):
    """Copy a site to its folder, and write what leads to it."""
    name = version.removeprefix("v")
    if name != "dev" and numbers(name) is None:
        raise ValueError(
            f"{version!r} is neither 'dev' nor a version such as 'v1.2.3'."
        )
    shutil.rmtree(pages / name, ignore_errors=True)
    shutil.copytree(site, pages / name)
    there = [
        folder.name for folder in pages.iterdir() if (folder / "index.html").exists()
    ]
    releases = sorted(filter(numbers, there), key=numbers, reverse=True)
    newest = releases[0] if releases else "dev"
    entries = [
        {"name": f"{name} (newest)", "version": name, "preferred": True}
        if name == newest
        else {"name": name, "version": name}
        for name in [*["dev"] * ("dev" in there), *releases]
    ]
    for entry in entries:
        entry["url"] = f"{address.rstrip('/')}/{entry['version']}/"
    _write(pages / "switcher.json", json.dumps(entries, indent=2) + "\n")
    _write(pages / "index.html", REDIRECT.format(name=newest))
    _write(pages / ".nojekyll", "")


def numbers(name):
    """Numbers of a version, to sort by; None of anything else."""
    return (
        tuple(map(int, name.split("."))) if re.fullmatch(r"\d+(\.\d+)+", name) else None
    )


def _write(path, text):
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    site, pages, version, address = sys.argv[1:]
    publish(Path(site), Path(pages), version, address)
