"""Check what the README shows; its code is tested with the other pages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = "\n".join(TEXT.splitlines()[:50])


def test_the_first_paragraph_states_how_a_row_is_made():
    paragraph = " ".join(TEXT.split("\n\n")[1].split())
    sentences = paragraph.split(". ")
    assert "training rows" in sentences[0]
    assert "between two neighbouring rows plus local noise" in sentences[1]
    assert all(word in paragraph for word in ("categories", "dates", "missing cells"))


def test_the_commands_install_and_run_an_existing_example():
    commands = re.findall(r"^```\n(.*)\n```$", FIRST_SCREEN, re.M)
    example = "examples/plot_quickstart.py"
    assert commands[1:] == [
        f'pip install ".[examples]" && python {example}',
        'pip install -e ".[tests]" && pytest',
    ]
    assert commands[0].startswith("git clone ") and (ROOT / example).exists()


def test_the_example_shows_an_equality_that_only_this_package_satisfies():
    shares = dict(re.findall(r"^(\w+): (\d+)% of the totals", TEXT, re.M))
    assert shares["PNLSampler"] == "100" and int(shares["SMOTE"]) < 50


def test_gains_come_before_the_cases_without_a_gain():
    gains = TEXT.index("## What new rows help with")
    assert gains < TEXT.index("## What new rows do not help with")
    assert "docs/when_to_oversample.md" in TEXT


def test_the_readme_is_short():
    text = re.sub(r"```.*?```|<!--.*?-->|\]\([^)]*\)", " ", TEXT, flags=re.S)
    words = re.findall(r"[\w`(*.-]*\w[\w`)*.-]*", text)
    assert len(words) <= 720, len(words)
