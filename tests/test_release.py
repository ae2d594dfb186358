"""Releases: one version number, and the pages of several versions."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


ready = module(ROOT / ".ci" / "ready.py")
publish = module(ROOT / "docs" / "publish.py")


def test_the_version_has_a_section_of_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(PROJECT['version'])}", changelog, re.M)


@pytest.mark.parametrize(
    "tag, source, changelog, reasons",
    [
        ("v1.2.0", "x.org", "## 1.2.0 (2026-12-24)", []),
        ("v1.2.1", "x.org", "## 1.2.0 (2026-12-24)", ["version in pyproject.toml"]),
        ("v1.2.0", "x.org", "## 1.2.0 (unreleased)", ["no section"]),
        ("v1.2.0", "x.org/OWNER", "## 1.2.01 (2026-12-24)", ["no section", "OWNER"]),
    ],
)
def test_reasons_against_a_release_are_listed(tag, source, changelog, reasons):
    project = {"version": "1.2.0", "urls": {"Source": source}}
    found = list(ready.lacking(tag, project, changelog, "git clone"))
    assert len(found) == len(reasons)
    assert all(map(str.__contains__, found, reasons)), found


def test_the_placeholder_in_the_readme_is_listed():
    project = {"version": "1.2.0"}
    changelog, readme = "## 1.2.0 (2026-12-24)", "git clone x.org/OWNER/y"
    (found,) = ready.lacking("v1.2.0", project, changelog, readme)
    assert "README.md" in found


def test_pages_of_versions_are_published_next_to_each_other(tmp_path):
    pages, site, address = tmp_path / "pages", tmp_path / "site", "https://x.org/"
    pages.mkdir()
    site.mkdir()

    def add(version):
        (site / "index.html").write_text(version, encoding="utf-8")
        publish.publish(site, pages, version, address)
        listed = json.loads((pages / "switcher.json").read_text("utf-8"))
        (first,) = [entry for entry in listed if entry.get("preferred")]
        assert f"url={first['version']}/" in (pages / "index.html").read_text("utf-8")
        for entry in listed:
            assert entry["url"] == f"{address}{entry['version']}/"
            assert (pages / entry["version"] / "index.html").exists()
        return [entry["version"] for entry in listed], first["version"]

    assert add("dev") == (["dev"], "dev")
    assert add("v0.9.0") == (["dev", "0.9.0"], "0.9.0")
    # Versions are compared as numbers, and a later fix of an older line is not the
    # newest.
    assert add("v0.10.0") == (["dev", "0.10.0", "0.9.0"], "0.10.0")
    assert add("v0.9.1") == (["dev", "0.10.0", "0.9.1", "0.9.0"], "0.10.0")
    with pytest.raises(ValueError, match=r"'\.\./x'"):
        add("../x")
