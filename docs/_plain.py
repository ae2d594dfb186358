"""Plain Markdown on the site: names of the library are linked, examples too.

Pages have no roles, so that they read the same in the repository. ``PNLSampler`` or
``geometry.rake_array`` in code type leads to the reference, a link to an example's file
to the page with its pictures, and one to another file to the repository.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import sklearn_pnl

_OUTWARD = re.compile(r"\]\(((?:\.\./)+)([^)\s]+)\)")


def _leave_outward(app, docname, source):
    """Links to files beside the folder of the pages, which the site does not have."""
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
    """Full name of what a text in code type names, or None."""
    if not re.fullmatch(r"[\w.]+", text):
        return None
    first, *others = text.removeprefix("sklearn_pnl.").split(".")
    if first in sklearn_pnl.__all__ and first != "geometry":
        return ".".join(["sklearn_pnl", first, *others])
    named = others if first == "control" else [first, *others]
    if named and named[0] in sklearn_pnl.control.__all__:
        return ".".join(["sklearn_pnl.control", *named])
    given = others if first == "geometry" else [first, *others]
    if given and given[0] in sklearn_pnl.geometry.__all__:
        return ".".join(["sklearn_pnl.geometry", *given])
    return None


class _Names(SphinxTransform):
    """Wrap names in references, but for those in headings and in links."""

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
