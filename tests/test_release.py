"""What a release needs: one version, pages beside those of others, nothing lacking."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


ready = module(ROOT / ".ci" / "ready.py")
publish = module(ROOT / "docs" / "publish.py")


def test_the_version_stands_in_one_place():
    version = PROJECT["version"]
    assert re.search(rf"^## {re.escape(version)}", (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"), re.M)  # fmt: skip
    for path in (*ROOT.glob("docs/*.py"), *ROOT.glob("sklearn_pnl/*.py")):
        assert f'"{version}"' not in path.read_text(encoding="utf-8"), path.name


def test_a_release_that_is_ready_lacks_nothing():
    project = {"version": "1.2.0", "urls": {"Source": "https://example.org"}}
    changelog = "# Changelog\n\n## 1.2.0 (2026-12-24)\n"
    assert list(ready.lacking("v1.2.0", project, changelog)) == []


@pytest.mark.parametrize(
    "tag, change, changelog, told",
    [
        ("v1.2.1", {}, "## 1.2.0 (2026-12-24)", "they differ"),
        ("1.2.0", {}, "## 1.2.0 (2026-12-24)", "they differ"),
        ("v1.2.0", {}, "## 1.2.0 (unreleased)", "no section"),
        ("v1.2.0", {}, "## 1.2.01 (2026-12-24)", "no section"),
        ("v1.2.0", {"urls": {"Source": "https://x.org/OWNER"}},
         "## 1.2.0 (2026-12-24)", "project.urls.Source has the placeholder"),
        ("v1.2.0", {"authors": [{"email": "OWNER@x.org"}]},
         "## 1.2.0 (2026-12-24)", "project.authors.email has the placeholder"),
    ],
)  # fmt: skip
def test_a_release_that_is_not_ready_is_told_why(tag, change, changelog, told):
    project = {"version": "1.2.0", "urls": {}} | change
    (found,) = ready.lacking(tag, project, changelog)
    assert told in found


def built(folder, text):
    folder.mkdir()
    (folder / "index.html").write_text(text, encoding="utf-8")
    return folder


def test_pages_of_a_version_stand_beside_the_others(tmp_path):
    pages, address = tmp_path / "pages", "https://example.org/p/"
    pages.mkdir()

    def add(version, text):
        site = built(tmp_path / f"site-{text}", text)
        publish.publish(site, pages, version, address)
        listed = json.loads((pages / "switcher.json").read_text("utf-8"))
        (first,) = [entry for entry in listed if entry.get("preferred")]
        assert f"url={first['version']}/" in (pages / "index.html").read_text("utf-8")
        for entry in listed:
            assert entry["url"] == f"{address}{entry['version']}/"
            assert (pages / entry["version"] / "index.html").exists()
        return [entry["version"] for entry in listed], first["version"]

    assert add("dev", "a") == (["dev"], "dev")
    assert add("v0.9.0", "b") == (["dev", "0.9.0"], "0.9.0")
    # Numbers, not letters: 10 comes after 9.
    assert add("v0.10.0", "c") == (["dev", "0.10.0", "0.9.0"], "0.10.0")
    # A later fix of an older line is not the newest.
    assert add("v0.9.1", "d") == (["dev", "0.10.0", "0.9.1", "0.9.0"], "0.10.0")
    assert add("dev", "e")[1] == "0.10.0"
    assert (pages / "dev" / "index.html").read_text("utf-8") == "e"


@pytest.mark.parametrize("version", ["", "main", "v1.0rc1", "../x"])
def test_what_is_no_version_gets_no_pages(version, tmp_path):
    with pytest.raises(ValueError, match="neither 'dev' nor a version"):
        publish.publish(built(tmp_path / "site", ""), tmp_path, version, "")


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} >= {"tests", "nightly", "site", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_call_scripts_that_are_there(path):
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"uses: (.+)", text)
    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
    scripts = re.findall(r"\.ci/[\w.-]+\b", text)
    assert all((ROOT / script).exists() for script in scripts)
