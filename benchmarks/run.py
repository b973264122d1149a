"""Measures models or functions side by side; see ``--help``, and for a whole plan
``--plan gpu --help``."""

import sys

import common  # noqa: F401

if __name__ == '__main__':
    if any(arg.split('=')[0] == '--plan' for arg in sys.argv[1:]):
        from side_by_side.plan import main
    else:
        from side_by_side.command import main
    main()
