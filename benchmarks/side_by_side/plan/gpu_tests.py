"""The tests that need a GPU, file by file."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from .record import ROOT
from .unit import LeftOut, Settings, Unit

# A decorator, a module's mark or a parameter's.
MARKED = re.compile(
    r'\s*@pytest\.mark\.gpu|pytestmark\b.*mark\.gpu|.*marks=.*mark\.gpu'
)


def units(settings: Settings):
    """A unit for every file that has such tests."""
    files = [
        path.relative_to(ROOT)
        for path in sorted((ROOT / 'tests').rglob('test_*.py'))
        if is_marked(path)
    ]
    return [Unit(file.as_posix(), partial(run_file, file, settings)) for file in files]


def is_marked(path):
    """Whether a file marks tests so, and does not only speak of it."""
    lines = path.read_text(encoding='utf-8').splitlines()
    return any(MARKED.match(line) for line in lines)


def run_file(file: Path, settings: Settings):
    """Runs the tests of one file in a process of its own.

    Returns:
        list[dict]: One row with the numbers of tests.

    Raises:
        LeftOut: If pytest is not installed.
        RuntimeError: If it ended without a report.
    """
    if importlib.util.find_spec('pytest') is None:
        raise LeftOut('needs pytest; the part gradients checks values without it')
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / 'report.xml'
        command = [sys.executable, '-m', 'pytest', str(file), '-m', 'gpu', '-q', '-rs']
        command += ['-p', 'no:cacheprovider', f'--junitxml={report}']
        path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
        done = subprocess.run(
            command, cwd=ROOT, env=dict(os.environ, PYTHONPATH=path), stdout=sys.stderr
        )
        if not report.exists():
            raise RuntimeError(f'pytest ended with {done.returncode} and no report')
        counts = read_report(report)
    row = dict(file=file.as_posix(), **counts)
    if counts['failed']:
        row['problem'] = f'{counts["failed"]} tests failed'
    elif settings.device.type == 'cuda' and not counts['passed']:
        row['problem'] = 'no test ran'
    return [row]


def read_report(path):
    """Numbers of tests in a JUnit report."""
    suites = list(ElementTree.parse(path).getroot().iter('testsuite'))
    total, failed, errors, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites)
        for key in ('tests', 'failures', 'errors', 'skipped')
    )
    failed += errors
    return dict(passed=total - failed - skipped, failed=failed, skipped=skipped)


def headline(rows):
    passed, failed, skipped = (
        sum(row[key] for row in rows) for key in ('passed', 'failed', 'skipped')
    )
    return f'{passed} passed, {failed} failed, {skipped} skipped'
