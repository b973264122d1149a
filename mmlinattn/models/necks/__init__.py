"""What plain backbones and classifiers need between backbone and head."""
