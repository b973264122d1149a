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
import ipaddress
import os
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, add_overwrite, output_folder, protect
from mmlinattn_tools.visualization import (
    RANDOM,
    WEIGHTS,
    Choice,
    Demo,
    Limits,
    check_shape,
    draw_frequencies,
    draw_heatmaps,
    draw_predictions,
    figure_pixels,
    find_files,
    input_errors,
    position,
    side,
    thumbnail,
)

ROOT = Path(__file__).resolve().parents[2]
NO_MODEL = '-'
MODELS = 3
LARGEST_VIEW = 1600  # pixels of the longer side of the picture in the page
PICTURES = ('.bmp', '.jpeg', '.jpg', '.png', '.webp')
GRADIO = 'gradio==5.38.2'
STYLE = """
footer {display: none !important}  /* a link to an API that is closed */
/* a long name ends before the arrow */
input[role=listbox] {text-overflow: ellipsis; margin-right: 1.5em}
"""


def parse_args(argv=None):
    parser = Parser(
        description=__doc__, usage='%(prog)s [IMAGE CONFIG CHECKPOINT] [options]'
    )
    parser.add_argument('files', nargs='*', metavar='FILE', help=argparse.SUPPRESS)
    page = parser.add_argument_group('the page')
    page.add_argument(
        '--configs',
        nargs='+',
        default=[os.path.relpath(ROOT / 'configs')],
        metavar='PATH',
        help='configs to choose from, and folders of them (default: %(default)s)',
    )
    page.add_argument(
        '--checkpoints',
        nargs='+',
        default=[],
        metavar='PATH',
        help='weights to choose from, and folders of them (default: none; random '
        'weights as training from scratch starts with can always be chosen)',
    )
    page.add_argument(
        '--images',
        nargs='+',
        default=[],
        metavar='PATH',
        help='pictures to choose from, and folders of them (default: none)',
    )
    page.add_argument(
        '--host',
        default='127.0.0.1',
        help='address to serve at; 0.0.0.0 lets every machine of the network in '
        '(default: %(default)s, this machine only)',
    )
    page.add_argument(
        '--port',
        type=port,
        default=7860,
        help='port to serve at, 0 for any that is free (default: %(default)s)',
    )
    files = parser.add_argument_group('files')
    files.add_argument(
        '--at',
        type=position,
        default=(0.5, 0.5),
        metavar='X,Y',
        help='the query whose attention is drawn: its place from the left and from the '
        'top as parts of the sides, 0 to 1 (default: 0.5,0.5)',
    )
    files.add_argument(
        '--out',
        type=output_folder,
        default=Path('work_dirs/demo'),
        metavar='FOLDER',
        help='folder to write to (default: %(default)s)',
    )
    add_overwrite(files)
    parser.add_argument(
        '--shape',
        nargs='+',
        type=side,
        metavar='SIDE',
        help='height and width in pixels to which pictures are resized, or one number '
        "for both (default: as each config's test pipeline does)",
    )
    parser.add_argument(
        '--score',
        type=part,
        default=0.3,
        metavar='S',
        help='the lowest score of a detection that is drawn (default: %(default)s)',
    )
    parser.add_argument(
        '--max-megapixels',
        type=positive,
        default=Limits().megapixels,
        metavar='N',
        help='the largest picture that is taken (default: %(default)g)',
    )
    parser.add_argument(
        '--device', default='cpu', help='where models run (default: %(default)s)'
    )
    args = parser.parse_args(argv)
    if len(args.files) not in (0, 3):
        parser.error(
            'give IMAGE CONFIG CHECKPOINT, or none of them for the page; got '
            f'{len(args.files)}: {" ".join(args.files)}'
        )
    return args


def port(text):
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f'{text!r} is not a port, 0 to 65535')
    return int(text)


def part(text):
    value = number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number in 0...1')
    return value


def positive(text):
    value = number(text)
    if not 0 < value < float('inf'):
        raise argparse.ArgumentTypeError(f'{text!r} is not a number above 0')
    return value


def number(text):
    try:
        return float(text)
    except ValueError:
        return -1.0


def options(args):
    """Arguments of a Demo that both ways share."""
    return dict(
        limits=Limits(megapixels=args.max_megapixels),
        shape=check_shape(args.shape),
        score=args.score,
        device=args.device,
    )


