"""Models of MMDetection, MMSegmentation and MMPretrain as one function of an image.

``pixels`` has the steps before a network, and ``whole`` those after it, some of which
are private methods of the libraries.
"""
