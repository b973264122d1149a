"""What the tools that look at models share: models, images, figures, arguments."""

from .command import (
    Subject,
    add_arguments,
    check_shape,
    input_errors,
    load_subject,
    load_subjects,
    position,
    side,
)
from .demo import RANDOM, WEIGHTS, Choice, Demo, find_files
from .figures import figure_pixels, line_style, new_figure, save, save_numbers, tidy
from .frequencies import average_reports, draw_frequencies, measure_frequencies
from .heatmaps import choose_layers, draw_heatmaps, heatmap_numbers, heatmap_rows
from .images import (
    Picture,
    find_images,
    image_pipeline,
    read_picture,
    read_pixels,
    thumbnail,
)
from .models import feature_extractor, load_model, read_model_config
from .predictions import class_name, dataset_meta, draw_predictions, kind_of, look_at
from .uploads import Limits

__all__ = [
    'RANDOM',
    'WEIGHTS',
    'Choice',
    'Demo',
    'Limits',
    'Picture',
    'Subject',
    'add_arguments',
    'average_reports',
    'check_shape',
    'choose_layers',
    'class_name',
    'dataset_meta',
    'draw_frequencies',
    'draw_heatmaps',
    'draw_predictions',
    'feature_extractor',
    'figure_pixels',
    'find_files',
    'find_images',
    'heatmap_numbers',
    'heatmap_rows',
    'image_pipeline',
    'input_errors',
    'kind_of',
    'line_style',
    'load_model',
    'load_subject',
    'load_subjects',
    'look_at',
    'measure_frequencies',
    'new_figure',
    'position',
    'read_model_config',
    'read_picture',
    'read_pixels',
    'save',
    'save_numbers',
    'side',
    'thumbnail',
    'tidy',
]
