"""Hooks of `make docs`: one text serves the repository and the site.

Pages outside docs/ become pages of the site. Links that leave docs/ lead to the page of
the file, or to a copy of its text. Blocks of LaTeX, which are ```math for GitHub,
become MathML, which browsers draw without a script. The search shows pages for users
before research notes and the API. Options in code do not break at their hyphens.
"""

import os
import re
import sys
from pathlib import Path, PurePosixPath

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.append(str(Path(__file__).parent))
from hosts import POLICY, foreign_loads

ROOT = Path(__file__).resolve().parents[2]
# Pages of the site that lie elsewhere in the repository.
OUTSIDE = {
    'index.md': 'README.md',
    'contributing.md': 'CONTRIBUTING.md',
    'changelog.md': 'CHANGELOG.md',
    'security.md': 'SECURITY.md',
    **{
        f'configs/{path.parent.name}/README.md': path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob('configs/*/README.md'))
    },
}
SORTABLE = re.compile(r'<!-- sortable -->(.*?)<!-- end of sortable -->', re.S)
WIDE = re.compile(r'^\|([^|\n]*\|){9,}$', re.M)
FENCE = re.compile(r'^( *)(```+)(.*?)^\1\2 *$', re.M | re.S)
# Sections that the search ranks below the pages for users.
NOT_FOR_USERS = {'API', 'Research notes'}
CODE = re.compile(r'<code\b.*?</code>', re.S)
TAG = re.compile(r'(<[^>]*>)')
OPTION = re.compile(r'(?<![\w/.;-])--?[a-zA-Z][\w-]*')
# what names a model in the first column of a table of models
NAME = re.compile(r'(?<=<td>)(<a [^>]*>)([\w-]+)(?=</a>)')
LINK = re.compile(r'(\]\(|\bsrc="|\bhref=")(?!\w+:|#|/)([^\s)#"]+)')
FOLDER = re.compile(r'\[([^\]]*)\]\((?!\w+:|#|/)([^\s)#]+)\)')


def on_config(config):
    """Has the header show the version."""
    version = (ROOT / 'mmlinattn/version.py').read_text('utf-8')
    config.extra['release'] = re.search(r"__version__.*?'(.+)'", version)[1]
    return config


def on_files(files, config):
    """Add the pages that lie outside docs/."""
    for uri, path in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Convert links of the repository and LaTeX for the site, marks tables for
    tables.js, and ranks the page for the search."""
    uri = page.file.src_uri
    page.edit_url = f'{config.repo_url}/edit/main/{OUTSIDE.get(uri, f"docs/{uri}")}'
    sections = {section.title for section in page.ancestors}
    boost = 0.5 if sections & NOT_FOR_USERS else 4
    page.meta.setdefault('search', {}).setdefault('boost', boost)
    if SORTABLE.search(markdown) or WIDE.search(markdown):
        page.meta['hide'] = ['toc']  # a table replaces it
    markdown = SORTABLE.sub(r'<div class="sortable" markdown>\1</div>', markdown)
    parts, start = [], 0
    for fence in FENCE.finditer(markdown):
        parts.append(turn_links(markdown[start : fence.start()], page, config, files))
        parts.append(draw(fence))
        start = fence.end()
    parts.append(turn_links(markdown[start:], page, config, files))
    return ''.join(parts)


def on_page_content(html, page, config, files):
    """Choose where options in code and names of models break."""
    if 'class="sortable"' in html:
        html = NAME.sub(lambda x: x[1] + x[2].replace('_', '_<wbr>'), html)
    return CODE.sub(keep_options_whole, html)


def on_post_page(output, page, config):
    return output.replace('<head>', f'<head>{POLICY}', 1)


def on_post_template(output_content, template_name, config):
    return output_content.replace('<head>', f'<head>{POLICY}', 1)


def on_post_build(config):
    """Stop if a page loads anything from other servers."""
    addresses = foreign_loads(config.site_dir)
    if addresses:
        raise PluginError('loaded from other servers: ' + '\n'.join(addresses))


def keep_options_whole(code):
    """Return a match of <code> whose lines end at slashes of paths, and at no hyphen of
    an option."""
    parts = TAG.split(code[0])
    for i in range(0, len(parts), 2):  # the texts between tags
        text = OPTION.sub(r'<span class="option">\g<0></span>', parts[i])
        parts[i] = re.sub(r'(?<=\w)/(?=\w)', '/<wbr>', text)
    return ''.join(parts)


def draw(fence):
    """Return a block of LaTeX as MathML; other blocks unchanged."""
    language, _, text = fence[3].partition('\n')
    if language.strip() != 'math':
        return fence[0]
    return f'<div class="math">{convert(text.strip(), display="block")}</div>'


def turn_links(text, page, config, files):
    """Convert the links of a part of a page.

    Args:
        text (str): Markdown without blocks of code.
        page (Page): The page.
        config (MkDocsConfig): The site.
        files (Files): Files of the site, to which linked texts are added.

    Returns:
        str: The text with links for the site.
    """
    uri = page.file.src_uri
    here = PurePosixPath(OUTSIDE.get(uri, f'docs/{uri}')).parent
    pages = {path: uri for uri, path in OUTSIDE.items()}

    def place(link):
        return os.path.normpath(here / link)

    def unlink(match):
        """Replace a link to a folder without a page by its name."""
        path = ROOT / place(match[2])
        bare = path.is_dir() and not (path / 'README.md').is_file()
        return match[1] if bare else match[0]

    def turn(match):
        start, link = match.groups()
        target = place(link)
        if (ROOT / target).is_dir():
            target += '/README.md'
        if target in pages:
            to = pages[target]
        elif target.startswith('docs/') and files.get_file_from_path(target[5:]):
            to = target[5:]
        elif (ROOT / target).is_file():
            to = f'source/{target}.txt'  # shown by the browser, not downloaded
            if files.get_file_from_path(to) is None:
                path = str(ROOT / target)
                files.append(File.generated(config, to, abs_src_path=path))
        else:
            return match[0]  # MkDocs reports it
        return start + os.path.relpath(to, PurePosixPath(uri).parent)

    text = text.replace('\\\n', '  \n')  # GitHub's line break, as Markdown's own
    return LINK.sub(turn, FOLDER.sub(unlink, text))
