"""Writes a model to a file of another format, and runs and compares such files."""

import json
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .half import half_scopes, halve_file
from .outputs import ExportedModel

# the oldest with LayerNormalization; ONNX Runtime has known it since 1.12
OPSET = 17

Runner = Callable[[Tensor], Sequence[Tensor]]


class Format(NamedTuple):
    """A file format."""

    suffix: str
    # takes the model, example images, a path and notes
    write: Callable[[ExportedModel, Tensor, Path, dict], None]
    open: Callable[[Path], Runner]
    any_size: bool = True  # any batch and size, not just one image of one size


def export(
    model: ExportedModel,
    path: Path,
    format: str = 'onnx',
    shape: tuple[int, int] = (224, 224),
    notes: Optional[dict[str, Any]] = None,
    stage: Callable[[str], AbstractContextManager] = nullcontext,
    half: bool = False,
) -> Runner:
    """Write a model to a file.

    An ONNX file takes batches and images of any size from 32 x 32 on, a program of
    ``torch.export`` one image of one size: symbolic sizes would take minutes and end
    in guards on the batch.

    Args:
        model (ExportedModel): The model, on the CPU.
        path (Path): The file, in a folder that exists.
        format (str): 'onnx' or 'export', the format of ``torch.export``, from torch
            2.7 on.
        shape (tuple[int]): Height and width of the image that the exporter runs the
            model on, and the only size of a file of the format 'export'.
        notes (dict, optional): How to prepare images, kept in the file as JSON:
            in ONNX as the metadata ``notes``, otherwise as the extra file
            ``notes.json``.
        stage (Callable): Takes the name of a stage to a context around it, such as one
            that prints its seconds.
        half (bool): Computes layers of an ONNX file in float16
            (:mod:`mmlinattn.deployment.half`). Inputs and outputs stay in float32.

    Returns:
        Callable: Runs the file on images (B, C, H, W).

    Raises:
        ValueError: If the format is unknown or needs a newer torch, the image is too
            small, or the format can't hold a part of the model, or half precision.
        ImportError: If a package is missing.
        RuntimeError: If the exporter fails.
    """
    if format not in FORMATS:
        raise ValueError(f'format must be one of {tuple(FORMATS)}, got {format!r}')
    if half and format != 'onnx':
        raise ValueError(f"half precision needs format='onnx', got {format!r}")
    target = FORMATS[format]
    # exporters make a constant of a batch of one
    images = model.example(shape, 1 + target.any_size)
    with torch.no_grad(), warnings.catch_warnings():
        # warnings of exporters' own deprecations, and of branches in libraries
        warnings.simplefilter('ignore')
        scopes: dict[str, bool] = {}
        # while an exporter runs it, it does not check the images
        with stage('run the model once'):
            if half:
                scopes = half_scopes(model, images, shape)
            else:
                model(images)
        # a failure leaves no new file, and keeps the old one
        part = path.with_name(f'part-of-{path.name}')
        try:
            with stage('write the file'):
                target.write(model, images, part, notes or {})
            if half:
                with stage('halve the precision'):
                    halve_file(part, scopes)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    with stage('open the file'):
        return target.open(path)


def write_onnx(model: ExportedModel, images: Tensor, path: Path, notes: dict) -> None:
    onnx = _import_onnx('onnx')
    axes = model.axes(images)
    options: dict[str, Any] = {}
    if 'dynamo' in torch.onnx.export.__code__.co_varnames:
        options['dynamo'] = False  # the other exporter needs more packages
    torch.onnx.export(
        model,
        (images,),
        str(path),
        opset_version=OPSET,
        input_names=list(axes)[:1],
        output_names=list(axes)[1:],
        dynamic_axes=axes,
        **options,
    )
    graph = onnx.load(str(path))
    for node in graph.graph.node:
        for attribute in node.attribute:
            # PyTorch's exporter writes this mode for its own resizing, which
            # differs where one side of the result is 1
            if attribute.s == b'pytorch_half_pixel':
                attribute.s = b'half_pixel'
    graph.metadata_props.add(key='notes', value=json.dumps(notes))
    onnx.checker.check_model(graph)
    onnx.save(graph, str(path))


def open_onnx(path: Path) -> Runner:
    runtime = _import_onnx('onnxruntime')
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.enable_mem_pattern = False  # one for each size would stay
    session = runtime.InferenceSession(
        str(path), options, providers=['CPUExecutionProvider']
    )

    def run(images: Tensor) -> Sequence[Tensor]:
        outputs = session.run(None, {session.get_inputs()[0].name: images.numpy()})
        return [torch.from_numpy(output) for output in outputs]

    return run


def _import_onnx(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise ImportError(
            f"the format 'onnx' needs the package {name}: pip install onnx onnxruntime"
        ) from None


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
    'export': Format('.pt2', write_program, open_program, any_size=False),
}


def parity(model: ExportedModel, run: Runner, images: Tensor) -> dict[str, float]:
    """Return the largest difference of each output of a model on images (B, C, H, W),
    relative to its largest entry. ``run`` runs the file, as :func:`export` returns it.
    Differences are infinite if values are not finite in only one of the two, or if
    shapes differ."""
    with torch.no_grad():
        expected = model.named_outputs(images)
        return {
            name: _difference(result, wanted)
            for (name, wanted), result in zip(expected, run(images))
        }


def _difference(result: Tensor, wanted: Tensor) -> float:
    if result.shape != wanted.shape:
        return float('inf')
    difference = ((result - wanted).abs().amax() / wanted.abs().amax()).item()
    return difference if difference == difference else float('inf')
