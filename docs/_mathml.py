"""Render mathematics as MathML, which needs no script and no network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _inline(translator, node):
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _display(translator, node):
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math-display">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer; ``html_math_renderer`` chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
