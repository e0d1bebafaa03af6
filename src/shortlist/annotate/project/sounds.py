"""Whether a sound can be played, by its structure: a browser would only be silent."""

import struct

from shortlist.errors import InputError

_WAV_FORMATS = (1, 3, 6, 7, 0xFFFE)  # whole numbers, floats, A-law, mu-law, and one of them in the long form
_OGG_CODECS = (b"\x01vorbis", b"OpusHead", b"\x7fFLAC")
# kbit/s by index, for MPEG 1 (layers I, II, III) and for MPEG 2 and 2.5 (I; II and III)
_KBITS = {
    (1, 1): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (1, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (1, 3): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (2, 1): (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (2, 2): (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


def check_sound(data: bytes, media_type: str) -> None:
    """Refuse a sound that would not play."""
    playable = {"audio/wav": _wav, "audio/ogg": _ogg, "audio/flac": _flac, "audio/mpeg": _mpeg}[media_type]
    try:
        good = playable(data)
    except (struct.error, IndexError):
        good = False
    if not good:
        raise InputError(f"a broken sound ({media_type}): it cannot be played")


def _wav(data: bytes) -> bool:
    place, known = 12, False
    while place + 8 <= len(data):
        name, length = data[place : place + 4], struct.unpack_from("<I", data, place + 4)[0]
        if name == b"fmt ":
            form, channels, rate = struct.unpack_from("<HHI", data, place + 8)
            known = form in _WAV_FORMATS and channels > 0 and rate > 0
        elif name == b"data":
            return known and length > 0 and place + 8 < len(data)
        place += 8 + length + length % 2
    return False


def _ogg(data: bytes) -> bool:
    """A codec that browsers know, and a last page that is later than the beginning."""
    start = 27 + data[26]
    codec = any(data[start:].startswith(name) for name in _OGG_CODECS)
    return codec and bool(struct.unpack_from("<q", data, data.rindex(b"OggS") + 6)[0] > 0)


def _flac(data: bytes) -> bool:
    place, rate = 4, 0
    while True:
        head, length = data[place], int.from_bytes(data[place + 1 : place + 4], "big")
        if head & 0x7F == 0:
            rate = int.from_bytes(data[place + 14 : place + 17], "big") >> 4
        place += 4 + length
        if head & 0x80:
            return rate > 0 and data[place] == 0xFF and data[place + 1] & 0xFC == 0xF8


def _mpeg(data: bytes) -> bool:
    """Two frames, one behind the other."""
    place = 0
    if data[:3] == b"ID3":
        size = [byte & 0x7F for byte in data[6:10]]
        place = 10 + (size[0] << 21 | size[1] << 14 | size[2] << 7 | size[3])
        while place < len(data) and data[place] == 0:  # padding
            place += 1
    end = place + _frame(data, place)
    follows = end == len(data) or data[end : end + 3] == b"TAG" or _frame(data, end) > 0
    return place < end <= len(data) and follows


def _frame(data: bytes, place: int) -> int:
    """The length in bytes of the MPEG frame at `place`; 0 if there is none."""
    sync, kind, code = data[place], data[place + 1], data[place + 2]
    version, layer = kind >> 3 & 3, 4 - (kind >> 1 & 3)
    if sync != 0xFF or kind & 0xE0 != 0xE0 or version == 1 or layer == 4 or code >> 4 in (0, 15) or code >> 2 & 3 == 3:
        return 0
    old = version == 3
    kbits = _KBITS[(1, layer) if old else (2, min(layer, 2))][code >> 4]
    rate, padding = _RATES[version][code >> 2 & 3], code >> 1 & 1
    if layer == 1:
        return (12_000 * kbits // rate + padding) * 4
    return (144_000 if old or layer == 2 else 72_000) * kbits // rate + padding
