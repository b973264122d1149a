"""Writes a model to a file of another format, and runs such files."""

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .outputs import ExportedModel

# the oldest with LayerNormalization; ONNX Runtime has known it since 1.12
OPSET = 17
MIN_SIDE = 32

Outputs = Sequence[Tensor]
Runner = Callable[[Tensor], Outputs]


class Format(NamedTuple):
    """A file format.

    Attributes:
        suffix (str): The ending of its files.
        write (Callable): Called with the model, images as an example, a path and
            what to note in the file.
        open (Callable): Takes a path to a function of images.
        any_size (bool): Whether files serve for batches and images of any size, or
            for one image of one size.
    """

    suffix: str
    write: Callable[[ExportedModel, Tensor, Path, dict], None]
    open: Callable[[Path], Runner]
    any_size: bool = True


def export(
    model: ExportedModel,
    path: Path,
    format: str = 'onnx',
    shape: tuple[int, int] = (224, 224),
    notes: Optional[dict[str, Any]] = None,
) -> Runner:
    """Writes a model to a file.

    An ONNX file and a TorchScript program serve for batches and images of any size
    from 32 x 32 on, a program of ``torch.export`` for one image of one size: its
    symbolic sizes take minutes and end in guards on the batch.

    Args:
        model (ExportedModel): The model, on the CPU.
        path (Path): The file, in a folder that exists.
        format (str): 'onnx', 'torchscript' or 'export', the format of
            ``torch.export``, from torch 2.7 on.
        shape (tuple[int]): Height and width of the image that shows the exporter
            the way, and the size that 'export' is for.
        notes (dict, optional): What the file tells its users, as JSON, of how to
            prepare images. TorchScript and torch.export have it as an extra file
            ``notes.json``, ONNX as the metadata ``notes``.

    Returns:
        Callable: Runs the file on images (B, C, H, W).

    Raises:
        ValueError: If the format is unknown or the image is too small, or if a part
            of the model can't be in the file.
        ImportError: If a package is missing.
        RuntimeError: If the exporter fails.
    """
    if format not in FORMATS:
        raise ValueError(f'format must be one of {tuple(FORMATS)}, got {format!r}')
    if min(shape) < MIN_SIDE:
        raise ValueError(
            f'shape must be at least {MIN_SIDE} x {MIN_SIDE} pixels, got '
            f'{shape[0]} x {shape[1]}'
        )
    _, write, open_, any_size = FORMATS[format]
    # exporters take a batch of one for a constant
    images = torch.zeros(1 + any_size, model.in_channels, *shape)
    with torch.no_grad(), warnings.catch_warnings():
        # of exporters' own deprecations, and of branches in libraries
        warnings.simplefilter('ignore')
        # a failure leaves no file, and the old one as it was
        part = path.with_name(f'part-of-{path.name}')
        try:
            write(model, images, part, notes or {})
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    return open_(path)


def write_onnx(model: ExportedModel, images: Tensor, path: Path, notes: dict) -> None:
    onnx = _import_onnx('onnx')
    names = [name for name, _ in model.named_outputs(images)]
    axes: dict[str, dict[int, str]] = {'images': {0: 'batch', 2: 'height', 3: 'width'}}
    for name, output in model.named_outputs(images):
        sides = ('height', 'width')[: output.dim() - 2]
        axes[name] = {0: 'batch'}
        axes[name].update({2 + i: f'{name}_{side}' for i, side in enumerate(sides)})
    options: dict[str, Any] = {}
    if 'dynamo' in torch.onnx.export.__code__.co_varnames:
        options['dynamo'] = False  # the other exporter needs more packages
    torch.onnx.export(
        model,
        (images,),
        str(path),
        opset_version=OPSET,
        input_names=['images'],
        output_names=names,
        dynamic_axes=axes,
        **options,
    )
    graph = onnx.load(str(path))
    for node in graph.graph.node:
        for attribute in node.attribute:
            # PyTorch's exporter takes this for its own way of resizing, which it
            # is not where one side of the result is 1
            if attribute.s == b'pytorch_half_pixel':
                attribute.s = b'half_pixel'
    graph.metadata_props.add(key='notes', value=json.dumps(notes))
    onnx.checker.check_model(graph)
    onnx.save(graph, str(path))


def open_onnx(path: Path) -> Runner:
    runtime = _import_onnx('onnxruntime')
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(
        str(path), options, providers=['CPUExecutionProvider']
    )

    def run(images: Tensor) -> Outputs:
        outputs = session.run(None, {'images': images.numpy()})
        return [torch.from_numpy(output) for output in outputs]

    return run


def _import_onnx(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise ImportError(
            f"the format 'onnx' needs the package {name}: pip install "
            "'mmlinattn[deploy]'"
        ) from None


def write_torchscript(
    model: ExportedModel, images: Tensor, path: Path, notes: dict
) -> None:
    traced = torch.jit.trace(model, images, check_trace=False)
    torch.jit.save(traced, str(path), _extra_files={'notes.json': json.dumps(notes)})


def open_torchscript(path: Path) -> Runner:
    return torch.jit.load(str(path), map_location='cpu')


def write_program(
    model: ExportedModel, images: Tensor, path: Path, notes: dict
) -> None:
    if not hasattr(torch.compiler, 'is_exporting'):
        raise ValueError(
            f"the format 'export' needs torch 2.7 or newer, but this is torch "
            f'{torch.__version__}'
        )
    program = torch.export.export(model, (images,))
    torch.export.save(program, str(path), extra_files={'notes.json': json.dumps(notes)})


def open_program(path: Path) -> Runner:
    return torch.export.load(str(path)).module()


FORMATS = {
    'onnx': Format('.onnx', write_onnx, open_onnx),
    'torchscript': Format('.pt', write_torchscript, open_torchscript),
    'export': Format('.pt2', write_program, open_program, any_size=False),
}
