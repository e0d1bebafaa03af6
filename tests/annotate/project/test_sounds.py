import io
import struct
import wave

import pytest

from shortlist.annotate.project.media import clean_media
from shortlist.errors import InputError


def wav(frames: int = 100) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(2 * frames))
    return out.getvalue()


def page(content: bytes, granule: int) -> bytes:
    head = b"OggS\x00\x00" + struct.pack("<qIII", granule, 1, 0, 0)
    return head + bytes([1, len(content)]) + content


WAV = wav()
OGG = page(b"OpusHead" + bytes(11), 0) + page(b"OpusTags" + bytes(8), 0) + page(bytes(50), 960)
# a block of STREAMINFO (44,100 per second), the last one, then a frame
FLAC = b"fLaC\x80\x00\x00\x22" + bytes(10) + (44100 << 4).to_bytes(3, "big") + bytes(21) + b"\xff\xf8" + bytes(20)
FRAME = b"\xff\xfb\x90\x00" + bytes(413)  # MPEG 1, layer III, 128 kbit/s, 44,100 per second: 417 bytes
MP3 = b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10) + 2 * FRAME


@pytest.mark.parametrize(
    ("data", "kind"),
    [(WAV, "wav"), (OGG, "ogg"), (FLAC, "flac"), (MP3, "mpeg"), (FRAME, "mpeg"), (FRAME + b"TAG" + bytes(125), "mpeg")],
)
def test_what_plays_is_taken_as_it_is(data, kind):
    assert clean_media(data) == (data, f"audio/{kind}")


@pytest.mark.parametrize(
    "data",
    [
        *(WAV[:40], WAV.replace(b"data", b"dada"), wav(0), WAV.replace(b"\x01\x00\x01\x00", b"\x99\x00\x01\x00")),
        *(OGG.replace(b"OpusHead", b"theora!!"), page(b"OpusHead" + bytes(11), 0), OGG[:20]),
        *(FLAC[:-22], b"fLaC" + bytes(100), FLAC.replace(b"\x0a\xc4\x40", bytes(3))),
        *(FRAME[:200], FRAME + b"<html>", b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(500), b"\xff\xfb\x90\x00"),
    ],
)
def test_what_does_not_play_is_refused(data):
    with pytest.raises(InputError, match=r"broken sound|not an image"):
        clean_media(data)
