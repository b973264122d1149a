"""Imports follow docs/architecture.md, and every file of a model is found."""

import ast
import re
import shutil
import sys
from graphlib import TopologicalSorter

import pytest
from loading import ROOT

from mmlinattn import models
from mmlinattn.parts import CLASSES

pytestmark = pytest.mark.openmmlab

PACKAGE = ROOT / 'mmlinattn'
MADE_UP = """
from mmlinattn.parts import register

from .base import ProjectedAttention


@register
class MadeUpAttention(ProjectedAttention):
    pass
"""
MODULES = {
    '.'.join(path.relative_to(ROOT).with_suffix('').parts).replace(
        '.__init__', ''
    ): path
    for path in sorted(PACKAGE.rglob('*.py'))
    if '.mim' not in path.parts
}
# the page's table: by room, the rooms and the libraries that it may import
ROOMS = {
    room: [re.findall(r'`(\S+?)`', cell) for cell in cells]
    for room, *cells in re.findall(
        r'^\| `(\S+)` \|(.*?)\|(.*?)\|.*\|$',
        (ROOT / 'docs/architecture.md').read_text('utf-8'),
        re.M,
    )
}


def room_of(module):
    """The innermost room of the table that a module is in."""
    path = '/'.join(module.split('.')[1:]) or '__init__'
    inside = [room for room in ROOMS if f'{path}/'.startswith(f'{room}/')]
    return max(inside, key=len, default=None)


def imports_of(module, path):
    """Modules that a module imports, anywhere in its code."""
    package = module if path.name == '__init__.py' else module.rpartition('.')[0]
    for node in ast.walk(ast.parse(path.read_text('utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split('.')[: len(package.split('.')) + 1 - node.level]
            base = '.'.join(parents) if node.level else ''
            base = f'{base}.{node.module}'.strip('.') if node.module else base
            for alias in node.names:
                name = f'{base}.{alias.name}'
                yield name if name in MODULES else base


def is_allowed(name, module, is_package):
    """Whether the table lets a module import another one."""
    rooms, libraries = ROOMS[room_of(module)]
    if name.split('.')[0] == 'mmlinattn':
        exported = is_package and f'{name}.'.startswith(f'{module}.')
        return exported or room_of(name) in (room_of(module), *rooms)
    return name.split('.')[0] in sys.stdlib_module_names or any(
        f'{name}.'.startswith(f'{library}.') for library in libraries
    )


def test_rooms_know_rooms_below_them():
    assert ROOMS and not [module for module in MODULES if room_of(module) is None]
    order = list(ROOMS)
    for room, (others, _) in ROOMS.items():
        assert set(others) <= set(order[order.index(room) + 1 :]), room


@pytest.mark.skipif(
    sys.version_info < (3, 10), reason='needs the names of the standard library'
)
def test_imports():
    wrong = [
        f'{module} imports {name}'
        for module, path in MODULES.items()
        for name in set(imports_of(module, path))
        if not is_allowed(name, module, path.name == '__init__.py')
    ]
    assert not wrong


def test_no_circle():
    """Of modules; that of a package imports its own ones to export them."""
    graph = {
        module: {*imports_of(module, path)} & MODULES.keys()
        for module, path in MODULES.items()
        if path.name != '__init__.py'
    }
    TopologicalSorter(graph).prepare()


def test_registered_models_are_attributes():
    """A file is enough: it needs no line in ``mmlinattn/models/__init__.py``."""
    ours = {
        name: kind
        for name, kind in CLASSES.items()
        if re.match(r'mmlinattn.models.(attentions|backbones|necks)', kind.__module__)
    }
    assert len(ours) > 30
    assert all(vars(models)[name] is kind for name, kind in ours.items())


def test_a_file_without_a_line_is_registered(tmp_path, run_python):
    """Its class is an attribute, too."""
    rooms = tmp_path / 'mmlinattn'
    shutil.copytree(PACKAGE, rooms, ignore=shutil.ignore_patterns('.mim'))
    (rooms / 'models/attentions/made_up.py').write_text(MADE_UP)
    run_python(
        f'import sys; sys.path.insert(0, {str(tmp_path)!r})\n'
        'from mmengine.registry import MODELS\n'
        'import mmlinattn.models\n'
        "kind = MODELS.get('mmlinattn.MadeUpAttention')\n"
        'assert kind is mmlinattn.models.MadeUpAttention, kind\n'
    )
