"""Readers of the files of labelling tools, one file each.

A reader is a module with ``recognizes(file)``, whether a file is of this tool, and
``read(file, folder)``, what it says of photos. Those of this package are asked in turn.
"""
