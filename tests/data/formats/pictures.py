"""Pictures to read."""

from PIL import Image


def picture(path, value=0, size=(6, 4), mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = value if mode in ("L", "1", "I;16", "P") else (value,) * len(mode)
    Image.new(mode, size, colour).save(path, **options)
    return path
