"""See what models predict, and what their attentions look at, in a page or in files.

Without an IMAGE it serves a page on this machine: choose up to three models and their
checkpoints, choose a picture or upload one, and see the predictions side by side;
click a pixel to see what the attention of each layer gives to it; draw the frequency
curves. The page offers the configs, checkpoints and pictures that are named here and
opens no other file. It needs gradio: pip install -r requirements/demo.txt

With an IMAGE, a CONFIG and a CHECKPOINT ('none' for random weights) it writes the same
to --out, without a browser: IMAGE_predictions.png, IMAGE_attention.png,
IMAGE_frequencies.png, and IMAGE_demo.json with the numbers drawn.

Checkpoints are read without running code in them; a config is a Python program, and
reading it runs it.

examples:
  python tools/misc/demo.py --configs work_dirs/quickstart/train \\
      --checkpoints work_dirs/quickstart/train --images photos
  python tools/misc/demo.py photo.jpg configs/elfatt/swin-t-elfatt_in1k.py \\
      swin-t-elfatt.pth --at 0.3,0.6 --out work_dirs/demo
"""

import argparse
import os
import signal
import socket
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageOps

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from analysis_tools.attention_heatmap import attention_rows, draw_attention, numbers_of
from analysis_tools.compare_predictions import (
    add_score,
    draw_predictions,
    predict,
    read_pixels,
)
from analysis_tools.frequency_report import draw_frequencies, measure_frequencies
from mmlinattn_tools.cli import Parser, number
from mmlinattn_tools.looking import Subject, add_common_arguments, position, run

NONE = 'none'
MODELS = 3
KEPT = 4  # models that stay in memory
WEIGHTS = ('.pth', '.pt', '.safetensors')
PICTURES = ('.bmp', '.jpeg', '.jpg', '.png', '.webp')
FORMATS = ('PNG', 'JPEG', 'WEBP', 'BMP')
MEGABYTES = 30  # of an upload
SMALLEST = 32  # pixels, the least that a backbone takes
LARGEST_RATIO = 10  # of the longer side to the shorter one
# No config among these is one of a whole model that is to be chosen.
NOT_CONFIGS = {'_base_', 'vis_data', '__pycache__', '__init__.py'}


def parse_args(argv=None):
    parser = Parser(
        description=__doc__, usage='%(prog)s [IMAGE CONFIG CHECKPOINT] [options]'
    )
    parser.add_argument('files', nargs='*', metavar='FILE', help=argparse.SUPPRESS)
    folder = os.path.relpath(ROOT / 'configs')
    for option, default, text in (
        ('--configs', [folder], f'configs to choose from (default: {folder})'),
        ('--checkpoints', [], 'weights to choose from, beside random ones'),
        ('--images', [], 'pictures to choose from'),
    ):
        parser.add_argument(
            option,
            nargs='+',
            default=default,
            metavar='PATH',
            help=f'{text}: files, and folders of them',
        )
    parser.add_argument(
        '--host',
        default='127.0.0.1',
        help='address to serve at; 0.0.0.0 lets every machine of the network in '
        '(default: %(default)s, this machine only)',
    )
    parser.add_argument(
        '--port',
        type=number(int, 0, 65535),
        default=7860,
        help='port to serve at, 0 for any that is free (default: %(default)s)',
    )
    parser.add_argument(
        '--max-megapixels',
        type=number(float, 0.001, 1e4),
        default=25.0,
        metavar='N',
        help='the largest picture that is taken (default: %(default)g)',
    )
    parser.add_argument(
        '--at',
        type=position,
        default=(0.5, 0.5),
        metavar='X,Y',
        help='with files, the query whose attention is drawn: its place from the left '
        'and from the top as parts of the sides, 0 to 1 (default: 0.5,0.5)',
    )
    add_score(parser)
    add_common_arguments(parser, 'demo')
    args = parser.parse_args(argv)
    if len(args.files) not in (0, 3):
        parser.error(
            'give IMAGE CONFIG CHECKPOINT, or none of them for the page; got '
            f'{len(args.files)}: {" ".join(args.files)}'
        )
    return args


