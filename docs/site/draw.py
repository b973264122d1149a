"""Draw the pictures of the documentation.

The command below a picture in docs/methods.md makes it, from models in
work_dirs/claims, where the experiments of the tag v0.2.0 export them, and photographs
of scikit-image. Pictures get fewer colors and pixels until they are small enough.
`--only demo` takes the screenshot of docs/demo.md from the results of `make quickstart`
in work_dirs/quickstart, and needs Chromium. requirements/demo.txt lists the packages.

examples:
  python docs/site/draw.py --only pinv_report
  python docs/site/draw.py --only demo
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from demo_browser import demo_page, launch
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from mmlinattn_tools.cli import Parser, errors_in_one_line, exit_with

PAGE = ROOT / 'docs' / 'methods.md'
PICTURES = ROOT / 'docs' / 'pictures'
MAX_BYTES = 120_000
PHOTOS = 'rocket', 'chelsea'
DEMO = ROOT / 'docs' / 'images' / 'demo.png'
# A picture, and the command below it.
SHOWN = re.compile(
    r'!\[[^\]]*\]\(pictures/(\w+)\.png\)\n.*?```bash\n(python .*?)```', re.S
)


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('--only', metavar='NAME', help='one picture, such as attention')
    parser.add_argument(
        '--runs',
        type=Path,
        default=ROOT / 'work_dirs',
        help='the folder work_dirs/ (default: %(default)s)',
    )
    args = parser.parse_args(argv)
    args.shown = dict(SHOWN.findall(PAGE.read_text('utf-8')))
    names = [*args.shown, DEMO.stem]
    if args.only and args.only not in names:
        parser.error(f'--only must be one of {", ".join(names)}, got {args.only!r}')
    return args


def write_photos(folder):
    """Writes the photographs for the commands of the page."""
    try:
        from skimage import data
    except ImportError:
        exit_with('scikit-image is missing: pip install -r requirements/demo.txt')
    folder.mkdir(parents=True, exist_ok=True)
    for name in PHOTOS:
        Image.fromarray(getattr(data, name)()).save(folder / f'{name}.png')


def draw(name, command, runs):
    """Runs a command of the page, and stores the one picture that it makes.

    Args:
        name (str): Name of the picture.
        command (str): The command on the page, without --out.
        runs (Path): The folder work_dirs/ of the command.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = shlex.split(command.replace('\\\n', ' '))[1:]
        words = [x.replace('work_dirs/', f'{runs}/') for x in words]
        subprocess.run([sys.executable, *words, '--out', folder], cwd=ROOT, check=True)
        pictures = sorted(Path(folder).glob('*.png'))
        wanted = [path for path in pictures if name in path.stem] or pictures
        picture = Image.open(wanted[0]).convert('RGB')
    store(picture, PICTURES / f'{name}.png')


def store(picture, path):
    """Stores a picture in MAX_BYTES or less."""
    for width in range(1200, 0, -100):
        small = picture.copy()
        small.thumbnail((width, 10 * width), Image.Resampling.LANCZOS)
        # k-means keeps rare colors, such as those of scales
        few = small.quantize(256, kmeans=8, dither=Image.Dither.NONE)
        few.save(path, optimize=True)
        if path.stat().st_size <= MAX_BYTES:
            break


def take_screenshot(runs, path):
    """The demo page with predictions, attention and frequencies of a picture."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise RuntimeError(
            'playwright is missing: pip install -r requirements/demo.txt'
        ) from error
    # the page shows their paths
    options = '--checkpoints', f'{runs.name}/quickstart/train', '--score', '0.5'
    with (
        demo_page(*options, cwd=runs.parent) as address,
        sync_playwright() as playwright,
    ):
        chromium = launch(playwright)
        page = chromium.new_page(viewport=dict(width=1000, height=1000))
        page.set_default_timeout(120_000)
        page.goto(address)
        image = page.locator('#picture img')
        for shown in (image, page.locator('#predictions img')):
            shown.wait_for()
        for click, shown in (
            (image.click, 'attention'),
            (page.locator('#curves').click, 'frequencies'),
        ):
            click()
            page.locator(f'#{shown} img').wait_for()
        with tempfile.NamedTemporaryFile(suffix='.png') as file:
            page.screenshot(path=file.name, full_page=True)
            store(Image.open(file.name).convert('RGB'), path)
        chromium.close()


def main(argv=None):
    args = parse_args(argv)
    PICTURES.mkdir(exist_ok=True)
    if args.only == DEMO.stem:
        with errors_in_one_line(RuntimeError, FileNotFoundError):
            return take_screenshot(args.runs.resolve(), DEMO)
    write_photos(args.runs / 'photos')
    for name, command in args.shown.items():
        if args.only in (None, name):
            print(name, flush=True)
            try:
                draw(name, command, args.runs.resolve())
            except subprocess.CalledProcessError as error:
                exit_with(f'{name}.png is not drawn, exit code {error.returncode}')


if __name__ == '__main__':
    main()
