"""Imports follow docs/architecture.md, and docstrings begin plainly."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'mmlinattn'
PAGE = ROOT / 'docs/architecture.md'
MODULES = {
    '.'.join(path.relative_to(ROOT).with_suffix('').parts).replace(
        '.__init__', ''
    ): path
    for path in sorted(PACKAGE.rglob('*.py'))
    if '.mim' not in path.parts
}


def read_rooms(page):
    """The page's table: by room, the rooms and the libraries that it may import."""
    rows = re.findall(r'^\| `(\S+)` \|(.*?)\|(.*?)\|.*\|$', page, re.M)
    return {
        room: [re.findall(r'`(\S+?)`', cell) for cell in cells] for room, *cells in rows
    }


ROOMS = read_rooms(PAGE.read_text(encoding='utf-8'))


def room_of(module):
    """The innermost room of the table that a module is in."""
    path = '/'.join(module.split('.')[1:]) or '__init__'
    inside = [room for room in ROOMS if f'{path}/'.startswith(f'{room}/')]
    return max(inside, key=len, default=None)


def imports_of(module, source, is_package):
    """Modules that a module imports, anywhere in its code."""
    package = module if is_package else module.rpartition('.')[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split('.')[: len(package.split('.')) + 1 - node.level]
            base = '.'.join(parents) if node.level else ''
            base = f'{base}.{node.module}'.strip('.') if node.module else base
            for alias in node.names:
                name = f'{base}.{alias.name}'
                yield name if name in MODULES else base


def is_library(name):
    return name.split('.')[0] not in ('mmlinattn', *sys.stdlib_module_names)


def wrong_imports(module, source, is_package=False):
    """Imports of a module that the table forbids."""
    room = room_of(module)
    rooms, libraries = ROOMS[room]
    wrong = set()
    for name in set(imports_of(module, source, is_package)):
        if name.split('.')[0] == 'mmlinattn':
            exported = is_package and f'{name}.'.startswith(f'{module}.')
            right = exported or room_of(name) in (room, *rooms)
        else:
            right = not is_library(name) or any(
                f'{name}.'.startswith(f'{library}.') for library in libraries
            )
        if not right:
            wrong.add(name)
    return wrong


def test_every_module_has_a_room():
    assert ROOMS and not [module for module in MODULES if room_of(module) is None]


def test_rooms_know_rooms_below_them():
    order = list(ROOMS)
    for room, (others, _) in ROOMS.items():
        assert set(others) <= set(order[order.index(room) + 1 :]), room


@pytest.mark.skipif(
    sys.version_info < (3, 10), reason='needs the names of the standard library'
)
@pytest.mark.parametrize('module', MODULES)
def test_imports(module):
    path = MODULES[module]
    source = path.read_text(encoding='utf-8')
    assert not wrong_imports(module, source, path.name == '__init__.py')


@pytest.mark.skipif(
    sys.version_info < (3, 10), reason='needs the names of the standard library'
)
@pytest.mark.parametrize(
    'module, line, wrong',
    [
        ('functional.local', 'from .blocks import blockify', ''),
        ('functional.local', 'import math, torch', ''),
        ('functional.local', 'from mmengine import Config', 'mmengine'),
        (
            'functional.local',
            'def f():\n    from ..models.attentions import LePE',
            'mmlinattn.models.attentions',
        ),
        ('models.attentions.elfatt', 'from mmlinattn import functional as F', ''),
        ('models.attentions.elfatt', 'from mmcv.cnn.bricks import DropPath', ''),
        ('models.attentions.elfatt', 'import mmcv.ops', 'mmcv.ops'),
        (
            'models.attentions.elfatt',
            'from ..backbones.soft import SOFT',
            'mmlinattn.models.backbones.soft',
        ),
        ('models.backbones.soft', 'from ..attentions import elfatt', ''),
    ],
)
def test_wrong_imports_are_seen(module, line, wrong):
    assert wrong_imports(f'mmlinattn.{module}', line) == {wrong} - {''}


# A docstring says what a thing is or does, by a noun phrase or a verb.
OBLIQUE = re.compile(r'(What|Whether|Of|By)\b')
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def oblique_docstrings(source):
    """Docstrings of a file that begin with What, Whether, Of or By."""
    nodes = [x for x in ast.walk(ast.parse(source)) if isinstance(x, DOCUMENTED)]
    found = [ast.get_docstring(node) or '' for node in nodes]
    return [text for text in found if OBLIQUE.match(text)]


@pytest.mark.parametrize('folder', ['mmlinattn', 'tools', 'benchmarks', 'docs/site'])
def test_docstrings_begin_plainly(folder):
    paths = [x for x in (ROOT / folder).rglob('*.py') if '.mim' not in x.parts]
    texts = {path: oblique_docstrings(path.read_text('utf-8')) for path in paths}
    assert len(texts) > 4 and not {path: x for path, x in texts.items() if x}


def test_oblique_docstrings_are_seen():
    source = (
        '"""Of a file."""\nclass A:\n    def f():\n        r"""Whether.\n\n        x"""'
    )
    assert oblique_docstrings(source) == ['Of a file.', 'Whether.\n\nx']
    assert not oblique_docstrings('"""Offsets."""\ndef f():\n    """Whatever."""')


@pytest.mark.parametrize('folder', ['attentions', 'backbones', 'layers', 'necks'])
def test_models_are_imported_by_name(folder):
    """An editor knows them, and those that are registered are found."""
    path = PACKAGE / 'models' / folder
    found = ast.walk(ast.parse((path / '__init__.py').read_text('utf-8')))
    imported = {
        (node.module, alias.name)
        for node in found
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    registered = {
        (file.stem, node.name)
        for file in path.glob('[!_]*.py')
        for node in ast.parse(file.read_text('utf-8')).body
        if isinstance(node, ast.ClassDef)
        and 'register_module' in ''.join(map(ast.unparse, node.decorator_list))
    }
    assert registered and registered <= imported


def test_mypy_checks_all_functions_of_the_package():
    """``make lint`` runs it: a function without annotations is an error."""
    text = (ROOT / 'pyproject.toml').read_text('utf-8').partition('[tool.mypy]')[2]
    assert re.search(r'files = \[\s*"mmlinattn",', text)
    assert 'disallow_untyped_defs = true' in text
    bare = [
        f'{module}: {node.name}'
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text('utf-8')))
        if isinstance(node, ast.FunctionDef) and node.returns is None
    ]
    assert not [x for x in bare if '.configs.' not in x]
