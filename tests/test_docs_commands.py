"""Commands of the pages: each is one that the project has, and takes its arguments.

What they do is tested elsewhere: most need data, weights, a GPU or minutes.
"""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted(ROOT.glob('*.md')),
    *sorted(ROOT.glob('docs/*.md')),
    *sorted(ROOT.glob('docs/*/*.md')),
    *sorted(ROOT.glob('configs/*/README.md')),
]


def commands_of(page):
    """Commands of a page's shell blocks, as words, without comments and prompts."""
    for block in re.findall(
        r'^```bash\n(.*?)^```$', page.read_text('utf-8'), re.M | re.S
    ):
        for line in block.replace('\\\n', ' ').splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


COMMANDS = {
    f'{page.relative_to(ROOT)}: {shlex.join(words)}': words
    for page in PAGES
    for words in commands_of(page)
}

# Reads the arguments of Python programs as they do, and stops before the work.
PARSE = """
import argparse, contextlib, io, json, os, runpy, sys

class Parsed(BaseException):
    pass

def parse_args(self, *args, **kwargs):
    found = real(self, *args, **kwargs)
    raise Parsed(found)

from mim.cli import cli

real = argparse.ArgumentParser.parse_args
argparse.ArgumentParser.parse_args = parse_args
errors = {}
for name, words in json.load(sys.stdin).items():
    sys.argv = words
    said = io.StringIO()
    code = 'it parses no arguments'
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            if words[0] == 'mim':
                command = cli.get_command(None, words[1])
                command.make_context(words[1], words[2:])
                code = 0
            else:
                sys.path[0] = os.path.dirname(words[0])
                runpy.run_path(words[0], run_name='__main__')
        except Parsed:
            code = 0
        except SystemExit as stop:
            code = stop.code or 0 if '--help' in words else f'exit {stop.code}'
        except Exception as error:
            code = repr(error)
    if code:
        errors[name] = f'{code}: {said.getvalue()}'
print(json.dumps(errors))
"""


def split_environment(words):
    """Variables that are set in front of a command, and the command."""
    variables = {}
    while re.match(r'[A-Z_]+=', words[0]):
        key, _, value = words[0].partition('=')
        variables[key] = value
        words = words[1:]
    return variables, words


def python_command(words, tmp_path):
    """The Python program that a command comes to, or None.

    The launchers of training run for real, with a python and an srun that only say how
    they were called.
    """
    variables, words = split_environment(words)
    if words[0] == 'bash':
        words = words[1:]
    if words[0].endswith('.sh'):
        assert os.access(ROOT / words[0], os.X_OK)
        for name in ('python', 'srun'):
            program = tmp_path / name
            program.write_text('#!/bin/sh\nfor x in "$@"; do echo "$x"; done\n')
            program.chmod(0o755)
        for name in words[1:3]:  # configs and checkpoints, which must be there
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        path = f'{tmp_path}:{os.environ["PATH"]}'
        done = subprocess.run(
            [ROOT / words[0], *words[1:]],
            cwd=tmp_path,
            env=dict(os.environ, PATH=path, **variables),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        words = done.stdout.splitlines()
        (start,) = [
            i for i, x in enumerate(words) if x.endswith(('train.py', 'test.py'))
        ]
        return words[start:]
    if words[0] == 'torchrun':
        return words[words.index('tools/train.py') :]
    if words[0].rpartition('/')[2] == 'python':
        words = words[1:]
        if words[:2] == ['-m', 'mim'] or words[:2] == ['-m', 'mmlinattn']:
            return ['mim', *words[2:]]
        return words
    return words if words[0] == 'mim' else None


def test_programs_take_their_arguments(run_python, tmp_path):
    """All in one interpreter: most of the time goes into imports."""
    programs = {}
    for name, words in COMMANDS.items():
        program = python_command(words, tmp_path)
        if program:
            assert program[0] == 'mim' or (ROOT / program[0]).is_file(), name
            programs[name] = program
    assert len(programs) > 30
    code = f'import io, sys; sys.stdin = io.StringIO({json.dumps(programs)!r})\n{PARSE}'
    errors = json.loads(run_python(code, cwd=ROOT).splitlines()[-1])
    assert not errors, '\n'.join(f'{k}\n    {x}' for k, x in errors.items())


def test_other_commands_are_there():
    makefile = (ROOT / 'Makefile').read_text('utf-8')
    targets = re.findall(r'^([a-z-]+):', makefile, re.M)
    extras = re.findall(
        r"^(?:EXTRAS\['|    ')(\w+)'", (ROOT / 'setup.py').read_text(), re.M
    )
    for name, words in COMMANDS.items():
        _, words = split_environment(words)
        program = words[0].rpartition('/')[2]
        if program == 'make':
            assert {x for x in words[1:] if '=' not in x} <= set(targets), name
        elif program == 'pip':
            assert words[1] == 'install', name
            named = re.findall(r'\[(\w+)\]', ' '.join(words))
            assert set(named) <= set(extras), name
        elif program == 'pytest':
            paths = [x for x in words[1:] if x.startswith('tests/')]
            assert paths and all((ROOT / x).exists() for x in paths), name
        else:
            assert program in ('python', 'bash', 'mim', 'torchrun') or program.endswith(
                '.sh'
            ), name


def test_files_of_commands_are_there():
    """Configs and tools that a command names; what it makes or is yours is not."""
    for name, words in COMMANDS.items():
        for word in words:
            if re.match(r'(configs|tools|benchmarks|docs|tests)/', word):
                assert (ROOT / word).exists(), f'{name}: {word}'


def test_configs_by_name_are_ours():
    names = {path.name for path in ROOT.glob('configs/*/*.py')}
    pages = {page: page.read_text('utf-8') for page in PAGES}
    for name, words in COMMANDS.items():
        if words[:2] in (['mim', 'train'], ['mim', 'test']):
            page = ROOT / name.partition(':')[0]
            config = words[3]
            # by path, by the name of one of ours, or one that the page says to save
            assert (
                (ROOT / config).is_file()
                or config in names
                or f'`{config}`' in pages[page]
            ), name


@pytest.mark.parametrize('page', PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_pictures_have_a_command(page):
    """A picture is one of the measurements', or the page says what draws it."""
    text = page.read_text('utf-8')
    for picture in re.findall(r'!\[[^\]]*\]\(([^)]+)\)', text):
        path = (page.parent / picture).resolve()
        assert path.is_file() and path.stat().st_size < 150_000, picture
        drawn = (ROOT / 'docs/methods.md').read_text('utf-8')
        measured = path.with_suffix('.json').is_file()
        measured = measured and path.parent.name in ('benchmarks', 'claims')
        shown = f'(pictures/{path.name})\n\n```bash\npython ' in drawn
        assert measured or shown or 'demo' in path.name, picture
        if page.name == 'README.md' and page.parent == ROOT:
            assert 'docs/methods.md' in text