def find_files(option, places, endings):
    """(what a list shows, path) of files, and of those in folders, at any depth."""
    found = []
    for place in (Path(place).expanduser() for place in places):
        files = sorted(
            path
            for path in [place, *place.rglob('*')]
            if path.suffix.lower() in endings
            and path.is_file()
            and not NOT_CONFIGS & {*path.parts}
        )
        if not files:
            raise FileNotFoundError(
                f'{option} {place}: there is no file that ends in {", ".join(endings)}'
            )
        found += [(f'{path.name} ({path.parent})', str(path)) for path in files]
    return found


def check_picture(path, megapixels):
    """Checks a picture that is not trusted, and returns its (width, height), upright.

    Its pixels are decoded only if the file's header says that there are not too many.
    """
    try:
        with Image.open(path, formats=FORMATS) as image:
            small, large = sorted(image.size)
            right = small >= SMALLEST and large <= LARGEST_RATIO * small
            if not right or small * large > megapixels * 1e6:
                raise ValueError(f'it has {image.width} x {image.height} pixels')
            return ImageOps.exif_transpose(image).convert('RGB').size
    except Exception as error:  # whatever a decoder raises
        raise ValueError(
            f'image={path.name!r}: {error}. Give {", ".join(FORMATS)} of up to '
            f'{megapixels:g} megapixels, with sides of {SMALLEST} pixels or more that '
            f'differ by a factor of {LARGEST_RATIO} or less'
        ) from error


def load(args, config, checkpoint):
    random = checkpoint == NONE
    weights = 'random weights' if random else Path(checkpoint).name
    return Subject(
        config,
        None if random else checkpoint,
        f'{Path(config).stem}\n({weights})',
        args.shape,
        args.device,
        whole=True,
    )


def frequencies_of(subject, path):
    return dict(subject.describe(), blocks=measure_frequencies(subject, path))


def draw_files(args):
    path, config, checkpoint = Path(args.files[0]).expanduser(), *args.files[1:]
    check_picture(path, args.max_megapixels)
    subject = load(args, config, checkpoint)
    prediction = predict(subject, path, args.score)
    rows = attention_rows(subject, path, [args.at])
    frequencies = [frequencies_of(subject, path)]
    figure = draw_predictions(path, [subject.label], [prediction])
    yield f'{path.stem}_predictions', figure, None
    yield f'{path.stem}_attention', draw_attention(rows), None
    yield f'{path.stem}_frequencies', draw_frequencies(frequencies), None
    numbers = dict(
        predictions=prediction[0],
        attention=numbers_of([subject], rows),
        frequencies=frequencies,
    )
    yield f'{path.stem}_demo', None, numbers


def serve(args):
    """Serves the page until it is ended; there are no files."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ['GRADIO_TEMP_DIR'] = folder
        os.environ.setdefault('GRADIO_ANALYTICS_ENABLED', 'False')
        try:
            import gradio
            from starlette.middleware import Middleware
            from starlette.middleware.base import BaseHTTPMiddleware
            from starlette.middleware.trustedhost import TrustedHostMiddleware
        except ImportError:
            raise ImportError(
                "demo.py's page needs the package gradio: pip install -r "
                'requirements/demo.txt; with IMAGE CONFIG CHECKPOINT it works without'
            ) from None
        # ends as Ctrl+C does, so that uploads do not outlive the page
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        # a page of the web may have its name lead to this machine; '[' is what
        # Starlette takes any IPv6 address for
        own = [args.host, 'localhost', '127.0.0.1', socket.gethostname().lower(), '[']
        names = ['*'] if args.host in ('0.0.0.0', '::', '[::]') else own
        middleware = [
            Middleware(TrustedHostMiddleware, allowed_hosts=names),
            Middleware(BaseHTTPMiddleware, dispatch=own_scripts_only),
        ]
        make_page(gradio, args).queue(max_size=16, api_open=False).launch(
            server_name=args.host,
            server_port=args.port or None,
            max_file_size=MEGABYTES * 10**6,
            share=False,
            show_api=False,
            show_error=True,
            app_kwargs=dict(middleware=middleware),
        )
    return ()


async def own_scripts_only(request, call_next):
    """Has browsers ask no other host, for Gradio's page names scripts and fonts."""
    response = await call_next(request)
    response.headers['content-security-policy'] = (
        "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'"
    )
    return response


