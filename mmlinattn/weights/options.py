"""Compares a checkpoint's options that leave no trace in the keys with a model's.

A checkpoint of a run has the run's config in its metadata, as text. The text is read as
literals, and its types are looked up among registered ones and in a list of layers:
none of it is run. The model builds the described backbone, which shows every option,
defaults included.
"""

import ast
from collections.abc import Mapping
from typing import Any, Optional

from torch import nn

from mmlinattn.registry import MODELS

LAYERS = {
    *('BN', 'BN1d', 'BN2d', 'SyncBN', 'MMSyncBN', 'LN', 'LN2d', 'GN'),
    *('ReLU', 'GELU', 'SiLU', 'HSwish'),
}
# state and arithmetic of the training, and values that are resized or reported
# elsewhere, are not compared
NOT_COMPARED = {'training', 'momentum', 'track_running_stats', 'p', 'drop_prob'}
UNCOMPARED_LAYERS = {'PositionTable', 'Dropout', 'DropPath'}
# largest number in a config: a larger model takes long to build, or all memory
LARGEST = 10**4
# solvers of the same operator: the solver is not part of the model
SOLVERS = dict.fromkeys(('auto', 'newton', 'polynomial', 'spectral'), 'newton')


class Literals(ast.NodeTransformer):
    """Turns ``dict(key=value)`` into a literal."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) != 'dict' or node.args:
            return node
        keys: list[Any] = [ast.Constant(entry.arg) for entry in node.keywords]
        return ast.Dict(keys, [entry.value for entry in node.keywords])


def read_backbone(text: str) -> dict:
    """The backbone in the text of a config; raises any error if there is none."""
    (model,) = [
        statement.value
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign)
        and ast.unparse(statement.targets[0]) == 'model'
    ]
    return ast.literal_eval(Literals().visit(model))['backbone']


def is_known(value: Any) -> bool:
    """True if all types in a config are ours, or layers of the list above, and no
    number is too large."""
    if isinstance(value, (int, float)):
        return abs(value) <= LARGEST
    if isinstance(value, (list, tuple)):
        return all(map(is_known, value))
    if not isinstance(value, Mapping):
        return True
    name = value.get('type', 'BN').removeprefix('mmlinattn.')
    known = name in LAYERS or name in MODELS.module_dict
    return known and all(map(is_known, value.values()))


def build_stored(model: nn.Module, meta: Any) -> Optional[nn.Module]:
    """The backbone that a checkpoint's config describes, without memory for weights;
    None if there is no config, or its backbone is not ours or can't be built."""
    try:
        cfg = read_backbone(meta['cfg'])
        cfg.pop('init_cfg', None)
        return model.build_empty(cfg) if is_known(cfg) else None
    except Exception:  # the config is missing, or of another version
        return None


def options_of(module: nn.Module) -> dict[str, Any]:
    """A module's public attributes that are plain values."""
    options = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith('_')
        and name not in NOT_COMPARED
        and isinstance(value, (bool, int, float, str, tuple))
    }
    if 'solver' in options:
        options['solver'] = SOLVERS.get(str(options['solver']), options['solver'])
    return options


def compare_options(model: nn.Module, meta: Any) -> list[str]:
    """Lists how a model differs from the model of a checkpoint.

    Args:
        model: One of our backbones.
        meta: The checkpoint's entry `meta`.

    Returns:
        A line for every option that differs, with both values; none if the
        checkpoint has no config of one of our backbones.
    """
    stored = build_stored(model, meta)
    theirs = dict(stored.named_modules()) if stored is not None else {}
    found: dict[tuple, list[str]] = {}
    for name, module in model.named_modules():
        other = theirs.get(name)
        kinds = [type(x).__name__ for x in (other, module)]
        if not name or other is None or UNCOMPARED_LAYERS.intersection(kinds):
            continue
        if kinds[0] != kinds[1] and not any('BatchNorm' in kind for kind in kinds):
            found.setdefault(('type', *kinds), []).append(name)
            continue
        stored_options = options_of(other)
        for option, value in options_of(module).items():
            if option in stored_options and stored_options[option] != value:
                key = (option, stored_options[option], value)
                found.setdefault(key, []).append(name)
    return [
        f'{option}={theirs!r} there, {option}={ours!r} here ({names[0]}'
        + (f' and {len(names) - 1} more)' if len(names) > 1 else ')')
        for (option, theirs, ours), names in found.items()
    ]
