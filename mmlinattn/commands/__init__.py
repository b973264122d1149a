"""The commands, one module each, with a ``main`` that takes the arguments.

:mod:`mmlinattn.cli.verbs` has their names. ``mmlinattn --help`` lists them.
"""
