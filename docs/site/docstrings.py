"""Docstrings for MkDocs: reads roles of Sphinx, turns LaTeX into MathML."""

import re
import textwrap

import griffe
from latex2mathml.converter import convert

MATH = re.compile(r'^( *)\.\. math:: *(.*(?:\n\1 +\S.*)*)', re.M)
ROLE = re.compile(r':(\w+):`~?\.?([^`]*)`')


class Roles(griffe.Extension):
    """Reads the reStructuredText in our docstrings."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = read_roles(obj.docstring.value)


def read_roles(text):
    """Return a docstring in Markdown."""

    def display(match):
        indent, latex = match.groups()
        latex = ' '.join(textwrap.dedent(latex).split())
        drawn = convert(latex, display='block')
        return f'{indent}<div class="math">{drawn}</div>'

    def role(match):
        kind, name = match.groups()
        if kind == 'math':  # a span does not turn a line into a block
            return f'<span>{convert(" ".join(name.split()))}</span>'
        return f'`{name}`'

    return ROLE.sub(role, MATH.sub(display, text))
