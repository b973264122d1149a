"""Compares a checkpoint's options that leave no trace in the keys with a model's.

A checkpoint of a run has the run's config in its metadata. The backbone that the config
describes is built without memory for its weights, and shows every option, defaults
included. The text is read as literals, and its types are looked up in our registry
and in a list of layers: nothing in it is run.
"""

import ast
from collections.abc import Mapping
from typing import Any, Optional

import torch
from torch import nn

from mmlinattn.registry import MODELS

SCOPE = 'mmlinattn.'
LAYERS = {
    *('BN', 'BN1d', 'BN2d', 'SyncBN', 'MMSyncBN', 'LN', 'LN2d', 'GN'),
    *('ReLU', 'GELU', 'SiLU', 'HSwish'),
}
# state and arithmetic of the training, and values that are resized or reported
# elsewhere
NOT_COMPARED = {'training', 'momentum', 'track_running_stats'}
NOT_COMPARED |= {'p', 'drop_prob'}
UNCOMPARED_LAYERS = {'PositionTable', 'Dropout', 'DropPath'}
NOT_BUILT = ('init_cfg', 'out_indices', 'out_type', 'frozen_stages', 'with_cp')
LARGEST = 10**4
# solvers of the same operator: how it is computed is not part of the model
SOLVERS = dict.fromkeys(('auto', 'newton', 'polynomial', 'spectral'), 'newton')


def read_literal(node: ast.expr) -> Any:
    """The value of an expression of constants, lists, dicts and ``dict(...)``.

    Raises:
        ValueError: If there is anything else in it.
    """
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == 'dict'
        and not node.args
    ):
        return {entry.arg: read_literal(entry.value) for entry in node.keywords}
    if isinstance(node, ast.Dict):
        return {
            read_literal(key): read_literal(value)
            for key, value in zip(node.keys, node.values)
        }
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [read_literal(value) for value in node.elts]
        return tuple(values) if isinstance(node, ast.Tuple) else values
    return ast.literal_eval(node)


def find_backbone(meta: Any) -> Optional[dict]:
    """The backbone's config in a checkpoint's metadata, or None.

    Args:
        meta: What a checkpoint has under `meta`.

    Raises:
        Exception: Any, if the metadata are none of MMEngine's.
    """
    text = meta.get('cfg') if isinstance(meta, Mapping) else None
    if isinstance(text, Mapping):
        model = text.get('model')
        return dict(model['backbone']) if model and 'backbone' in model else None
    if not isinstance(text, str):
        return None
    for statement in ast.parse(text).body:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id == 'model'
        ):
            return read_literal(statement.value).get('backbone')
    return None


def is_known(value: Any) -> bool:
    """Whether all types in a config are ours, or layers of the list above, and no
    number is so large that building a module could take long."""
    if isinstance(value, (int, float)):
        return abs(value) <= LARGEST
    if isinstance(value, (list, tuple)):
        return all(map(is_known, value))
    if not isinstance(value, Mapping):
        return True
    kind = value.get('type', 'BN')
    if not isinstance(kind, str):
        return False
    name = kind[len(SCOPE) :] if kind.startswith(SCOPE) else kind
    return (name in LAYERS or name in MODELS.module_dict) and all(
        map(is_known, value.values())
    )


def is_deeper(cfg: dict, most: int) -> bool:
    """Whether a backbone's config asks for more than a number of blocks."""
    arch = cfg.get('arch')
    blocks = []
    for sizes in (cfg, arch) if isinstance(arch, Mapping) else (cfg,):
        blocks += [sizes.get(key) or 0 for key in ('num_layers', 'num_class_layers')]
        blocks += sizes.get('depths') or []
    return sum(map(abs, blocks)) > most


def build_stored(meta: Any, most_blocks: int) -> Optional[nn.Module]:
    """The backbone that a checkpoint's config describes, on the meta device.

    Args:
        meta: What a checkpoint has under `meta`.
        most_blocks: A model of more of them is not built.

    Returns:
        None if there is no config, or none of ours that can be built.
    """
    MODELS.import_from_location()
    try:
        cfg = find_backbone(meta)
        if not cfg or not is_known(cfg) or is_deeper(cfg, most_blocks):
            return None
        kind = cfg['type'].rpartition('.')[2]
        arguments = {key: x for key, x in cfg.items() if key not in NOT_BUILT}
        with torch.device('meta'):
            return MODELS.build({**arguments, 'type': kind, '_scope_': SCOPE[:-1]})
    except Exception:  # of another version, or no config at all
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
        options['solver'] = SOLVERS.get(options['solver'], options['solver'])
    return options


def compare_options(model: nn.Module, meta: Any) -> list[str]:
    """Lists how a model differs from the model of a checkpoint.

    Args:
        model: One of our backbones.
        meta: What the checkpoint has under `meta`.

    Returns:
        A line for every option that differs, with both values; none if the
        checkpoint has no config of one of our backbones.
    """
    # the weights fit, so a whole model has as many blocks
    stored = build_stored(meta, most_blocks=len(list(model.modules())))
    if stored is None:
        return []
    theirs = dict(stored.named_modules())
    found: dict[tuple, list[str]] = {}
    for name, module in model.named_modules():
        other = theirs.get(name)
        if not name or other is None or type(module).__name__ in UNCOMPARED_LAYERS:
            continue
        kinds = [type(x).__name__ for x in (other, module)]
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
