"""The page of the claims: every word about a result is computed from its numbers, but
for notes that a person wrote beside them."""

from side_by_side.report import markdown

HEAD = """# What the papers claim, and what holds here

Three kinds of answers. **What follows from the equations** needs no training: exact
numbers, each with a reason and a control. **What trained networks show** are small models
on photographs, several seeds each, on one machine: they can contradict a paper because
they are small. What **could not be run** is listed with its command.

`python benchmarks/claims/run.py exact --out docs` writes the first part of this page,
`... train --data imagenette=DIR` trains the networks, for hours, and goes on where it was
when it is run again; `--help` says what the folders are.
"""
EXACT = '## What follows from the equations'
TRAINED = '## What trained networks show'


def page(findings, missing):
    """The whole page.

    Args:
        findings (list[tuple]): (Finding, its numbers) of those that are measured.
        missing (list[str]): What is not trained yet, a line each.

    Returns:
        str: Markdown.
    """
    lines = [HEAD, EXACT, '']
    for finding, numbers in findings:
        lines += [f'### {finding.title}', '', finding.text, '']
        for caption, titles, rows in finding.tables(numbers):
            lines += [f'{caption}:', '', markdown(titles, rows), '']
        name = finding.name
        lines += [f'![{finding.title}](claims/{name}.png)', '']
        lines += [f'Numbers: [{name}.json](claims/{name}.json).', '']
    lines += [TRAINED, '', 'Not finished yet:', '', *missing, '']
    return '\n'.join(lines)
