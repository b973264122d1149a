"""ONNX files in half precision.

Linear layers and convolutions that autocast computes in half precision are in float16,
and so are their weights, and ReLU. All other operations stay in float32: attentions
between their projections, norms, sums over blocks, embeddings of patches, activations
such as GELU, of which ONNX takes powers, and the steps before and after a network.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor, nn

from .outputs import ExportedModel

LAYERS = (nn.Linear, nn.modules.conv._ConvNd, nn.ReLU)
# of these layers; what a subclass does besides may need float32
OPERATORS = {
    *('Add', 'Conv', 'ConvTranspose', 'Gemm', 'MatMul', 'Relu', 'Reshape'),
    'Transpose',
}


def half_scopes(
    model: ExportedModel, example: Tensor, shape: tuple[int, int]
) -> dict[str, bool]:
    """Return which parts of a model can be in float16, by their names in a file.

    Args:
        model (ExportedModel): The model, on the CPU.
        example (Tensor): Its input, for a run that tells the names.
        shape (tuple[int]): Size of an image for the backbone.

    Returns:
        dict[str, bool]: Names such as '/backbone/blocks.0/attn/q', which blocks of
        several stages share. False if one of them needs float32.
    """
    wide = _layers_in_float32(model, shape)
    # PyTorch's exporter takes the last word, and the numbers behind it
    names = {
        module: re.sub(r'^.*\.(?=[^.]*[^.\d])', '', name)
        for name, module in model.named_modules()
    }
    path = ['']
    scopes: dict[str, bool] = {}

    def enter(module: nn.Module, args: Any) -> None:
        path.append(names[module])
        scope = '/'.join(path)
        is_half = isinstance(module, LAYERS) and module not in wide
        scopes[scope] = is_half and scopes.get(scope, True)

    def leave(module: nn.Module, args: Any, output: Any) -> None:
        path.pop()

    with _hooks(model, leave, enter), torch.no_grad():
        model(example)
    return scopes


def _layers_in_float32(model: ExportedModel, shape: tuple[int, int]) -> set[nn.Module]:
    """Return layers of the backbone that return float32 under autocast."""
    backbone: Any = getattr(model.model, 'backbone', model.model)
    wide = set()

    def look(module: nn.Module, args: Any, output: Any) -> None:
        if isinstance(output, Tensor) and output.dtype == torch.float32:
            wide.add(module)

    # torch 2.1 has no float16 on a CPU
    with _hooks(backbone, look), torch.autocast('cpu', torch.bfloat16), torch.no_grad():
        backbone(torch.zeros(1, model.in_channels, *shape))
    return wide


@contextmanager
def _hooks(
    model: nn.Module, leave: Callable, enter: Optional[Callable] = None
) -> Iterator[None]:
    """Call functions after, and before, the parts of a model."""
    parts = [module for module in model.modules() if module is not model]
    handles = [part.register_forward_hook(leave) for part in parts]
    if enter is not None:
        handles += [part.register_forward_pre_hook(enter) for part in parts]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def halve_file(path: Path, scopes: dict[str, bool]) -> None:
    """Change an ONNX file: some of its parts compute in float16.

    A tensor in float16 is called like that in float32, with ``_half`` behind it.

    Args:
        path (Path): A file in float32.
        scopes (dict[str, bool]): See :func:`half_scopes`.

    Raises:
        ValueError: If nothing can be computed in float16.
    """
    import onnx

    model = onnx.load(str(path))
    graph = model.graph
    inferred = onnx.shape_inference.infer_shapes(model).graph
    floats = tensors_of_type(inferred, onnx.TensorProto.FLOAT)
    constants = _constants(graph)
    nodes: list[Any] = []
    halves: set[str] = set()

    def cast(name: str, new: str, dtype: int) -> Any:
        return onnx.helper.make_node('Cast', [name], [new], f'{new}_cast', to=dtype)

    for node in graph.node:
        if not _can_be_half(node, scopes, constants):
            nodes.append(node)
            continue
        for i, name in enumerate(node.input):
            half = f'{name}_half'
            if name in floats and half not in halves:
                halves.add(half)
                if name in constants:
                    value = constants[name].astype(np.float16)
                    graph.initializer.append(onnx.numpy_helper.from_array(value, half))
                else:
                    nodes.append(cast(name, half, onnx.TensorProto.FLOAT16))
            node.input[i] = half if half in halves else name
        nodes.append(node)
        for i, name in enumerate(node.output):
            if name in floats:
                half = node.output[i] = f'{name}_half'
                halves.add(half)
                nodes.append(cast(half, name, onnx.TensorProto.FLOAT))
    if not halves:
        raise ValueError('no layer of this model can be in half precision')
    _replace_nodes(graph, nodes)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def _can_be_half(
    node: Any, scopes: dict[str, bool], constants: dict[str, np.ndarray]
) -> bool:
    """Return True if a node's part can be in float16, and the range holds its
    weights."""
    scope = node.name.rpartition('/')[0]
    if scope not in scopes:  # the exporter numbers those of the same name
        scope = re.sub(r'_\d+$', '', scope)
    if node.op_type not in OPERATORS or not scopes.get(scope):
        return False
    weights = [constants[name] for name in node.input if name in constants]
    most = np.finfo(np.float16).max
    return all(bool(abs(x).max(initial=0) <= most) for x in weights)


def tensors_of_type(graph: Any, dtype: int) -> set[str]:
    """Return names of the tensors of an ONNX dtype, in a graph with inferred shapes."""
    values = (*graph.input, *graph.value_info, *graph.output)
    types = {x.name: x.type.tensor_type.elem_type for x in values}
    types.update((x.name, x.data_type) for x in graph.initializer)
    return {name for name, kind in types.items() if kind == dtype}


def _constants(graph: Any) -> dict[str, np.ndarray]:
    """Return values of the constants of a graph, by the names of the tensors."""
    import onnx

    to_array = onnx.numpy_helper.to_array
    constants = {x.name: to_array(x) for x in graph.initializer}
    for node in graph.node:
        if node.op_type == 'Constant':
            constants[node.output[0]] = to_array(node.attribute[0].t)
        elif node.op_type == 'Identity' and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
    return constants


def _replace_nodes(graph: Any, nodes: list[Any]) -> None:
    """Give a graph other nodes, without those and the weights that nothing reads."""
    read = {output.name for output in graph.output}
    used = []
    for node in reversed(nodes):
        if read.intersection(node.output):
            used.append(node)
            read.update(node.input)
    weights = [x for x in graph.initializer if x.name in read]
    for field, values in ((graph.node, used[::-1]), (graph.initializer, weights)):
        del field[:]
        field.extend(values)
    del graph.value_info[:]  # some names have another type now
