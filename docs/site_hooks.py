"""What the site does differently from GitHub, which shows the
same pages (see mkdocs.yml).
"""

import re
from pathlib import Path
from posixpath import normpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from make_reference import anchor_of

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = "https://github.com/pytest-upskill/pytest-upskill/blob/main/"
# Pages of the site that are not in docs/.
_OUTSIDE: Final = {"CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}
_LINK: Final = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<rest>(?:#[^)]*)?\))")


def on_config(config: MkDocsConfig) -> None:
    """Give headings the anchors that they have on GitHub."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = lambda text, _: anchor_of(
        text
    )


def on_files(files: Files, config: MkDocsConfig) -> None:
    for name, page in _OUTSIDE.items():
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, page, content=with_site_links(text, name)))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    if page.file.src_uri in _OUTSIDE.values():
        return markdown
    return with_site_links(markdown, f"docs/{page.file.src_uri}")


def with_site_links(text: str, page: str) -> str:
    """Links to other files of the repository as links of the site, or to its source."""

    def replaced(found: re.Match[str]) -> str:
        target = normpath(f"{page}/../{found['path']}")
        if target in _OUTSIDE:
            new = _OUTSIDE[target]
        elif page in _OUTSIDE and target.startswith("docs/"):
            new = target.removeprefix("docs/")
        elif target.startswith("docs/"):
            return found[0]
        elif (ROOT / target).exists():
            new = SOURCE + target
        else:
            return found[0]  # which mkdocs does not find either
        return f"]({new}{found['rest']}"

    return _LINK.sub(replaced, text)
