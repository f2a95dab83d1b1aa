"""Fingerprints and sketches of the default profile, written from docs/fingerprint-format.md alone: nothing of nearprint is imported.

It needs xxhash. Where Python's tables of Unicode know less than the page asks for, a comment says so.
"""
import html.entities
import math
import re
import unicodedata
from collections import Counter

import xxhash

SEED = 2
MASK = (1 << 64) - 1
# Hexadecimal: the fractional parts of the square roots of 2, 3, 5, 7 (occurrences), 11 and 13 (shingles).
OCCURRENCE = (0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1)
SECOND, REDRAW = 0x510E527FADE682D1, 0x9B05688C2B3E6C1F

HAN = "\u4e00-\u9fff\u3005\u3007\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002fa1f\U00030000-\U00033479"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001affe"
UNSPACED = (HAN + KATAKANA + "\u3041-\u309a\u309d-\u309f\U0001b000-\U0001b16f\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"
            "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f\u1780-\u17d3\u17d7\u17dc\u17dd")
# No Word_Break property (Other), though letters: Tai scripts, Ahom, and ideographs that are not Han.
NO_WORDS = "\u1950-\u19df\u1a20-\u1aad\uaa80-\uaadf\U00011700-\U00011746\U00017000-\U00018cff\U0001b170-\U0001b2fb"
is_han, is_unspaced = re.compile(f"[{HAN}]").match, re.compile(f"[{UNSPACED}]").match
# Word_Break ALetter: an iteration mark that is Han, and letters in circles and squares, which are symbols by their category.
LETTERS = "\u3005\u24b6-\u24e9\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189"
is_letter = re.compile(f"[{LETTERS}]").match
is_katakana, is_other = re.compile(f"[{KATAKANA}]").match, re.compile(f"[{UNSPACED}{NO_WORDS}]").match
WHITE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
INVISIBLE = re.compile("[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u180e\ufeff\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb"
                       "\U0001d173-\U0001d17a\U000e0000-\U000e007f]")


def normalize(text):
    text = re.sub(r"&(?:#([0-9]+)|#[xX]([0-9a-fA-F]+)|([0-9A-Za-z]+));", entity, text)
    text = unicodedata.normalize("NFKC", INVISIBLE.sub("", text))
    text = unicodedata.normalize("NFKC", text.casefold())
    return re.sub(f"[{WHITE}]+", " ", text).strip(" ")


def entity(match):
    decimal, hexadecimal, name = match.groups()
    if name:
        return html.entities.html5.get(name + ";", match[0])
    code = int(decimal) if decimal else int(hexadecimal, 16)
    refused = code > 0x10FFFF or 0xD800 <= code < 0xE000 or (code < 0x20 and code not in (9, 10, 12, 13))
    return match[0] if refused else chr(code)


def is_mark(c):
    return unicodedata.category(c)[0] == "M"


def is_alphanumeric(c):
    """A letter or digit. Python does not tell which marks are Alphabetic: those of combining class 0 are taken for it."""
    return bool(is_han(c) or is_letter(c)) or unicodedata.category(c)[0] in "LN" or (is_mark(c) and not unicodedata.combining(c))


def is_word(c):
    return c == "_" or is_alphanumeric(c) or is_mark(c)


def word_break(c):
    """The Word_Break property of a character of a word: Letter, Number, Katakana, E(xtendNumLet), X (a mark), Other."""
    if c == "_":
        return "E"
    if is_mark(c):
        return "X"
    if is_letter(c):
        return "L"
    if is_katakana(c):
        return "K"
    if is_other(c):
        return "O"
    category = unicodedata.category(c)
    return "N" if category == "Nd" else "L" if category[0] == "L" or category == "Nl" else "O"


def unicode_words(run):
    """UAX #29 inside a run of word characters."""
    words, before = [], None
    for c in run:
        kind = word_break(c)
        joins = before and (kind == "X" or (before in "LN" and kind in "LN") or (before == kind and kind in "KE")
                            or (before == "E" and kind in "LNK") or (before in "LNK" and kind == "E"))
        words[-1:] = [words[-1] + c] if joins else words[-1:] + [c]
        before = before if joins and kind == "X" else kind
    return [word for word in words if any(map(is_alphanumeric, word))]


