"""Which mmcv is installed, whether it can work, and what mends it.

Nothing is imported for it but a compiled part, which may not load. Its distribution has
one of several names, which all own the folder `mmcv`.
"""

import importlib.util
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path
from typing import NamedTuple, Optional

SOURCE = Path(__file__).with_name('_ext.py')
# distributions, and their libraries, in OpenMMLab's and the maintained stack
LITE, MAINTAINED = 'mmcv-lite', 'onedl-mmcv'
DISTRIBUTIONS = ('mmcv', LITE, 'mmcv-full', MAINTAINED)
# libraries that refuse other versions of mmcv when they are imported, and those that
# can't be imported without operators
LIBRARIES = ('mmdet', 'mmseg', 'mmpretrain')
NEED_OPERATORS = ('mmdet', 'mmseg')
ENABLE = 'python -m mmlinattn.ops --install'
# of the first version that a library refuses, in its __init__
LIMIT = re.compile(r"^mmcv_max\w*\s*=\s*'([\d.]+)'", re.M | re.I)


class Installed(NamedTuple):
    """The mmcv that Python finds."""

    folder: Optional[Path]  # of the package
    names: tuple[str, ...] = ()  # of its distributions
    version: str = ''
    compiled: Optional[Path] = None  # the compiled part that Python would load
    error: str = ''  # why that does not load
    source: Optional[Path] = None  # `_ext.py` in the folder
    is_ours: bool = False  # that is a copy of the one here
    limits: tuple[tuple[str, str], ...] = ()  # libraries, and what they refuse

    @property
    def title(self) -> str:
        """Its name and version."""
        names = ' and '.join(self.names) or 'mmcv'
        return f'{names} {self.version}'.rstrip()


def find() -> Installed:
    """Look for mmcv, and try to load its compiled part if it has one."""
    folder = _folder('mmcv')
    if folder is None:
        return Installed(None)
    compiled = next(
        filter(
            Path.exists, (folder / f'_ext{suffix}' for suffix in EXTENSION_SUFFIXES)
        ),
        None,
    )
    source, names = folder / '_ext.py', tuple(_distributions(folder))
    return Installed(
        folder=folder,
        names=names,
        version=_version(folder / 'version.py', names),
        compiled=compiled,
        error=_load_error(compiled) if compiled else '',
        source=source if source.exists() else None,
        is_ours=_first_line(source) == _first_line(SOURCE),
        limits=tuple(_limits()),
    )


def problem(installed: Installed, libraries: Iterable[str] = LIBRARIES) -> str:
    """Return what is wrong with it for some libraries, and the command that mends it;
    '' if nothing is."""
    if installed.folder is None:
        return f'there is no mmcv: {_replace(())}'
    again = _replace(installed.names or ('mmcv',))
    place = f'{installed.title} in {installed.folder}'
    if installed.version and _numbers(installed.version) < (2,):
        return f'{place} is of OpenMMLab 1, and MMEngine needs mmcv 2: {again}'
    if installed.error and {*libraries} & {*NEED_OPERATORS}:
        return (
            f'{place} has a compiled part that does not load, {installed.compiled}, '
            f'such as one for another torch ({installed.error}): {again}'
        )
    for library, limit in installed.limits:
        too_new = installed.version and _numbers(installed.version) >= _numbers(limit)
        if library in libraries and too_new:
            again = _replace(installed.names or ('mmcv',), f'{LITE}==2.1.0')
            return f'{place} is too new for {library}, which needs <{limit}: {again}'
    return ''


def describe(installed: Installed) -> str:
    """Return a line on an mmcv that works, and the command that adds what it lacks."""
    place = f'{installed.title} in {installed.folder}'
    twice = ''
    if len(installed.names) > 1:
        # they share files: which of the two wrote one last is not known
        remedy = _replace(installed.names)
        twice = f'; {len(installed.names)} distributions share it: {remedy}'
    if installed.compiled:
        return f'{place} has its compiled part, and uses it{twice}'
    if installed.is_ours:
        return f'{place} has the operators of mmlinattn{twice}'
    return f'{place} has no operators; this adds them: {twice[2:] or ENABLE}'


def check(*libraries: str) -> None:
    """Raise an error for an mmcv that can't be used, or not by these libraries.

    Raises:
        ImportError: With what is wrong, and the command that mends it, in one line.
    """
    fault = problem(find(), libraries)
    if fault:
        raise ImportError(fault)


def _replace(names: tuple[str, ...], wanted: str = '') -> str:
    """Return the command that installs another mmcv in place of these distributions."""
    if not wanted:
        maintained = any(map(_is_installed, ('onedl-mmengine', 'onedl-mmdetection')))
        wanted = MAINTAINED if maintained else f'{LITE}==2.1.0'
    steps = [f'pip uninstall -y {" ".join(names)}'] if names else []
    return ' && '.join([*steps, f'pip install {wanted}', ENABLE])


def _folder(package: str) -> Optional[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # a stand-in in sys.modules has no spec
        return None
    return Path(spec.origin).parent if spec and spec.origin else None


def _distributions(folder: Path) -> Iterable[str]:
    for name in DISTRIBUTIONS:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        # another folder of sys.path may have one that Python does not import; that of
        # a source tree is known by its own metadata
        own = Path(str(distribution.locate_file('mmcv')))
        if own.resolve() == folder.resolve() or not own.exists():
            yield name


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _version(file: Path, names: tuple[str, ...]) -> str:
    match = re.search(r"__version__ = '([^']+)'", _text(file))
    return match[1] if match else next(map(metadata.version, names), '')


def _limits() -> Iterable[tuple[str, str]]:
    for library in LIBRARIES:
        folder = _folder(library)
        match = folder and LIMIT.search(_text(folder / '__init__.py'))
        if match:
            yield library, match[1]


def _load_error(compiled: Path) -> str:
    """Return why Python can't load it, in a line; '' if it can."""
    if 'mmcv._ext' in sys.modules:
        return ''
    try:
        import torch  # noqa: F401  # it loads the libraries that this one needs

        loader = ExtensionFileLoader('mmcv._ext', str(compiled))
        spec = importlib.util.spec_from_file_location(
            'mmcv._ext', compiled, loader=loader
        )
        if spec is not None:
            importlib.util.module_from_spec(spec)
    except Exception as error:
        return ' '.join(str(error).split()) or type(error).__name__
    return ''


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding='utf-8', errors='replace')
    except OSError:
        return ''


def _first_line(file: Path) -> str:
    return _text(file).partition('\n')[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r'\d+', version)[:3]))
