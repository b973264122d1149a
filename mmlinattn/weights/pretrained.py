"""Loads weights into one of our backbones, and accounts for every key."""

import logging
from collections import Counter
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
from .fitting import fit_weights
from .rows import StateDict, inside
from .start import (
    BLOCK,
    Source,
    StartPlan,
    is_early_norm,
    is_scaling_vector,
    plan_start,
    replaced_attentions,
)

LIGHTNING = 'model.'  # its prefix
COMMAND = 'mim run mmlinattn convert_official'


class FoundBackbone(NamedTuple):
    """The backbone in a checkpoint."""

    weights: StateDict  # by our names
    family: Optional[Family]  # the family it was converted from
    origin: dict[str, str]  # names in the checkpoint, by ours
    rest: list[str]  # names in the checkpoint that are no part of the backbone

    @property
    def title(self) -> str:
        """The family's name."""
        return self.family.title if self.family else 'mmlinattn'


def find_backbone(checkpoint: dict, prefix: Optional[str] = None) -> FoundBackbone:
    """Find a backbone's weights in any checkpoint, and give them our names."""
    state_dict, _ = find_state_dict(checkpoint)
    rest = []
    if not prefix and not recognize(state_dict) and inside(state_dict, LIGHTNING):
        prefix = LIGHTNING
    if prefix:
        prefix = f'{prefix.rstrip(".")}.'
        under = without_wrappers(inside(state_dict, prefix))
        if under or recognize(state_dict) not in FAMILIES:
            rest = [key for key in state_dict if not key.startswith(prefix)]
            # an official classifier has a head beside its backbone
            place = '' if recognize(under) in FAMILIES else PREFIX
            state_dict = {f'{place}{key}': value for key, value in under.items()}
    origin = {key: key for key in state_dict}
    name = recognize(state_dict)
    if name in FAMILIES:
        plan = plan_conversion(state_dict, name)
        origin = {ours: ' + '.join(keys) for ours, keys in plan.sources().items()}
        state_dict = plan.apply(state_dict)
    else:  # perhaps converted to the family's own model
        meta = checkpoint.get('meta')
        meta = meta if isinstance(meta, dict) else {}
        name = meta.get('family')
    if inside(state_dict, PREFIX):
        rest = [x for key, x in origin.items() if not key.startswith(PREFIX)] + rest
        state_dict, origin = inside(state_dict, PREFIX), inside(origin, PREFIX)
    return FoundBackbone(state_dict, FAMILIES.get(str(name)), origin, rest)