def tokens(text, in_pairs):
    """The tokens in order: of the fingerprint if `in_pairs`, else of the sketch."""
    found, at = [], 0
    while at < len(text):
        segment = re.compile(r"[\0-\x7f]*").match(text, at)[0]
        after = text[at + len(segment):][:1]
        if after and is_word(after) and not is_common_han(after):
            segment = re.sub(r"[0-9A-Za-z_]+\Z", "", segment)
        for run in segment.split():
            words = [word for word in re.findall(r"[0-9A-Za-z_]+", run) if word.strip("_")]
            found += [run] if len(run) >= 100 and words else words
        at += len(segment)
        end = at
        while in_pairs and end < len(text) and is_unspaced(text[end]):
            end += 1
        if end > at:
            found += pairs(text[at:end])
        elif at < len(text):
            end = word_end(text, at, in_pairs)
            found += unicode_words(text[at:end])
        at = end
    return found


def word_end(text, at, in_pairs):
    """The end of the run of word characters at `at`, which is not ASCII; of a symbol or a blank the place after it."""
    end = at + 1
    after = text[end:end + 1]
    is_whole_han = is_common_han(text[at]) and (after < "\x80" or is_common_han(after) or not is_word(after))
    if is_word(text[at]) and not is_whole_han:
        while end < len(text) and is_word(text[end]) and not (in_pairs and is_unspaced(text[end])):
            end += 1
    return end


def is_common_han(c):
    return "\u4e00" <= c <= "\u9fff"


def pairs(run):
    """Every two neighbouring characters, each with its marks."""
    characters = [run[0]]
    for c in run[1:]:
        if is_mark(c):
            characters[-1] += c
        else:
            characters.append(c)
    return ["".join(two) for two in zip(characters, characters[1:])] or characters


def features(text):
    """The distinct tokens of a normalised text with their weights, in units of 1/65536."""
    def weight(token, count):
        whole = round((1 + math.log(count)) * 65536)
        letters = sum(2 if is_unspaced(c) or "\uac00" <= c <= "\ud7a3" else 1 for c in token)
        return whole // 2 if letters <= 3 else whole
    return {token: weight(token, count) for token, count in Counter(tokens(text, True)).items()}


def is_enough(text, n_features):
    letters = [c for c in text if is_alphanumeric(c)]
    return n_features >= (10 if 2 * sum(1 for c in letters if is_unspaced(c)) > len(letters) else 8)


def simhash(weights):
    votes = [0] * 64
    for token, weight in weights.items():
        hashed = xxhash.xxh3_64_intdigest(token.encode(), seed=SEED)
        for bit in range(64):
            votes[bit] += weight if hashed >> bit & 1 else -weight
    return sum(1 << bit for bit, vote in enumerate(votes) if vote > 0)


def fold(a, b):
    return (a * b & MASK) ^ (a * b >> 64)


def follow(first, then):
    return fold(first ^ SECOND, (then << 32 & MASK | then >> 32) ^ REDRAW)


def mix(value):
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def elements(text):
    """The hashes of what the sketch sees: the first four occurrences of each token, and the distinct shingles of three."""
    hashes = [xxhash.xxh3_64_intdigest(token.encode(), seed=SEED) for token in tokens(text, False)]
    occurrences = [fold(h, key) for h, count in Counter(hashes).items() for key in OCCURRENCE[:count]]
    return occurrences + list({follow(follow(a, b), c) for a, b, c in zip(hashes, hashes[1:], hashes[2:])})


def donor(bin_number, least):
    """The bin that lends its value to an empty one: the first with a value, in an order of the empty bin's own."""
    order = 0
    while True:
        order += 1
        for lender in mix(bin_number << 32 | order).to_bytes(8, "big"):
            if lender in least:
                return lender


def sketch(hashes):
    least = {}
    for h in hashes:
        least[h >> 56] = min(h, least.get(h >> 56, h))
    bits = [mix(least[n if n in least else donor(n, least)] ^ mix(n + 1)) & 1 for n in range(256)]
    return bytes(sum(bits[8 * byte + at] << at for at in range(8)) for byte in range(32))


def analyse(text):
    """All that the page freezes about a text, in the form of a line of docs/vectors/default.jsonl."""
    normalized = normalize(text)
    if not normalized:
        return {"normalized": normalized, "outcome": "empty"}
    weights, found = features(normalized), {"normalized": normalized}
    found["features"] = [[token, weight] for token, weight in weights.items()]
    found["text_hash"] = xxhash.xxh3_128_hexdigest(normalized.encode())
    if not is_enough(normalized, len(weights)):
        return found | {"outcome": "too_short"}
    seen = elements(normalized)
    return found | {"outcome": "fingerprinted", "fingerprint": f"{simhash(weights):016x}", "sketch": sketch(seen).hex(),
                    "n_features": len(seen)}
