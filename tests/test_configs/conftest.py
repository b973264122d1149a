import re

import pytest
from our_configs import ENTRIES, PATHS, loaded


@pytest.fixture
def in_folder(folder):
    """Configs of the folder by their names, not to be changed, and their entries."""
    names = [name for name, path in PATHS.items() if path.parent.name == folder]
    return [(name, loaded(name), ENTRIES[name]) for name in names]


def representatives():
    """Names of the smallest config of each setting, and of each method in a folder."""
    names, seen = set(), set()
    for name in sorted(PATHS, key=lambda x: ENTRIES[x]['Metadata']['Parameters']):
        setting = re.search(r'_base_/settings/([\w.-]+)', PATHS[name].read_text())[1]
        method = 'in1k' if '_in1k' in name else name.partition('_')[0]
        traits = {setting, (PATHS[name].parent.name, method)}
        if traits - seen:
            names.add(name)
        seen |= traits
    return names


def pytest_generate_tests(metafunc):
    """Tests with a `folder` look at all configs in it. Tests with a `name` run for all
    configs, in the normal run for representatives. Those with a `smallest` run for the
    smallest config of each kind, which its module's `kind_of` tells by the name, with
    the kind's `marks_of`."""
    if 'folder' in metafunc.fixturenames:
        metafunc.parametrize('folder', sorted({x.parent.name for x in PATHS.values()}))
    if 'name' in metafunc.fixturenames:
        marks = {x: () if x in QUICK else pytest.mark.full for x in PATHS}
        parametrize(metafunc, 'name', marks)
    if 'smallest' in metafunc.fixturenames:
        by_size = sorted(ENTRIES, key=lambda x: -ENTRIES[x]['Metadata']['Parameters'])
        kinds = {metafunc.module.kind_of(name): name for name in by_size}
        marks = {x: metafunc.module.marks_of(y) for y, x in kinds.items()}
        parametrize(metafunc, 'smallest', marks)


def parametrize(metafunc, argument, marks):
    """Values of an argument, with their marks."""
    params = [pytest.param(x, marks=mark) for x, mark in marks.items()]
    metafunc.parametrize(argument, params)


QUICK = representatives()
