"""Code that all commands share, without the libraries of models.

``verbs`` lists the commands, ``start`` prepares their process, ``program`` knows how it
was started and so what to print as the next command, ``parser`` and
``run_arguments`` read arguments and report errors in one line, ``figures`` and
``pictures`` draw, and ``label_files`` notes what a config was made of.
"""
