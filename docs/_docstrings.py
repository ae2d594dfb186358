"""Prepare docstrings for the reference.

Types are plain text: ``(n, *shape)`` is not emphasised and ``n_`` is not a link.
Members that classes inherit from other libraries are left out, and short names are
resolved.
"""

import re

_SECTION = re.compile(r"^-+$")
_TYPED = {"Parameters", "Attributes", "Returns", "Yields", "Other Parameters"}


def _plain(text):
    return re.sub(r"(\*|_(?=\W|$))", r"\\\1", text)


def _escape(app, what, name, obj, options, lines):
    section = None
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and _SECTION.match(lines[i + 1]) and line[:1].strip():
            section = line
        elif section in _TYPED and line[:1].strip() and not _SECTION.match(line):
            given, colon, kind = line.partition(" : ")
            if colon or section in ("Returns", "Yields"):
                given = given if colon else _plain(given)
                lines[i] = given + colon + _plain(kind)
            elif "," in given:
                lines[i] = ", ".join(_plain(one.strip()) for one in given.split(","))


def _skip(app, what, name, obj, skip, options):
    own = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    module = getattr(own, "__module__", None) or "sklearn_pnl"
    requests = name.startswith("set_") and name.endswith("_request")
    return True if requests or not module.startswith("sklearn_pnl") else None


def _find_elsewhere(app, env, node, content):
    """Resolve a name that is documented in another module of the package."""
    if node.get("refdomain") != "py":
        return None
    python, target = env.get_domain("py"), node["reftarget"].removeprefix("~")
    found = [name for name in python.objects if name.endswith(f".{target}")]
    if not found:
        return None
    name = min(found, key=len)
    where = (node.get("refdoc"), app.builder, "obj", name, node, content)
    return python.resolve_xref(env, *where)


def setup(app):
    """Run before numpydoc, which takes the sections apart."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _escape, priority=100)
    app.connect("autodoc-skip-member", _skip)
    app.connect("missing-reference", _find_elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
