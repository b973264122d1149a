"""Two skeletons, and the named models on them."""
