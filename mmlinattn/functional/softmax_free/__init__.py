"""Softmax-free attention of SOFT and SOFT++: the Gaussian kernel and its products, and
the landmarks' (pseudo-)inverse."""
