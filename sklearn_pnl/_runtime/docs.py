"""Parameters that several classes share are told once, and shown with each of them."""

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
    """The text of each parameter in a numpydoc docstring, by name."""
    section = cleandoc(doc).split("\nParameters\n----------\n")[1]
    section = re.split(r"\n\n[\w ]+\n---", section)[0]
    return {text.split(" ", 1)[0]: text for text in re.split(r"\n\n(?=\w)", section)}
