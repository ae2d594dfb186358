"""Plain Markdown on the site: names of the library are linked, examples too.

Pages have no roles, so that they read the same in the repository. ``PNLSampler`` or
``geometry.rake`` in code type leads to the reference, and a link to an example's file
to the page with its pictures.
"""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import sklearn_pnl

_EXAMPLE = re.compile(r"\]\((?P<up>(?:\.\./)*)\.\./examples/(?P<name>[\w/]+)\.py\)")


def _to_gallery(app, docname, source):
    if app.env.doc2path(docname).endswith(".md"):
        source[0] = _EXAMPLE.sub(r"](\g<up>auto_examples/\g<name>.rst)", source[0])


def _target(text):
    """Full name of what a text in code type names, or None."""
    first, *others = text.removeprefix("sklearn_pnl.").split(".")
    if first in sklearn_pnl.__all__ and first != "geometry":
        return ".".join(["sklearn_pnl", first, *others])
    given = others if first == "geometry" else [first, *others]
    if given and given[0] in sklearn_pnl.geometry.__all__:
        return ".".join(["sklearn_pnl.geometry", *given])
    return None


class _Names(SphinxTransform):
    """Wrap names in references, but for those in headings and in links."""

    default_priority = 5

    def apply(self, **kwargs):
        if not self.env.doc2path(self.env.docname).endswith(".md"):
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
    app.connect("source-read", _to_gallery)
    app.add_transform(_Names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
