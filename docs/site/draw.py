"""Draw the pictures of the documentation.

The command below a picture in docs/methods.md makes it, from models in
work_dirs/claims, where the experiments of the tag v0.2.0 export them, and photographs
of scikit-image. Pictures get fewer colors and pixels until they are small enough.

example:
  python docs/site/draw.py --only attention
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))

from mmlinattn_tools.cli import Parser, exit_with

PAGE = ROOT / 'docs' / 'methods.md'
PICTURES = ROOT / 'docs' / 'pictures'
MAX_BYTES = 120_000
PHOTOS = 'rocket', 'chelsea'
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
    if args.only and args.only not in args.shown:
        names = ', '.join(args.shown)
        parser.error(f'--only must be one of {names}, got {args.only!r}')
    return args


def write_photos(folder):
    """Writes the photographs for the commands of the page."""
    try:
        from skimage import data
    except ImportError:
        exit_with('scikit-image is missing: pip install scikit-image==0.25.2')
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


def main(argv=None):
    args = parse_args(argv)
    PICTURES.mkdir(exist_ok=True)
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
