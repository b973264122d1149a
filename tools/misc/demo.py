"""Serve a page that shows predictions and attention of models.

It begins with the newest checkpoint, and a picture of its test data. Choose up to three
models and a picture, or upload one, to see predictions side by side; click a pixel to
see its attention in each layer; draw the frequency curves. The page offers the configs,
checkpoints and pictures that are named here, opens no other file and asks no other
server. It needs gradio: pip install -r requirements/demo.txt

Checkpoints are read without running code in them; a config is a Python program, and
reading it runs it.
"""

import os
import re
import signal
import socket
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from mmlinattn_tools.cli import Parser, errors_in_one_line, number

# isort: split
from matplotlib import style
from PIL import Image, ImageOps

from analysis_tools.attention_heatmap import attention_rows, draw_attention
from analysis_tools.compare_predictions import add_score, predict, read_pixels, summary
from analysis_tools.frequency_report import draw_frequencies, measure_frequencies
from mmlinattn.engine.preflight import LIBRARY_ERRORS
from mmlinattn.utils import load_config
from mmlinattn.utils.quiet import quiet
from mmlinattn_tools.figures import STYLE
from mmlinattn_tools.looking import Subject, add_model_arguments
from mmlinattn_tools.own_data import IMAGES
from mmlinattn_tools.runs import test_dataset

NONE = 'none'
MODELS = 3
KEPT = 4  # models that stay in memory
PICTURES = 100  # of the test data on offer
WEIGHTS = ('.pth', '.pt', '.safetensors')
FORMATS = ('PNG', 'JPEG', 'WEBP', 'BMP')
MEGABYTES = 30  # largest upload
SMALLEST = 32  # pixels, the shortest side that a backbone takes
TITLE = """# What models predict, and what their attentions look at
Click the picture to see what the attention of each layer gives to that place."""
# Labels above their parts, and pictures with whole captions below.
CSS = """
#predictions, #attention, #frequencies {padding-top: 2rem}
#predictions .thumbnail-lg {aspect-ratio: auto; height: auto}
#predictions .caption-label {position: static; max-width: none; white-space: pre-line;
    border: none; box-shadow: none; background: none}
#predictions .thumbnail-lg img {width: auto; height: auto; max-width: 100%}
#predictions .grid-wrap {min-height: 0}
"""
# Folders and files that hold no config of a whole model.
NOT_CONFIGS = {'_base_', 'vis_data', '__pycache__', '__init__.py'}


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    for option, text in (
        ('--configs', "configs (default: the newest checkpoint's, and configs)"),
        ('--checkpoints', 'weights (default: those of the newest run in work_dirs)'),
        ('--images', "pictures (default: those of the config's test data)"),
    ):
        text = f'{text}: files, and folders of them'
        parser.add_argument(option, nargs='+', metavar='PATH', help=text)
    text = (
        'address to serve at; 0.0.0.0 admits every machine of the network (default: '
        '%(default)s, this machine only)'
    )
    parser.add_argument('--host', default='127.0.0.1', help=text)
    text = 'millions of pixels of the largest picture (default: 25)'
    number_of = dict(type=number(float, 0.001, 1e4), default=25.0, metavar='N')
    parser.add_argument('--max-megapixels', help=text, **number_of)
    add_score(parser)
    add_model_arguments(parser)
    return parser.parse_args(argv)


def find_files(option, places, endings):
    """(label, path) of files, and of those in folders, at any depth."""
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