def write_files(args):
    image, config, checkpoint = args.files
    stem = Path(image).stem
    endings = 'predictions.png', 'attention.png', 'frequencies.png', 'demo.json'
    protect(args, *(args.out / f'{stem}_{x}' for x in endings))
    random = checkpoint == 'none'
    demo = Demo(
        find_files('CONFIG', [config], ['.py']),
        {} if random else find_files('CHECKPOINT', [checkpoint], WEIGHTS),
        find_files('IMAGE', [image], PICTURES),
        **options(args),
    )
    choice = Choice(*(str(Path(x).expanduser()) for x in (config, checkpoint)))
    choice = choice._replace(checkpoint=RANDOM) if random else choice
    name = str(Path(image).expanduser())
    pixels = demo.open_image(name)
    for path in demo.write(pixels, choice, args.at, args.out, stem):
        print(path)


def serve(args):
    # as Ctrl+C does, so that uploads do not outlive the page
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        gradio = import_gradio(folder)
        demo = Demo(
            find_files('--configs', args.configs, ['.py']),
            find_files('--checkpoints', args.checkpoints, WEIGHTS),
            find_files('--images', args.images, PICTURES),
            uploads=Path(folder),
            **options(args),
        )
        page = make_page(gradio, demo)
        page.queue(max_size=16, api_open=False)
        print(
            f'{len(demo.configs)} configs, {len(demo.checkpoints)} checkpoints, '
            f'{len(demo.images)} pictures to choose from; Ctrl+C ends it'
        )
        page.launch(
            server_name=args.host,
            server_port=args.port or free_port(args.host),
            max_file_size=int(demo.limits.megabytes * 1e6),
            share=False,
            show_api=False,
            app_kwargs=dict(middleware=[(OwnHostOnly, (args.host,), {})]),
        )


class OwnHostOnly:
    """Tells browsers to ask no other host, for Gradio's page names scripts of others.

    Answers no request for another host either: a page of the web may have its name lead
    to this machine, and read what is shown here.

    Args:
        app: What answers, an ASGI application.
        host (str): Name or address that the page is served at.
    """

    HEADER = (
        b'content-security-policy',
        b"default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'",
    )

    def __init__(self, app, host):
        self.app = app
        self.names = {host, 'localhost', socket.gethostname().lower()}

    def is_own(self, headers):
        """Whether a request names this host; an address can be no name of others."""
        host = dict(headers).get(b'host', b'').decode('latin-1')
        try:
            name = urlsplit(f'//{host}').hostname or ''
            return name in self.names or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    async def __call__(self, scope, receive, send):
        if scope['type'] != 'lifespan' and not self.is_own(scope['headers']):
            await send(dict(type='http.response.start', status=421, headers=[]))
            await send(dict(type='http.response.body', body=b'not this host'))
            return

        async def answer(message):
            if message['type'] == 'http.response.start':
                message['headers'] = [*message.get('headers', ()), self.HEADER]
            await send(message)

        await self.app(scope, receive, answer)


def import_gradio(folder):
    """The package gradio, which keeps its files in a folder and tells nobody of us.

    Raises:
        ImportError: If it is missing.
    """
    os.environ['GRADIO_TEMP_DIR'] = folder
    os.environ.setdefault('GRADIO_ANALYTICS_ENABLED', 'False')
    try:
        import gradio
    except ImportError:
        raise ImportError(
            f"demo.py's page needs the package gradio: pip install {GRADIO} (Python "
            '3.10 or newer); with IMAGE CONFIG CHECKPOINT it works without'
        ) from None
    return gradio


def free_port(host):
    with socket.create_server((host, 0)) as server:
        return server.getsockname()[1]