def load_pretrained(
    model: nn.Module,
    checkpoint: str,
    prefix: Optional[str] = None,
    map_location: str = 'cpu',
    initialize: Optional[Callable[[], None]] = None,
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

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file cannot be read, or holds an incomplete official model.
        KeyError: If parameters are missing or have other shapes, as in another
            family's checkpoint.
        ConnectionError: If it cannot be downloaded.
        ImportError: If timm or safetensors is needed and missing.
    """
    loaded = read_checkpoint(checkpoint, map_location=map_location)
    try:
        found = find_backbone(loaded, prefix)
    except ValueError as error:
        raise ValueError(f'checkpoint={checkpoint!r}: {error}') from error
    kind = type(model).__name__
    fitted = fit_weights(model, found.weights)
    # a classifier may norm no map at all, such as RAVLT
    normed = any(key.startswith('norm') for key in found.weights)
    num_stages = model.num_stages + (not normed)
    lacking = [
        key
        for key in fitted.missing
        if not (is_scaling_vector(key) or is_early_norm(key, num_stages))
    ]
    replaced = []
    if found.family:
        replaced = replaced_attentions(model, found.weights, found.family.attentions)
    if replaced and (lacking or fitted.mismatched):
        try:
            start = plan_start(model, found.weights)
        except ValueError as error:
            raise KeyError(
                f'checkpoint={checkpoint!r}, weights of {found.title}, cannot '
                f'start this {kind}: {error}'
            ) from error
        if initialize is not None:
            initialize()
    elif lacking:
        raise KeyError(
            f'checkpoint={checkpoint!r} with prefix={prefix!r} lacks {len(lacking)} '
            f'parameters of this {kind}, such as {lacking[:3]}; it has '
            f'{shortlist([*found.origin.values(), *found.rest])}, '
            f'{describe_origin(found)}'
        )
    elif fitted.mismatched:
        name, shapes = next(iter(fitted.mismatched.items()))
        raise KeyError(
            f'checkpoint={checkpoint!r} does not fit this {kind}: '
            f'{len(fitted.mismatched)} shapes differ, such as {name} {shapes}'
        )
    else:
        taken = {key: [Source(key)] for key in fitted.state_dict}
        start = StartPlan(taken, fitted.missing, fitted.unexpected)
        deeper = [key for key in fitted.extra if BLOCK.match(key)]
        if deeper:
            log(
                f'{kind}: {checkpoint} is of a deeper model; not used: '
                f'{shortlist(deeper)}'
            )
    model.load_state_dict(start.apply(found.weights), strict=False)
    log_start(kind, start, found, checkpoint, bool(lacking or fitted.mismatched))
    if replaced:
        kinds = sorted({type(model.get_submodule(name)).__name__ for name in replaced})
        log(
            f'{kind}: weights of {found.title} were not trained with '
            f'{" and ".join(kinds)}, which {len(replaced)} blocks have here, such as '
            f'{replaced[0]}'
        )


def load_head(head: nn.Module, checkpoint: str, prefix: str = 'head.') -> None:
    """Load the last layer of a classifier, `fc`, from a classifier's checkpoint.

    Args:
        head: A head with the layer of mmpretrain's LinearClsHead.
        checkpoint: See :func:`load_pretrained`.
        prefix: Prefix of its keys; 'neck.' loads a neck.

    Raises:
        KeyError: If the checkpoint lacks the layer, or it has another shape.
        Exception: See :func:`load_pretrained`.
    """
    state_dict, _ = find_state_dict(read_checkpoint(checkpoint, 'pretrained'))
    family = recognize(state_dict)
    if family in FAMILIES:
        state_dict = convert(state_dict, family)
    try:
        head.load_state_dict(inside(state_dict, prefix))
    except RuntimeError as error:
        raise KeyError(
            f'pretrained={checkpoint!r} has no {prefix[:-1]} for this '
            f'{type(head).__name__}: {str(error).splitlines()[-1].strip()}; '
            'default_hooks.pretrained.head=False starts the backbone alone'
        ) from None
    log(f'{type(head).__name__}: loaded from {checkpoint}', logging.INFO)


def describe_origin(found: FoundBackbone) -> str:
    """The family of the weights that were found, for an error."""
    if found.family:
        return f'weights of {found.title}'
    if recognize(found.weights):
        return 'weights of another model of mmlinattn'
    return (
        f'not recognized: mmlinattn takes checkpoints of {known_models()}; see '
        f'{COMMAND} --help'
    )


def log(text: str, level: int = logging.WARNING) -> None:
    """Log a message to the user."""
    print_log(text, 'current', level)


def log_start(
    kind: str, start: StartPlan, found: FoundBackbone, checkpoint: str, partly: bool
) -> None:
    """Log a summary in one line; ``partly``: of a model with other attentions."""
    source = f'{found.title} in {checkpoint}' if found.family else checkpoint
    parts = Counter(name.partition('.')[0] for name in found.rest)
    left = [found.origin[name] for name in start.unused]
    left += [f'{part} ({number} entries)' for part, number in parts.items()]
    if partly:
        number = len(start.taken) + len(start.initial)
        log(
            f'{kind}: STARTS from {source}: {len(start.taken)} of {number} entries '
            f'loaded, {len(start.recut)} of them split differently; these keep their '
            f'initial values: {start.initial or "none"}; not used: {left or "none"}'
        )
    else:
        zero = [key for key in start.initial if is_scaling_vector(key)]
        norms = [key for key in start.initial if not is_scaling_vector(key)]
        log(
            f'{kind}: loaded {len(start.taken)} entries from {source}; not used: '
            f'{shortlist(left)}; start at zero: {shortlist(zero)}; start as fresh '
            f'norms: {shortlist(norms)}',
            logging.INFO,
        )


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