def offered(args):
    """The choices: configs, checkpoints and pictures, the best ones first."""

    def age(path):
        return -os.path.getmtime(path)

    places = args.checkpoints
    if places is None:
        runs = [x.parent for x in sorted(Path('work_dirs').rglob('*.pth'), key=age)]
        places = [x for x in runs if any(x.glob('*.py'))][:1]
    checkpoints = find_files('--checkpoints', places, WEIGHTS)
    checkpoints.sort(key=lambda x: age(x[1]))
    run = [Path(path).parent for _, path in checkpoints[:1]]
    places = [x for x in run if any(x.glob('*.py'))] + [ROOT / 'configs']
    configs = find_files('--configs', args.configs or places, ['.py'])
    configs.sort(key=lambda x: Path(x[1]).parent not in run)
    if args.images:
        return configs, checkpoints, find_files('--images', args.images, IMAGES)
    try:
        data = test_dataset(load_config(configs[0][1]))
    except ValueError:  # there is no test data
        return configs, checkpoints, []
    prefix = data.get('data_prefix') or ''
    if isinstance(prefix, dict):  # the images' prefix comes first
        prefix = next(iter(prefix.values()))
    folder = Path(data.get('data_root') or prefix, prefix)
    files = sorted(x for x in folder.glob('*') if x.suffix.lower() in IMAGES)[:PICTURES]
    return configs, checkpoints, [(x.name, str(x)) for x in files]


def check_picture(path, megapixels):
    """Checks an untrusted picture, and returns its (width, height), upright.

    Its pixels are decoded only if the file's header does not announce too many.
    """
    try:
        with Image.open(path, formats=FORMATS) as image:
            width, height = image.size
            if min(image.size) < SMALLEST or width * height > megapixels * 1e6:
                raise ValueError(f'it has {width} x {height} pixels')
            return ImageOps.exif_transpose(image).convert('RGB').size
    except Exception as error:  # a decoder can raise any error
        raise ValueError(
            f'image={path.name!r}: {error}. Give {", ".join(FORMATS)} of up to '
            f'{megapixels:g} megapixels, with sides of {SMALLEST} pixels or more'
        ) from error


def serve(args):
    """Serves the page until it is ended."""
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
                'demo.py needs the package gradio: pip install -r requirements/demo.txt'
            ) from None
        # end like Ctrl+C, so that uploads do not outlive the page
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        # a web page's name may resolve to this machine; Starlette reads any IPv6
        # address as '['
        own = [args.host, 'localhost', '127.0.0.1', socket.gethostname().lower(), '[']
        names = ['*'] if args.host in ('0.0.0.0', '::', '[::]') else own
        middleware = [
            Middleware(TrustedHostMiddleware, allowed_hosts=names),
            Middleware(BaseHTTPMiddleware, dispatch=own_server_only),
        ]
        make_page(gradio, args).queue(max_size=16, api_open=False).launch(
            server_name=args.host,
            max_file_size=MEGABYTES * 10**6,
            show_api=False,
            show_error=True,
            app_kwargs=dict(middleware=middleware),
        )


async def own_server_only(request, call_next):
    """Removes links to other hosts from Gradio's page, and forbids browsers any."""
    response = await call_next(request)
    if response.headers.get('content-type', '').startswith('text/html'):
        from starlette.responses import HTMLResponse

        html = b''.join([part async for part in response.body_iterator])
        html = re.sub(rb'<(link|meta|script)[^>]*"https?:[^>]*>', b'', html)
        response = HTMLResponse(html, response.status_code)
    response.headers['content-security-policy'] = (
        "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'"
    )
    return response


