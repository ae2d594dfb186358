"""Write ``llms.txt``, a list of the pages for programs, and the pages as Markdown.

The format of llmstxt.org has a title, a summary, and links with one line each.
"""

import shutil
from pathlib import Path
from textwrap import shorten

from docutils import nodes


def _in_order(env, name):
    """Names of pages as the contents have them."""
    yield name
    for other in env.toctree_includes.get(name, ()):
        yield from _in_order(env, other)


def _beginning(app, name):
    paragraphs = app.env.get_doctree(name).findall(nodes.paragraph)
    texts = (
        node.astext() for node in paragraphs if isinstance(node.parent, nodes.section)
    )
    return shorten(next(texts, ""), 160, placeholder=" ...")


def _write(app, error):
    if error or app.builder.format != "html":
        return
    out, lines = Path(app.outdir), []
    for name in _in_order(app.env, app.config.root_doc):
        source = Path(app.env.doc2path(name))
        # What is made of the site's own parts reads as nothing outside of it.
        if source.suffix != ".md" or "```{" in source.read_text(encoding="utf-8"):
            continue
        shutil.copyfile(source, out / f"{name}.md")
        title = app.env.titles[name].astext()
        lines.append(f"- [{title}]({name}.md): {_beginning(app, name)}")
    head = f"# {app.config.project}\n\n> {app.config.llms_summary}\n\n## Pages\n"
    tail = "\n## Reference\n\n- [Public names](api/index.html)\n"
    (out / "llms.txt").write_text("\n".join([head, *lines, tail]), encoding="utf-8")


def setup(app):
    """Write the list when the pages are there."""
    app.add_config_value("llms_summary", "", "html")
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
