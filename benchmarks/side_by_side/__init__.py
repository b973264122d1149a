"""Models and functions measured side by side; ``benchmarks/run.py`` is the command."""
