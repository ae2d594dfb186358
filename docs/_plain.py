"""Link names of the library and examples in plain Markdown.

Pages contain no roles, so that they read the same in the repository. ``PNLSampler`` or
``geometry.rake_array`` in code type is linked to the reference, a link to the file of
an example to its page, and a link to another file to the repository.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import sklearn_pnl
from sklearn_pnl import control, encoding, methods

_OUTWARD = re.compile(r"\]\(((?:\.\./)+)([^)\s]+)\)")


def _leave_outward(app, docname, source):
    """Redirect links to files outside of the folder of the pages."""
    depth = docname.count("/") + 1

    def target(found):
        up, path = found[1], found[2]
        if up.count("../") < depth:
            return found[0]
        if path.startswith("examples/") and path.endswith(".py"):
            return f"]({'../' * (depth - 1)}auto_{path.removesuffix('.py')}.rst)"
        return f"]({app.config.html_theme_options['github_url']}/blob/main/{path})"

    if _is_markdown(app.env, docname):
        source[0] = _OUTWARD.sub(target, source[0])


def _is_markdown(env, docname):
    return Path(env.doc2path(docname)).suffix == ".md"


def _target(text):
    """Return the full name of the object that a text names, or None."""
    if not re.fullmatch(r"[\w.]+", text):
        return None
    first, *others = text.removeprefix("sklearn_pnl.").split(".")
    if first in sklearn_pnl.__all__ and first != "geometry":
        return ".".join(["sklearn_pnl", first, *others])
    for folder in (control, methods, encoding):
        place = folder.__name__
        named = others if f"sklearn_pnl.{first}" == place else [first, *others]
        if named and named[0] in folder.__all__:
            return ".".join([place, *named])
    given = others if first == "geometry" else [first, *others]
    if given and given[0] in sklearn_pnl.geometry.__all__:
        return ".".join(["sklearn_pnl.geometry", *given])
    return None


class _Names(SphinxTransform):
    """Wrap names in references, except for names in headings and links."""

    default_priority = 5

    def apply(self, **kwargs):
        if not _is_markdown(self.env, self.env.docname):
            return
        for node in list(self.document.findall(nodes.literal)):
            target = _target(node.astext())
            inside = (nodes.title, nodes.reference, addnodes.pending_xref)
            if target is None or isinstance(node.parent, inside):
                continue
            reference = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True,
                refwarn=True, refdoc=self.env.docname,
            )  # fmt: skip
            node.replace_self(reference)
            reference += node


def setup(app):
    """Register both."""
    app.connect("source-read", _leave_outward)
    app.add_transform(_Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