def make_page(gradio, args):
    """The page: its layout and its functions."""
    configs, checkpoints, images = offered(args)

    @lru_cache(KEPT)
    def load(config, checkpoint):
        label = f'{Path(config).stem}\n({Path(checkpoint).name})'
        return Subject(config, checkpoint, label, args.shape, args.device, whole=True)

    def show(path):
        """The picture, its path and size, and empty figures."""
        size = check_picture(Path(path), args.max_megapixels)
        return read_pixels(path), (Path(path), size), None, None, None

    def chosen_models(view, names):
        if view is None:
            raise ValueError('there is no picture: upload or choose one')
        pairs = [pair for pair in zip(names[::2], names[1::2]) if pair[0] != NONE]
        if not pairs:
            raise ValueError('no model is chosen: choose one')
        return view[0], [load(*pair) for pair in pairs]

    def show_predictions(score, view, *names):
        """Pictures in their own size, and the parts below them."""
        path, subjects = chosen_models(view, names)
        found = [predict(subject, path, score) for subject in subjects]
        return [
            (pixels, f'{subject.label}\n{summary(numbers)}')
            for subject, (numbers, pixels) in zip(subjects, found)
        ]

    def show_attention(place: gradio.SelectData, view, *names):
        path, subjects = chosen_models(view, names)
        point = [(x + 0.5) / side for x, side in zip(place.index, view[1])]
        rows = [row for x in subjects for row in attention_rows(x, path, [point])]
        x, y = place.index
        return gradio.Plot(draw_attention(rows), label=f'Attention at ({x}, {y})')

    def show_frequencies(view, *names):
        path, subjects = chosen_models(view, names)
        return draw_frequencies(
            [x.describe(blocks=measure_frequencies(x, path)) for x in subjects]
        )

    def dropdown(offers, model, label, name):
        first = offers[0][1] if offers and not model else NONE
        options = dict(value=first, label=label, elem_id=f'{name}{model}')
        return gradio.Dropdown([(NONE, NONE), *offers], **options)

    theme = gradio.themes.Default(font='system-ui', font_mono='monospace')
    with gradio.Blocks(theme, css=CSS, title='mmlinattn', fill_width=True) as page:
        gradio.Markdown(TITLE)
        view = gradio.State()
        with gradio.Row():
            with gradio.Column():
                # a label would hide a corner
                shown = dict(show_label=False, show_download_button=False, format='png')
                picture = gradio.Image(interactive=False, elem_id='picture', **shown)
                upload = gradio.UploadButton('Upload a picture', elem_id='upload')
                gradio.Markdown(
                    f'{", ".join(FORMATS)}, up to {args.max_megapixels:g} megapixels '
                    f'and {MEGABYTES} MB.'
                )
                first = images[0][1] if images else None
                chosen = gradio.Dropdown(
                    images, value=first, label='or choose one', elem_id='chosen'
                )
            with gradio.Column(scale=2):
                models = []
                for i in range(MODELS):
                    with gradio.Row():
                        models.append(dropdown(configs, i, 'Model', 'config'))
                        text = 'Weights (none: random)'
                        models.append(dropdown(checkpoints, i, text, 'checkpoint'))
                text = 'Lowest score that is drawn'
                score = gradio.Slider(0, 1, args.score, label=text, elem_id='score')
                with gradio.Row():
                    options = dict(variant='primary', elem_id='predict')
                    predicts = gradio.Button('Predict', **options)
                    curves = gradio.Button('Frequency curves', elem_id='curves')
        predictions = gradio.Gallery(
            label='Predictions', columns=MODELS, format='png', elem_id='predictions'
        )
        attention, frequencies = (
            gradio.Plot(label=name, elem_id=name.lower())
            for name in ('Attention', 'Frequencies')
        )
        # one request is answered at a time
        options = dict(api_name=False, concurrency_id='models', concurrency_limit=1)
        shown = [picture, view, predictions, attention, frequencies]
        upload.upload(show, upload, shown, **options)
        upload.upload(lambda: None, outputs=chosen, **options)  # chosen once more
        chosen.input(show, chosen, shown, **options)
        inputs = [view, *models]
        predicting = dict(options, inputs=[score, *inputs], outputs=predictions)
        predicts.click(show_predictions, **predicting)
        score.release(show_predictions, **predicting)
        if images:
            loaded = page.load(show, chosen, shown, **options)
            if checkpoints:
                loaded.then(show_predictions, **predicting)
        curves.click(show_frequencies, inputs, frequencies, **options)
        picture.select(show_attention, inputs, attention, **options)
    return page


def main(argv=None):
    args = parse_args(argv)
    with errors_in_one_line(*LIBRARY_ERRORS), quiet(), style.context(STYLE):
        serve(args)


if __name__ == '__main__':
    main()
