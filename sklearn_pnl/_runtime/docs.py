"""What several classes share is told once, and shown with each of them."""

import re
from inspect import cleandoc


def with_params_of(source):
    """Decorate a class: "As in `source`" under names gives way to its words."""
    names = re.compile(
        rf"^(\w+(?:, \w+)*)\n    As in :class:`{source.__name__}`\.$", re.MULTILINE
    )

    def decorate(cls):
        # Without docstrings, as under -OO, there is nothing to tell.
        if cls.__doc__:
            told = _params(source.__doc__)

            def texts(match):
                return "\n\n".join(told[name] for name in match[1].split(", "))

            cls.__doc__ = names.sub(texts, cleandoc(cls.__doc__))
        return cls

    return decorate


def _params(doc):
    """The text of each parameter and attribute in a numpydoc docstring, by name."""
    _, *sections = re.split(r"\n\n([\w ]+)\n---+\n", cleandoc(doc))
    sections = dict(zip(sections[::2], sections[1::2], strict=True))
    some = sections["Parameters"], sections.get("Attributes", "")
    texts = re.split(r"\n\n(?=\w)", "\n\n".join(some).rstrip())
    return {text.split(" ", 1)[0]: text for text in texts}
