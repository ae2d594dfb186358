"""``llms.txt``: the pages as a list for programs that read, with their Markdown beside.

The format is that of llmstxt.org: a title, a summary, and links with a line each.
"""

import re
import shutil
from pathlib import Path

from docutils import nodes


def _first_sentence(app, name):
    for node in app.env.get_doctree(name).findall(nodes.paragraph):
        text = " ".join(node.astext().split())
        if text and isinstance(node.parent, nodes.section):
            return re.match(r".*?[.:?](?=\s|$)|.*", text)[0]
    return ""


def _write(app, error):
    if error or app.builder.format != "html":
        return
    out, lines = Path(app.outdir), []
    for name in sorted(app.env.found_docs):
        source = Path(app.env.doc2path(name))
        if source.suffix != ".md":
            continue
        copy = out / source.relative_to(app.srcdir)
        shutil.copyfile(source, copy)
        title = app.env.titles[name].astext()
        lines.append(f"- [{title}]({name}.md): {_first_sentence(app, name)}")
    head = f"# {app.config.project}\n\n> {app.config.llms_summary}\n\n## Pages\n"
    tail = "\n## Reference\n\n- [Public names](api/index.html)\n"
    (out / "llms.txt").write_text("\n".join([head, *lines, tail]), encoding="utf-8")


def setup(app):
    """Write the list when the pages are there."""
    app.add_config_value("llms_summary", "", "html")
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
