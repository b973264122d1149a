"""What the tools that look at models share: models, images, figures, arguments."""

from .command import Subject, add_arguments, input_errors, load_subjects
from .figures import line_style, new_figure, save, save_numbers, tidy
from .images import Picture, find_images, image_pipeline, read_picture
from .models import feature_extractor, load_model, read_model_config

__all__ = [
    'Picture',
    'Subject',
    'add_arguments',
    'feature_extractor',
    'find_images',
    'image_pipeline',
    'input_errors',
    'line_style',
    'load_model',
    'load_subjects',
    'new_figure',
    'read_model_config',
    'read_picture',
    'save',
    'save_numbers',
    'tidy',
]
