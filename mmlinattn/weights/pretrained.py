"""Loads weights into one of our backbones, and accounts for every key.

A checkpoint is read, recognized, renamed, compared and loaded, by one function each.
"""

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Callable, NamedTuple, Optional

from mmengine.logging import print_log
from torch import nn

from .addresses import read_checkpoint
from .conversion import (
    PREFIX,
    convert,
    find_state_dict,
    known_models,
    plan_conversion,
    recognize,
    shortlist,
    without_wrappers,
)
from .families import FAMILIES, Family
from .fitting import COUNTER, fit_weights
from .rows import StateDict, inside
from .transfer import (
    BLOCK,
    Transfer,
    is_early_norm,
    is_scaling_vector,
    may_differ,
    plan_transfer,
    replaced_attentions,
)

LIGHTNING = 'model.'  # its prefix
COMMAND = 'mim run mmlinattn convert_official'


class PretrainedWeights(NamedTuple):
    """Weights of a checkpoint by our names.

    Attributes:
        backbone: Those of the backbone, without prefix.
        others: Those of other parts, such as `head.fc.weight`.
        names: Names in the checkpoint, by ours.
        family: The family that they are converted from, if there is one.
    """

    backbone: StateDict
    others: StateDict
    names: dict[str, str]
    family: Optional[Family]

    @property
    def title(self) -> str:
        """The family's name."""
        return self.family.title if self.family else 'mmlinattn'

    @property
    def origin(self) -> str:
        """Whose weights they are, for an error."""
        if self.family:
            return f'weights of {self.title}'
        if recognize(self.backbone):
            return 'weights of another model of mmlinattn'
        return (
            f'not recognized: mmlinattn takes checkpoints of {known_models()}; see '
            f'{COMMAND} --help'
        )


def load_pretrained(
    model: nn.Module,
    checkpoint: str,
    prefix: Optional[str] = None,
    map_location: str = 'cpu',
    initialize: Optional[Callable[[], None]] = None,
    parts: Optional[Mapping[str, nn.Module]] = None,
) -> None:
    """Load pretrained weights into a backbone, and log it.

    Official weights are recognized and converted. Weights of a plain
    model start a model with other attentions: entries that fit are loaded, the others
    keep their initial values, and a warning names both.

    Args:
        model: One of our backbones.
        checkpoint: A path, `file://PATH`, `http(s)://...` or `timm://MODEL`.
        prefix: Prefix of the backbone's keys. Default: 'backbone.' if there are such
            keys, none otherwise. Official weights need none.
        map_location: Device to load to.
        initialize: Gives the model its initial values; called only if some are kept.
        parts: Other parts of a classifier to load, by name, such as its `head`. They
            must fit as a whole.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file cannot be read, or holds an incomplete official model.
        KeyError: If parameters are missing, have other shapes, as in another family's
            checkpoint, or are no numbers.
        ConnectionError: If it cannot be downloaded.
        ImportError: If timm or safetensors is needed and missing.
    """
    content = read_checkpoint(checkpoint, map_location=map_location)
    try:
        state_dict, family = recognize_backbone(content, prefix)
        weights = rename(state_dict, family)
        transfer, replaced = compare(model, weights)
        for name, part in (parts or {}).items():
            load_part(name, part, inside(weights.others, f'{name}.'))
    except (KeyError, ValueError) as error:
        raise type(error)(f'checkpoint={checkpoint!r}: {error.args[0]}') from error
    if transfer.initial and initialize is not None:
        initialize()
    model.load_state_dict(transfer.apply(weights.backbone), strict=False)
    report(model, weights, transfer, replaced, checkpoint, parts or ())


def recognize_backbone(
    content: dict, prefix: Optional[str] = None
) -> tuple[StateDict, Optional[str]]:
    """The state dict in a checkpoint, without the prefixes of programs, and the family
    of its backbone; the metadata name that of converted weights."""
    state_dict, _ = find_state_dict(content)
    if not prefix and not recognize(state_dict) and inside(state_dict, LIGHTNING):
        prefix = LIGHTNING
    if prefix:
        under = without_wrappers(inside(state_dict, f'{prefix.rstrip(".")}.'))
        # an official classifier has none of our prefixes
        if under or recognize(state_dict) not in FAMILIES:
            state_dict = under
    family = recognize(state_dict)
    meta = content.get('meta')
    if family not in FAMILIES and isinstance(meta, dict):
        family = meta.get('family')
    return state_dict, family


def rename(state_dict: StateDict, family: Optional[str]) -> PretrainedWeights:
    """Weights by our names, with every key of an official model accounted for."""
    names = {key: key for key in state_dict}
    if recognize(state_dict) in FAMILIES:
        plan = plan_conversion(state_dict, str(family))
        names = {ours: ' + '.join(keys) for ours, keys in plan.sources().items()}
        state_dict = plan.apply(state_dict)
    if not inside(state_dict, PREFIX):
        state_dict = {f'{PREFIX}{key}': x for key, x in state_dict.items()}
        names = {f'{PREFIX}{key}': x for key, x in names.items()}
    others = {k: x for k, x in state_dict.items() if not k.startswith(PREFIX)}
    backbone = inside(state_dict, PREFIX)
    return PretrainedWeights(backbone, others, names, FAMILIES.get(str(family)))


