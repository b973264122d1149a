"""The demo page and a browser, for draw.py and the page's test."""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / 'tools/misc/demo.py'
BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
LIMIT = 300  # seconds that the page may take to start


@contextmanager
def demo_page(*arguments, cwd=None):
    """Serves the demo page at a free port, in a process that ends with the block.

    Args:
        *arguments (str | Path): Arguments of tools/misc/demo.py.
        cwd (Path, optional): Its working directory.

    Yields:
        str: The page's address.

    Raises:
        RuntimeError: With its output, if it does not start.
    """
    command = [sys.executable, '-u', DEMO, *arguments]
    with tempfile.NamedTemporaryFile() as log:
        server = subprocess.Popen(command, cwd=cwd, stdout=log, stderr=log)
        try:
            yield address_of(server, Path(log.name))
        finally:
            server.terminate()
            server.wait(30)


def address_of(server, log):
    """Waits for the address in the log file of a process."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = re.search(r'http://127\.0\.0\.1:\d+', log.read_text())
        if found:
            return found[0]
        if server.poll() is not None:
            break
        time.sleep(0.5)
    raise RuntimeError(f'the demo page does not start: {log.read_text()}')


def launch(playwright):
    """Starts an installed Chromium.

    Args:
        playwright (playwright.sync_api.Playwright): Its driver.

    Raises:
        FileNotFoundError: If there is none.
    """
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise FileNotFoundError(f'none of {", ".join(BROWSERS)} is installed')
    return playwright.chromium.launch(executable_path=path, args=['--no-sandbox'])
