"""Addresses that a built site loads from other servers."""

import re
from html.parser import HTMLParser
from pathlib import Path

# Browsers refuse requests of the theme's scripts to other servers.
POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'self' 'unsafe-inline' data:\">"
)
# rel of a <link> that loads nothing
NAMES_ONLY = {'alternate', 'author', 'canonical', 'next', 'prev'}
OTHER_HOST = re.compile(r'\s*(https?:)?//', re.I)
IN_STYLE = re.compile(r'url\(\s*["\']?([^"\')]+)|@import\s+["\']([^"\']+)', re.I)


class Loads(HTMLParser):
    """Addresses that a page loads."""

    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or '' for name, value in attrs}
        names = ['src', 'srcset', 'poster', 'data']
        if tag == 'link' and not NAMES_ONLY & set(attrs.get('rel', '').split()):
            names.append('href')
        self.addresses += [
            part for name in names for part in attrs.get(name, '').split()
        ]


def foreign_loads(folder):
    """Return addresses that the files of a site load from other hosts.

    Args:
        folder (Path): The built site.

    Returns:
        list[str]: 'FILE: ADDRESS', in the order of files.
    """
    lines = []
    for path in sorted(Path(folder).rglob('*.*')):
        if path.suffix not in ('.html', '.css', '.svg'):
            continue
        text = path.read_text('utf-8')
        addresses = [a or b for a, b in IN_STYLE.findall(text)]
        if path.suffix != '.css':
            addresses += Loads(text).addresses
        if path.suffix == '.html' and POLICY not in text:
            addresses.append('//anywhere, without the policy')
        name = path.relative_to(folder)
        lines += [f'{name}: {x}' for x in addresses if OTHER_HOST.match(x)]
    return lines
