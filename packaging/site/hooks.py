"""The navigation of the site is that of docs/README.md, and links to files outside of docs lead to
the repository."""
import pathlib
import posixpath
import re

LINK = re.compile(r"\]\((?!\w+:|#|/)([^)\s#]+)(#[^)\s]*)?\)")
PAGE = re.compile(r"\]\(([\w./-]+\.md)\)")


def on_config(config, **_):
    docs = pathlib.Path(config.docs_dir)
    nav, section, seen = ["README.md"], None, {"README.md"}
    for line in (docs / "README.md").read_text().splitlines():
        if line.startswith("## "):
            section = []
            nav.append({line[3:]: section})
        for page in PAGE.findall(line):
            if page not in seen:
                seen.add(page)
                (nav if section is None else section).append(page)
                # The parts of a page stand behind it: cli.md, cli-publish.md.
                for part in sorted(docs.glob(page.removesuffix(".md") + "-*.md")):
                    name = part.relative_to(docs).as_posix()
                    if name not in seen:
                        seen.add(name)
                        (nav if section is None else section).append(name)
    config.nav = nav
    return config


def on_page_markdown(markdown, page, config, **_):
    def outside(match):
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), match[1]))
        if target.startswith("docs/"):
            return match[0]
        return f"]({config.repo_url}/blob/main/{target}{match[2] or ''})"

    return LINK.sub(outside, markdown)
