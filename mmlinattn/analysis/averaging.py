"""How much of an attention's output differs between tokens, and what a model does
without that part.

Legend: B batch, N tokens, C channels.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Callable

from torch import Tensor, nn

from mmlinattn.functional import crop_map

from .recording import AttentionCall, attentions_of, intercept
from .similarity import hc_proportion

# takes the name of an attention, its output and the axes of tokens to its output
Change = Callable[[str, Tensor, tuple[int, ...]], Tensor]


def varying_share(x: Tensor) -> Tensor:
    r"""Share of a token sequence that differs between tokens.

    .. math:: \frac{\|X - \frac1N 1 1^T X\|_F^2}{\|X\|_F^2}

    The mean over tokens has the rest of the square norm, because both parts are
    orthogonal. It is the square of :func:`hc_proportion`. An attention whose output has
    a share of 0 gives the same to every query.

    Args:
        x (Tensor): Tokens, (..., N, C).

    Returns:
        Tensor: (...), values in [0, 1]; NaN if all tokens are zero.
    """
    return hc_proportion(x).square()


@contextmanager
def varying_shares(
    model: nn.Module,
    attentions: Iterable[nn.Module] | None = None,
    token_axes: Sequence[int] | None = None,
) -> Iterator[dict[str, list[Tensor]]]:
    """Return a context that notes :func:`varying_share` of each attention's output.

    It yields a dictionary that is filled while the model runs: by the name of the
    attention, a tensor (B,) on the CPU for each of its calls. The output is that of
    ``attend``, before gates, LePE and the projection, for attentions of mmlinattn, and
    the module's otherwise. All tokens of an image count, a class token too, and padding
    of windows does not.

    Args:
        model (nn.Module): The model.
        attentions (iterable of nn.Module, optional): Attentions of the model, of any
            library. Default: all of mmlinattn.
        token_axes (sequence of int, optional): Axes of tokens in the outputs of other
            libraries' modules, such as (2, 3) for (B, C, H, W). Default: 1 for
            (B, N, C); ``nn.MultiheadAttention`` tells its own.

    Raises:
        ValueError: If there is no attention, one is not in the model, or the output of
            one has other than three axes and ``token_axes`` is not given.
    """
    shares: dict[str, list[Tensor]] = {}

    def note(name: str, out: Tensor, axes: tuple[int, ...]) -> Tensor:
        tokens = _as_tokens(out.detach().float(), axes)
        shares.setdefault(name, []).append(varying_share(tokens).cpu())
        return out

    with _changed(model, attentions, token_axes, note):
        yield shares


@contextmanager
def averaged_attention(
    model: nn.Module,
    attentions: Iterable[nn.Module] | None = None,
    token_axes: Sequence[int] | None = None,
) -> Iterator[None]:
    """Return a context in which an attention gives every token the mean of its outputs.

    What a trained model scores in it, compared with its score outside, tells whether
    the task needs queries: of a model that scores the same, the score does not tell
    attentions apart. What stays are gates, LePE, the local parts beside the attention,
    and shortcuts; a shortcut inside another library's module is averaged with its
    output. An attention that sees windows as separate sequences has a mean in each.
    The one query of class attention stays as it is.

    Args:
        model, attentions, token_axes: See :func:`varying_shares`.

    Raises:
        ValueError: See :func:`varying_shares`.
    """

    def average(_name: str, out: Tensor, axes: tuple[int, ...]) -> Tensor:
        return out.mean(axes, keepdim=True).expand_as(out).clone()

    with _changed(model, attentions, token_axes, average):
        yield


@contextmanager
def _changed(
    model: nn.Module,
    attentions: Iterable[nn.Module] | None,
    token_axes: Sequence[int] | None,
    change: Change,
) -> Iterator[None]:
    """Return a context in which outputs of attentions are changed. Warns of those that
    a run of the model did not call, as a fused layer of PyTorch does not."""
    from mmlinattn.models import BaseAttention

    named = _named(model, attentions)
    called: set[str] = set()

    def noted(name: str, out: Tensor, axes: tuple[int, ...]) -> Tensor:
        called.add(name)
        return change(name, out, axes)

    with ExitStack() as stack:
        for name, module in named.items():
            if isinstance(module, BaseAttention):
                intercept(stack, name, module, partial(_change_product, noted))
            else:
                hook = partial(_change_output, noted, name, token_axes)
                stack.callback(module.register_forward_hook(hook).remove)
        yield
    missing = [name for name in named if name not in called]
    if missing:
        warnings.warn(
            f'{len(missing)} of {len(named)} attentions were not called, so their '
            f'outputs stayed as they are: {", ".join(missing)}. Run the model inside '
            'of the context, and outside of torch.no_grad() if PyTorch fuses a layer',
            stacklevel=4,
        )


def _named(
    model: nn.Module, attentions: Iterable[nn.Module] | None
) -> dict[str, nn.Module]:
    """Return attentions by their names in the model."""
    if attentions is None:
        return {**attentions_of(model)}
    modules = [*attentions]
    names = {module: name for name, module in model.named_modules()}
    unknown = [type(module).__name__ for module in modules if module not in names]
    if unknown or not modules:
        raise ValueError(
            f'attentions must be modules of the model, got {unknown or "none"}: take '
            'them from model.modules()'
        )
    return {names[module]: module for module in modules}


def _change_product(
    change: Change, call: AttentionCall, compute: Callable[[], Tensor]
) -> Tensor:
    """Change what ``attend`` returns, padding of windows excepted."""
    out = compute()
    cropped = out
    if not call.num_extra:
        cropped = crop_map(out, call.hw_shape, call.map_shape)
    changed = change(call.name, cropped, (1,))
    if cropped.shape == out.shape:
        return changed
    height, width = call.map_shape
    maps = out.unflatten(1, call.hw_shape).clone()
    maps[:, :height, :width] = changed.unflatten(1, call.map_shape)
    return maps.flatten(1, 2)


def _change_output(
    change: Change,
    name: str,
    token_axes: Sequence[int] | None,
    module: nn.Module,
    _args: Any,
    out: Any,
) -> Any:
    """Change a module's output, or the first of several."""
    if isinstance(out, (tuple, list)):
        first = _change_output(change, name, token_axes, module, _args, out[0])
        return type(out)((first, *out[1:]))
    return change(name, out, _token_axes(name, module, out, token_axes))


def _token_axes(
    name: str, module: nn.Module, out: Any, stated: Sequence[int] | None
) -> tuple[int, ...]:
    """Return axes of tokens in the output of a module."""
    if isinstance(module, nn.MultiheadAttention):
        return (out.dim() - 2,) if module.batch_first else (0,)
    if stated is not None:
        return tuple(stated)
    if not isinstance(out, Tensor) or out.dim() != 3:
        got = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise ValueError(
            f'the output of {name} must be (B, N, C), got {got}: give token_axes, such '
            'as (2, 3) for (B, C, H, W)'
        )
    return (1,)


def _as_tokens(out: Tensor, axes: tuple[int, ...]) -> Tensor:
    """(..., N, C) of an output whose tokens are along some axes; channels are the last
    of the others."""
    axes = tuple(axis % out.dim() for axis in axes)
    *batch, channels = (i for i in range(out.dim()) if i not in axes)
    tokens = out.permute(*batch, *axes, channels)
    return tokens.flatten(len(batch), -2)