def make_page(gradio, demo):
    """The layout of the page, and which of its parts calls what of the demo."""
    theme = gradio.themes.Default(  # with fonts that are not asked for elsewhere
        font=['system-ui', 'sans-serif'], font_mono=['ui-monospace', 'monospace']
    )
    with gradio.Blocks(
        title='mmlinattn', theme=theme, css=STYLE, analytics_enabled=False
    ) as page:
        gradio.Markdown(
            '# What models predict, and what their attentions look at\n'
            'Choose models, then a picture. Click the picture to see what the '
            'attention of each layer gives to that place.'
        )
        state = gradio.State()
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
                gradio.Markdown(f'{demo.limits}.')
                chosen = gradio.Dropdown(
                    entries(demo.images),
                    value=None,
                    label='or choose one',
                    visible=bool(demo.images),
                    elem_id='chosen',
                )
            with gradio.Column(scale=2):
                slots = [model_slot(gradio, demo, i) for i in range(MODELS)]
                every_layer = gradio.Checkbox(
                    label='Attention of every layer, not of the last of each stage',
                    elem_id='every-layer',
                )
                with gradio.Row():
                    predict = gradio.Button(
                        'Predict', variant='primary', elem_id='predict'
                    )
                    curves = gradio.Button('Frequency curves', elem_id='curves')
                message = gradio.Textbox(
                    'Choose a picture.',
                    label='Message',
                    interactive=False,
                    elem_id='message',
                )
        results = [
            figure_slot(gradio, name)
            for name in ('Predictions', 'Attention', 'Frequencies')
        ]
        models = [part for slot in slots for part in slot]
        answers = Answers(demo)

        def click(place: gradio.SelectData, view, every, *names):
            return answers.attention(view, every, names, place.index)

        predictions, attention, frequencies = results
        shown = [message, state, picture, *results]
        upload.upload(answers.upload, upload, shown, api_name=False)
        chosen.input(answers.choose, chosen, shown, api_name=False)
        predict.click(
            answers.predict, [state, *models], [message, predictions], api_name=False
        )
        picture.select(
            click, [state, every_layer, *models], [message, attention], api_name=False
        )
        curves.click(
            answers.curves, [state, *models], [message, frequencies], api_name=False
        )
    return page


class Answers:
    """What the parts of the page show, as values of its components.

    Args:
        demo (Demo): Answers.
    """

    def __init__(self, demo):
        self.demo = demo

    def upload(self, path):
        """Message, state, picture, and three figures that are gone."""
        return self.picture(lambda: self.demo.open_upload(path))

    def choose(self, name):
        return self.picture(lambda: self.demo.open_image(name))

    def picture(self, read):
        try:
            image = read()
        except (ValueError, OSError) as error:
            return f'Error: {error}', None, None, None, None, None
        height, width = image.shape[:2]
        view = thumbnail(image, LARGEST_VIEW)
        text = f'{width} x {height} pixels. Predict, or click a pixel.'
        return text, (image, view.shape[1::-1]), view, None, None, None

    def predict(self, view, *names):
        def draw(image, choices):
            return draw_predictions(image, self.demo.predict(image, choices))

        return self.figure(draw, view, names, 'Predictions')

    def attention(self, view, every_layer, names, place):
        def draw(image, choices):
            point = tuple((x + 0.5) / side for x, side in zip(place, view[1]))
            rows = self.demo.attention(image, choices, point, every_layer)
            return draw_heatmaps(rows)

        return self.figure(draw, view, names, f'Attention at {tuple(place)}')

    def curves(self, view, *names):
        def draw(image, choices):
            return draw_frequencies(self.demo.frequencies(image, choices))

        return self.figure(draw, view, names, 'Frequency curves')

    def figure(self, draw, view, names, what):
        """Message and figure; of an error, the message only."""
        start = time.perf_counter()
        try:
            if view is None:
                raise ValueError('there is no picture: upload or choose one')
            choices = [
                Choice(*pair)
                for pair in zip(names[::2], names[1::2])
                if pair[0] != NO_MODEL
            ]
            pixels = figure_pixels(draw(view[0], choices))
        except (ValueError, OSError) as error:
            return f'Error: {error}', None
        return f'{what}: {time.perf_counter() - start:.1f} s', pixels


def entries(files):
    """Entries of a list: file names where they differ, or else paths."""
    names = [path.name for path in files.values()]
    return [
        (name if names.count(name) == 1 else key, key)
        for name, key in zip(names, files)
    ]


def figure_slot(gradio, name):
    """A heading, and the figure below it."""
    gradio.Markdown(f'### {name}')
    return gradio.Image(
        show_label=False, interactive=False, format='png', elem_id=name.lower()
    )


def model_slot(gradio, demo, index):
    """The two lists that a model is chosen in."""
    configs, weights = entries(demo.configs), [RANDOM, *entries(demo.checkpoints)]
    with gradio.Row():
        return (
            gradio.Dropdown(
                [NO_MODEL, *configs],
                value=NO_MODEL if index else next(iter(demo.configs)),
                label=f'Model {index + 1}',
                elem_id=f'config{index + 1}',
            ),
            gradio.Dropdown(
                weights,
                value=RANDOM if index else next(iter(demo.checkpoints), RANDOM),
                label='Checkpoint',
                elem_id=f'checkpoint{index + 1}',
            ),
        )


def main(argv=None):
    args = parse_args(argv)
    with input_errors():
        write_files(args) if args.files else serve(args)


if __name__ == '__main__':
    main()