def compare(model: nn.Module, weights: PretrainedWeights) -> tuple[Transfer, list[str]]:
    """The sources of a backbone's entries, and names of attentions that the weights
    were not trained with.

    Raises:
        KeyError: If they do not fit this backbone.
    """
    replaced = []
    if weights.family:  # else it is not known what the plain model's attentions are
        equivalent = weights.family.attentions
        replaced = replaced_attentions(model, weights.backbone, equivalent)
    transfer = plan_transfer(model, weights.backbone)
    # a classifier may norm no map at all, such as RAVLT
    normed = any(key.startswith('norm') for key in weights.backbone)
    num_stages = model.num_stages + (not normed)
    shapes = [
        f'{key} {shapes}'
        for key, shapes in transfer.mismatched.items()
        if not (replaced and may_differ(key))
    ]
    lacking = [
        key
        for key in transfer.initial
        if not (is_scaling_vector(key) or is_early_norm(key, num_stages))
        and not (key in transfer.mismatched or key.endswith(COUNTER))
    ]
    faults = [f'{len(shapes)} shapes differ, such as {shapes[0]}'] if shapes else []
    if transfer.broken:
        faults.append(f'NaN or infinite values in {shortlist(transfer.broken)}')
    if not replaced:
        lacking += transfer.split_differently
        if lacking:
            faults.append(f'lacks {len(lacking)} parameters, such as {lacking[:3]}')
    elif not any(BLOCK.match(key) for key in transfer.sources):
        faults.append('the two models have no block in common')
    if faults:
        raise KeyError(
            f'it does not fit this {type(model).__name__}: {"; ".join(faults)}; it has '
            f'{shortlist(weights.names.values())}, {weights.origin}'
        )
    return transfer, replaced


def load_part(name: str, part: nn.Module, weights: StateDict) -> None:
    """Load a whole part of a classifier.

    Raises:
        KeyError: If its weights are missing or have other shapes.
    """
    fitted = fit_weights(part, weights)
    if fitted.missing or fitted.mismatched:
        raise KeyError(
            f'it has no {name} for this {type(part).__name__}: {fitted.describe()}; '
            'default_hooks.pretrained.head=False starts the backbone alone'
        )
    part.load_state_dict(fitted.state_dict)


def report(
    model: nn.Module,
    weights: PretrainedWeights,
    transfer: Transfer,
    replaced: list[str],
    checkpoint: str,
    parts: Collection[str],
) -> None:
    """Log what was loaded, in one line; a warning, if it is of another model."""
    kind, number = type(model).__name__, len(transfer.sources)
    others = Counter(name.partition('.')[0] for name in weights.others)
    unused = [weights.names[PREFIX + name] for name in transfer.unused]
    unused += [f'{x} ({n} entries)' for x, n in others.items() if x not in parts]
    deeper = not replaced and any(BLOCK.match(name) for name in transfer.unused)
    listed = list if replaced else shortlist
    lines = [
        f'{kind}: {"STARTS from" if replaced else "loaded from"} '
        f'{weights.title} in {checkpoint}: {number} of {len(model.state_dict())} '
        f'entries, {len(transfer.split_differently)} of them split differently',
        f'these keep their initial values: {listed(transfer.initial) or "none"}',
        f'not used: {listed(unused) or "none"}',
    ]
    if deeper:
        lines.append('they are of a deeper model')
    if replaced:
        kinds = {type(model.get_submodule(name)).__name__ for name in replaced}
        lines.append(
            f'not trained with {" and ".join(sorted(kinds))}, which {len(replaced)} '
            f'blocks have here, such as {replaced[0]}'
        )
    level = logging.WARNING if replaced or deeper else logging.INFO
    print_log('; '.join(lines), 'current', level)


def take_official_names(
    state_dict: StateDict,
    prefix: str,
    metadata: dict,
    strict: bool,
    missing: list,
    unexpected: list,
    errors: list,
) -> None:
    """Give official weights our names when a whole model is loaded.

    This hook of a backbone is called before its state dict is loaded. It renames the
    official names under the backbone's prefix.

    Raises:
        ValueError: If official names have no prefix, as in a raw official file, or the
            official backbone is incomplete.
    """
    official = inside(state_dict, prefix)
    family = recognize(official or unexpected)
    if family not in FAMILIES:
        return
    if not official:
        title, code = FAMILIES[family].title, FAMILIES[family].code
        raise ValueError(
            f'this checkpoint holds {title} weights with keys of {code}; load_from, '
            'tests and inference need a whole OpenMMLab model. Use '
            f'pretrained=CHECKPOINT, or convert it: {COMMAND} {family} SRC DST'
        )
    for key in official:
        del state_dict[prefix + key]
    converted = convert(official, family)
    state_dict.update(
        (prefix + key, value) for key, value in inside(converted, PREFIX).items()
    )
