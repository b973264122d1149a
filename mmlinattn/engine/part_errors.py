"""Errors of the libraries, reported as errors of a part of a config."""

import re
import traceback
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from inspect import getmro, isclass, signature
from typing import Any, Optional

from mmengine import registry

from mmlinattn.utils.config_keys import did_you_mean

NO_SAMPLES = 'there are no samples: check annotations, classes and filter_cfg'
# A library's message; its meaning, if unclear; and whether it also fails the run, None
# if that depends on whose code it is.
RULES: tuple[tuple[str, Optional[str], Optional[bool]], ...] = (
    # a run has devices, a group of processes and a runner of its own
    ('(?i)cuda|gpu|process group|Preflight', None, False),
    ('unexpected keyword argument|is not in the .*registry', None, True),
    ('can not be imported', None, True),
    ('None is not a callable object', 'it is not in the optimizer registry', True),
    ('need at least one array to concatenate', NO_SAMPLES, None),
)
REGISTRIES = [x for x in vars(registry).values() if isinstance(x, registry.Registry)]
LIBRARIES = {
    *('mmcv', 'mmdet', 'mmengine', 'mmlinattn', 'mmpretrain', 'mmseg'),
    *('torch', 'torchvision'),
}
# Errors of the libraries for a config that can't be built, or can't run at a size.
LIBRARY_ERRORS = (
    *(AssertionError, AttributeError, ImportError, LookupError, MemoryError, OSError),
    *(RuntimeError, SyntaxError, TypeError, ValueError),
)


def reason(error: Exception, cfg: Any = None) -> str:
    """An error's text, and the known name most similar to an unknown one.

    Args:
        error (Exception): The libraries' error.
        cfg (dict, optional): The config that caused it.

    Returns:
        str: The text.
    """
    text = str(error)
    if not text:  # usually an assertion
        place = traceback.extract_tb(error.__traceback__)[-1:]
        text = ''.join([type(error).__name__, *(f' in {x.line!r}' for x in place)])
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])
        # a plain KeyError has only a name
        text = text if ' ' in text else f'it has no {text!r}'
    text = next((mean for rule, mean, _ in RULES if mean and rule in text), text)
    argument = re.search(r"got an unexpected keyword argument '(\w+)'", text)
    if argument:
        # Python 3.13 suggests a name too, of this signature alone
        text = text.partition('. Did you mean')[0]
        nodes = [found for node, _, found in built_from(cfg) if argument[1] in node]
        takers = [x for found in nodes for x in found if isclass(x)]
        inits = [
            vars(base)['__init__']
            for x in takers
            for base in getmro(x)
            if '__init__' in vars(base)
        ]
        names = {name for init in inits for name in signature(init).parameters}
        return text + did_you_mean(argument[1], names - {argument[1]})
    scope = registry.DefaultScope.get_current_instance()
    if scope and 'registry' in text:
        try:
            import_module(f'{scope.scope_name}.registry')
        except (ImportError, AssertionError) as error:  # an unsupported version
            return f'{scope.scope_name} can not be imported: {error}'
    kind = re.search(r'is not in the (?:\S+::)?(.+?) registry', text)
    if kind:
        unknown = [name for _, name, found in built_from(cfg) if not found]
        for name in [name for name in unknown if name in text] or unknown:
            likely = did_you_mean(name, registered(kind[1]))
            text += f'; no {kind[1]} is {name!r}{likely}'
    return text


def is_sure(text: str, own: bool) -> bool:
    """True if a part's error also fails the run; in a user's own part it may not."""
    verdicts = (sure for rule, _, sure in RULES if re.search(rule, text))
    return next((sure for sure in verdicts if sure is not None), not own)


def has_own_code(cfg: Any) -> bool:
    """True if a config names a class or function outside the libraries."""
    kinds = (kind for _, _, found in built_from(cfg) for kind in found)
    modules = (getattr(kind, '__module__', '') for kind in kinds)
    return any(name.partition('.')[0] not in LIBRARIES for name in modules)


def built_from(cfg: Any) -> Iterator[tuple[dict, str, list]]:
    """All objects that a config builds: the node, the name, and the classes or
    functions of that name."""
    known, nodes = registered(), [cfg]
    for node in nodes:  # the loop appends to them
        if isinstance(node, (list, tuple)):
            nodes.extend(node)
        elif isinstance(node, dict):
            nodes.extend(node.values())
            for kind in (node.get('type'), node.get('constructor')):
                name = kind.rpartition('.')[2] if isinstance(kind, str) else ''
                if kind is not None:
                    yield node, name, known.get(name, []) if name else [kind]


def registered(kind: Optional[str] = None) -> dict[str, list]:
    """Entries of all imported registries, or of those of a kind, by name."""
    found = defaultdict(list)
    for root in (x for x in REGISTRIES if kind in (None, x.name)):
        for child in (root, *root.children.values()):
            for name, thing in child.module_dict.items():
                found[name].append(thing)
    return found