def make_page(gradio, args):
    """The layout of the page, and what its parts do."""
    configs = find_files('--configs', args.configs, ['.py'])
    checkpoints = find_files('--checkpoints', args.checkpoints, WEIGHTS)
    images = find_files('--images', args.images, PICTURES)
    kept = lru_cache(KEPT)(lambda *names: load(args, *names))

    def show(path):
        """The picture, its path and size for what follows, and no figures."""
        size = check_picture(Path(path), args.max_megapixels)
        return read_pixels(path), (Path(path), size), None, None, None

    def chosen_models(view, names):
        if view is None:
            raise ValueError('there is no picture: upload or choose one')
        pairs = [pair for pair in zip(names[::2], names[1::2]) if pair[0] != NONE]
        if not pairs:
            raise ValueError('no model is chosen: choose one')
        return view[0], [kept(*pair) for pair in pairs]

    def show_predictions(view, *names):
        path, subjects = chosen_models(view, names)
        found = [predict(subject, path, args.score) for subject in subjects]
        return draw_predictions(path, [subject.label for subject in subjects], found)

    def show_attention(place: gradio.SelectData, view, *names):
        path, subjects = chosen_models(view, names)
        point = [(x + 0.5) / side for x, side in zip(place.index, view[1])]
        rows = [row for x in subjects for row in attention_rows(x, path, [point])]
        x, y = place.index
        return gradio.Plot(draw_attention(rows), label=f'Attention at ({x}, {y})')

    def show_frequencies(view, *names):
        path, subjects = chosen_models(view, names)
        return draw_frequencies([frequencies_of(x, path) for x in subjects])

    # no link to an API that is closed; a long name ends before the arrow
    style = """footer {display: none !important}
        input[role=listbox] {text-overflow: ellipsis; margin-right: 1.5em}"""
    with gradio.Blocks(title='mmlinattn', css=style) as page:
        gradio.Markdown(
            '# What models predict, and what their attentions look at\n'
            'Choose models, then a picture. Click the picture to see what the '
            'attention of each layer gives to that place.'
        )
        view = gradio.State()
        with gradio.Row():
            with gradio.Column():
                picture = gradio.Image(
                    show_label=False,  # it would hide a corner
                    interactive=False,
                    format='png',
                    show_download_button=False,
                    elem_id='picture',
                )
                upload = gradio.UploadButton('Upload a picture', elem_id='upload')
                gradio.Markdown(
                    f'{", ".join(FORMATS)}, up to {args.max_megapixels:g} megapixels '
                    f'and {MEGABYTES} MB.'
                )
                chosen = gradio.Dropdown(
                    images,
                    value=None,
                    label='or choose one',
                    visible=bool(images),
                    elem_id='chosen',
                )
            with gradio.Column(scale=2):
                models = []
                for i in range(MODELS):
                    with gradio.Row():
                        models += [
                            gradio.Dropdown(
                                [('-', NONE), *configs],
                                value=NONE if i else configs[0][1],
                                label=f'Model {i + 1}',
                                elem_id=f'config{i + 1}',
                            ),
                            gradio.Dropdown(
                                [('none: random weights', NONE), *checkpoints],
                                value=checkpoints[0][1] if checkpoints[i:] else NONE,
                                label='Checkpoint',
                                elem_id=f'checkpoint{i + 1}',
                            ),
                        ]
                with gradio.Row():
                    predicts = gradio.Button(
                        'Predict', variant='primary', elem_id='predict'
                    )
                    curves = gradio.Button('Frequency curves', elem_id='curves')
        results = predictions, attention, frequencies = [
            gradio.Plot(label=name, elem_id=name.lower())
            for name in ('Predictions', 'Attention', 'Frequencies')
        ]
        # one request is answered at a time
        options = dict(api_name=False, concurrency_id='models', concurrency_limit=1)
        shown = [picture, view, *results]
        upload.upload(show, upload, shown, **options)
        chosen.input(show, chosen, shown, **options)
        inputs = [view, *models]
        predicts.click(show_predictions, inputs, predictions, **options)
        curves.click(show_frequencies, inputs, frequencies, **options)
        picture.select(show_attention, inputs, attention, **options)
    return page


def main(argv=None):
    args = parse_args(argv)
    run(args, draw_files if args.files else serve)


if __name__ == '__main__':
    main()
