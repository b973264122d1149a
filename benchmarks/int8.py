"""Measure the cost and savings of 8-bit integers in a backbone's linear layers.

The backbone of CONFIG is measured in four forms: PyTorch in float32; PyTorch's dynamic
quantization of nn.Linear; the ONNX file of tools/deployment/export.py; that file with
--int8. With CHECKPOINT, the config's own test runs once for each form with the rest of
the model in float32, and the maps of its images are compared with those of float32.

examples:
  python benchmarks/int8.py configs/soft/softpp-t_in1k.py --shape 224 224
  python benchmarks/int8.py CONFIG CHECKPOINT --shape 800 1344
"""

import copy
import io
import statistics
import tempfile
from pathlib import Path

import torch
from common import parse_report_args, report_parser
from mmengine.runner import Runner
from side_by_side.cases import image
from side_by_side.memory import peak_bytes
from side_by_side.report import write_json
from side_by_side.timing import measure
from torch import nn

from mmlinattn.deployment import ExportedModel, export, quantize
from mmlinattn.deployment.formats import FORMATS
from mmlinattn.utils import load_config
from mmlinattn.weights import load_safely
from mmlinattn_tools.cli import (
    INPUT_ERRORS,
    add_cfg_options,
    errors_in_one_line,
    threads,
)

FLOAT32 = 'PyTorch, float32'


class FileBackbone(nn.Module):
    """A file that replaces a backbone.

    Args:
        run (Callable): Takes images to maps.
    """

    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, images):
        return tuple(self.run(images))


class Compared(nn.Module):
    """A backbone that measures the distance of its maps to another one's.

    Args:
        form (nn.Module): The backbone.
        exact (nn.Module): The other one.
    """

    def __init__(self, form, exact):
        super().__init__()
        self.form, self.exact = form, exact
        self.squares = []

    def forward(self, images):
        maps, expected = self.form(images), self.exact(images)
        pairs = [
            ((x - y).square().sum().item(), y.square().sum().item())
            for x, y in zip(maps, expected)
        ]
        self.squares.append(pairs)
        return maps

    def errors(self):
        """Norm of the difference over the norm, of all images, for each map."""
        return [
            (sum(x for x, _ in pairs) / sum(y for _, y in pairs)) ** 0.5
            for pairs in zip(*self.squares)
        ]


def parse_args(argv=None):
    parser = report_parser(__doc__)
    parser.add_argument('config', metavar='CONFIG', help='path of the config')
    parser.add_argument(
        'checkpoint', metavar='CHECKPOINT', nargs='?', help='the whole model'
    )
    parser.add_argument(
        '--shape', nargs=2, type=int, metavar=('H', 'W'), default=[224, 224]
    )
    parser.add_argument('--rounds', type=int, default=10, help='rounds of timing (10)')
    parser.add_argument('--threads', type=threads, default=1, help='default: 1')
    add_cfg_options(parser, 'test_dataloader.num_workers=0')
    args = parse_report_args(parser, argv)
    if args.rounds < 1:
        parser.error(f'--rounds must be at least 1, got {args.rounds}')
    return args


def forms_of(backbone, folder, shape):
    """A backbone in float32 and in integers.

    Args:
        backbone (nn.Module): In evaluation mode.
        folder (Path): Folder for files.
        shape (list[int]): Height and width of the image for the export.

    Returns:
        dict[str, tuple[nn.Module, int]]: A module and the bytes of its file, by form.
    """
    forms = {FLOAT32: (backbone, bytes_of(backbone))}
    integers = copy.deepcopy(backbone)
    for module in integers.modules():
        if isinstance(module, nn.Linear):
            module.__class__ = nn.Linear  # PyTorch skips subclasses such as mmcv's
    integers = torch.ao.quantization.quantize_dynamic(
        integers, {nn.Linear}, torch.qint8
    )
    forms['PyTorch, int8'] = integers, bytes_of(integers)
    path = folder / 'float32.onnx'
    run = export(ExportedModel(backbone), path, 'onnx', tuple(shape))
    forms['ONNX, float32'] = FileBackbone(run), path.stat().st_size
    quantized = folder / 'int8.onnx'
    quantize(path, quantized)
    run = FORMATS['onnx'].open(quantized)
    forms['ONNX, int8'] = FileBackbone(run), quantized.stat().st_size
    return forms


def bytes_of(module):
    """Size of a module's state in a file."""
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    return file.getbuffer().nbytes


def costs_of(forms, shape, rounds):
    """Median seconds of one smooth image by form, and the bytes that its first pass
    takes above weights."""
    (images,) = image((1, 3, *shape), torch.float32)
    runs = {name: (lambda form=form: form(images)) for name, (form, _) in forms.items()}
    with torch.no_grad():
        memory = {x: peak_bytes(run, torch.device('cpu')) for x, run in runs.items()}
        found = measure(
            {name: (run, lambda: None) for name, run in runs.items()},
            dict.fromkeys(runs, rounds),
        )
    seconds = {name: statistics.median(x.values()) for name, x in found.items()}
    return {x: dict(seconds=seconds[x], memory=memory[x]) for x in runs}


def run(args):
    """Measures, and returns the report."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    load_safely()
    cfg = load_config(args.config, args.cfg_options)
    with tempfile.TemporaryDirectory() as folder:
        cfg.work_dir, cfg.load_from = folder, args.checkpoint
        runner = Runner.from_cfg(cfg)
        if args.checkpoint is None:
            runner.model.init_weights()
        else:
            runner.load_or_resume()
        model = runner.model.eval()
        backbone = model.backbone
        forms = forms_of(backbone, Path(folder), args.shape)
        costs = costs_of(forms, args.shape, args.rounds)
        rows = {
            name: dict(bytes=size, **costs[name]) for name, (_, size) in forms.items()
        }
        for name, (form, _) in forms.items() if args.checkpoint else ():
            model.backbone = compared = Compared(form, backbone)
            rows[name]['metrics'] = runner.test()
            rows[name]['errors'] = compared.errors()
    return dict(
        config=args.config,
        shape=args.shape,
        threads=args.threads,
        torch=torch.__version__,
        rows=rows,
    )


def main(argv=None):
    args = parse_args(argv)
    with errors_in_one_line(*INPUT_ERRORS):
        report = run(args)
    for name, row in report['rows'].items():
        text = f'{name}: {row["bytes"] / 1e6:.1f} MB, {row["seconds"] * 1e3:.0f} ms'
        if row['memory'] is not None:
            text += f', {row["memory"] / 2**20:.0f} MiB'
        if 'errors' in row:
            text += ', maps off by ' + ', '.join(f'{x:.1%}' for x in row['errors'])
            text += ', ' + ', '.join(f'{k} {v:.4g}' for k, v in row['metrics'].items())
        print(text)
    if args.out:
        write_json(args.out, report)


if __name__ == '__main__':
    main()
